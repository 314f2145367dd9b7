// Sensitivity of a metric to the constants of its run. [docs/models-and-assumptions.md#sensitivity]
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/run/child.hpp"
#include "nvlsim/run/explain_scenario.hpp"
#include "nvlsim/run/run.hpp"
#include "nvlsim/units/in_parallel.hpp"

namespace nvlsim {
namespace {

constexpr double step = 0.1;                  // relative change of each constant
constexpr double lowest = 0.25, highest = 4;  // factors between which turning points are searched
constexpr double far = 3;                     // factor at which a constant without effect is tried last
constexpr int bisections = 12;
constexpr std::size_t max_turning_points = 5;
// A table key, not a quantity.
constexpr std::string_view generation = "/platform/gpu/nvlink_generation";
// Faster memory also streams faster, so both change together under the first name.
constexpr std::string_view memory_rate = "/platform/gpu/hbm_bandwidth", stream_rate = "/platform/gpu/hbm_stream";

/// The number that a text begins with, and the rest: " GB/s".
std::pair<std::optional<double>, std::string_view> number_of(const std::string& text) {
  double x = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (error != std::errc{}) return {};
  return {x, std::string_view(end, text.data() + text.size())};
}

bool is_count(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

/// The texts to try for a constant that is moved: as it comes, and of a count the nearest one.
std::vector<std::string> moved_texts(const std::string& text, double factor) {
  const std::string scaled = scaled_text(text, factor);
  if (scaled.empty()) return {};
  if (!is_count(text)) return {scaled};
  return {scaled, fmt::format("{:.0f}", std::stod(scaled))};
}

/// A scenario with a constant moved.
struct probe {
  bool refused = false;  ///< a file may not have that value
  value outputs;         ///< null when the run refuses it
  std::optional<double> amount;
  std::string bottleneck;  ///< what most of the time behind the metric is spent on
};

/// What is asked of a probe beside its outputs.
struct question {
  std::string metric = {};
  bool bottleneck = false;  ///< takes an explained run, and so does a metric that no output has
};

/// A number among the outputs, by the metric's name: "ttft_s.p50".
std::optional<double> number_of(const value& metrics, const std::string& metric) {
  const std::size_t dot = metric.find('.');
  const value* v = metrics.find(metric.substr(0, dot));
  if (v && dot != std::string::npos) v = v->find(metric.substr(dot + 1));
  return v && v->number() ? std::optional(*v->number()) : std::nullopt;
}

/// An empty `metric` asks for the outputs alone.
probe probe_of(const changed_scenario& change, const std::vector<override_option>& sets, const question& asked) {
  const std::string& metric = asked.metric;
  probe out;
  std::optional<scenario> s;
  try {
    s = change(sets);
  } catch (const input_error&) {
    out.refused = true;
    return out;
  }
  try {
    const bool explained = asked.bottleneck;
    const run_record run = run_scenario(*s, {.explained = explained, .traced = explained, .simulate = false});
    out.outputs = outputs_of(run.outcome);
    if (metric.empty() || run.outcome.status == run_status::infeasible) return out;
    out.amount = number_of(run.outcome.metrics, metric);
    if (!explained) return out;
    const explanation e = explain(*s, run, metric);
    out.amount = e.amount;
    for (const cause_tree& t : e.trees)
      if (t.title == "by bound" && !t.whole.parts.empty()) out.bottleneck = t.whole.parts.front().name;
  } catch (const input_error&) {
    out.outputs = {};
  }
  return out;
}

class prober {
 public:
  prober(const explanation& e, const changed_scenario& change) : metric_(e.metric), change_(change) {
    for (const input_constant& c : e.constants)
      if (c.pointer == stream_rate) stream_ = c.text;
    const probe now = probe_of(change_, {}, {metric_});
    as_it_is_ = now.outputs;
    explains_ = now.amount != e.amount;
  }

  probe at(const input_constant& c, double factor, bool bottleneck = false) const {
    probe out;
    out.refused = true;
    for (const std::string& text : moved_texts(c.text, factor)) {
      std::vector<override_option> sets = {{c.pointer, text}};
      if (c.pointer == memory_rate && !stream_.empty())
        sets.push_back({std::string(stream_rate), scaled_text(stream_, factor)});
      out = probe_of(change_, sets, {metric_, bottleneck || explains_});
      if (!out.refused) break;
    }
    return out;
  }
  bool changed(const probe& p) const { return !p.refused && p.outputs != as_it_is_; }
  const value& as_it_is() const { return as_it_is_; }

 private:
  std::string metric_, stream_;
  const changed_scenario& change_;
  value as_it_is_;
  bool explains_ = false;  ///< only an explanation has the metric
};

double effect(const sensitivity& s) {
  return std::max(std::abs(s.less.value_or(0)), std::abs(s.more.value_or(0)));
}

/// Finds the factor between `inside` and `outside` at which the bottleneck stops being `from`.
std::optional<turning_point> turning_point_of(const prober& p, const input_constant& c, const std::string& from,
                                              double outside) {
  const probe beyond = p.at(c, outside, true);
  if (!beyond.amount || beyond.bottleneck.empty() || beyond.bottleneck == from) return std::nullopt;
  double same = 1, other = outside;
  std::string to = beyond.bottleneck;
  for (int i = 0; i < bisections; ++i) {
    const double middle = std::sqrt(same * other);
    const probe x = p.at(c, middle, true);
    if (!x.amount) return std::nullopt;
    if (x.bottleneck == from) {
      same = middle;
    } else {
      other = middle;
      to = x.bottleneck;
    }
  }
  return turning_point{c, other, from, to};
}

std::string bottleneck_of(const explanation& e) {
  for (const cause_tree& t : e.trees)
    if (t.title == "by bound" && !t.whole.parts.empty()) return t.whole.parts.front().name;
  return {};
}

bool is_below(const std::string& pointer, std::string_view prefix) {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  return pointer.starts_with(prefix) && (pointer.size() == prefix.size() || pointer[prefix.size()] == '/');
}

/// The first two names of a pointer, "/platform/gpu", or a part's stack, "/jobs/0/stack".
std::string group_of(const std::string& pointer) {
  constexpr std::string_view stack = "/stack/";
  if (const std::size_t of_part = pointer.find(stack); of_part != 0 && of_part != std::string::npos)
    return pointer.substr(0, of_part + stack.size() - 1);
  const std::size_t second = pointer.find('/', 1);
  return pointer.substr(0, second == std::string::npos ? second : pointer.find('/', second + 1));
}

/// The constants below one of the pointers. All of them without pointers.
std::vector<input_constant> constants_below(const std::vector<input_constant>& all,
                                            const std::vector<std::string>& only) {
  if (only.empty()) return all;
  diagnostics problems;
  for (const std::string& prefix : only) {
    if (std::any_of(all.begin(), all.end(), [&](const auto& c) { return is_below(c.pointer, prefix); })) continue;
    std::set<std::string> groups;
    for (const input_constant& c : all) groups.insert(group_of(c.pointer));
    const std::vector<std::string> names(groups.begin(), groups.end());
    problems.add("--only", "",
                 fmt::format("this run reads no constant below \"{}\"{}", prefix,
                             names.empty() ? "" : fmt::format("; it reads some below {}", fmt::join(names, ", "))),
                 nearest(prefix, names));
  }
  problems.throw_if_any();
  std::vector<input_constant> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out), [&](const input_constant& c) {
    return std::any_of(only.begin(), only.end(), [&](const auto& prefix) { return is_below(c.pointer, prefix); });
  });
  return out;
}

/// What moving one constant does.
struct finding {
  std::optional<sensitivity> moved;
  bool binds = false;
};

/// Moves one constant by a tenth. `amount` is the metric as it is.
finding moved(const prober& p, const input_constant& c, double amount) {
  if (number_of(c.text).first.value_or(0) == 0) return {};  // no tenth of zero
  const probe less = p.at(c, 1 - step), more = p.at(c, 1 + step);
  sensitivity s{c, {}, {}};
  if (less.amount) s.less = *less.amount / amount - 1;
  if (more.amount) s.more = *more.amount / amount - 1;
  finding out{{}, p.changed(less) || p.changed(more)};
  if (effect(s) > 1e-6) out.moved = std::move(s);
  return out;
}

/// A number as text that gives it back to the last bit.
std::string exact(const std::optional<double>& x) { return x ? fmt::format("{:a}", *x) : "-"; }
std::optional<double> number_from(const std::string& text) {
  return text == "-" ? std::nullopt : std::optional(std::strtod(text.c_str(), nullptr));
}

/// What a child process says of one of `count` questions, and what is done with it here.
struct asked_of_children {
  std::function<std::string(std::size_t)> say;
  std::function<void(std::size_t, const std::string&)> hear;
};

struct busy_child : child_process {
  std::size_t question = 0;
  std::string said;
};

/// Reads until one of them has said all.
std::size_t wait_for_one(std::vector<busy_child>& children) {
  std::array<char, 4096> chunk{};
  while (true) {
    std::vector<pollfd> ends;
    for (const busy_child& c : children) ends.push_back({c.from, POLLIN, 0});
    if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR)
      throw internal_error(fmt::format("poll: {}", std::strerror(errno)));
    for (std::size_t i = 0; i < children.size(); ++i) {
      if ((ends[i].revents & (POLLIN | POLLHUP | POLLERR)) == 0) continue;
      const ssize_t n = ::read(children[i].from, chunk.data(), chunk.size());
      if (n > 0) children[i].said.append(chunk.data(), static_cast<std::size_t>(n));
      else if (n == 0 || errno != EINTR) return i;
    }
  }
}

