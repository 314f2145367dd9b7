#include "scenario/collective_reader.hpp"

#include <array>
#include <string>
#include <vector>

#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

/// "auto" and all algorithms that the library and its kernels can be forced to use.
std::vector<std::string> library_algorithms() {
  std::vector<std::string> out = {"auto"};
  out.insert(out.end(), collective_algorithms().begin(), collective_algorithms().end());
  return out;
}
const std::array<std::string, 4> ideal_algorithms = {"auto", "ring", "halving_doubling", "pairwise"};
const std::array<std::string, 1> parameter_sets = {"stack"};
const std::array<std::string, 2> roundings = {"none", "integer"};

ideal_network read_ideal(config::reader r) {
  ideal_network net;
  net.alpha = r.quantity<seconds>("alpha");
  net.rate = r.quantity<bandwidth>("bandwidth", config::positive);
  net.hops = static_cast<int>(r.integer_or("hops", 1, {1, 64}));
  net.endpoint = r.find_quantity<seconds>("endpoint_delay").value_or(seconds{});
  net.local_rate = r.find_quantity<bandwidth>("local_bandwidth", config::positive);
  net.splits = static_cast<int>(r.integer_or("splits", 1, {1, 4096}));
  net.integer = r.one_of_or("rounding", roundings, 0) == 1;
  r.done();
  return net;
}

void check_algorithm(const config::reader& r, const collective_workload& w) {
  try {
    ideal_algorithm(w.operation, w.algorithm, static_cast<int>(w.gpus));
  } catch (const input_error& e) {
    for (const problem& p : e.problems()) r.fail("algorithm", p.what);
  }
}

}  // namespace

bool is_collective(const value* workload) {
  const value* kind = workload ? workload->find("kind") : nullptr;
  return kind && kind->string() && *kind->string() == "collective";
}

bool has_ideal_parameters(const value* workload) {
  const value* parameters = workload ? workload->find("parameters") : nullptr;
  return parameters && parameters->members();
}

collective_workload read_collective_workload(config::reader& r) {
  collective_workload w;
  r.ignore("kind");
  w.operation = static_cast<collective>(r.one_of("operation", collective_names()));
  w.size = r.quantity<bytes>("size", {0, 1e18});
  w.gpus = r.integer("gpus", {1, 1 << 20});
  const value* parameters = r.raw("parameters");
  const bool ideal = parameters && parameters->members();
  if (ideal) w.ideal = read_ideal(r.child("parameters"));
  else r.one_of_or("parameters", parameter_sets, 0);
  const std::vector<std::string> names =
      ideal ? std::vector<std::string>(ideal_algorithms.begin(), ideal_algorithms.end()) : library_algorithms();
  if (const std::size_t i = r.one_of_or("algorithm", names, 0); i > 0) w.algorithm = names[i];
  if (ideal) check_algorithm(r, w);
  r.done();
  return w;
}

value write_collective_workload(const collective_workload& w) {
  value out{value::object{{"kind", "collective"}}};
  out.set("operation", collective_names()[static_cast<std::size_t>(w.operation)]);
  out.set("size", exact_quantity(w.size.base(), bytes::dim_type::value));
  out.set("gpus", w.gpus);
  if (w.ideal) {
    const ideal_network& net = *w.ideal;
    value p{value::object{}};
    p.set("alpha", exact_quantity(net.alpha.base(), seconds::dim_type::value));
    p.set("bandwidth", exact_quantity(net.rate.base(), bandwidth::dim_type::value));
    p.set("hops", net.hops);
    if (net.endpoint > seconds{})
      p.set("endpoint_delay", exact_quantity(net.endpoint.base(), seconds::dim_type::value));
    if (net.local_rate)
      p.set("local_bandwidth", exact_quantity(net.local_rate->base(), bandwidth::dim_type::value));
    p.set("splits", net.splits);
    p.set("rounding", roundings[net.integer ? 1 : 0]);
    out.set("parameters", std::move(p));
  } else {
    out.set("parameters", parameter_sets.front());
  }
  out.set("algorithm", w.algorithm.empty() ? "auto" : w.algorithm);
  if (!w.protocol.empty()) out.set("protocol", w.protocol);
  if (w.skew != 1) out.set("skew", w.skew);
  return out;
}

}  // namespace nvlsim
