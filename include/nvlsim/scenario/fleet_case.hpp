// Serving replicas that come and go on a cluster: services as scenarios of their own.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "nvlsim/fleet/fleet.hpp"
#include "nvlsim/operation/checkpoint.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim {

struct scenario;

/// A service and what one replica of it runs.
struct fleet_member {
  fleet_service about;  ///< without what a replica achieves and the time it needs to start
  std::shared_ptr<const scenario> alone;
  constant<seconds> provision, warm_up;
  std::optional<constant<bandwidth>>
      load_bandwidth;  ///< of a replica's weights; nothing: the NVMe of its machines, or the store
  bool from_store = false;
};

struct fleet_case {
  fleet_spec cluster;              ///< without services
  std::optional<save_tier> store;  ///< that replicas may load from
  std::vector<fleet_member> services;
};

}  // namespace nvlsim
