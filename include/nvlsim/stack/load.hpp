// Reading stack files.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "nvlsim/config/document.hpp"
#include "nvlsim/stack/stack.hpp"

namespace nvlsim {

/// Reads a stack document (schema "nvlsim.stack/1"). Adds everything wrong with it to `problems`. `at` is the
/// pointer below which its constants are named.
stack read_stack(config::document& doc, std::string name, diagnostics& problems, const std::string& at = "/stack");

/// The members that hold a stack's numbers, in the order in which they are read. Each is read by itself.
inline constexpr std::array<std::string_view, 5> stack_sections = {"kernels", "kernel_spreads", "collectives",
                                                                   "training", "inference"};
/// Reads one of them over what `into` has of it. The document needs no others, but the "sources" that it names.
void read_stack_section(config::document& doc, std::string_view section, stack& into, diagnostics& problems,
                        const std::string& at);

/// The constants of a stack as its file would say them: reading them gives them back. Entries of "kernels" that
/// are like others have everything; spreads, residuals and calibrations are left out, and so are the names of what
/// stands for what.
value write_stack(const stack& s);

}  // namespace nvlsim
