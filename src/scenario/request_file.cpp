#include "scenario/request_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "nvlsim/config/csv_records.hpp"
#include "nvlsim/config/date_time.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/config/read_file.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 30, max_lines = 10'000'000;
constexpr int max_problems = 20;
constexpr std::int64_t session_block = 64;  // tokens of a block of a conversation that has no blocks of its own

using config::whole_text;

enum class time_text { none, seconds, milliseconds, date_and_time };

/// A format, identified by its columns. Without an arrival column the file has lengths only.
struct request_format {
  const char* name;
  const char* arrival;
  time_text unit;
  const char* input;
  const char* output;
  const char* names = "";  ///< column with the list of prompt blocks
  std::int64_t block_tokens = 0;
  const char* mark = "";     ///< column that tells the format from others
  const char* total = "";    ///< column with the sum of both lengths, where the file has it
  const char* session = "";  ///< column that names the conversation of which the request is a turn
  const char* delay = "";    ///< time from the end of the turn before it
};

// Sources: docs/serving.md#traces
constexpr std::array<request_format, 11> formats = {{
    {"Azure 2023", "TIMESTAMP", time_text::date_and_time, "ContextTokens", "GeneratedTokens"},
    {.name = "Qwen Bailian",
     .arrival = "timestamp",
     .unit = time_text::seconds,
     .input = "input_length",
     .output = "output_length",
     .names = "hash_ids",
     .block_tokens = 16,
     .mark = "chat_id"},
    {.name = "AIPerf sessions",
     .arrival = "timestamp",
     .unit = time_text::milliseconds,
     .input = "input_length",
     .output = "output_length",
     .names = "hash_ids",
     .block_tokens = 512,
     .mark = "session_id",
     .session = "session_id",
     .delay = "delay"},
    {"Mooncake", "timestamp", time_text::milliseconds, "input_length", "output_length", "hash_ids", 512},
    {"Mooncake lengths", "", time_text::none, "input_length", "output_length", "hash_ids", 512},
    {.name = "Vidur with arrivals",
     .arrival = "arrived_at",
     .unit = time_text::seconds,
     .input = "num_prefill_tokens",
     .output = "num_decode_tokens",
     .total = "num_total_tokens"},
    {.name = "Vidur",
     .arrival = "",
     .unit = time_text::none,
     .input = "num_prefill_tokens",
     .output = "num_decode_tokens",
     .total = "num_total_tokens"},
    {.name = "BurstGPT",
     .arrival = "Timestamp",
     .unit = time_text::seconds,
     .input = "Request tokens",
     .output = "Response tokens",
     .total = "Total tokens"},
    {"ServeGen", "timestamp", time_text::seconds, "input_tokens", "output_tokens", "hash_ids", 16},
    {"generic", "arrival_s", time_text::seconds, "input_tokens", "output_tokens", "prefix_blocks", 512},
    {"generic lengths", "", time_text::none, "input_tokens", "output_tokens", "prefix_blocks", 512},
}};

/// Cells of one line.
struct cells {
  std::string arrival, input, output, total, session, delay;
  std::vector<std::uint64_t> names;
};

/// A conversation as far as the file has been read.
struct conversation {
  std::vector<std::size_t> turns;  ///< as indices of requests
  std::int64_t said = 0;           ///< tokens of all turns
  std::int64_t first_input = 0;
  std::vector<std::uint64_t> names;  ///< blocks of the first turn
};

constexpr std::uint64_t hash_start = 0xcbf29ce484222325;
std::uint64_t hashed(std::uint64_t so_far, std::string_view text) {
  for (const char c : text) so_far = (so_far ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return so_far;
}

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15 + b + 0x632be59bd9b4e019;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  return x ^ (x >> 27);
}

class file_reader {
 public:
  file_reader(const std::string& shown_as, const request_file_options& options, diagnostics& problems)
      : shown_as_(shown_as), options_(options), problems_(problems) {}

