#include "nvlsim/serving/summary.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "nvlsim/units/statistics.hpp"

namespace nvlsim {
namespace {

constexpr double classes_per_doubling = 8;

std::int32_t bin(double x) { return static_cast<std::int32_t>(classes_per_doubling * std::log2(x + 1)); }

void add(iteration_content& to, const iteration& it) {
  const iteration_content c = content_of(it);
  to.decodes += c.decodes;
  to.context += c.context;
  to.prompt_tokens += c.prompt_tokens;
  to.prompt_pairs += c.prompt_pairs;
  to.prompts += c.prompts;
  to.finished_prompts += c.finished_prompts;
}

void divide(iteration_content& c, double n) {
  for (double* x : {&c.decodes, &c.context, &c.prompt_tokens, &c.prompt_pairs, &c.prompts, &c.finished_prompts})
    *x /= n;
}

/// Adds `weight` to iterations first..last of a difference array.
void spread(std::vector<double>& differences, std::int32_t first, std::int32_t last, double weight) {
  if (last < first) return;
  differences[static_cast<std::size_t>(first)] += weight;
  differences[static_cast<std::size_t>(last) + 1] -= weight;
}

/// The iterations of one kind of workers as classes.
class class_book {
 public:
  explicit class_book(std::vector<iteration_class>& out) : out_(out) {}
  std::vector<std::int32_t> add_worker(const std::vector<iteration>& all) {
    std::vector<std::int32_t> at;
    at.reserve(all.size());
    for (const iteration& it : all) {
      const auto [place, is_new] =
          known_.try_emplace({bin(static_cast<double>(it.decodes)), bin(static_cast<double>(it.prompt_tokens))},
                             static_cast<std::int32_t>(out_.size()));
      if (is_new) out_.emplace_back();
      iteration_class& c = out_[static_cast<std::size_t>(place->second)];
      add(c.mean, it);
      c.count += 1;
      at.push_back(place->second);
    }
    return at;
  }
  void finish() {
    for (iteration_class& c : out_) divide(c.mean, c.count);
  }

 private:
  std::vector<iteration_class>& out_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known_;
};

/// One worker with the classes of its iterations.
struct worker_times {
  const worker_iterations& all;
  std::vector<std::int32_t> at;
  std::vector<double> token;  ///< difference array: weight of iterations between tokens

