#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "stack/kernel_fields.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {
namespace {

using config::reader;
using namespace kernel_fields;

/// An entry with the names of the members it has, its own and inherited ones.
struct entry {
  reader r;
  enum { unread, reading, read } state = unread;
  bool base_broken = false;  // missing members are then not reported
  kernel_profile profile;
  std::set<std::string> given, given_by_base;
};

class kernels_reader {
 public:
  explicit kernels_reader(reader& table) {
    for (const std::string& n : table.names()) {
      if (n == "kind" || n == "source") continue;  // belongs to the whole table
      names_.push_back(n);
      entries_.emplace(n, entry{table.child(n), entry::unread, false, {}, {}, {}});
    }
  }

  std::map<std::string, kernel_profile> all() {
    std::map<std::string, kernel_profile> out;
    for (const std::string& n : names_) out.emplace(n, resolve(n).profile);
    return out;
  }

 private:
  entry& resolve(const std::string& name) {
    entry& e = entries_.at(name);
    if (e.state != entry::unread) return e;
    e.state = entry::reading;
    path_.push_back(name);
    if (const auto like = e.r.find_string("like")) extend(e, *like);
    e.profile.gpu = name;
    read_members(e);
    path_.pop_back();
    e.state = entry::read;
    return e;
  }

  void extend(entry& e, const std::string& like) {
    e.base_broken = true;
    const auto it = entries_.find(like);
    if (it == entries_.end()) {
      e.r.fail("like", fmt::format("no entry \"{}\" in \"kernels\"", like), nearest(like, names_));
      return;
    }
    if (it->second.state == entry::reading) {
      e.r.fail("like", fmt::format("cycle: {} -> {}", fmt::join(path_, " -> "), like));
      return;
    }
    const entry& base = resolve(like);
    e.profile = base.profile;
    e.profile.like.insert(e.profile.like.begin(), like);
    e.profile.measured_on.reset();
    e.given = e.given_by_base = base.given;
    e.base_broken = base.base_broken;
  }

  void read_members(entry& e) {
    kernel_profile& p = e.profile;
    if (!e.r.has("gemm")) require(e, e.r, "", "", "gemm");
    read_by_precision(e, "gemm", p.gemm);
    read_by_precision(e, "weight_only", p.weight_only);
    read_by_precision(e, "absorb_keys", p.absorb_keys);
    read_by_precision(e, "absorb_values", p.absorb_values);
    read_group(e, e.r, "", "attention", p.attention);
    read_optional(e, "attention_fp8", p.attention_fp8);
    read_group(e, e.r, "", "decode", p.decode);
    read_optional(e, "decode_fp8", p.decode_fp8);
    read_by_precision(e, "single_decode", p.single_decode);
    read_optional(e, "ungrouped_decode", p.ungrouped_decode);
    read_by_precision(e, "mla_context", p.mla_context);
    read_by_precision(e, "mla_decode", p.mla_decode);
    read_moe(e);
    read_group(e, e.r, "", "stream", p.stream);
    read_optional(e, "amax", p.amax);
    read_peaks(e.r, "peaks_of_origin", p.peaks_of_origin);
    read_measured_on(e);
    if (const auto x = e.r.find_quantity<watts>("dynamic_power_of_origin", config::positive))
      p.dynamic_power_of_origin = *x;
    if (const auto x = e.r.find_number("ultra_factor", {0.5, 2})) p.ultra_factor = *x;
    if (const auto x = e.r.find_number("power_exponent", config::fraction)) {
      p.power_exponent = *x;
      e.given.insert("power_exponent");
    }
    require(e, e.r, "", "", "power_exponent");
    e.r.done();
  }

  static void read_peaks(reader& r, const char* k, std::map<precision, constant<flop_rate>>& out) {
    auto peaks = r.find_child(k);
    if (!peaks) return;
    for (const std::string& n : peaks->names())
      if (const auto f = precision_by_name(n)) out[*f] = peaks->quantity<flop_rate>(n, config::positive);
      else if (n != "kind" && n != "source")
        peaks->fail(n, "unknown number format", nearest(n, precision_names()));
    peaks->done();
  }

  void read_measured_on(entry& e) {
    auto r = e.r.find_child("measured_on");
    if (!r) return;
    measured_gpu& m = e.profile.measured_on.emplace();
    read_peaks(*r, "peaks", m.peaks);
    m.dynamic_power = r->quantity<watts>("dynamic_power", config::positive);
    m.sm_count = r->integer("sm_count", {1, 100000}).as<int>();
    r->done();
  }

  template <class P>
  void read_optional(entry& e, const char* k, std::optional<P>& p) {
    if (e.r.has(k)) read_group(e, e.r, "", k, p ? *p : p.emplace());
  }

  template <class P>
  void read_by_precision(entry& e, const char* k, std::map<precision, P>& out) {
    std::optional<reader> table = e.r.find_child(k);
    if (!table) return;
    e.given.insert(k);
    for (const std::string& n : table->names()) {
      if (n == "kind" || n == "source") continue;  // belongs to the whole group
      if (const auto p = precision_by_name(n)) {
        read_group(e, *table, fmt::format("{}/", k), n, out[*p]);
      } else {
        table->ignore(n);
        table->fail(n, "unknown number format", nearest(n, precision_names()));
      }
    }
    if (out.empty() && !e.base_broken) table->fail("", "at least one precision is required");
    table->done();
  }

  void read_moe(entry& e) {
    std::optional<reader> table = e.r.find_child("moe");
    if (!table) return;
    e.given.insert("moe");
    for (const std::string& n : table->names())
      if (n != "kind" && n != "source") read_group(e, *table, "moe/", n, e.profile.moe[n]);
    table->done();
  }

  /// Reads member `k` of `parent`. `prefix` precedes it in the names of `given`.
  template <class P>
  void read_group(entry& e, reader& parent, const std::string& prefix, const std::string& k, P& p) {
    std::optional<reader> r = parent.find_child(k);
    if (!r) return require(e, parent, "", prefix, k);
    e.given.insert(prefix + k);
    for (const field<P>& f : fields<P>) {
      if (r->has(f.name)) e.given.insert(prefix + k + "/" + f.name);
      f.how.read(*r, f.name, f.allowed, p);
      if (f.required) require(e, parent, k, prefix + k + "/", f.name);
    }
    r->done();
  }

  /// Reports, at member `at` of `where`, a member that neither the entry nor its base has. If the base has the
  /// group without the member, it has been reported there.
  static void require(const entry& e, const reader& where, std::string_view at, const std::string& prefix,
                      const std::string& member) {
    if (e.base_broken || e.given.contains(prefix + member)) return;
    const bool base_has_group =
        prefix.empty() ? !e.given_by_base.empty() : e.given_by_base.contains(prefix.substr(0, prefix.size() - 1));
    if (!base_has_group) where.fail(at, fmt::format("required member \"{}\" is missing", member));
  }

  std::vector<std::string> names_, path_;
  std::map<std::string, entry> entries_;
};

}  // namespace

std::map<std::string, kernel_profile> read_kernels(reader& r) {
  std::optional<reader> table = r.find_child("kernels");
  if (!table) return {};
  std::map<std::string, kernel_profile> out = kernels_reader(*table).all();
  table->done();
  return out;
}

}  // namespace nvlsim
