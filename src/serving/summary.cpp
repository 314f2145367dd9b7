#include "nvlsim/serving/summary.hpp"
#include "nvlsim/units/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace nvlsim {
namespace {

constexpr double classes_per_doubling = 8, steady_share = 0.6;

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

}  // namespace

schedule_summary summarise(batching_schedule s, double tokens_per_step) {
  schedule_summary out;
  out.tokens_per_step = tokens_per_step;
  const std::size_t n = s.iterations.size();
  std::vector<double> first(n + 1), token(n + 1);
  double streams = 0;
  for (const request_progress& r : s.requests) {
    out.output_tokens += static_cast<double>(r.output);
    streams += r.output > 1 ? 1 : 0;
  }
  const auto requests = static_cast<double>(s.requests.size());
  out.mean_output = out.output_tokens / requests;
  for (const request_progress& r : s.requests) {
    out.mean_input += static_cast<double>(r.input) / requests;
    spread(first, r.arrived, r.first_token, 1 / requests);
    if (r.output > 1)
      spread(token, r.first_token + 1, r.last_token, 1 / streams / static_cast<double>(r.output - 1));
  }
  std::int64_t largest = 0;
  for (const iteration& it : s.iterations) largest = std::max(largest, it.decodes);
  const double steady = steady_share * static_cast<double>(largest);

  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known;
  out.class_of.reserve(n);
  double waiting = 0, streaming = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const iteration& it = s.iterations[i];
    waiting += first[i];
    streaming += token[i];
    const auto [at, is_new] =
        known.try_emplace({bin(static_cast<double>(it.decodes)), bin(static_cast<double>(it.prompt_tokens))},
                          static_cast<std::int32_t>(out.classes.size()));
    if (is_new) out.classes.emplace_back();
    iteration_class& c = out.classes[static_cast<std::size_t>(at->second)];
    add(c.mean, it);
    c.count += 1;
    c.steady += static_cast<double>(it.decodes) > steady ? 1 : 0;
    c.first_token += waiting;
    c.per_token += streaming;
    out.class_of.push_back(at->second);
  }
  for (iteration_class& c : out.classes) divide(c.mean, c.count);
  out.requests = std::move(s.requests);
  return out;
}

namespace {

/// Classes of a pool's iterations, and their index.
class class_book {
 public:
  explicit class_book(schedule_summary& out) : out_(out) {}
  std::vector<std::int32_t> add_worker(const std::vector<iteration>& all) {
    std::vector<std::int32_t> at;
    for (const iteration& it : all) {
      const auto [place, is_new] =
          known_.try_emplace({bin(static_cast<double>(it.decodes)), bin(static_cast<double>(it.prompt_tokens))},
                             static_cast<std::int32_t>(out_.classes.size()));
      if (is_new) out_.classes.emplace_back();
      iteration_class& c = out_.classes[static_cast<std::size_t>(place->second)];
      add(c.mean, it);
      c.count += 1;
      at.push_back(place->second);
    }
    return at;
  }
  void finish() {
    for (iteration_class& c : out_.classes) divide(c.mean, c.count);
  }

 private:
  schedule_summary& out_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> known_;
};

/// Iteration times of a worker.
struct worker_times {
  std::vector<double> begin, end;
  std::vector<std::int32_t> at;

  /// Adds to each class the share of its iterations between two times. Returns the time outside iterations.
  double overlap(double from, double to, double weight, std::vector<iteration_class>& classes) const {
    double left = to - from;
    auto i = static_cast<std::size_t>(std::upper_bound(end.begin(), end.end(), from) - end.begin());
    for (; i < begin.size() && begin[i] < to; ++i) {
      const double shared = std::min(to, end[i]) - std::max(from, begin[i]);
      classes[static_cast<std::size_t>(at[i])].first_token += weight * shared / (end[i] - begin[i]);
      left -= shared;
    }
    return left;
  }
};

std::vector<worker_times> times_of(const std::vector<std::vector<iteration>>& all,
                                   const std::vector<std::vector<double>>& begin,
                                   const std::vector<std::vector<double>>& time, class_book& book) {
  std::vector<worker_times> out(all.size());
  for (std::size_t w = 0; w < all.size(); ++w) {
    out[w].at = book.add_worker(all[w]);
    out[w].begin = begin[w];
    for (std::size_t i = 0; i < all[w].size(); ++i) out[w].end.push_back(begin[w][i] + time[w][i]);
  }
  return out;
}

}  // namespace