  /// Adds to each class the share of its iterations between two times. Returns the time outside iterations.
  double overlap(double from, double to, double weight, std::vector<iteration_class>& classes) const {
    double left = to - from;
    auto i =
        static_cast<std::size_t>(std::upper_bound(all.end_s.begin(), all.end_s.end(), from) - all.end_s.begin());
    for (; i < all.begin_s.size() && all.begin_s[i] < to; ++i) {
      const double shared = std::min(to, all.end_s[i]) - std::max(from, all.begin_s[i]);
      classes[static_cast<std::size_t>(at[i])].first_token += weight * shared / (all.end_s[i] - all.begin_s[i]);
      left -= shared;
    }
    return left;
  }
  /// The first iteration that begins at `t` or later, and the one that ends then.
  std::int32_t beginning(double t) const {
    return static_cast<std::int32_t>(std::lower_bound(all.begin_s.begin(), all.begin_s.end(), t) -
                                     all.begin_s.begin());
  }
  std::int32_t ending(double t) const {
    return static_cast<std::int32_t>(std::lower_bound(all.end_s.begin(), all.end_s.end(), t) - all.end_s.begin());
  }
};

/// Adds where a request waits for its first token. Returns the time outside iterations.
double add_first_token(const request_record& r, const std::vector<worker_times>& workers, double weight,
                       run_summary& out) {
  const auto at = [&](std::int32_t i) -> const worker_times& { return workers[static_cast<std::size_t>(i)]; };
  if (r.prompt_worker < 0) return at(r.worker).overlap(r.arrival_s, r.first_token_s, weight, out.decode);
  const double prompt_end = r.delivered_s < 0 ? r.last_token_s : r.prefilled_s;
  double left = at(r.prompt_worker).overlap(r.arrival_s, prompt_end, weight, out.prefill);
  if (r.delivered_s < 0) return left;
  left += r.delivered_s - r.prefilled_s;
  return left + at(r.worker).overlap(r.delivered_s, r.first_token_s, weight, out.decode);
}

}  // namespace

run_summary summarise(const std::vector<worker_iterations>& workers, const std::vector<request_record>& requests) {
  run_summary out;
  class_book prefill_book(out.prefill), decode_book(out.decode);
  std::vector<worker_times> all;
  for (const worker_iterations& w : workers)
    all.push_back({w, (w.prefills ? prefill_book : decode_book).add_worker(w.contents),
                   std::vector<double>(w.contents.size() + 1)});
  double streams = 0;
  const auto n = static_cast<double>(requests.size());
  for (const request_record& r : requests) streams += r.output > 1 ? 1 : 0;
  for (const request_record& r : requests) {
    out.output_tokens += static_cast<double>(r.output);
    out.mean_input += static_cast<double>(r.input) / n;
    out.between_s += add_first_token(r, all, 1 / n, out) / n;
    if (r.output < 2) continue;
    worker_times& w = all[static_cast<std::size_t>(r.worker)];
    spread(w.token, w.beginning(r.first_token_s), w.ending(r.last_token_s),
           1 / streams / static_cast<double>(r.output - 1));
  }
  out.mean_output = out.output_tokens / n;
  for (const worker_times& w : all) {
    if (w.all.prefills) continue;
    double streaming = 0;
    for (std::size_t i = 0; i < w.at.size(); ++i) {
      streaming += w.token[i];
      out.decode[static_cast<std::size_t>(w.at[i])].per_token += streaming;
    }
  }
  prefill_book.finish();
  decode_book.finish();
  if (all.size() == 1) {
    out.class_of = all.front().at;
    for (const request_record& r : requests)
      out.requests.push_back({r.input, r.output, all.front().beginning(r.arrival_s),
                              all.front().ending(r.first_token_s), all.front().ending(r.last_token_s)});
  }
  return out;
}

client_times mean_times(const run_summary& s, const class_times& times, const front_end_costs& f) {
  client_times out;
  for (std::size_t i = 0; i < s.decode.size(); ++i) {
    const iteration_class& c = s.decode[i];
    out.ttft_s += c.first_token * times.decode[i];
    out.tpot_s += c.per_token * times.decode[i];
    out.makespan_s += c.count * times.decode[i];
  }
  for (std::size_t i = 0; i < s.prefill.size(); ++i) out.ttft_s += s.prefill[i].first_token * times.prefill[i];
  out.ttft_s += s.between_s + f.held_back_s(s.mean_output - 1, out.tpot_s) + f.way_in(s.mean_input).base();
  return out;
}

client_times median_times(const run_summary& s, const class_times& times, const front_end_costs& f) {
  std::vector<double> begin(s.class_of.size() + 1);
  for (std::size_t i = 0; i < s.class_of.size(); ++i)
    begin[i + 1] = begin[i] + times.decode[static_cast<std::size_t>(s.class_of[i])];
  const auto at = [&](std::int32_t i) { return begin[static_cast<std::size_t>(i)]; };
  std::vector<double> ttft, tpot;
  for (const request_progress& r : s.requests) {
    const double first = at(r.first_token + 1) - at(r.arrived), gaps = static_cast<double>(r.output - 1);
    const double each = gaps > 0 ? (at(r.last_token + 1) - at(r.first_token + 1)) / gaps : 0;
    if (gaps > 0) tpot.push_back(each);
    ttft.push_back(first + f.held_back_s(gaps, each) + f.way_in(static_cast<double>(r.input)).base());
  }
  client_times out = mean_times(s, times, f);
  out.ttft_s = ttft.empty() ? 0 : median_of(std::move(ttft));
  out.tpot_s = tpot.empty() ? 0 : median_of(std::move(tpot));
  return out;
}

}  // namespace nvlsim
