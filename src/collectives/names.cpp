#include <array>

#include "nvlsim/collectives/collectives.hpp"

namespace nvlsim {
namespace {

const std::array<std::string, 9> names = {"all_reduce", "all_gather",        "reduce_scatter",
                                          "all_to_all", "broadcast",         "send_recv",
                                          "reduce",     "neighbor_exchange", "barrier"};
const std::array<std::string, 10> algorithms = {"ring",         "tree",    "halving_doubling", "pairwise",
                                                "hierarchical", "nvls",    "nvls_tree",        "sharp",
                                                "one_shot",     "two_shot"};

}  // namespace

std::string_view name(collective c) { return names[static_cast<std::size_t>(c)]; }

std::span<const std::string> collective_names() { return names; }
std::span<const std::string> collective_algorithms() { return algorithms; }

std::optional<collective> collective_by_name(std::string_view name) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<collective>(i);
  // Spellings of nccl-tests and of published tables.
  if (name == "alltoall") return collective::all_to_all;
  if (name == "sendrecv") return collective::send_recv;
  return std::nullopt;
}

double bus_factor(collective c, int ranks) {
  const double others = (ranks - 1.0) / ranks;
  switch (c) {
    case collective::all_reduce:
      return 2 * others;
    case collective::all_gather:
    case collective::reduce_scatter:
    case collective::all_to_all:
      return others;
    case collective::neighbor_exchange:
      return 2;
    default:
      return 1;
  }
}

}  // namespace nvlsim
