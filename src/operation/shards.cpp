#include "nvlsim/operation/shards.hpp"

#include <algorithm>
#include <deque>

#include "operation/job_phases.hpp"

namespace nvlsim {
namespace {

/// Replicas left among the first i, going round the ring twice.
std::vector<std::int64_t> left_before(const std::vector<bool>& out) {
  std::vector<std::int64_t> left(2 * out.size() + 1);
  for (std::size_t i = 0; i < 2 * out.size(); ++i) left[i + 1] = left[i] + (out[i % out.size()] ? 0 : 1);
  return left;
}

/// Whether replicas that compute `each` shards cover all. By Hall's theorem they do if no run of shards is longer
/// than what its holders compute: runs of neighbours are enough, for holders of a shard are neighbours. Shards
/// a to e - 1 are held by replicas a to e + copies - 2.
bool cover(const std::vector<std::int64_t>& left, std::int64_t replicas, std::int64_t copies, std::int64_t each) {
  if (replicas > each * left[at(replicas)]) return false;
  const auto needs = [&](std::int64_t e) { return e - each * left[at(e + copies - 1)]; };
  std::deque<std::int64_t> most;  // ends of runs under way that may need most, in descending order of need
  std::int64_t next = 1;
  for (std::int64_t a = 0; a < replicas; ++a) {
    for (; next <= a + replicas - copies + 1; ++next) {
      while (!most.empty() && needs(most.back()) <= needs(next)) most.pop_back();
      most.push_back(next);
    }
    while (!most.empty() && most.front() <= a) most.pop_front();
    if (!most.empty() && needs(most.front()) > a - each * left[at(a)]) return false;
  }
  return true;
}

}  // namespace

bool shards_are_held(const std::vector<bool>& out, std::int64_t copies) {
  std::int64_t run = 0;
  for (std::size_t i = 0; i < 2 * out.size(); ++i) {
    run = out[i % out.size()] ? run + 1 : 0;
    if (run >= std::min(copies, static_cast<std::int64_t>(out.size()))) return false;
  }
  return true;
}

std::optional<std::int64_t> fewest_shards(const std::vector<bool>& out, std::int64_t copies) {
  if (!shards_are_held(out, copies)) return std::nullopt;
  const auto replicas = static_cast<std::int64_t>(out.size());
  const std::vector<std::int64_t> left = left_before(out);
  std::int64_t each = (replicas + left[at(replicas)] - 1) / left[at(replicas)];
  while (!cover(left, replicas, std::min(copies, replicas), each)) ++each;
  return each;
}

}  // namespace nvlsim
