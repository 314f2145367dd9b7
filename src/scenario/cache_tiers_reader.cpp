#include "scenario/cache_tiers_reader.hpp"

#include <array>
#include <string>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

const std::array<std::string, 3> kinds = {"cpu", "nvme", "pool"};
const std::array<std::string, 2> writes = {"through", "back"};

cache_tier read_one(config::reader& r) {
  cache_tier t;
  t.kind = static_cast<tier_kind>(r.one_of("kind", kinds));
  t.capacity = r.find_quantity<bytes>("capacity", {1, 1e18});
  t.rate = r.find_quantity<bandwidth>("bandwidth", {1, 1e15});
  t.latency = r.find_quantity<seconds>("latency", {0, 1e3}).value_or(seconds{});
  t.write = static_cast<cache_write>(r.one_of_or("write", writes, 0));
  if (t.kind == tier_kind::pool && !r.has("capacity")) r.fail("capacity", "a pool needs a capacity");
  r.done();
  return t;
}

}  // namespace

std::vector<cache_tier> read_cache_tiers(config::reader& workload) {
  std::vector<cache_tier> out;
  if (!workload.has("cache_tiers")) return out;
  for (config::reader one : workload.elements("cache_tiers")) out.push_back(read_one(one));
  return out;
}

value write_cache_tiers(const std::vector<cache_tier>& tiers) {
  value out{value::array{}};
  for (const cache_tier& t : tiers) {
    value one{value::object{{"kind", kinds[static_cast<std::size_t>(t.kind)]}}};
    if (t.capacity) one.set("capacity", exact_quantity(t.capacity->base(), bytes::dim_type::value));
    if (t.rate) one.set("bandwidth", exact_quantity(t.rate->base(), bandwidth::dim_type::value));
    one.set("latency", exact_quantity(t.latency.base(), seconds::dim_type::value));
    one.set("write", writes[static_cast<std::size_t>(t.write)]);
    out.items()->push_back(std::move(one));
  }
  return out;
}

}  // namespace nvlsim
