// Writes requests as JSON lines: docs/result-format.md#requests
#include <fmt/format.h>

#include <iterator>
#include <ostream>

#include "nvlsim/analysis/inference_metrics.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/output/number.hpp"
#include "nvlsim/output/output.hpp"

namespace nvlsim {

void write_requests(std::ostream& out, std::span<const request_record> requests, const front_end_costs& server) {
  std::string line;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const request_record& r = requests[i];
    const client_view c = seen_by_client(r, server);
    line = fmt::format("{{\"request\": {}", i);
    const auto put = [&](const char* key, double x) {
      fmt::format_to(std::back_inserter(line), ", \"{}\": ", key);
      output::append_number(line, x);
    };
    const auto put_count = [&](const char* key, std::int64_t n) {
      fmt::format_to(std::back_inserter(line), ", \"{}\": {}", key, n);
    };
    put("arrival_s", r.arrival_s);
    put_count("input_tokens", r.input);
    put_count("output_tokens", r.output);
    put("queue_s", r.admitted_s - r.arrival_s);
    put("ttft_s", c.ttft_s);
    if (c.tpot_s) put("tpot_s", *c.tpot_s);
    else line += ", \"tpot_s\": null";
    put("e2e_s", c.e2e_s);
    put_count("cached_tokens", r.cached);
    put_count("worker", r.worker);
    put_count("workers", r.workers);
    put_count("preemptions", r.preemptions);
    // Their old names, for one release.
    put_count("lane", r.worker);
    put_count("lanes", r.workers);
    out << line << "}\n";
  }
  if (!out.flush()) throw io_error("cannot write the requests");
}

}  // namespace nvlsim
