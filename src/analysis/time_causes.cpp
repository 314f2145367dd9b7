// Groups time slices into trees and tables. [docs/models-and-assumptions.md#bounds]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <type_traits>
#include <utility>
#include <variant>

#include "analysis/time_slices.hpp"

namespace nvlsim {
namespace {

/// Parts with the same name and more shapes than this are merged.
constexpr std::size_t max_shapes = 4;

/// The limiting resource of a part without facts.
resource usual_limit(part_kind k) {
  switch (k) {
    case part_kind::gemm:
    case part_kind::attention:
      return resource::tensor_cores;
    case part_kind::memory_bound:
    case part_kind::optimizer:
      return resource::hbm;
    case part_kind::tp:
    case part_kind::pp:
    case part_kind::cp:
    case part_kind::ep:
    case part_kind::dp:
      return resource::nvlink;
    default:
      return resource::host;
  }
}

std::string amount_text(double x) { return fmt::format("{:.6g}", x); }

std::string megabytes(double x) { return fmt::format("{:.4g} MB", x / 1e6); }

template <class Extent>
constexpr std::array<double Extent::*, 0> sides_of = {};
template <>
constexpr std::array sides_of<gemm_extent> = {&gemm_extent::m, &gemm_extent::n, &gemm_extent::k,
                                              &gemm_extent::groups};
template <>
constexpr std::array sides_of<attention_extent> = {&attention_extent::sequences, &attention_extent::heads,
                                                   &attention_extent::queries, &attention_extent::keys};
template <>
constexpr std::array sides_of<decode_extent> = {&decode_extent::sequences, &decode_extent::heads,
                                                &decode_extent::cached};
template <>
constexpr std::array sides_of<exchange_extent> = {&exchange_extent::bytes, &exchange_extent::ranks,
                                                  &exchange_extent::domains};

/// From the least to the most of a side, of several extents.
template <class Extent>
struct extent_range {
  const Extent &low, &high;

  std::string operator()(double Extent::*side) const {
    if (low.*side == high.*side) return amount_text(low.*side);
    return fmt::format("{}..{}", amount_text(low.*side), amount_text(high.*side));
  }
};

/// An extent, or the range of several.
struct shape_range {
  part_facts low, high;
  bool empty = true, several_formats = false;

  void add(const part_facts& f) {
    if (empty) low = high = f;
    several_formats |= f.operands != low.operands;
    std::visit([&](const auto& extent) { widen(extent); }, f.extent);
    if (f.algorithm != high.algorithm) high.algorithm = "several algorithms";
    if (f.exchange != high.exchange) high.exchange = "exchanges";
    empty = false;
  }
  std::string text() const;
  std::optional<part_facts> single() const {
    return empty || low.extent != high.extent || several_formats ? std::nullopt : std::optional(low);
  }

 private:
  /// Parts of one name are of one kind; others are left out.
  template <class Extent>
  void widen(const Extent& by) {
    auto *min = std::get_if<Extent>(&low.extent), *largest = std::get_if<Extent>(&high.extent);
    if (!min || !largest) return;
    for (const auto side : sides_of<Extent>) {
      min->*side = std::min(min->*side, by.*side);
      largest->*side = std::max(largest->*side, by.*side);
    }
  }
  void widen(std::monostate) {}

  template <class Extent>
  extent_range<Extent> range() const {
    return {std::get<Extent>(low.extent), std::get<Extent>(high.extent)};
  }
};

std::string text_of(const extent_range<gemm_extent>& r, const part_facts& f) {
  const std::string one =
      fmt::format("{} x {} x {} {}", r(&gemm_extent::m), r(&gemm_extent::n), r(&gemm_extent::k), name(f.operands));
  return r.high.groups == 1 ? one : fmt::format("{} of {}", r(&gemm_extent::groups), one);
}

/// "1 head", "2..8 heads".
std::string count_of(const std::string& amount, const char* noun) {
  return fmt::format("{} {}{}", amount, noun, amount == "1" ? "" : "s");
}

std::string text_of(const extent_range<attention_extent>& r, const part_facts&) {
  return fmt::format("{}, {}, {} queries x {} keys", count_of(r(&attention_extent::sequences), "sequence"),
                     count_of(r(&attention_extent::heads), "head"), r(&attention_extent::queries),
                     r(&attention_extent::keys));
}

std::string text_of(const extent_range<decode_extent>& r, const part_facts&) {
  return fmt::format("{}, {}, {} cached", count_of(r(&decode_extent::sequences), "sequence"),
                     count_of(r(&decode_extent::heads), "head"), r(&decode_extent::cached));
}

std::string text_of(const extent_range<exchange_extent>& r, const part_facts& f) {
  const std::string size = r.low.bytes == r.high.bytes
                               ? megabytes(r.low.bytes)
                               : fmt::format("{} .. {}", megabytes(r.low.bytes), megabytes(r.high.bytes));
  const std::string racks =
      r.high.domains > 1 ? fmt::format(" in {} domains", r(&exchange_extent::domains)) : std::string();
  return fmt::format("{} of {}, {} ranks{}{}{}", f.exchange, size, r(&exchange_extent::ranks), racks,
                     f.algorithm.empty() ? "" : ", ", f.algorithm);
}

std::string shape_range::text() const {
  if (empty) return {};
  return std::visit(
      [&](const auto& extent) -> std::string {
        using type = std::decay_t<decltype(extent)>;
        if constexpr (std::is_same_v<type, std::monostate>) return {};
        else return text_of(range<type>(), high);
      },
      low.extent);
}

/// Slices with the same key form one leaf.
struct leaf_key {
  std::string group, name, shape;
  friend auto operator<=>(const leaf_key&, const leaf_key&) = default;
};

struct leaf {
  double time_s = 0, calls = 0, flop = 0, moved = 0, alone_s = 0, ceiling = 0;
  std::map<resource, double> limits;
  shape_range shapes;

