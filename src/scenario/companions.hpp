// Members that belong together: who overrides one of them alone takes the other along.
#pragma once

#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scenario/inputs.hpp"

namespace nvlsim {

/// `sets`, with overrides of the members of the platform `doc` that follow an overridden one: the bandwidth that
/// programs reach follows that of the data sheet, the memory that they see the memory that the vendor prints, and
/// the switch trays of a domain follow its VMs. A member that `sets` overrides itself follows nothing. Call before
/// the overrides are applied. [docs/platform-format.md#members-that-follow-others]
std::vector<override_at> with_companions(const config::document& doc, const std::vector<override_at>& sets);

}  // namespace nvlsim
