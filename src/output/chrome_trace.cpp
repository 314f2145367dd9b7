// Streams Chrome trace JSON. Format: docs/result-format.md#traces.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/output.hpp"
#include "nvlsim/output/text.hpp"
#include "output/trace_contents.hpp"

namespace nvlsim::output {

/// A time or duration, printed as microseconds with three decimals.
struct us {
  std::int64_t ns;
};

}  // namespace nvlsim::output

template <>
struct fmt::formatter<nvlsim::output::us> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(nvlsim::output::us t, Context& context) const {
    return fmt::format_to(context.out(), FMT_COMPILE("{}.{:03}"), t.ns / 1000, t.ns % 1000);
  }
};

namespace nvlsim {
namespace {

using output::op_place;
using output::us;

class trace_writer {
 public:
  trace_writer(std::ostream& out, const plan& planned, const timeline& times, const trace_options& options)
      : out_(out), plan_(planned), times_(times), options_(options),
        contents_(output::contents_of(planned, times, options)) {}

  void write() {
    begin_document();
    for (const std::size_t c : contents_.classes) write_names(c);
    for (const std::size_t c : contents_.classes) {
      for (std::size_t s = 0; s < plan_.classes[c].streams.size(); ++s) write_stream(c, s);
      if (contents_.power) write_power(c);
    }
    if (contents_.counters)
      for (const trace_counter& counter : options_.counters) write_counter(counter);
    write_requests();
    for (std::size_t i = 0; i < options_.tracks.size(); ++i) write_track(i);
    buffer_ += "\n]}\n";
    flush();
    out_.flush();
    if (!out_) throw io_error("cannot write the trace");
  }

 private:
  static constexpr std::size_t chunk = std::size_t{1} << 16;

  void begin_document() {
    value metadata{value::object{{"tool", "nvlsim"}}};
    if (const auto* given = options_.metadata.members())
      for (const auto& [key, v] : *given) metadata.set(key, v);
    metadata.set("classes_of_the_run", static_cast<std::int64_t>(plan_.classes.size()));
    metadata.set("max_events", static_cast<std::int64_t>(options_.max_events));
    metadata.set("left_out", value::array(contents_.left_out.begin(), contents_.left_out.end()));
    std::string text = to_json(metadata, 0);
    text.pop_back();
    buffer_ = "{\"displayTimeUnit\":\"ns\",\"metadata\":" + text + ",\"traceEvents\":[";
  }

  template <class Format, class... Args>
  void event(const Format& format, const Args&... args) {
    buffer_ += std::exchange(first_, false) ? "\n" : ",\n";
    fmt::format_to(std::back_inserter(buffer_), format, args...);
    if (buffer_.size() > chunk) flush();
  }

  void flush() {
    out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    buffer_.clear();
  }