  void add(const time_slice& s, double share) {
    time_s += s.time_s * share;
    calls += s.calls;
    if (!s.facts) return;
    const part_facts& f = *s.facts;
    shapes.add(f);
    flop += f.flop.base() * s.calls;
    moved += f.moved.base() * s.calls;
    alone_s += f.alone.base() * s.calls;
    limits[f.limit] += s.time_s;
    ceiling = std::max(ceiling, f.ceiling);
  }
  resource limit() const {
    const auto largest = std::max_element(limits.begin(), limits.end(),
                                          [](const auto& a, const auto& b) { return a.second < b.second; });
    return largest == limits.end() ? resource::latency : largest->first;
  }
};

std::string exact_shape(const time_slice& s) {
  if (!s.facts) return {};
  shape_range one;
  one.add(*s.facts);
  return one.text();
}

/// The share of a slice that belongs to a group.
struct portion {
  std::string group;
  double share = 1;
};
using grouping = std::function<std::vector<portion>(const time_slice&)>;

std::map<leaf_key, leaf> leaves_of(const std::vector<time_slice>& slices, const grouping& groups) {
  std::map<std::pair<std::string, std::string>, std::set<std::string>> shapes;
  for (const time_slice& s : slices)
    for (const portion& p : groups(s))
      if (auto& known = shapes[{p.group, s.name}]; known.size() <= max_shapes) known.insert(exact_shape(s));
  std::map<leaf_key, leaf> out;
  for (const time_slice& s : slices)
    for (const portion& p : groups(s)) {
      if (!(p.share > 0)) continue;
      const bool own = shapes[{p.group, s.name}].size() <= max_shapes;
      out[{p.group, s.name, own ? exact_shape(s) : std::string()}].add(s, p.share);
    }
  return out;
}

void sort_parts(cause& c) {
  std::stable_sort(c.parts.begin(), c.parts.end(),
                   [](const cause& a, const cause& b) { return a.amount > b.amount; });
}

cause grouped(const std::vector<time_slice>& slices, std::string title, const grouping& groups) {
  std::map<std::string, cause> by_group;
  for (const auto& [key, l] : leaves_of(slices, groups)) {
    cause& g = by_group[key.group];
    g.name = key.group;
    g.amount += l.time_s;
    g.parts.push_back({key.name, l.time_s, l.shapes.text()});
  }
  cause whole{std::move(title), 0, {}, {}};
  for (auto& [key, g] : by_group) {
    whole.amount += g.amount;
    sort_parts(g);
    // A group with a single part of the same name is shown as that part.
    if (g.parts.size() == 1 && g.parts.front().name == g.name) g = std::move(g.parts.front());
    whole.parts.push_back(std::move(g));
  }
  sort_parts(whole);
  return whole;
}

std::vector<portion> resources_of(const time_slice& s) {
  if (s.kind == part_kind::idle) return {{s.name, 1}};
  if (!s.facts) return {{std::string(name(usual_limit(s.kind))), 1}};
  const part_facts& f = *s.facts;
  const double latency = f.alone > seconds{} ? f.latency / f.alone : 0;
  return {{std::string(name(f.limit)), 1 - latency}, {std::string(name(resource::latency)), latency}};
}

}  // namespace

cause by_resource(const std::vector<time_slice>& slices, std::string name) {
  return grouped(slices, std::move(name), resources_of);
}

cause by_kind(const std::vector<time_slice>& slices, std::string title) {
  return grouped(slices, std::move(title), [](const time_slice& s) {
    return std::vector<portion>{{std::string(name(s.kind)), 1}};
  });
}

cause by_phase(const std::vector<time_slice>& slices, std::string title) {
  std::map<std::string, std::vector<time_slice>> phases;
  for (const time_slice& s : slices) phases[s.phase].push_back(s);
  cause whole{std::move(title), 0, {}, {}};
  for (const auto& [phase, own] : phases) {
    cause c = by_kind(own, phase);
    if (c.parts.size() == 1 && c.parts.front().parts.empty()) c.parts.clear();
    whole.amount += c.amount;
    whole.parts.push_back(std::move(c));
  }
  sort_parts(whole);
  return whole;
}

std::vector<time_use> uses_of_time(const std::vector<time_slice>& slices, bool transfers, double whole_s) {
  std::vector<time_slice> wanted;
  for (const time_slice& s : slices) {
    if (!s.facts) continue;
    const bool exchange = std::holds_alternative<exchange_extent>(s.facts->extent);
    const bool kernel =
        !exchange && (s.facts->flop.base() > 0 || s.facts->moved.base() > 0) && s.facts->limit != resource::c2c;
    if (transfers ? exchange : kernel) wanted.push_back(s);
  }
  std::vector<time_use> out;
  for (const auto& [key, l] : leaves_of(wanted, [](const time_slice& s) {
         return std::vector<portion>{{s.phase, 1}};
       })) {
    const resource limit = l.limit();
    const double done = limit == resource::tensor_cores ? l.flop : l.moved;
    out.push_back({key.name, key.group, l.shapes.text(), limit, l.calls, l.time_s,
                   whole_s > 0 ? l.time_s / whole_s : 0, l.alone_s > 0 ? done / l.alone_s : 0, l.ceiling,
                   l.calls > 0 ? l.flop / l.calls : 0, l.calls > 0 ? l.moved / l.calls : 0, l.shapes.single()});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const time_use& a, const time_use& b) { return a.time_s > b.time_s; });
  return out;
}

}  // namespace nvlsim
