#include "nvlsim/config/date_time.hpp"

#include <chrono>

namespace nvlsim::config {

std::optional<double> take_offset(std::string_view& t) {
  constexpr std::size_t length = 6, time_begins = 11;
  if (t.ends_with('Z')) return t.remove_suffix(1), 0.0;
  if (t.size() < time_begins + length) return std::nullopt;
  const std::string_view end = t.substr(t.size() - length);
  if ((end[0] != '+' && end[0] != '-') || end[3] != ':') return std::nullopt;
  const auto hours = whole_text<int>(end.substr(1, 2)), minutes = whole_text<int>(end.substr(4, 2));
  if (!hours || !minutes || *hours > 14 || *minutes > 59) return std::nullopt;
  t.remove_suffix(length);
  return (end[0] == '-' ? -1 : 1) * (*hours * 3600.0 + *minutes * 60.0);
}

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

}  // namespace nvlsim::config