/// Children that are left when an exception passes end with it.
struct busy_children : std::vector<busy_child> {
  busy_children() = default;
  busy_children(const busy_children&) = delete;
  busy_children& operator=(const busy_children&) = delete;
  ~busy_children() {
    for (const busy_child& c : *this) {
      ::kill(c.pid, SIGKILL);
      ::close(c.from);
      end_of(c);
    }
  }
};

/// An answer, or why there is none: what is thrown must not leave the child.
constexpr std::string_view answered = "answer ", threw = "threw ";
std::string guarded(const std::function<std::string(std::size_t)>& say, std::size_t question) {
  try {
    return std::string(answered) + say(question);
  } catch (const std::exception& e) {
    return std::string(threw) + e.what();
  }
}

/// Asks a child each question, as many at a time as there are processors: the simulation engine runs one step at a
/// time in a process.
void in_children(std::size_t count, const asked_of_children& asked) {
  busy_children children;
  for (std::size_t next = 0; next < count || !children.empty();) {
    while (next < count && children.size() < processors()) {
      children.push_back({start_child([&asked, next] { return guarded(asked.say, next); }), next, {}});
      ++next;
    }
    const std::size_t at = wait_for_one(children);
    const busy_child done = std::move(children[at]);
    children.erase(children.begin() + static_cast<std::ptrdiff_t>(at));
    ::close(done.from);
    const int state = end_of(done);
    if (was_ended(state)) throw limit_error(silence_reason(state));
    if (state != 0) throw internal_error(silence_reason(state));
    if (!done.said.starts_with(answered))
      throw internal_error(done.said.substr(std::min(threw.size(), done.said.size())));
    asked.hear(done.question, done.said.substr(answered.size()));
  }
}

