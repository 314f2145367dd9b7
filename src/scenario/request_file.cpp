#include "scenario/request_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "nvlsim/config/csv_records.hpp"
#include "nvlsim/config/document.hpp"

namespace nvlsim {
namespace {

constexpr std::int64_t longest = std::int64_t{1} << 30, max_lines = 10'000'000;
constexpr int max_problems = 20;

enum class time_text { none, seconds, milliseconds, date_and_time };

/// A format, identified by its columns. Without an arrival column the file has lengths only.
struct request_format {
  const char* name;
  const char* arrival;
  time_text unit;
  const char* input;
  const char* output;
  const char* names;  ///< column with the list of prompt blocks; "" if none
  std::int64_t block_tokens;
};

// Sources: docs/serving.md#traces
constexpr std::array<request_format, 7> formats = {{
    {"Azure 2023", "TIMESTAMP", time_text::date_and_time, "ContextTokens", "GeneratedTokens", "", 0},
    {"Mooncake", "timestamp", time_text::milliseconds, "input_length", "output_length", "hash_ids", 512},
    {"Vidur with arrivals", "arrived_at", time_text::seconds, "num_prefill_tokens", "num_decode_tokens", "", 0},
    {"Vidur", "", time_text::none, "num_prefill_tokens", "num_decode_tokens", "", 0},
    {"BurstGPT", "Timestamp", time_text::seconds, "Request tokens", "Response tokens", "", 0},
    {"generic", "arrival_s", time_text::seconds, "input_tokens", "output_tokens", "prefix_blocks", 512},
    {"generic lengths", "", time_text::none, "input_tokens", "output_tokens", "prefix_blocks", 512},
}};

template <class T>
std::optional<T> whole_text(std::string_view text) {
  T x{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), x);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return x;
}

/// "2023-11-16 18:17:03.9799600" as seconds since 1970, UTC.
std::optional<double> date_and_time(std::string_view t) {
  if (t.size() < 19 || t[4] != '-' || t[7] != '-' || (t[10] != ' ' && t[10] != 'T') || t[13] != ':' ||
      t[16] != ':')
    return std::nullopt;
  const auto year = whole_text<int>(t.substr(0, 4));
  const auto month = whole_text<unsigned>(t.substr(5, 2)), day = whole_text<unsigned>(t.substr(8, 2));
  const auto hour = whole_text<int>(t.substr(11, 2)), minute = whole_text<int>(t.substr(14, 2));
  const auto second = whole_text<double>(t.substr(17));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const bool of_a_day = *hour >= 0 && *hour < 24 && *minute >= 0 && *minute < 60 && *second >= 0 && *second < 61;
  if (!of_a_day) return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year{*year}, std::chrono::month{*month},
                                         std::chrono::day{*day}};
  if (!date.ok()) return std::nullopt;
  const auto days = std::chrono::sys_days{date}.time_since_epoch().count();
  return static_cast<double>(days) * 86400.0 + *hour * 3600.0 + *minute * 60.0 + *second;
}

/// Cells of one line.
struct cells {
  std::string arrival, input, output;
  std::vector<std::uint64_t> names;
};

class file_reader {
 public:
  file_reader(const std::string& shown_as, diagnostics& problems) : shown_as_(shown_as), problems_(problems) {}

  request_trace read(std::istream& in) {
    std::string line;
    while (std::getline(in, line)) {
      ++line_;
      for (const char c : line) hash_ = (hash_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
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
    for (const request_format& f : formats)
      if (has(f.input) && has(f.output) && (f.unit == time_text::none || has(f.arrival))) {
        format_ = &f;
        out_.format = f.name;
        out_.timed = f.unit != time_text::none;
        if (f.block_tokens > 0) out_.list.prefix_tokens = f.block_tokens;
        for (const char* wanted : {f.arrival, f.input, f.output}) {
          const auto at = std::find(columns_.begin(), columns_.end(), wanted);
          if (*wanted != '\0' && at != columns_.end() &&
              std::find(at + 1, columns_.end(), wanted) != columns_.end())
            return fail(fmt::format("column {} occurs twice", wanted)), false;
          places_.push_back(static_cast<std::size_t>(at - columns_.begin()));
        }
        return true;
      }
    problems_.add(shown_as_, "",
                  fmt::format("unknown request file format with columns {}; the generic format has arrival_s, "
                              "input_tokens, output_tokens",
                              beginning(fmt::format("{}", fmt::join(columns_, ", ")))));
    return false;
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
    return cells{at(places_[0]), at(places_[1]), at(places_[2]), {}};
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
    cells out{text(format_->arrival), text(format_->input), text(format_->output), {}};
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

  std::optional<double> time(const std::string& text) {
    if (format_->unit == time_text::none) return 0.0;
    std::optional<double> t =
        format_->unit == time_text::date_and_time ? date_and_time(text) : whole_text<double>(text);
    if (t && std::isfinite(*t) && std::abs(*t) < 1e15)
      return format_->unit == time_text::milliseconds ? *t / 1e3 : *t;
    fail(fmt::format("{}: \"{}\" is not a time", format_->arrival, text));
    return std::nullopt;
  }

  void add(const std::optional<cells>& c) {
    if (!c) return;
    const auto at = time(c->arrival);
    const auto input = tokens(format_->input, c->input, 1);
    const auto output = tokens(format_->output, c->output, 0);
    if (!at || !input || !output) return;
    served_request r;
    r.arrival_s = *at;
    r.input = *input;
    r.output = std::max<std::int64_t>(1, *output);
    out_.empty_outputs += *output == 0 ? 1 : 0;
    r.first_prefix = out_.list.prefixes.size();
    r.prefixes = static_cast<std::uint32_t>(c->names.size());
    out_.list.prefixes.insert(out_.list.prefixes.end(), c->names.begin(), c->names.end());
    out_.list.requests.push_back(r);
  }

  void finish() {
    auto& all = out_.list.requests;
    std::stable_sort(all.begin(), all.end(),
                     [](const served_request& a, const served_request& b) { return a.arrival_s < b.arrival_s; });
    const double start = all.empty() ? 0 : all.front().arrival_s;
    for (std::size_t i = all.size(); i-- > 0;) {
      all[i].arrival_s -= start;
      if (out_.timed && i > 0 && all[i].arrival_s + start == all[i - 1].arrival_s) ++out_.shared_arrivals;
    }
    out_.digest = fmt::format("{:016x}", hash_);
  }

  const std::string& shown_as_;
  diagnostics& problems_;
  request_trace out_;
  const request_format* format_ = nullptr;
  std::vector<std::string> columns_;
  std::vector<std::size_t> places_;
  bool begun_ = false, is_json_ = false;
  std::int64_t line_ = 0, header_line_ = 0;
  int found_ = 0;
  std::uint64_t hash_ = 0xcbf29ce484222325;
};

}  // namespace

request_trace read_request_file(const std::filesystem::path& file, const std::string& shown_as,
                                diagnostics& problems) {
  std::error_code ec;
  if (std::filesystem::is_directory(file, ec)) throw io_error(fmt::format("{}: is a directory", shown_as));
  std::ifstream in(file, std::ios::binary);
  if (!in) throw io_error(fmt::format("{}: cannot be read", shown_as));
  request_trace out = file_reader(shown_as, problems).read(in);
  if (in.bad()) throw io_error(fmt::format("{}: cannot be read", shown_as));
  return out;
}

}  // namespace nvlsim
