#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "nvlsim/config/fields.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {
namespace {

using config::reader;

// Times are divided by rates, so a rate of zero is not allowed.
constexpr config::range<double> share{config::positive.low, 10.0};
constexpr config::range<double> power{1.0, 16.0};

protocol_params read_protocol(reader& r) {
  return {r.quantity<seconds>("latency"), r.quantity<seconds>("hop"),
          r.quantity<bandwidth>("rate", config::positive)};
}

protocol_params read_protocol(reader& parent, const char* name) {
  reader r = parent.child(name);
  const protocol_params p = read_protocol(r);
  r.done();
  return p;
}

std::optional<protocol_params> find_protocol(reader& parent, const char* name) {
  if (!parent.has(name)) {
    parent.ignore(name);
    return std::nullopt;
  }
  return read_protocol(parent, name);
}

protocol_tuning read_tuning(reader& r) {
  protocol_tuning t;
  t.ll = read_protocol(r, "ll");
  t.ll128 = read_protocol(r, "ll128");
  t.simple = read_protocol(r, "simple");
  t.nvls = find_protocol(r, "nvls");
  t.p2p_ll_limit = r.quantity<bytes>("p2p_ll_limit");
  return t;
}

domain_collective read_domain(reader& r) {
  domain_collective d;
  d.ll_few = find_protocol(r, "ll_few");
  d.ll = read_protocol(r, "ll");
  d.ll128 = find_protocol(r, "ll128");
  d.simple_few = find_protocol(r, "simple_few");
  d.simple = read_protocol(r, "simple");
  d.simple_power = r.number("simple_power", power);
  d.local_copy = r.quantity<bandwidth>("local_copy", config::positive);
  d.pipeline = r.quantity<seconds>("pipeline");
  d.nvls_rate = r.find_quantity<bandwidth>("nvls_rate", config::positive);
  if (d.nvls_rate) {
    d.nvls_latency = r.quantity<seconds>("nvls_latency");
    d.nvls_pipeline_per_rank = r.quantity<seconds>("nvls_pipeline_per_rank");
    d.nvls_pipeline_limit = r.quantity<bytes>("nvls_pipeline_limit_per_rank");
    d.nvls_tree_many = r.boolean_or("nvls_tree_many", false);
  }
  d.network_ring_rate = r.find_quantity<bandwidth>("network_ring_rate", config::positive);
  return d;
}

fabric_collective::tree_params read_tree(reader& r) {
  fabric_collective::tree_params t;
  t.latency = r.quantity<seconds>("latency");
  t.hop = r.quantity<seconds>("hop");
  t.pipeline = r.number_or("pipeline", 0, config::non_negative);
  t.domain_share = r.number("domain_share", share);
  t.nic_share = r.number("nic_share", share);
  t.many_share = r.number_or("many_share", 1, share);
  t.per_latency = r.number_or("per_latency", 1, config::non_negative);
  r.done();
  return t;
}

fabric_collective read_fabric(reader& r) {
  fabric_collective f;
  reader ll = r.child("ll");
  f.ll = read_protocol(ll);
  f.ll_pipeline = ll.quantity<seconds>("pipeline");
  ll.done();
  f.ll128 = find_protocol(r, "ll128");
  if (f.ll128) f.ll128_limit = r.quantity<bytes>("ll128_limit");
  reader ring = r.child("ring");
  f.ring.latency = ring.quantity<seconds>("latency");
  f.ring.nvlink_step = ring.quantity<seconds>("nvlink_step");
  f.ring.fabric_step = ring.quantity<seconds>("fabric_step");
  f.ring.pipeline = ring.find_quantity<seconds>("pipeline").value_or(seconds{});
  f.ring.power = ring.number("power", power);
  f.ring.nic_share = ring.number("nic_share", share);
  f.ring.per_latency = ring.number_or("per_latency", 1, config::non_negative);
  ring.done();
  if (auto t = r.find_child("tree")) f.tree = read_tree(*t);
  if (auto t = r.find_child("nvls_tree")) f.nvls_tree = read_tree(*t);
  if (auto s = r.find_child("sharp")) {
    f.sharp = {s->quantity<seconds>("latency"), s->quantity<seconds>("pipeline"), s->number("nic_share", share),
               s->kind() != "measured"};
    s->done();
  }
  return f;
}

fabric_all_to_all read_all_to_all(reader& r) {
  return {r.quantity<seconds>("latency"), r.quantity<seconds>("per_rank"),
          r.quantity<seconds>("pipeline_per_rank"), r.number("nic_share", share)};
}

custom_all_reduce read_custom(reader& r) {
  return {r.quantity<seconds>("one_latency"), r.quantity<seconds>("per_peer"), r.quantity<seconds>("two_extra"),
          r.number("one_share", share), r.number("two_share", share)};
}

expert_exchange read_expert(reader& r) {
  return {r.quantity<seconds>("latency"),   r.number("per_doubling", config::non_negative),
          r.quantity<seconds>("per_token"), r.number("element_bytes", config::non_negative),
          r.number("nvlink_share", share),  r.number("per_peer", config::non_negative)};
}

measured_hardware read_measured_on(reader& r) {
  measured_hardware m{r.find_quantity<bandwidth>("nvlink", config::positive),
                      r.find_quantity<seconds>("latency"),
                      r.find_quantity<seconds>("switch_latency"),
                      r.find_quantity<seconds>("host_step"),
                      {}};
  if (r.has("like")) m.like = r.string("like");
  else r.ignore("like");
  return m;
}

/// {"families": [{"family", "rows", "low", "high"}]}
std::map<std::string, collective_spread> read_spreads(reader& table) {
  std::map<std::string, collective_spread> out;
  for (reader& r : table.elements("families")) {
    const std::string family = r.string("family");
    const collective_spread s{static_cast<int>(r.integer("rows", {1, 1'000'000'000})),
                              r.number("low", error_ratio), r.number("high", error_ratio)};
    if (s.low > s.high) r.fail("low", "is more than high");
    if (!out.emplace(family, s).second) r.fail("family", "is listed twice");
    r.done();
  }
  table.done();
  return out;
}

/// A kind with `like` must have no parameters of its own, and the kind it names must have some.
void check_like(reader& r, const collective_profile& c) {
  for (const auto& [kind, m] : c.measured_on)
    if (!m.like.empty() && (c.domain.contains(kind) || !c.domain.contains(m.like)))
      r.fail("measured_on",
             fmt::format("\"like\" of {0}: {1} must have parameters and {0} must have none", kind, m.like));
}

/// Members of `table`, each read by `one`, but for `kind`, `source` and `beside`.
template <class T>
std::map<std::string, T> entries(reader& table, T (*one)(reader&), std::string_view beside = "source") {
  std::map<std::string, T> out;
  for (const std::string& n : table.names()) {
    if (n == "kind" || n == "source" || n == beside) continue;  // belongs to the whole table
    reader r = table.child(n);
    out.emplace(n, one(r));
    r.done();
  }
  table.done();
  return out;
}

template <class T>
std::map<std::string, T> table(reader& r, const char* name, T (*one)(reader&)) {
  auto t = r.find_child(name);
  return t ? entries(*t, one) : std::map<std::string, T>{};
}

/// Reports members of `t` that are not in `known`.
void check_names(const reader& t, std::span<const std::string> known) {
  for (const std::string& n : t.names())
    if (n != "kind" && n != "source" && std::find(known.begin(), known.end(), n) == known.end())
      t.fail(n, fmt::format("expected one of {}", fmt::join(known, ", ")), nearest(n, known));
}

const std::array<std::string, 4> in_domain = {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
const std::array<std::string, 3> across = {"all_reduce", "all_gather", "reduce_scatter"};

/// Kind of domain or fabric -> collective -> parameters.
template <class T>
std::map<std::string, std::map<std::string, T>> nested(reader& r, const char* name,
                                                       std::span<const std::string> known, T (*one)(reader&)) {
  std::map<std::string, std::map<std::string, T>> out;
  auto t = r.find_child(name);
  if (!t) return out;
  for (const std::string& n : t->names()) {
    if (n == "kind" || n == "source") continue;
    reader kind = t->child(n);
    check_names(kind, known);
    out.emplace(n, entries(kind, one));
  }
  t->done();
  return out;
}

/// The links on which exchanges were measured are a kind of domain that the profile knows.
void check_expert_links(const reader& r, const collective_profile& c) {
  const std::string& links = c.expert_links;
  if (links.empty() || c.domain.contains(links) || c.measured_on.contains(links)) return;
  std::vector<std::string> known;
  for (const auto& [kind, measured] : c.measured_on) known.push_back(kind);
  r.fail("links", fmt::format("no kind of domain in measured_on: {}", in_quotes(links)), nearest(links, known));
}

}  // namespace

collective_profile read_collectives(reader& r) {
  collective_profile c;
  c.measured_on = table(r, "measured_on", read_measured_on);
  c.tuning = table(r, "tuning", read_tuning);
  c.domain = nested<domain_collective>(r, "domain", in_domain, read_domain);
  c.fabric = nested<fabric_collective>(r, "fabric", across, read_fabric);
  c.all_to_all = table(r, "all_to_all", read_all_to_all);
  c.custom = table(r, "custom", read_custom);
  if (auto e = r.find_child("expert_exchange")) {
    if (e->has("links")) c.expert_links = e->string("links");
    check_expert_links(*e, c);
    c.expert = entries(*e, read_expert, "links");
  }
  c.expert_nic_share = r.number_or("expert_nic_share", 1, share);
  if (auto s = r.find_child("spreads")) c.spreads = read_spreads(*s);
  check_like(r, c);
  r.done();
  return c;
}

namespace {

using config::field_writer;

value written(const protocol_params& p) {
  value out{value::object{}};
  const field_writer f(out);
  f("latency", p.latency);
  f("hop", p.hop);
  f("rate", p.rate);
  return out;
}

void write_protocol(value& out, const char* name, const std::optional<protocol_params>& p) {
  if (p) out.set(name, written(*p));
}

value written(const protocol_tuning& t) {
  value out{value::object{{"ll", written(t.ll)}, {"ll128", written(t.ll128)}, {"simple", written(t.simple)}}};
  write_protocol(out, "nvls", t.nvls);
  field_writer{out}("p2p_ll_limit", t.p2p_ll_limit);
  return out;
}

value written(const domain_collective& d) {
  value out{value::object{{"ll", written(d.ll)}, {"simple", written(d.simple)}}};
  write_protocol(out, "ll_few", d.ll_few);
  write_protocol(out, "ll128", d.ll128);
  write_protocol(out, "simple_few", d.simple_few);
  const field_writer f(out);
  f("simple_power", d.simple_power);
  f("local_copy", d.local_copy);
  f("pipeline", d.pipeline);
  f("network_ring_rate", d.network_ring_rate);
  if (!d.nvls_rate) return out;
  f("nvls_rate", d.nvls_rate);
  f("nvls_latency", d.nvls_latency);
  f("nvls_pipeline_per_rank", d.nvls_pipeline_per_rank);
  f("nvls_pipeline_limit_per_rank", d.nvls_pipeline_limit);
  f("nvls_tree_many", d.nvls_tree_many);
  return out;
}

value written(const fabric_collective::tree_params& t) {
  value out{value::object{}};
  const field_writer f(out);
  f("latency", t.latency);
  f("hop", t.hop);
  f("pipeline", t.pipeline);
  f("domain_share", t.domain_share);
  f("nic_share", t.nic_share);
  f("many_share", t.many_share);
  f("per_latency", t.per_latency);
  return out;
}

value written(const fabric_collective::ring_params& r) {
  value out{value::object{}};
  const field_writer f(out);
  f("latency", r.latency);
  f("nvlink_step", r.nvlink_step);
  f("fabric_step", r.fabric_step);
  f("pipeline", r.pipeline);
  f("power", r.power);
  f("nic_share", r.nic_share);
  f("per_latency", r.per_latency);
  return out;
}

value written(const fabric_collective& c) {
  value out{value::object{{"ring", written(c.ring)}}}, ll = written(c.ll);
  field_writer{ll}("pipeline", c.ll_pipeline);
  out.set("ll", std::move(ll));
  write_protocol(out, "ll128", c.ll128);
  if (c.ll128) field_writer{out}("ll128_limit", c.ll128_limit);
  if (c.tree) out.set("tree", written(*c.tree));
  if (c.nvls_tree) out.set("nvls_tree", written(*c.nvls_tree));
  if (!c.sharp) return out;
  value sharp{value::object{}};
  const field_writer f(sharp);
  f("latency", c.sharp->latency);
  f("pipeline", c.sharp->pipeline);
  f("nic_share", c.sharp->nic_share);
  out.set("sharp", std::move(sharp));
  return out;
}

value written(const fabric_all_to_all& a) {
  value out{value::object{}};
  const field_writer f(out);
  f("latency", a.latency);
  f("per_rank", a.per_rank);
  f("pipeline_per_rank", a.pipeline_per_rank);
  f("nic_share", a.nic_share);
  return out;
}

value written(const custom_all_reduce& c) {
  value out{value::object{}};
  const field_writer f(out);
  f("one_latency", c.one_latency);
  f("per_peer", c.per_peer);
  f("two_extra", c.two_extra);
  f("one_share", c.one_share);
  f("two_share", c.two_share);
  return out;
}

value written(const expert_exchange& e) {
  value out{value::object{}};
  const field_writer f(out);
  f("latency", e.latency);
  f("per_doubling", e.per_doubling);
  f("per_token", e.per_token);
  f("element_bytes", e.element_bytes);
  f("nvlink_share", e.nvlink_share);
  f("per_peer", e.per_peer);
  return out;
}

value written(const measured_hardware& m) {
  value out{value::object{}};
  const field_writer f(out);
  f("nvlink", m.nvlink);
  f("latency", m.latency);
  f("switch_latency", m.switch_latency);
  f("host_step", m.host_step);
  if (!m.like.empty()) f("like", m.like);
  return out;
}

template <class T>
value written(const std::map<std::string, T>& entries) {
  value out{value::object{}};
  for (const auto& [name, entry] : entries) out.set(name, written(entry));
  return out;
}

}  // namespace

value write_collectives(const collective_profile& c) {
  value expert = written(c.expert);
  if (!c.expert_links.empty()) expert.set("links", c.expert_links);
  return value{value::object{{"measured_on", written(c.measured_on)},
                             {"tuning", written(c.tuning)},
                             {"domain", written(c.domain)},
                             {"fabric", written(c.fabric)},
                             {"all_to_all", written(c.all_to_all)},
                             {"custom", written(c.custom)},
                             {"expert_exchange", std::move(expert)},
                             {"expert_nic_share", c.expert_nic_share.peek()}}};
}

}  // namespace nvlsim