pooled_summary summarise(const pooled_schedule& s, double tokens_per_step) {
  pooled_summary out;
  out.decode.tokens_per_step = tokens_per_step;
  class_book prefill_book(out.prefill), decode_book(out.decode);
  const auto prefill = times_of(s.prefill, s.prefill_begin_s, s.prefill_s, prefill_book);
  const auto decode = times_of(s.decode, s.decode_begin_s, s.decode_s, decode_book);
  std::vector<std::vector<double>> token(decode.size());
  for (std::size_t w = 0; w < decode.size(); ++w) token[w].assign(decode[w].at.size() + 1, 0);
  double streams = 0;
  const auto n = static_cast<double>(s.requests.size());
  for (const pooled_request& r : s.requests) streams += r.output > 1 ? 1 : 0;
  for (const pooled_request& r : s.requests) {
    out.decode.output_tokens += static_cast<double>(r.output);
    out.decode.mean_input += static_cast<double>(r.input) / n;
    double left = r.delivered_s - r.prefill_end_s;
    if (r.prefill_worker >= 0)
      left += prefill[static_cast<std::size_t>(r.prefill_worker)].overlap(r.sent_s, r.prefill_end_s, 1 / n,
                                                                          out.prefill.classes);
    if (r.decode_worker >= 0) {
      const auto w = static_cast<std::size_t>(r.decode_worker);
      left += decode[w].overlap(r.delivered_s, r.decode_begin_s, 1 / n, out.decode.classes);
      spread(token[w], r.decode_first, r.decode_last, 1 / streams / static_cast<double>(r.output - 1));
    }
    out.between_s += left / n;
  }
  out.decode.mean_output = out.decode.output_tokens / n;
  for (std::size_t w = 0; w < decode.size(); ++w) {
    double streaming = 0;
    for (std::size_t i = 0; i < decode[w].at.size(); ++i) {
      streaming += token[w][i];
      out.decode.classes[static_cast<std::size_t>(decode[w].at[i])].per_token += streaming;
    }
  }
  prefill_book.finish();
  decode_book.finish();
  return out;
}

pooled_summary summarise(const std::vector<iteration>& iterations, const std::vector<double>& begin_s,
                         const std::vector<double>& end_s, const std::vector<request_record>& requests,
                         double tokens_per_step) {
  pooled_summary out;
  out.decode.tokens_per_step = tokens_per_step;
  class_book book(out.decode);
  const worker_times worker{begin_s, end_s, book.add_worker(iterations)};
  const auto ending_at = [&](double t) {
    return static_cast<std::int32_t>(std::lower_bound(end_s.begin(), end_s.end(), t) - end_s.begin());
  };
  std::vector<double> token(iterations.size() + 1);
  double streams = 0;
  for (const request_record& r : requests) streams += r.output > 1 ? 1 : 0;
  const auto n = static_cast<double>(requests.size());
  for (const request_record& r : requests) {
    out.decode.output_tokens += static_cast<double>(r.output);
    out.decode.mean_input += static_cast<double>(r.input) / n;
    out.between_s += worker.overlap(r.arrival_s, r.first_token_s, 1 / n, out.decode.classes) / n;
    if (r.output > 1)
      spread(token, ending_at(r.first_token_s) + 1, ending_at(r.last_token_s),
             1 / streams / static_cast<double>(r.output - 1));
  }
  out.decode.mean_output = out.decode.output_tokens / n;
  double streaming = 0;
  for (std::size_t i = 0; i < iterations.size(); ++i) {
    streaming += token[i];
    out.decode.classes[static_cast<std::size_t>(worker.at[i])].per_token += streaming;
  }
  book.finish();
  return out;
}

client_times mean_times(const schedule_summary& s, const std::vector<double>& times, const front_end_costs& f) {
  client_times out;
  double steady_time = 0, steady_tokens = 0;
  for (std::size_t i = 0; i < s.classes.size(); ++i) {
    const iteration_class& c = s.classes[i];
    out.ttft_s += c.first_token * times[i];
    out.tpot_s += c.per_token * times[i];
    out.makespan_s += c.count * times[i];
    steady_time += c.steady * times[i];
    steady_tokens += c.steady * (s.tokens_per_step * c.mean.decodes + c.mean.finished_prompts);
  }
  out.ttft_s += f.held_back_s(s.mean_output - 1, out.tpot_s) + f.way_in(s.mean_input).base();
  if (steady_time > 0) out.steady_tokens_per_s = steady_tokens / steady_time;
  return out;
}

client_times median_times(const schedule_summary& s, const std::vector<double>& times, const front_end_costs& f) {
  std::vector<double> begin(s.class_of.size() + 1);
  for (std::size_t i = 0; i < s.class_of.size(); ++i)
    begin[i + 1] = begin[i] + times[static_cast<std::size_t>(s.class_of[i])];
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
