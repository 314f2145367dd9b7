#include "scenario/post_training_reader.hpp"

#include "nvlsim/post_training/post_training.hpp"
#include "scenario/source.hpp"

namespace nvlsim {

post_training_case read_post_training(config::reader& r, const config::document& doc, const platform&,
                                      const scenario_reader& read_alone, diagnostics& problems) {
  config::reader w = r.child("workload");
  w.ignore("kind");
  post_training_workload loop;
  loop.steps = w.integer_or("steps", 1, {1, 1'000'000});
  post_training_case out;
  const auto part = [&](const char* name) {
    config::reader nested = w.child(name);
    auto read = read_nested(nested, doc, {name, {}}, read_alone, problems);
    nested.done();
    return read;
  };
  out.rollout = part("rollout");
  out.training = part("training");
  w.done();
  out.loop = std::make_shared<const post_training_workload>(loop);
  return out;
}

value write_post_training(const post_training_case& c) {
  value out{value::object{{"steps", c.loop->steps}}};
  out.set("rollout", write_workload(*c.rollout));
  out.set("training", write_workload(*c.training));
  return out;
}

}  // namespace nvlsim