/// A finding as a child tells it.
std::string text_of(const finding& f) {
  const std::string moved = f.moved ? exact(f.moved->less) + " " + exact(f.moved->more) : "";
  return fmt::format("{} {}", f.binds ? 1 : 0, moved);
}
finding finding_in(const std::string& said, const input_constant& c) {
  std::istringstream words(said);
  finding out;
  std::string less, more;
  words >> out.binds;
  if (words >> less >> more) out.moved = sensitivity{c, number_from(less), number_from(more)};
  return out;
}

bool needs_simulator(const scenario& s) {
  return std::holds_alternative<shared_workload>(s.workload) || s.simulation.network != fidelity::closed;
}

void add_turning_points(explanation& e, const prober& p, bool simulates) {
  const std::string now = bottleneck_of(e);
  if (now.empty()) return;
  const std::size_t moved = std::min(max_turning_points, e.sensitivities.size());
  std::vector<std::optional<turning_point>> found(2 * moved);
  const auto find = [&](std::size_t i) {
    return turning_point_of(p, e.sensitivities[i / 2].what, now, i % 2 == 0 ? lowest : highest);
  };
  if (simulates) {
    in_children(found.size(), {[&](std::size_t i) {
                                 const auto t = find(i);
                                 return t ? exact(t->factor) + " " + t->to : std::string();
                               },
                               [&](std::size_t i, const std::string& said) {
                                 const std::size_t space = said.find(' ');
                                 if (space == std::string::npos) return;
                                 found[i] = {e.sensitivities[i / 2].what, *number_from(said.substr(0, space)), now,
                                             said.substr(space + 1)};
                               }});
  } else {
    in_parallel(found.size(), [&](std::size_t i) { found[i] = find(i); });
  }
  for (std::optional<turning_point>& t : found)
    if (t) e.turning_points.push_back(std::move(*t));
}

}  // namespace

