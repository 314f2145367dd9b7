#include "unit/serving/random_server.hpp"

namespace nvlsim {
namespace {

TEST_CASE("Iterations that are passed over at once are those played one by one, to the last bit") {
  const test::small_server server;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const inference_workload w = test::random_workload(seed);
    INFO("case " << seed);
    // A small cache preempts.
    const std::optional<std::int64_t> cache = seed % 3 == 0 ? std::optional<std::int64_t>(2048) : std::nullopt;
    const serving_run each = server.run(w, {.kv_capacity_tokens = cache, .traced = true});
    const serving_run passed = server.run(w, {.kv_capacity_tokens = cache, .traced = false});
    REQUIRE(each.reasons == passed.reasons);
    if (!each.reasons.empty()) continue;
    test::check_equal(each.outcome, passed.outcome);
    REQUIRE(each.uses.size() == passed.uses.size());
    for (std::size_t i = 0; i < each.uses.size(); ++i) {
      CHECK(each.uses[i].count == passed.uses[i].count);
      CHECK(each.uses[i].seconds == Approx(passed.uses[i].seconds).epsilon(1e-12));
      CHECK(each.uses[i].operation.duration.base() == passed.uses[i].operation.duration.base());
    }
  }
}

}  // namespace
}  // namespace nvlsim
