#include "search/search_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "nvlsim/stack/engine_settings.hpp"

namespace nvlsim {
namespace {

/// Parses a whole text as a non-negative integer.
std::optional<std::int64_t> count_in(const std::string& text) {
  std::int64_t n = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (status != std::errc() || end != text.data() + text.size() || n < 0) return std::nullopt;
  return n;
}

/// Splits a word at plus signs and sorts the parts.
std::vector<std::string> parts_of(const std::string& word) {
  std::vector<std::string> out(1);
  for (const char c : word) {
    if (c == '+') out.emplace_back();
    else out.back() += c;
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

std::vector<std::size_t> search_space::visiting_order() const {
  std::vector<std::size_t> out(groups());
  std::iota(out.begin(), out.end(), std::size_t{0});
  return out;
}

std::string usual_parameter(const std::string& name, const std::vector<std::string>& known) {
  const auto is_known = [&](const std::string& s) {
    return std::find(known.begin(), known.end(), s) != known.end();
  };
  if (is_known(name)) return name;
  if (const std::string trained(training_parameter(name)); is_known(trained)) return trained;
  for (const std::string_view pool : {"", "prefill_", "rollout_"}) {
    if (!name.starts_with(pool)) continue;
    const std::string_view own = std::string_view(name).substr(pool.size());
    for (const engine_field& f : engine_fields)
      if (std::find(f.aliases.begin(), f.aliases.end(), own) != f.aliases.end())
        if (std::string served = std::string(pool) + std::string(f.name); is_known(served)) return served;
  }
  return name;
}

allowed_values::allowed_values(const std::vector<search_restriction>& restrictions,
                               const std::vector<search_parameter>& known, diagnostics& problems) {
  std::vector<std::string> names;
  for (const search_parameter& p : known) names.push_back(p.name);
  for (search_restriction r : restrictions) {
    r.parameter = usual_parameter(r.parameter, names);
    const auto it =
        std::find_if(known.begin(), known.end(), [&](const search_parameter& p) { return p.name == r.parameter; });
    if (it == known.end()) {
      std::string hint = nearest(r.parameter, names);
      problems.add("--only", "",
                   fmt::format("unknown parameter \"{}\"{}", r.parameter,
                               hint.empty() ? fmt::format("; known: {}", fmt::join(names, ", ")) : ""),
                   std::move(hint));
      continue;
    }
    if (r.values.empty()) r.values = {it->own};
    for (std::string& text : r.values) {
      if (it->words.empty()) {
        const auto n = count_in(text);
        if (!n || *n < it->min)
          problems.add("--only", "",
                       fmt::format("{}: \"{}\" is not a whole number{}", r.parameter, text,
                                   it->min > 0 ? " of at least 1" : ""));
        continue;
      }
      const auto like = std::find_if(it->words.begin(), it->words.end(),
                                     [&](const std::string& w) { return parts_of(w) == parts_of(text); });
      if (like != it->words.end()) text = *like;
      else if (text != it->own)
        problems.add("--only", "",
                     fmt::format("{}: \"{}\" is not one of {}", r.parameter, text, fmt::join(it->words, ", ")),
                     nearest(text, it->words));
    }
    restrictions_.push_back(std::move(r));
  }
}

bool allowed_values::allows(std::string_view parameter, std::string_view text) const {
  return std::all_of(restrictions_.begin(), restrictions_.end(), [&](const search_restriction& r) {
    return r.parameter != parameter || std::find(r.values.begin(), r.values.end(), text) != r.values.end();
  });
}

bool allowed_values::asks(std::string_view parameter, std::string_view text) const {
  return std::any_of(restrictions_.begin(), restrictions_.end(), [&](const search_restriction& r) {
    return r.parameter == parameter && std::find(r.values.begin(), r.values.end(), text) != r.values.end();
  });
}

bool allowed_values::allows(std::string_view parameter, std::int64_t v) const {
  return allows(parameter, std::to_string(v));
}

std::vector<std::int64_t> allowed_values::integers(std::string_view parameter,
                                                   std::vector<std::int64_t> usual) const {
  for (const search_restriction& r : restrictions_) {
    if (r.parameter != parameter) continue;
    usual.clear();
    for (const std::string& text : r.values)
      if (const auto n = count_in(text)) usual.push_back(*n);
  }
  std::erase_if(usual, [&](std::int64_t v) { return !allows(parameter, v); });
  std::sort(usual.begin(), usual.end());
  usual.erase(std::unique(usual.begin(), usual.end()), usual.end());
  return usual;
}

job_place place_of(const scenario& s, std::int64_t gpus) {
  const std::int64_t domain = s.platform.gpus_per_rack();
  std::int64_t each = default_segment(s.platform, gpus);
  const value* origin = s.inputs.at_pointer("/origins");
  const value* stated = origin ? origin->find("/placement/gpus_per_rack") : nullptr;
  const bool own = stated && stated->string() && *stated->string() != "default";
  if (const auto* t = std::get_if<training_workload>(&s.workload); t && own && gpus > domain)
    each = t->place.gpus_per_domain;
  each = std::max<std::int64_t>(1, std::min(each, domain));
  return {{each}, std::max(s.platform.racks, static_cast<int>((gpus + each - 1) / each))};
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> low, high;
  for (std::int64_t d = 1; d * d <= n; ++d) {
    if (n % d != 0) continue;
    low.push_back(d);
    if (d != n / d) high.push_back(n / d);
  }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

}  // namespace nvlsim
