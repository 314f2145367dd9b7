#include "nvlsim/planner/serving_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "nvlsim/search/highest_load.hpp"
#include "planner/cut_lengths.hpp"
#include "planner/serving_combinations.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t first_tries = 6;  // deployments of each kind that are run at first
constexpr int rounds = 3;               // of moving GPUs and limits
constexpr int sizing_rounds = 8;        // of one worker more or fewer
constexpr std::size_t shown_losers = 8;
constexpr double clearly = 1.001;  // a deployment must be better by more than what a load is found to

struct planning {
  const serving_question& q;
  const plan_watch& watch;
  scenario base;
  rated_shapes rated;
  trial_runner runner;
  double output_tokens = 0;
};

double output_mean(const inference_workload& w) { return w.load == load_kind::trace ? 0 : sampled_mean(w.output); }

/// Whether a deployment meets the demand.
double demand(const serving_question& q) { return q.users > 0 ? q.users : q.requests_per_s; }
double supply(const serving_question& q, const server_held& h) { return q.users > 0 ? h.users : h.requests_per_s; }

bool is_better(const server_held& a, const server_held& b) {
  if (a.requests_per_s != b.requests_per_s) return a.requests_per_s > b.requests_per_s;
  if (a.trial.gpus() != b.trial.gpus()) return a.trial.gpus() < b.trial.gpus();
  return a.trial.key() < b.trial.key();
}

/// Whether `a` holds clearly more than `b`, or as much on fewer GPUs.
bool beats(const server_held& a, const server_held& b) {
  if (a.requests_per_s > clearly * b.requests_per_s) return true;
  return clearly * a.requests_per_s >= b.requests_per_s && a.trial.gpus() < b.trial.gpus();
}

const server_held* best_of(const std::vector<server_held>& all) {
  const auto most = std::min_element(all.begin(), all.end(), is_better);
  if (most == all.end() || most->requests_per_s == 0) return nullptr;
  const server_held* best = &*most;
  for (const server_held& h : all)
    if (clearly * h.requests_per_s >= most->requests_per_s && h.trial.gpus() < best->trial.gpus()) best = &h;
  return best;
}

std::int64_t own_tokens(const planning& p, const server_trial& t) {
  inference_workload w =
      alone(p.base, t.pooled ? t.prefill : t.workers, t.pooled ? worker_role::prefill : worker_role::combined, 1);
  return settings_of(*p.base.stack.inference, w).max_num_tokens;
}

/// The best deployment of a kind on a number of GPUs.
std::optional<server_held> best_on(planning& p, bool pooled, std::int64_t gpus) {
  std::vector<server_held> tried = p.runner.hold(combinations(p.rated, pooled, gpus, first_tries));
  const server_held* first = best_of(tried);
  if (!first) return std::nullopt;
  server_held best = *first;
  for (int i = 0; i < rounds && !p.watch.stopped(); ++i) {
    server_trial from = best.trial;
    from.guess = best.requests_per_s;
    std::vector<server_trial> next = shifted(p.rated, from, gpus);
    for (const server_trial& t : with_other_limits(from, own_tokens(p, from))) next.push_back(t);
    const std::vector<server_held> found = p.runner.hold(next);
    const server_held* better_one = best_of(found);
    if (!better_one || !beats(*better_one, best)) break;
    best = *better_one;
  }
  return best;
}

/// The deployment of a kind with the fewest GPUs that holds what is wanted, beginning with what the rates promise.
std::optional<server_held> fewest_for(planning& p, const server_trial& begin, double wanted) {
  std::vector<server_held> one = p.runner.hold({begin});
  if (one.empty() || one.front().requests_per_s == 0) return std::nullopt;
  server_held at = one.front();
  for (int i = 0; supply(p.q, at) < wanted && i < sizing_rounds && !p.watch.stopped(); ++i) {
    server_trial more = at.trial;
    more.guess = at.requests_per_s;
    const double factor = wanted / supply(p.q, at);
    const auto grown = [&](int n) { return std::max(n, static_cast<int>(std::floor(n * factor))); };
    more.workers.replicas = grown(more.workers.replicas);
    more.prefill.replicas = grown(more.prefill.replicas);
    std::vector<server_trial> next;
    if (more.key() != at.trial.key()) next.push_back(more);
    else next = neighbours(p.rated, more, 1, 0);
    for (server_trial& t : next) t.racks = static_cast<int>((t.gpus() + p.rated.domain - 1) / p.rated.domain);
    const auto found = p.runner.hold(next);
    const server_held* best = best_of(found);
    if (!best) break;
    at = *best;
  }
  if (supply(p.q, at) < wanted) return std::nullopt;
  for (int i = 0; i < sizing_rounds && !p.watch.stopped(); ++i) {
    server_trial from = at.trial;
    from.guess = at.requests_per_s;
    std::optional<server_held> smaller;
    for (const server_held& h : p.runner.hold(neighbours(p.rated, from, -1, 0)))
      if (supply(p.q, h) >= wanted && (!smaller || h.trial.gpus() < smaller->trial.gpus())) smaller = h;
    if (!smaller) break;
    at = *smaller;
  }
  return at;
}

