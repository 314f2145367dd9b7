// Strict reading of a document. Every member must be known, and have the right type, range and unit.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "nvlsim/units/constant.hpp"
#include "nvlsim/units/units.hpp"

namespace nvlsim::config {

/// The name of a member and its aliases. A file that uses two of them has a problem.
struct key {
  std::string_view canonical;
  std::vector<std::string_view> aliases;
  key(const char* c) : canonical(c) {}
  key(std::string_view c) : canonical(c) {}
  key(const std::string& c) : canonical(c) {}
  key(const char* c, std::initializer_list<std::string_view> a) : canonical(c), aliases(a) {}
};

/// A range that includes its bounds.
template <class T>
struct range {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
};
inline constexpr range<std::int64_t> positive_int{1, std::int64_t{1} << 50};
inline constexpr range<std::int64_t> non_negative_int{0, std::int64_t{1} << 50};
inline constexpr range<double> positive{std::numeric_limits<double>::min(), 1e300};
inline constexpr range<double> non_negative{0.0, 1e300};
inline constexpr range<double> fraction{0.0, 1.0};

/// Reads the members of one JSON object. Collects problems instead of throwing: after a problem, a call returns a
/// harmless value (the default, the lower bound or empty), and the caller continues so that one run finds all
/// problems. Call `done()` last; it reports the members that were not read, with the nearest known name.
class reader {
 public:
  /// The root of a document, which must be an object.
  reader(document& doc, diagnostics& problems);

  const std::string& pointer() const { return pointer_; }
  /// Whether the member exists. A null member counts as absent. Marks the member as known.
  bool has(const key& k);
  /// Reports a problem if the object has this member, which is only valid in objects of another kind, `whose`.
  void belongs(const key& k, std::string_view whose);
  /// Reports a problem at member `k` (or at this object when `k` is empty).
  void fail(std::string_view k, std::string what, std::string hint = {}) const;

  // Required members. Absence is a problem.
  std::string string(const key& k);
  constant<std::int64_t> integer(const key& k, range<std::int64_t> r = {});
  constant<double> number(const key& k, range<double> r = {});
  bool boolean(const key& k);
  /// A quantity, written as text with a unit: `"900 GB/s"`. A bare number is a problem.
  template <class Q>
  constant<Q> quantity(const key& k, range<double> base_range = non_negative) {
    return {Q::from_base(quantity_base(k, Q::dim_type::value, base_range)), id_of(k)};
  }
  /// One of `names`, as an index.
  std::size_t one_of(const key& k, std::span<const std::string> names);

  // Optional members with a default, which the document records.
  std::string string_or(const key& k, std::string_view otherwise);
  constant<std::int64_t> integer_or(const key& k, std::int64_t otherwise, range<std::int64_t> r = {});
  constant<double> number_or(const key& k, double otherwise, range<double> r = {});
  bool boolean_or(const key& k, bool otherwise);
  std::size_t one_of_or(const key& k, std::span<const std::string> names, std::size_t otherwise);

  // Optional members without a default. Nothing if absent or null.
  std::optional<std::string> find_string(const key& k);
  std::optional<constant<std::int64_t>> find_integer(const key& k, range<std::int64_t> r = {});
  std::optional<constant<double>> find_number(const key& k, range<double> r = {});
  template <class Q>
  std::optional<constant<Q>> find_quantity(const key& k, range<double> base_range = non_negative) {
    if (!present(k)) return std::nullopt;
    return quantity<Q>(k, base_range);
  }

  /// A required member that is an object. If it is missing or not an object, the returned reader is empty and
  /// reports no problems.
  reader child(const key& k);
  std::optional<reader> find_child(const key& k);
  /// Like an empty object if it is missing; its defaults are recorded.
  reader child_or_empty(const key& k);
  /// Readers of the members of object `k`, with their names, in file order; for tables such as precisions.
  std::vector<std::pair<std::string, reader>> children(const key& k);
  /// Readers of the elements of array `k`, which must all be objects.
  std::vector<reader> elements(const key& k);
  /// All member names of this object, in file order.
  std::vector<std::string> names() const;
  /// The unparsed member, which is marked as known; nullptr if absent.
  const value* raw(const key& k);
  /// Marks a member as known without reading it.
  void ignore(const key& k);

  /// From here down, a number needs a source: it is written `{"value": ..., "kind": ..., "source": ...}`, or an
  /// object around it has members "kind" and "source", which then hold for every bare number inside. `source` may
  /// name a member of the document's top-level `"sources"` object. Such numbers are constants that know their
  /// names: `prefix` ("/platform") and their
  /// pointers.
  void require_sources(std::string prefix = {}) {
    sourced_ = true;
    prefix_ = std::move(prefix);
  }

  /// "kind" of the nearest enclosing object that has one: "measured", "vendor", "derived" or "assumed"; else "".
  const std::string& kind() const { return group_kind_; }

  /// Reports members that were not read.
  void done() const;
  /// The spelling in which the object has the member: an override's, else the first; "" if it has not.
  std::string spelling_of(const key& k) const;
  /// Whether an override set the member or something inside it.
  bool set_by_user(std::string_view name) const;
  /// Reports unread members only if an override set them or something inside them, for files with members that
  /// nvlsim does not use.
  void done_with_overrides() const;

 private:
  reader(const reader& parent, const value* node, std::string pointer, bool silent);

  /// The member with that name; null counts as absent.
  const value* member(std::string_view name) const;
  /// The member under its name or an alias; marks it as known.
  const value* present(const key& k);
  const value* required(const key& k);
  void read_group();
  void check_kind(const std::string& pointer, const std::string& kind) const;
  /// Records the source of the number at `pointer`.
  void note_source(const std::string& pointer, const value& v, const std::string& kind, std::string source);
  /// Unwraps `{"value": ...}` and records its provenance.
  const value* unwrap(const key& k, const value* v);
  double quantity_base(const key& k, dimension d, range<double> r);
  /// Of the constant that member `k` is; 0 where numbers need no sources.
  constant_id id_of(const key& k) const;
  /// The spelling of the member that counts: an override's, else the first that is given, else the canonical one.
  std::string at(const key& k) const;
  void note_default(const key& k, value v);
  /// The override that set the value at `pointer` or something inside it: its pointer and its origin.
  std::optional<std::pair<std::string, origin>> override_in(const std::string& pointer) const;
  void refuse_unread(bool overrides_only, std::string_view what) const;
  std::int64_t checked_integer(const key& k, const value& v, range<std::int64_t> r);
  double checked_number(const key& k, const value& v, range<double> r);

  document* doc_;
  diagnostics* problems_;
  const value* node_;
  std::string pointer_;
  bool silent_ = false;
  bool sourced_ = false;
  std::string prefix_;                                     ///< of names of constants
  std::string group_kind_, group_source_, group_pointer_;  ///< of the nearest object that has them
  std::set<std::string, std::less<>> known_;
};

}  // namespace nvlsim::config