  request_trace read(std::istream& in) {
    std::string line;
    while (std::getline(in, line)) {
      ++line_;
      hash_ = hashed(hash_, line);
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line_ == 1 && line.starts_with("\xef\xbb\xbf")) line.erase(0, 3);
      if (line.empty()) continue;
      if (found_ >= max_problems) {
        fail("too many problems; the rest of the file is not read");
        break;
      }
      if (!begun_ && !begin(line)) return {};
      if (is_json_) add(json_cells(line));
      else if (line_ > header_line_) add(csv_cells(line));
      if (line_ > max_lines) break;
    }
    if (line_ > max_lines) fail(fmt::format("more than {} lines", max_lines));
    if (!begun_) problems_.add(shown_as_, "", "no requests: the file is empty");
    else if (found_ == 0 && out_.list.requests.empty())
      problems_.add(shown_as_, "", "no requests after the header");
    finish();
    return std::move(out_);
  }

 private:
  void fail(const std::string& what) {
    problems_.add(shown_as_, "", fmt::format("line {}: {}", line_, what));
    ++found_;
  }

  /// Identifies the format by the header's columns, or by the members of the first object.
  bool begin(const std::string& line) {
    begun_ = true;
    header_line_ = line_;
    is_json_ = line.front() == '{';
    if (is_json_) {
      const value first = config::parse_scalar(line);
      if (!first.members()) return fail("not a JSON object"), false;
      for (const auto& [key, v] : *first.members()) columns_.push_back(key);
    } else {
      columns_ = split(line);
      if (columns_.empty()) return false;
    }
    const auto has = [&](std::string_view c) {
      return std::find(columns_.begin(), columns_.end(), c) != columns_.end();
    };
    for (const request_format& f : formats) {
      const bool in_sessions = *f.session != '\0';  // only a first turn need have a time
      if (has(f.input) && has(f.output) && (f.unit == time_text::none || has(f.arrival) || in_sessions) &&
          (*f.mark == '\0' || has(f.mark)))
        return use(f, has(f.arrival));
    }
    problems_.add(shown_as_, "",
                  fmt::format("unknown request file format with columns {}; the generic format has arrival_s, "
                              "input_tokens, output_tokens",
                              beginning(fmt::format("{}", fmt::join(columns_, ", ")))));
    return false;
  }

  bool use(const request_format& f, bool has_times) {
    format_ = &f;
    out_.format = f.name;
    out_.timed = f.unit != time_text::none && has_times;
    const bool named = std::find(columns_.begin(), columns_.end(), f.names) != columns_.end();
    if (f.block_tokens > 0)
      out_.list.prefix_tokens = *f.session != '\0' && !named ? session_block : f.block_tokens;
    if (options_.block_tokens) {
      if (f.block_tokens == 0) fail(fmt::format("block_tokens: files of {} have no blocks", f.name));
      out_.list.prefix_tokens = *options_.block_tokens;
    }
    if (options_.seconds_per_unit && (f.unit == time_text::none || f.unit == time_text::date_and_time))
      fail(fmt::format("time_unit: files of {} have no times in a unit", f.name));
    for (const char* wanted : {f.arrival, f.input, f.output, f.total}) {
      const auto at = std::find(columns_.begin(), columns_.end(), wanted);
      if (*wanted != '\0' && at != columns_.end() && std::find(at + 1, columns_.end(), wanted) != columns_.end())
        return fail(fmt::format("column {} occurs twice", wanted)), false;
      places_.push_back(static_cast<std::size_t>(at - columns_.begin()));
    }
    return true;
  }

  /// Shortens text that may not be a table at all.
  static std::string beginning(const std::string& text) {
    constexpr std::size_t max = 200;
    return text.size() > max ? text.substr(0, max) + "..." : text;
  }

  /// Cells of a line. Empty if a quote is not closed.
  std::vector<std::string> split(const std::string& line) {
    try {
      const auto records = config::csv_records(line, shown_as_);
      return records.empty() ? std::vector<std::string>(1) : records.front();  // no records: a quoted empty cell
    } catch (const input_error&) {
      fail("missing closing quote");
      return {};
    }
  }

  std::optional<cells> csv_cells(const std::string& line) {
    const std::vector<std::string> all = split(line);
    if (all.empty()) return std::nullopt;
    if (all.size() != columns_.size())
      return fail(fmt::format("{} cells, but the header has {}", all.size(), columns_.size())), std::nullopt;
    const auto at = [&](std::size_t i) { return i < all.size() ? all[i] : std::string(); };
    return cells{at(places_[0]), at(places_[1]), at(places_[2]), at(places_[3]), {}, {}, {}};
  }

  std::optional<cells> json_cells(const std::string& line) {
    const value v = config::parse_scalar(line);
    if (!v.members()) return fail("not a JSON object"), std::nullopt;
    const auto text = [&](const char* key) -> std::string {
      const value* x = v.find(key);
      if (!x) return "";
      if (const auto* i = x->integer()) return std::to_string(*i);
      if (const auto* d = x->number()) return fmt::format("{}", *d);
      return x->string() ? *x->string() : std::string("?");
    };
    cells out{text(format_->arrival),
              text(format_->input),
              text(format_->output),
              text(format_->total),
              text(format_->session),
              text(format_->delay),
              {}};
    const value* names = v.find(format_->names);
    if (!names) return out;
    const auto* items = names->items();
    if (!items) return fail(fmt::format("{} is not an array", format_->names)), std::nullopt;
    for (const value& n : *items) {
      if (!n.integer()) return fail(fmt::format("{}: expected integers", format_->names)), std::nullopt;
      out.names.push_back(static_cast<std::uint64_t>(*n.integer()));
    }
    return out;
  }

  std::optional<std::int64_t> tokens(const char* column, const std::string& text, std::int64_t min) {
    std::optional<std::int64_t> n = whole_text<std::int64_t>(text);
    if (!n)  // some files write counts as 12.0
      if (const auto x = whole_text<double>(text); x && *x == std::floor(*x) && std::abs(*x) < 1e15)
        n = static_cast<std::int64_t>(*x);
    if (n && *n >= min && *n <= longest) return n;
    fail(fmt::format("{}: \"{}\" is not a number of tokens", column, text));
    return std::nullopt;
  }

  /// A time of the column in seconds.
  std::optional<double> time(const char* column, const std::string& text) {
    if (format_->unit == time_text::none) return 0.0;
    std::optional<double> t;
    if (format_->unit == time_text::date_and_time) {
      std::string_view digits = text;
      const std::optional<double> ahead = config::take_offset(digits);
      t = config::date_and_time(digits);
      if (t && ahead) {
        *t -= *ahead;
        out_.format = "Azure 2024";  // whose times name their zone
      }
    } else {
      t = whole_text<double>(text);
    }
    if (!t || !std::isfinite(*t) || std::abs(*t) >= 1e15) {
      fail(fmt::format("{}: \"{}\" is not a time", column, text));
      return std::nullopt;
    }
    const bool milliseconds = format_->unit == time_text::milliseconds;
    if (options_.seconds_per_unit) return *t * *options_.seconds_per_unit;
    if (milliseconds && *t != std::floor(*t)) {
      fail(fmt::format(
          "{}: {} is not a whole number of milliseconds, the unit of {} files; if the times are in seconds, "
          "give \"time_unit\": \"s\"",
          column, text, format_->name));
      return std::nullopt;
    }
    return milliseconds ? *t / 1e3 : *t;
  }

  /// Whether blocks and sums are what the lengths make of them.
  bool consistent(const cells& c, std::int64_t input, std::int64_t output) {
    const std::int64_t block = out_.list.prefix_tokens, named = std::ssize(c.names);
    const bool whole_prompt = std::string_view(format_->names) == "hash_ids" && named > 0;
    if (named > (input + block - 1) / block || (whole_prompt && named < input / block)) {
      fail(
          fmt::format("{}: {} tokens have {} blocks of {} tokens, but the line has {}; \"block_tokens\" says how "
                      "many tokens a block has",
                      format_->names, input, (input + block - 1) / block, block, named));
      return false;
    }
    const bool sums = std::string_view(format_->total) != "";
    if (const auto total = sums ? whole_text<double>(c.total) : std::nullopt;
        total && *total != static_cast<double>(input) + static_cast<double>(output)) {
      fail(fmt::format("{}: {} is not the sum of {} and {}", format_->total, c.total, input, output));
      return false;
    }
    return true;
  }

  /// Makes the request a turn of its conversation, which sends all that was said before.
  bool continue_session(const cells& c, served_request& r) {
    conversation& s = sessions_[c.session];
    if (s.turns.empty()) {
      s.names = c.names;
      s.first_input = r.input;
    } else {
      const std::optional<double> delay = c.delay.empty() ? 0.0 : time(format_->delay, c.delay);
      if (!delay) return false;
      r.after = static_cast<std::int32_t>(s.turns.back());
      r.wait_s = *delay;
      r.arrival_s = out_.list.requests[s.turns.back()].arrival_s;
    }
    r.input += s.said;
    s.said = r.input + r.output;
    r.prefixes = static_cast<std::uint32_t>(s.said / out_.list.prefix_tokens);
    s.turns.push_back(out_.list.requests.size());
    return true;
  }

  /// Names the blocks of each conversation: those of its first prompt as in the file, and others by themselves.
  void name_blocks() {
    const std::int64_t block = out_.list.prefix_tokens;
    for (const auto& [id, s] : sessions_) {
      const std::size_t first = out_.list.prefixes.size();
      const std::uint64_t own = hashed(hash_start, id);
      for (std::int64_t b = 0; b < s.said / block; ++b) {
        const bool in_file = b < std::ssize(s.names) && (b + 1) * block <= s.first_input;
        out_.list.prefixes.push_back(in_file ? s.names[static_cast<std::size_t>(b)]
                                             : mixed(own, static_cast<std::uint64_t>(b)));
      }
      for (const std::size_t turn : s.turns) out_.list.requests[turn].first_prefix = first;
    }
  }

  void add(const std::optional<cells>& c) {
    if (!c) return;
    const bool later_turn = !c->session.empty() && sessions_.contains(c->session);
    const bool untimed = *format_->session != '\0' && (!out_.timed || later_turn);
    const std::optional<double> at = untimed ? 0.0 : time(format_->arrival, c->arrival);
    const auto input = tokens(format_->input, c->input, 1);
    const auto output = tokens(format_->output, c->output, 0);
    if (!at || !input || !output || !consistent(*c, *input, *output)) return;
    served_request r;
    r.arrival_s = *at;
    r.input = *input;
    r.output = std::max<std::int64_t>(1, *output);
    out_.empty_outputs += *output == 0 ? 1 : 0;
    if (!c->session.empty()) {
      if (!continue_session(*c, r)) return;
    } else {
      r.first_prefix = out_.list.prefixes.size();
      r.prefixes = static_cast<std::uint32_t>(c->names.size());
      out_.list.prefixes.insert(out_.list.prefixes.end(), c->names.begin(), c->names.end());
    }
    out_.list.requests.push_back(r);
  }

  void finish() {
    name_blocks();
    auto& all = out_.list.requests;
    sort_by_arrival(all);
    const double start = all.empty() ? 0 : all.front().arrival_s;
    for (std::size_t i = all.size(); i-- > 0;) {
      all[i].arrival_s -= start;
      if (out_.timed && i > 0 && all[i].after < 0 && all[i].arrival_s + start == all[i - 1].arrival_s)
        ++out_.shared_arrivals;
    }
    out_.digest = fmt::format("{:016x}", hash_);
  }

  const std::string& shown_as_;
  request_file_options options_;
  diagnostics& problems_;
  request_trace out_;
  const request_format* format_ = nullptr;
  std::vector<std::string> columns_;
  std::vector<std::size_t> places_;
  bool begun_ = false, is_json_ = false;
  std::int64_t line_ = 0, header_line_ = 0;
  int found_ = 0;
  std::uint64_t hash_ = hash_start;
  std::map<std::string, conversation> sessions_;
};

}  // namespace

request_trace read_request_file(const std::filesystem::path& file, const std::string& shown_as,
                                const request_file_options& options, diagnostics& problems) {
  std::error_code ec;
  if (std::filesystem::is_directory(file, ec)) throw io_error(fmt::format("{}: is a directory", shown_as));
  std::ifstream in(file, std::ios::binary);
  note_read(file);
  if (!in) throw io_error(fmt::format("{}: cannot be read", shown_as));
  request_trace out = file_reader(shown_as, options, problems).read(in);
  if (in.bad()) throw io_error(fmt::format("{}: cannot be read", shown_as));
  return out;
}

}  // namespace nvlsim