/// The combination that the rates promise the most of on `gpus`, of both kinds.
std::optional<server_trial> most_by_rates(const planning& p, std::int64_t gpus) {
  std::optional<server_trial> best;
  for (const bool pooled : {false, true})
    for (const server_trial& t : combinations(p.rated, pooled, gpus, 1))
      if (!best || t.guess > best->guess) best = t;
  return best;
}

/// Seconds that a request stays, by the rated time per token of the workers within the limits.
double usual_stay(const planning& p) {
  constexpr double most_ttft_s = 1;  // assumed: looser limits on the first token are not used up
  const service_objective& o = std::get<inference_workload>(p.base.workload).objective;
  double stay = std::min(o.ttft_s.value_or(most_ttft_s), most_ttft_s) / 2;
  const auto rated = most_by_rates(p, p.rated.domain);
  stay += (rated ? rated->tpot_s : o.tpot_s.value_or(0)) * std::max(0.0, p.output_tokens - 1);
  return std::max(std::min(stay, o.e2e_s.value_or(HUGE_VAL)), 1e-3);
}

/// Requests/s that the demand comes to.
double wanted_rate(const planning& p) { return p.q.users > 0 ? p.q.users / usual_stay(p) : p.q.requests_per_s; }

/// Shares of the demand that are small enough to be run: a router for each. Their number does not have to be that
/// of the copies which hold the demand.
double shares_of_demand(const planning& p) {
  const double in_flight = p.q.users > 0 ? p.q.users : p.q.requests_per_s * usual_stay(p);
  return std::max(1.0, std::ceil(in_flight / p.q.users_of_router));
}

/// A deployment, and how many of it meet the demand.
struct copied_server {
  server_held one;
  std::int64_t copies = 1;

  std::int64_t gpus() const { return copies * one.trial.gpus(); }
};

bool takes_less(const copied_server& a, const copied_server& b) {
  return a.gpus() < b.gpus() || (a.gpus() == b.gpus() && is_better(a.one, b.one));
}

std::optional<copied_server> best_for_demand(planning& p, bool pooled) {
  constexpr std::size_t begins = 6;  // as for given GPUs: rates alone order shapes that are close wrongly
  const double shares = shares_of_demand(p);
  std::optional<copied_server> out;
  const auto consider = [&](const server_held& h, std::int64_t copies) {
    const copied_server c{h, copies};
    if (!out || takes_less(c, *out)) out = c;
  };
  for (const server_trial& t : combinations_for(p.rated, pooled, wanted_rate(p) / shares, begins))
    if (const auto h = fewest_for(p, t, demand(p.q) / shares); h && shares == 1) consider(*h, 1);
  if (shares == 1 && out) return out;  // else copies of what was run may hold it
  for (const server_held& h : p.runner.all())
    if (h.trial.pooled == pooled && supply(p.q, h) > 0) consider(h, copies_for(demand(p.q), supply(p.q, h)));
  return out;
}

/// The best on these GPUs: equal copies where one deployment of all would have more in flight than a router takes.
std::optional<copied_server> best_copies_on(planning& p, bool pooled, std::int64_t gpus) {
  const auto all = most_by_rates(p, gpus);
  const double in_flight = all ? all->guess * usual_stay(p) : 0;
  const auto shares =
      std::clamp(static_cast<std::int64_t>(std::ceil(in_flight / p.q.users_of_router)), std::int64_t{1}, gpus);
  const auto h = best_on(p, pooled, gpus / shares);
  if (!h) return std::nullopt;
  return copied_server{*h, shares > 1 ? gpus / h->trial.gpus() : 1};
}

std::string held_text(const server_trial& t) {
  std::string out = t.pooled ? layout_text(t.prefill) + " + " + layout_text(t.workers) : layout_text(t.workers);
  if (t.max_num_tokens > 0) out += fmt::format(", max_num_tokens {}", t.max_num_tokens);
  if (t.prefill_tokens > 0) out += fmt::format(", prefill max_num_tokens {}", t.prefill_tokens);
  return out;
}

void add_losers(serving_plan& out, const planning& p) {
  const planned_server* winner = out.best();
  if (!winner) return;
  std::vector<server_held> all = p.runner.all();
  std::erase_if(all, [&](const server_held& h) {
    return h.trial.key() == server_trial{winner->pooled, winner->workers, winner->prefill, winner->max_num_tokens,
                                         winner->prefill_tokens}
                                .key();
  });
  std::sort(all.begin(), all.end(), is_better);
  if (all.size() > shown_losers) all.resize(shown_losers);
  for (const server_held& h : all) {
    lost_server l{held_text(h.trial), h.requests_per_s, {}};
    if (h.requests_per_s == 0) l.why = h.missed;
    else
      l.why = fmt::format("holds {:.4g} requests/s on {} GPUs, {:+.1f} % a GPU", h.requests_per_s, h.trial.gpus(),
                          100 * (h.requests_per_s / static_cast<double>(h.trial.gpus()) /
                                     (winner->requests_per_s / static_cast<double>(winner->gpus)) -
                                 1));
    out.lost.push_back(std::move(l));
  }
}