  void write_names(std::size_t c) {
    const rank_class& cls = plan_.classes[c];
    std::string text;
    output::append_json_string(text, fmt::format("{} (x{} GPUs)", cls.name, cls.multiplicity));
    event(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})"), c + 1, text);
    event(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})"), c + 1,
          c);
    for (std::size_t s = 0; s < cls.streams.size(); ++s) {
      text.clear();
      output::append_json_string(text, name(cls.streams[s].kind));
      event(FMT_COMPILE(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})"), c + 1,
            s + 1, text);
      event(FMT_COMPILE(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})"),
            c + 1, s + 1, s);
    }
  }

  void write_stream(std::size_t c, std::size_t s) {
    const auto& operations = plan_.classes[c].streams[s].operations;
    const std::size_t shown = std::min(operations.size(), contents_.operations_per_stream);
    std::int64_t free = 0;
    for (std::size_t o = 0; o < shown; ++o) {
      const span& t = times_.spans[c][s][o];
      std::int64_t begin = output::nanoseconds(t.begin_s);
      // Adjacent operations may overlap by one nanosecond after rounding.
      if (begin < free - 1) throw internal_error("trace: operations of one stream overlap");
      begin = std::max(begin, free);
      if (output::nanoseconds(t.end_s) < begin - 1)
        throw internal_error("trace: an operation ends before it begins");
      const std::int64_t end = std::max(output::nanoseconds(t.end_s), begin);
      write_operation(
          {static_cast<std::uint32_t>(c), static_cast<std::uint32_t>(s), static_cast<std::uint32_t>(o)},
          operations[o], begin, end);
      free = end;
    }
  }

  void write_operation(const op_place& place, const operation& o, std::int64_t begin, std::int64_t end) {
    const output::template_slices& slices = contents_.templates[static_cast<std::size_t>(o.template_index)];
    const std::size_t pid = place.rank_class + std::size_t{1}, tid = place.stream + std::size_t{1};
    if (place.stream == 0 && place.rank_class < options_.batches.size()) {
      const iteration_batch& b = options_.batches[place.rank_class][place.operation];
      event(FMT_COMPILE(
                R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},{},"args":{{"decodes":{},"prompt_tokens":{})"
                R"(,"kv_tokens":{}}}}})"),
            pid, tid, us{begin}, us{end - begin}, slices.label, b.decodes, b.prompt_tokens, b.kv_tokens);
    } else if (o.micro_batch >= 0)
      event(FMT_COMPILE(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},{},"args":{{"micro_batch":{}}}}})"), pid,
            tid, us{begin}, us{end - begin}, slices.label, o.micro_batch);
    else event(slice_format, pid, tid, us{begin}, us{end - begin}, slices.label);
    // Incoming arrows come before the inner slices and outgoing ones after, so that viewers bind them to the
    // operation.
    for (; next_in_ < contents_.arrows.size() && contents_.arrows[next_in_].to == place; ++next_in_)
      event(FMT_COMPILE(R"({{"ph":"f","bp":"e","pid":{},"tid":{},"ts":{},"cat":"event","name":"event","id":{}}})"),
            pid, tid, us{begin}, next_in_);
    std::int64_t from = begin;
    for (const output::inner_slice& inner : slices.inside) {
      const std::int64_t to = begin + std::llround(inner.end * static_cast<double>(end - begin));
      if (to > from) event(slice_format, pid, tid, us{from}, us{to - from}, slices.labels[inner.label]);
      from = to;
    }
    for (;
         next_out_ < contents_.by_sender.size() && contents_.arrows[contents_.by_sender[next_out_]].from == place;
         ++next_out_)
      event(FMT_COMPILE(R"({{"ph":"s","pid":{},"tid":{},"ts":{},"cat":"event","name":"event","id":{}}})"), pid,
            tid, us{std::max(begin, end - 1)}, contents_.by_sender[next_out_]);
  }

  /// Writes the power of one GPU of the class: the sum over its streams.
  void write_power(std::size_t c) {
    std::vector<std::pair<std::int64_t, double>> steps = {{0, 0.0}};
    for (std::size_t s = 0; s < plan_.classes[c].streams.size(); ++s) {
      const auto& operations = plan_.classes[c].streams[s].operations;
      for (std::size_t o = 0; o < std::min(operations.size(), contents_.operations_per_stream); ++o) {
        const double power = plan_.templates[static_cast<std::size_t>(operations[o].template_index)].power.base();
        if (!(power > 0)) continue;
        steps.emplace_back(output::nanoseconds(times_.spans[c][s][o].begin_s), power);
        steps.emplace_back(output::nanoseconds(times_.spans[c][s][o].end_s), -power);
      }
    }
    std::sort(steps.begin(), steps.end());
    double now = 0;
    std::string shown;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      now += steps[i].second;
      if (i + 1 < steps.size() && steps[i + 1].first == steps[i].first) continue;
      // Tiny values are rounding residue.
      std::string text = fmt::format("{:.6g}", now > 1e-6 ? now : options_.idle_power.base());
      if (text == shown) continue;
      event(FMT_COMPILE(R"({{"ph":"C","pid":{},"ts":{},"name":"power per GPU","args":{{"W":{}}}}})"), c + 1,
            us{steps[i].first}, text);
      shown = std::move(text);
    }
  }

  void write_counter(const trace_counter& counter) {
    if (!std::binary_search(contents_.classes.begin(), contents_.classes.end(), counter.rank_class)) return;
    write_points(counter.rank_class + 1, counter.name, counter.points);
  }

  void write_points(std::size_t pid, const std::string& name,
                    const std::vector<std::pair<double, double>>& points) {
    std::string text;
    output::append_json_string(text, name);
    for (const auto& [at, v] : points) {
      if (!std::isfinite(v)) throw internal_error(fmt::format("trace: counter {} is not finite", text));
      event(FMT_COMPILE(R"({{"ph":"C","pid":{},"ts":{},"name":{},"args":{{"value":{:.12g}}}}})"), pid,
            us{output::nanoseconds(at)}, text, v);
    }
  }

  /// A process with what something did.
  void write_track(std::size_t i) {
    const state_track& track = options_.tracks[i];
    const std::size_t at = plan_.classes.size() + (contents_.requests > 0 ? 1 : 0) + i;
    std::string text;
    output::append_json_string(text, track.name);
    event(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})"), at + 1, text);
    event(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})"), at + 1,
          at);
    std::size_t lanes = 1;
    for (const state_track::stretch& x : track.stretches) lanes = std::max(lanes, x.lane + 1);
    for (std::size_t l = 0; l < lanes; ++l) {
      text.clear();
      output::append_json_string(text, lanes == 1 ? track.lane : fmt::format("{} {:02}", track.lane, l));
      event(FMT_COMPILE(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})"), at + 1,
            l + 1, text);
      event(FMT_COMPILE(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index","args":{{"sort_index":{}}}}})"),
            at + 1, l + 1, l);
    }
    for (const state_track::stretch& x : track.stretches) {
      text = "\"cat\":\"state\",\"name\":";
      output::append_json_string(text, x.what);
      const std::int64_t begin = output::nanoseconds(x.begin_s), end = output::nanoseconds(x.end_s);
      event(slice_format, at + 1, x.lane + 1, us{begin}, us{end - begin}, text);
    }
    for (const time_curve& c : track.counters) write_points(at + 1, c.name, c.points);
  }

  /// Draws each request from its arrival to its last token, with its phases inside.
  void write_requests() {
    if (contents_.requests == 0) return;
    const std::size_t pid = plan_.classes.size() + 1;
    event(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":"requests"}}}})"), pid);
    event(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})"), pid,
          plan_.classes.size());
    for (std::size_t i = 0; i < contents_.requests; ++i) {
      const request_record& r = options_.requests[i];
      if (r.last_token_s < 0) continue;
      const us begin{output::nanoseconds(r.arrival_s)}, end{output::nanoseconds(r.last_token_s)};
      event(
          FMT_COMPILE(R"({{"ph":"b","pid":{},"tid":1,"cat":"request","id":{},"ts":{},"name":"request")"
                      R"(,"args":{{"request":{})"
                      R"(,"input_tokens":{},"output_tokens":{},"cached_tokens":{},"worker":{},"prefill_worker":{})"
                      R"(,"preemptions":{}}}}})"),
          pid, i, begin, i, r.input, r.output, r.cached, r.worker, r.prompt_worker, r.preemptions);
      write_phases(pid, i);
      event(FMT_COMPILE(R"({{"ph":"e","pid":{},"tid":1,"cat":"request","id":{},"ts":{},"name":"request"}})"), pid,
            i, end);
    }
  }

  void write_phases(std::size_t pid, std::size_t i) {
    const request_record& r = options_.requests[i];
    const bool pools = r.prefilled_s >= 0 && r.delivered_s >= 0;
    const std::initializer_list<std::pair<const char*, double>> phases = {
        {"queue", r.admitted_s},
        {"prefill", pools ? r.prefilled_s : r.first_token_s},
        {"KV transfer", pools ? r.delivered_s : r.first_token_s},
        {"decode queue", r.first_token_s},
        {"decode", r.last_token_s}};
    std::int64_t from = output::nanoseconds(r.arrival_s);
    for (const auto& [phase, until] : phases) {
      const std::int64_t to = until < 0 ? from : std::max(from, output::nanoseconds(until));
      if (to == from) continue;
      for (const auto& [sign, at] : {std::pair{'b', from}, std::pair{'e', to}})
        event(FMT_COMPILE(R"({{"ph":"{}","pid":{},"tid":1,"cat":"request","id":{},"ts":{},"name":"{}"}})"), sign,
              pid, i, us{at}, phase);
      from = to;
    }
  }

  static constexpr auto slice_format = FMT_COMPILE(R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},{}}})");

  std::ostream& out_;
  const plan& plan_;
  const timeline& times_;
  const trace_options& options_;
  const output::trace_contents contents_;
  std::string buffer_;
  bool first_ = true;
  std::size_t next_in_ = 0, next_out_ = 0;  ///< arrows are sorted by operation
};

}  // namespace

void write_trace(std::ostream& out, const plan& planned, const timeline& times, const trace_options& options) {
  trace_writer(out, planned, times, options).write();
}

}  // namespace nvlsim
