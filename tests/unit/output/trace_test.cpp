#include <catch2/catch.hpp>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "nvlsim/output/output.hpp"
#include "support/foreign_locale.hpp"
#include "support/golden.hpp"

namespace {

using namespace nvlsim;

operation_part part(part_kind kind, const char* name, double us, int repeat = 1) {
  return {kind, name, seconds::from_base(us * 1e-6), repeat};
}

std::int32_t template_index(plan& p, const char* name, std::vector<operation_part> parts, double power = 0) {
  return p.add_template({name, std::move(parts), {}, watts::from_base(power)});
}

/// Two stages pass activations and gradients for some microbatches, and reduce gradients on a stream of their own.
plan two_stages(int micro_batches) {
  plan p;
  const auto forward =
      template_index(p, "forward 0",
                     {part(part_kind::gemm, "qkv", 10.0004, 2), part(part_kind::gemm, "mlp", 7.1, 2),
                      part(part_kind::attention, "core", 3.3333), part(part_kind::tp, "all-gather", 1.25, 3)},
                     1100);
  const auto backward = template_index(p, "backward \"0\"", {part(part_kind::gemm, "grad", 41.7)}, 1180);
  const auto reduce = template_index(p, "grad reduce-scatter 0", {part(part_kind::dp, "reduce", 55)});
  const auto nothing = template_index(p, "barrier", {});
  p.classes.resize(2);
  for (std::size_t c = 0; c < 2; ++c) {
    p.classes[c].name = "stage " + std::to_string(c);
    p.classes[c].multiplicity = 64;
    p.classes[c].streams = {{stream_kind::compute, {}}, {static_cast<stream_kind>(1), {}}};
  }
  event_id last[2] = {no_event, no_event};
  for (std::int32_t m = 0; m < micro_batches; ++m) {
    const event_id down = p.new_event(), up = p.new_event();
    p.append(p.classes[0].streams[0], forward, {}, down, {m});
    p.append(p.classes[1].streams[0], forward, {down}, no_event, {m});
    p.append(p.classes[1].streams[0], backward, {}, up, {m});
    p.append(p.classes[0].streams[0], backward, {up}, last[0] = p.new_event(), {m});
    last[1] = up;
  }
  const event_id all = p.new_event(2);
  for (std::size_t c = 0; c < 2; ++c) {
    p.append(p.classes[c].streams[1], reduce, {last[c]}, all);
    p.append(p.classes[c].streams[0], nothing, {all});
  }
  return p;
}

std::string trace_of(const plan& p, const timeline& t, const trace_options& options = {}) {
  std::ostringstream out;
  write_trace(out, p, t, options);
  return out.str();
}

/// Runs the checker over a trace and returns its exit status.
int checked(const std::string& trace, const std::string& name, const char* output = "") {
  const std::string path = NVLSIM_BINARY_DIR "/" + name;
  std::ofstream(path, std::ios::binary) << trace;
  return std::system(
      ("python3 \"" NVLSIM_SOURCE_DIR "/tests/golden/check_trace.py\" \"" + path + "\"" + output).c_str());
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

TEST_CASE("Trace of two stages is as approved") {
  const plan p = two_stages(2);
  trace_options options;
  options.metadata = value::object{{"version", "0.1.0"}, {"scenario", "two stages"}, {"seed", 1}};
  options.idle_power = watts::from_base(220);
  options.counters = {{0, "memory (GB)", {{0, 100}, {20e-6, 150.5}}}};
  const std::string trace = trace_of(p, evaluate(p), options);
  CHECK(checked(trace, "trace_two_stages.json") == 0);
  test::check_golden("output/trace.json", trace);
  options.detail = trace_detail::layers;
  const std::string layers = trace_of(p, evaluate(p), options);
  CHECK(checked(layers, "trace_layers.json") == 0);
  CHECK(count(layers, "\"name\":\"qkv\"") == 8);
  CHECK(count(layers, "\"name\":\"all-gather\"") == 12);
}

TEST_CASE("Trace checker finds what is wrong") {
  const plan p = two_stages(1);
  const std::string good = trace_of(p, evaluate(p));
  const auto broken = [&](const std::string& from, const std::string& to) {
    std::string bad = good;
    REQUIRE(bad.find(from) != std::string::npos);
    bad.replace(bad.find(from), from.size(), to);
    return checked(bad, "trace_broken.json", " > /dev/null 2>&1") != 0;
  };
  CHECK(checked(good, "trace_good.json") == 0);
  CHECK(broken("]}", "]"));
  CHECK(broken("\"dur\":41.284", "\"dur\":150.000"));
  CHECK(broken("\"ph\":\"s\"", "\"ph\":\"t\""));
  CHECK(broken("\"bp\":\"e\"", "\"bp\":\"x\""));
  CHECK(broken("\"ts\":0.000", "\"ts\":-1.000"));
  CHECK(broken("\"ts\":0.000", "\"ts\":0.0"));
  CHECK(broken("\"W\":1100", "\"W\":NaN"));
  CHECK(broken("\"ph\":\"M\",\"pid\":1", "\"ph\":\"M\",\"pid\":7"));
}

TEST_CASE("Trace slices nest whatever the durations") {
  std::mt19937_64 random(3);
  const auto any = [&](std::uint64_t n) { return static_cast<double>(random() % n); };
  plan p;
  p.classes.resize(3);
  for (std::size_t c = 0; c < 3; ++c) {
    p.classes[c].name = "class " + std::to_string(c);
    p.classes[c].streams = {{stream_kind::compute, {}}, {static_cast<stream_kind>(1), {}}};
  }
  event_id before = no_event;
  for (int i = 0; i < 600; ++i) {
    std::vector<operation_part> parts;
    for (double n = any(6); n > 0; --n)
      parts.push_back(part(static_cast<part_kind>(random() % part_kinds), "p", any(9000) / 7e6 * any(3),
                           1 + static_cast<int>(random() % 5)));
    const auto t = template_index(p, "w", std::move(parts), any(3) * 400.1);
    stream& s = p.classes[random() % 3].streams[random() % 2];
    const event_id next = random() % 2 == 0 ? p.new_event() : no_event;
    p.append(s, t, {random() % 3 == 0 ? before : no_event}, next);
    if (next != no_event) before = next;
  }
  const timeline t = evaluate(p);
  for (const trace_detail detail : {trace_detail::operations, trace_detail::layers}) {
    trace_options options;
    options.detail = detail;
    CHECK(checked(trace_of(p, t, options), "trace_random.json") == 0);
  }
}

TEST_CASE("Trace of some classes holds only those and arrows between them") {
  const plan p = two_stages(3);
  trace_options options;
  options.classes = {1};
  const std::string one = trace_of(p, evaluate(p), options);
  CHECK(checked(one, "trace_one.json") == 0);
  CHECK(count(one, "\"pid\":1,") == 0);
  CHECK(count(one, "\"ph\":\"s\"") == 0);
  CHECK(count(one, "\"classes_of_the_run\": 2") == 1);
  options.classes = {0, 1};
  CHECK(trace_of(p, evaluate(p), options) == trace_of(p, evaluate(p)));
  options.classes = {0, 2, 5};
  CHECK_THROWS_WITH(trace_of(p, evaluate(p), options),
                    "--trace-ranks#: no class 2; the run has 2\n--trace-ranks#: no class 5; the run has 2");
}

TEST_CASE("Trace leaves out detail beyond its limit and says so") {
  const plan p = two_stages(20);
  const timeline t = evaluate(p);
  const auto left_out = [&](std::size_t limit) {
    trace_options options;
    options.detail = trace_detail::layers;
    options.max_events = limit;
    const std::string trace = trace_of(p, t, options);
    CHECK(checked(trace, "trace_limited.json") == 0);
    CHECK(count(trace, "{\"ph\":") <= limit);
    const std::size_t begin = trace.find("\"left_out\": ") + 12;
    return trace.substr(begin, trace.find("}", begin) - begin);
  };
  CHECK(left_out(100'000) == "[]");
  CHECK(left_out(600) == "[\"layers\"]");
  CHECK(left_out(400) == "[\"layers\", \"parts of operations\"]");
  CHECK(left_out(200) == "[\"layers\", \"parts of operations\", \"counters\"]");
  // Arrows that do not fit beside the operations go first: leaving out other detail would not make room for them.
  CHECK(left_out(110) == "[\"arrows\", \"layers\", \"parts of operations\", \"counters\"]");
  CHECK(left_out(52) ==
        "[\"arrows\", \"layers\", \"parts of operations\", \"counters\", \"operations after the first 10 of a "
        "stream\"]");
}

TEST_CASE("Trace draws requests with their phases, as many as its limit allows") {
  const plan p = two_stages(2);
  const timeline t = evaluate(p);
  const request_record aggregated{.arrival_s = 0.5,
                                  .admitted_s = 1,
                                  .first_token_s = 1.5,
                                  .last_token_s = 3,
                                  .input = 100,
                                  .output = 7,
                                  .worker = 2};
  request_record pools = aggregated, unfinished = aggregated;
  pools.prompt_worker = 4, pools.prefilled_s = 1.25, pools.delivered_s = 1.3;
  unfinished.last_token_s = -1;
  const std::vector<request_record> all = {aggregated, pools, unfinished};
  trace_options options;
  options.requests = all;
  const std::string trace = trace_of(p, t, options);
  CHECK(checked(trace, "trace_requests.json") == 0);
  CHECK(count(trace, R"("name":"requests")") == 1);
  CHECK(count(trace, R"("name":"request")") == 4);
  CHECK(count(trace, R"("name":"KV transfer")") == 2);
  CHECK(count(trace, R"("name":"decode")") == 4);
  CHECK(trace.find(R"("id":1,"ts":1250000.000,"name":"KV transfer")") != std::string::npos);
  CHECK(trace.find(R"("args":{"request":1,"input_tokens":100,"output_tokens":7,)") != std::string::npos);

  const std::vector<std::vector<iteration_batch>> batches = {
      std::vector<iteration_batch>(p.classes[0].streams[0].operations.size(), {3, 512, 9000})};
  options.batches = batches;
  const std::string iterations = trace_of(p, t, options);
  CHECK(checked(iterations, "trace_iterations.json") == 0);
  CHECK(count(iterations, R"("args":{"decodes":3,"prompt_tokens":512,"kv_tokens":9000})") == batches[0].size());

  trace_options without;
  options.max_events = count(trace_of(p, t, without), "{\"ph\":") + 100;
  const std::vector<request_record> many(100, pools);
  options.requests = many;
  const std::string limited = trace_of(p, t, options);
  CHECK(count(limited, "{\"ph\":") <= options.max_events);
  CHECK(count(limited, R"("name":"request")") >= 2);
  CHECK(limited.find("requests after the first ") != std::string::npos);
}

TEST_CASE("Trace gives what has states a process of its own, after the classes") {
  const plan p = two_stages(2);
  const std::vector<state_track> racks = {{"rack 00", {{0, 1, "job"}, {1, 2.5, "down, \"18\" of 18"}}},
                                          {"rack 01", {{0, 2.5, "spare"}}}};
  trace_options options;
  options.tracks = racks;
  const std::string text = trace_of(p, evaluate(p), options);
  CHECK(text.find(R"("pid":3,"name":"process_name","args":{"name":"rack 00"})") != std::string::npos);
  CHECK(text.find(R"("pid":4,"name":"process_name","args":{"name":"rack 01"})") != std::string::npos);
  CHECK(text.find(R"("pid":3,"tid":1,"ts":1000000.000,"dur":1500000.000,"cat":"state",)"
                  R"("name":"down, \"18\" of 18")") != std::string::npos);
}

TEST_CASE("Trace gives lanes of what has states a thread each, and draws its counters") {
  const plan p;
  const std::vector<state_track> services = {{"chat",
                                              {{0, 2, "ready", 0}, {1, 2, "starting", 1}, {2, 3, "ready", 0}},
                                              "replica",
                                              {{"load", {{0, 1.5}}}}}};
  trace_options options;
  options.tracks = services;
  const std::string text = trace_of(p, evaluate(p), options);
  for (const char* part : {R"("pid":1,"tid":1,"name":"thread_name","args":{"name":"replica 00"})",
                           R"("pid":1,"tid":2,"name":"thread_name","args":{"name":"replica 01"})",
                           R"("pid":1,"tid":2,"ts":1000000.000,"dur":1000000.000,"cat":"state","name":"starting")",
                           R"("ph":"C","pid":1,"ts":0.000,"name":"load","args":{"value":1.5})"})
    CHECK(text.find(part) != std::string::npos);
}

TEST_CASE("Trace refuses times that cannot be and a stream that fails") {
  const plan p = two_stages(1);
  const timeline good = evaluate(p);
  const auto with = [&](double begin, double end) {
    timeline t = good;
    t.spans[0][0][0] = {begin, end};
    return t;
  };
  CHECK_THROWS_AS(trace_of(p, with(-1e-9, 1)), internal_error);
  CHECK_THROWS_AS(trace_of(p, with(0, std::nan(""))), internal_error);
  CHECK_THROWS_AS(trace_of(p, with(2e-6, 1e-6)), internal_error);
  CHECK_THROWS_AS(trace_of(p, with(0, 1)), internal_error);  // overlaps the next
  CHECK_THROWS_AS(trace_of(p, timeline{}), internal_error);
  std::ofstream nowhere("/dev/full");
  CHECK_THROWS_AS(write_trace(nowhere, p, good), io_error);
}

TEST_CASE("Trace has the same bytes in a locale of decimal commas") {
  const plan p = two_stages(2);
  const std::string plain = trace_of(p, evaluate(p));
  const test::foreign_locale foreign;
  CHECK(trace_of(p, evaluate(p)) == plain);
}

}  // namespace