void add_refusals(serving_plan& out, const std::vector<rated_worker>& of) {
  for (const rated_worker& w : of) {
    std::string why = w.reason;
    if (why.empty() && w.requests_per_s == 0 && !w.points.empty())
      why = "misses the limits with one request at a time";
    if (!why.empty()) out.refused[why].push_back(shape_text(w.shape));
  }
}

/// What the rates of workers promise: the fewest GPUs for the demand, or the most on the GPUs.
void add_rates(serving_plan& out, const planning& p) {
  std::optional<server_trial> best;
  for (const bool pooled : {false, true}) {
    const auto found = out.for_demand ? combinations_for(p.rated, pooled, wanted_rate(p), 1)
                                      : combinations(p.rated, pooled, out.gpus, 1);
    if (found.empty()) continue;
    const server_trial& t = found.front();
    if (!best || (out.for_demand ? t.gpus() < best->gpus() : t.guess > best->guess)) best = t;
  }
  if (best) out.by_rates = other_server{held_text(*best), best->gpus(), best->guess, 0};
}

void add_most_held(serving_plan& out, const planning& p) {
  const server_held* most = nullptr;
  const std::vector<server_held> all = p.runner.all();
  for (const server_held& h : all)
    if (h.requests_per_s > 0 && (!most || supply(p.q, h) > supply(p.q, *most))) most = &h;
  if (most)
    out.max_held = other_server{held_text(most->trial), most->trial.gpus(), most->requests_per_s, most->users};
}

void check(const scenario& s) {
  const auto* w = std::get_if<inference_workload>(&s.workload);
  diagnostics problems;
  if (!w) problems.add(s.file, "/workload/kind", "plan serving needs an inference workload");
  else if (w->load != load_kind::open_loop)
    problems.add(s.file, "/workload/load/kind",
                 "plan serving finds the load itself; give lengths of requests in an open_loop");
  else if (!w->objective.any()) problems.add(s.file, "/workload/slo", "give a limit on ttft or tpot");
  problems.throw_if_any();
}

}  // namespace

serving_plan plan_serving(const serving_question& q, const plan_watch& watch) {
  const auto begin = std::chrono::steady_clock::now();
  planning p{q, watch, read_base(q.base), {}, trial_runner(q.base, watch), 0};
  check(p.base);
  const auto& w = std::get<inference_workload>(p.base.workload);
  p.output_tokens = output_mean(w);
  p.rated.domain = std::max(1, p.base.platform.gpus_per_rack());
  serving_plan out;
  out.model = p.base.model.name;
  out.platform = p.base.platform.name;
  out.stack = p.base.stack.name;
  out.objective = w.objective;
  out.for_demand = q.gpus == 0 && demand(q) > 0;
  out.users_asked = q.users;
  out.requests_per_s_asked = q.requests_per_s;
  out.gpus = q.gpus > 0 ? q.gpus : p.rated.domain;
  p.base.platform.racks =
      std::max(p.base.platform.racks, static_cast<int>((out.gpus + p.rated.domain - 1) / p.rated.domain));
  const auto shapes = worker_shapes(p.base, out.for_demand ? p.rated.domain : out.gpus);
  p.rated.combined = rate_workers(p.base, shapes, worker_role::combined, watch, out.runs);
  p.rated.prefill = rate_workers(p.base, shapes, worker_role::prefill, watch, out.runs);
  p.rated.decode = rate_workers(p.base, shapes, worker_role::decode, watch, out.runs);
  add_rates(out, p);
  for (const bool pooled : {false, true}) {
    std::optional<copied_server> best;
    if (out.for_demand) best = best_for_demand(p, pooled);
    else best = best_copies_on(p, pooled, out.gpus);
    if (best) (pooled ? out.pooled : out.aggregated) = finished(q.base, best->one, best->copies);
  }
  if (out.for_demand && out.best()) out.gpus = out.best()->gpus;
  if (out.for_demand && !out.best()) add_most_held(out, p);
  const std::int64_t of_one = out.best() ? out.best()->gpus / out.best()->copies : out.gpus;
  out.points = points_of(p.rated, of_one, p.output_tokens, w.objective.ttft_s.value_or(HUGE_VAL));
  add_losers(out, p);
  add_refusals(out, p.rated.combined);
  out.runs += p.runner.runs();
  out.interrupted = watch.stopped();
  out.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

}  // namespace nvlsim