value outputs_of(const result& r) {
  value reasons{value::array{}};
  for (const std::string& x : r.reasons) reasons.items()->emplace_back(x);
  return value{value::object{{"status", name(r.status)},
                             {"reasons", std::move(reasons)},
                             {"metrics", r.metrics},
                             {"breakdown", r.breakdown},
                             {"memory", r.memory},
                             {"energy", r.energy},
                             {"cost", r.cost}}};
}

std::string scaled_text(const std::string& text, double factor) {
  const auto [x, unit] = number_of(text);
  return x ? fmt::format("{:.12g}{}", *x == 0 ? factor : *x * factor, unit) : std::string();
}

bool binds(const input_constant& c, const value& outputs, const changed_scenario& change) {
  for (const double factor : {far, 1 / far, 1 + step, 1 - step})
    for (const std::string& text : moved_texts(c.text, factor)) {
      const probe x = probe_of(change, {{c.pointer, text}}, {});
      if (x.refused) continue;
      if (x.outputs != outputs) return true;
      break;
    }
  return false;
}

void add_sensitivity(explanation& e, const changed_scenario& change,
                     const std::function<void(std::size_t, std::size_t)>& report,
                     const std::vector<std::string>& only) {
  const std::vector<input_constant> varied = constants_below(e.constants, only);
  if (!e.amount || *e.amount == 0) return;
  const prober p(e, change);
  const std::size_t all = varied.size();
  std::vector<finding> found(all);
  std::mutex reporting;
  std::size_t done = 0;
  const bool simulates = needs_simulator(change({}));
  const auto find = [&](std::size_t i) {
    const input_constant& c = varied[i];
    const bool alone = c.pointer != stream_rate && c.pointer != generation;
    finding out = alone ? moved(p, c, *e.amount) : finding{};
    if (!out.binds) out.binds = binds(c, p.as_it_is(), change);
    return out;
  };
  const auto keep = [&](std::size_t i, finding f) {
    found[i] = std::move(f);
    const std::lock_guard lock(reporting);
    report(++done, all);
  };
  if (simulates)
    in_children(all, {[&](std::size_t i) { return text_of(find(i)); },
                      [&](std::size_t i, const std::string& said) { keep(i, finding_in(said, varied[i])); }});
  else in_parallel(all, [&](std::size_t i) { keep(i, find(i)); });
  e.not_binding.emplace();
  for (std::size_t i = 0; i < all; ++i) {
    if (!found[i].binds) e.not_binding->push_back(varied[i].pointer);
    if (found[i].moved) e.sensitivities.push_back(std::move(*found[i].moved));
  }
  std::sort(e.not_binding->begin(), e.not_binding->end());
  std::stable_sort(e.sensitivities.begin(), e.sensitivities.end(),
                   [](const auto& a, const auto& b) { return effect(a) > effect(b); });
  add_turning_points(e, p, simulates);
}

}  // namespace nvlsim
