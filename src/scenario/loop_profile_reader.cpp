#include "scenario/loop_profile_reader.hpp"

#include "nvlsim/config/fields.hpp"
#include "nvlsim/scenario/loop_profile.hpp"

namespace nvlsim {
namespace {

constexpr const char* loop_schema = "nvlsim.loop/1";

template <class F, class T>
void list_costs(F f, T& c) {
  f("rollout_factor", c.rollout_factor, config::positive);
  f("update_factor", c.update_factor, config::positive);
  f("sample_host", c.sample_host);
  f("step_host", c.step_host);
  f("change_host", c.change_host);
  f("host_copy_share", c.host_copy_share, config::range<double>{1e-3, 1});
  f("broadcast_rate", c.broadcast_rate, config::positive);
  f("broadcast_hop", c.broadcast_hop);
  f("port_share", c.port_share, config::range<double>{1e-3, 1});
  f("transfer_fixed", c.transfer_fixed);
  f("per_tensor", c.per_tensor);
  f("requantise_rate", c.requantise_rate, config::positive);
  f("error_90", c.error_90, config::fraction);
}

/// Reads the document of a framework; adds its problems.
loop_profile read_profile(config::document& file, const std::string& name, diagnostics& problems) {
  loop_profile out;
  config::reader f(file, problems);
  if (const std::string schema = f.string("schema"); schema != loop_schema && !schema.empty())
    f.fail("schema", std::string("expected \"") + loop_schema + "\", found \"" + schema + "\"");
  f.ignore("sources");
  out.name = name;
  out.description = f.string("description");
  f.require_sources("/framework");
  config::reader c = f.child("costs");
  list_costs(config::field_reader(c), out);
  c.done();
  f.done();
  return out;
}

}  // namespace

loop_profile load_loop_profile(const std::string& name, const data_folders& data) {
  diagnostics problems;
  config::document file =
      config::load_named(data.platforms / "loops", {"framework", name, {name, "", {}, {}}}, problems);
  problems.throw_if_any();
  loop_profile out = read_profile(file, name, problems);
  problems.throw_if_any();
  return out;
}

void read_framework(config::reader& r, const config::document& doc, const data_folders& data,
                    post_training_workload& w, diagnostics& problems) {
  const std::string name = r.string("framework");
  const value* costs = r.raw("costs");
  if (name.empty()) return;
  const problem asked{doc.origin_of("/workload/framework").where, "/workload/framework", {}, {}};
  diagnostics own;
  config::document file = config::load_named(data.platforms / "loops", {"framework", name, asked}, own);
  if (costs && !costs->members()) r.fail("costs", "expected an object of costs of the framework");
  else if (own.empty() && costs)
    config::merge(file, value{value::object{{"costs", *costs}}}, {"scenario", doc.self.where, true}, "/workload");
  if (own.empty()) {
    w.costs = read_profile(file, name, own);
    w.framework = file.resolved();
  }
  for (problem& p : own.sorted()) {
    config::relocate(p, file);
    problems.add(std::move(p));
  }
}
value write_costs(const loop_profile& c) {
  value out{value::object{}};
  list_costs(config::field_writer(out), c);
  return out;
}

}  // namespace nvlsim
