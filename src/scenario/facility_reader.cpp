#include "scenario/facility_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "nvlsim/facility/capping.hpp"
#include "nvlsim/units/units_text.hpp"

namespace nvlsim {
namespace {

const std::array<std::string, 2> over_limit_names = {"report", "cap"};
const std::array<std::string, 4> purchase_names = {"on_demand", "reserved", "spot", "owned"};
constexpr config::range<double> celsius{0, 100}, hour{0, 24}, below_one{0, 0.999999}, above_zero{1e-6, 1.0};

/// The table of regions and coolants that ships.
struct site_tables {
  config::document text;
  diagnostics own;
};

/// Names of a table's entries. A table without any has a problem.
std::vector<std::string> names_of(config::reader& tables, const char* table) {
  std::vector<std::string> out = tables.child(table).names();
  std::erase_if(out, [](const std::string& name) { return name == "kind" || name == "source"; });
  if (out.empty() && tables.has(table)) tables.fail(table, "has no entry");
  return out;
}

void read_power(config::reader& r, facility_spec& f) {
  config::reader p = r.child_or_empty("power");
  f.budget.rack = p.find_quantity<watts>("rack_budget", config::positive);
  f.budget.row = p.find_quantity<watts>("row_budget", config::positive);
  f.budget.site = p.find_quantity<watts>("site_budget", config::positive);
  if (f.budget.row) f.budget.racks_per_row = p.integer("racks_per_row", {1, 1'000'000}).as<int>();
  else p.belongs("racks_per_row", "power with \"row_budget\"");
  f.when_over = static_cast<over_limit>(p.one_of_or("when_over", over_limit_names, 0));
  if (f.when_over == over_limit::cap)
    f.capping = static_cast<capping_policy>(p.one_of_or("capping", capping_policy_names, 0));
  else p.belongs("capping", "power with \"when_over\": \"cap\"");
  power_smoothing& s = f.smoothing;
  if (const auto x = p.find_quantity<joules>("storage_per_gpu")) s.storage_per_gpu = *x;
  if (const auto x = p.find_quantity<watts>("rack_floor")) s.rack_floor = *x;
  if (const auto x = p.find_quantity<watts>("rack_rise_per_s", config::positive)) s.rise_per_s = *x;
  if (const auto x = p.find_quantity<watts>("rack_fall_per_s", config::positive)) s.fall_per_s = *x;
  p.done();
}

void read_cooling(config::reader& r, facility_spec& f, site_tables& tables, diagnostics& problems) {
  auto c = r.find_child("cooling");
  if (!c) return;
  rack_cooling out;
  out.flow_L_per_min = c->number("flow_L_per_min", config::positive);
  out.supply_C = c->number("supply_C", celsius);
  out.return_limit_C = c->number("return_limit_C", celsius);
  out.liquid_share = c->number("liquid_share", above_zero);
  if (out.return_limit_C <= out.supply_C && c->has("return_limit_C") && c->has("supply_C"))
    c->fail("return_limit_C", fmt::format("the coolant enters at {:g} C, so it cannot leave at {:g} C",
                                          out.supply_C.peek(), out.return_limit_C.peek()));
  config::reader root(tables.text, problems);
  const std::vector<std::string> coolants = names_of(root, "coolants");
  if (coolants.empty()) return;
  config::reader one = root.child("coolants").child(coolants[c->one_of("coolant", coolants)]);
  out.heat_J_per_kg_K = one.number("heat_J_per_kg_K", config::positive);
  out.density_kg_per_L = one.number("density_kg_per_L", config::positive);
  c->done();
  f.cooling = out;
}

void read_carbon(config::reader& r, facility_spec& f, site_tables& tables, diagnostics& problems) {
  auto c = r.find_child("carbon");
  if (!c) return;
  if (!f.overheads.pue) r.fail("carbon", "applies to the energy at the meter; give \"pue\" as well");
  grid_carbon grid;
  const value* given = c->raw("g_per_kWh");
  if ((given != nullptr) == c->has("region")) c->fail("", "give either \"region\" or \"g_per_kWh\"");
  if (c->has("region")) {
    config::reader root(tables.text, problems);
    const std::vector<std::string> names = names_of(root, "carbon_g_per_kWh");
    if (names.empty()) return;
    f.region = names[c->one_of("region", names)];
    grid.g_per_kWh.fill(root.child("carbon_g_per_kWh").number(f.region, config::non_negative));
  } else if (given && given->items()) {
    const value::array& hours = *given->items();
    if (hours.size() != hours_a_day)
      c->fail("g_per_kWh", fmt::format("expected a number, or one for each of 24 hours; found {}", hours.size()));
    for (std::size_t h = 0; h < std::min<std::size_t>(hours.size(), hours_a_day); ++h) {
      const double* x = hours[h].number();
      const std::int64_t* n = hours[h].integer();
      const double g = x ? *x : n ? static_cast<double>(*n) : -1;
      if (!(g >= 0)) c->fail("g_per_kWh", fmt::format("hour {}: expected a number of at least 0", h));
      grid.g_per_kWh[h] = std::max(0.0, g);
    }
  } else if (given) {
    grid.g_per_kWh.fill(c->number("g_per_kWh", config::non_negative));
  }
  f.overheads.start_h = c->number_or("start_hour", 0, hour);
  c->done();
  f.overheads.carbon = grid;
}

ownership read_owned(config::reader& r) {
  ownership o;
  o.capital_per_gpu = r.quantity<dollars>("capital_per_gpu");
  o.years = r.number("years", {0.1, 100});
  o.residual = r.number_or("residual", 0, config::fraction);
  o.interest = r.number_or("interest", 0, config::fraction);
  o.staff_per_gpu_year = r.quantity<dollars>("staff_per_gpu_year");
  o.usd_per_kWh = r.number("usd_per_kWh", config::non_negative);
  return o;
}

const std::array<std::string, 2> reclaimed_parts = {"machine", "rack"};

spot_market read_spot(config::reader& r, const platform& p) {
  spot_market s;
  s.eviction_after = r.quantity<seconds>("eviction_after", config::positive);
  s.notice = r.quantity<seconds>("notice");
  s.save = r.quantity<seconds>("save");
  s.restart = r.quantity<seconds>("restart");
  s.checkpoint_interval = r.quantity<seconds>("checkpoint_interval", config::positive);
  s.takes_rack = r.one_of_or("takes", reclaimed_parts, 0) == 1;
  s.returns_after = r.find_quantity<seconds>("returns_after");
  s.gpus_per_machine = std::max<int>(1, p.vm.gpus);
  return s;
}

void read_money(config::reader& r, const platform& p, facility_spec& f) {
  auto m = r.find_child("money");
  if (!m) return;
  payment out;
  out.way = static_cast<purchase>(m->one_of("way", purchase_names));
  const auto only = [&](std::initializer_list<const char*> members, const char* whose) {
    for (const char* member : members) m->belongs(member, whose);
  };
  if (out.way == purchase::owned) {
    out.owned = read_owned(*m);
    if (!f.overheads.pue) m->fail("usd_per_kWh", "applies to the energy at the meter; give /facility/pue as well");
    only({"gpu_price", "discount"}, "rented GPUs");
  } else {
    only({"capital_per_gpu", "years", "residual", "interest", "staff_per_gpu_year", "usd_per_kWh"}, "owned GPUs");
    out.gpu_price = m->find_quantity<dollar_rate>("gpu_price");
    if (!out.gpu_price) out.gpu_price = p.price.per_gpu;
    if (!out.gpu_price && p.vm.gpus.peek() > 0)
      m->fail("gpu_price", "is missing, and the platform has no list price; give one, such as \"10.50 USD/h\"");
    if (out.way == purchase::on_demand) only({"discount"}, "reserved and spot GPUs");
    else out.discount = m->number("discount", below_one);
  }
  if (out.way == purchase::spot) out.spot = read_spot(*m, p);
  else
    only({"eviction_after", "notice", "save", "restart", "checkpoint_interval", "takes", "returns_after"},
         "spot GPUs");
  out.goodput = m->number_or("goodput", 1, above_zero);
  m->done();
  f.money = out;
}

}  // namespace

std::shared_ptr<const facility_spec> read_facility(config::reader& r, const platform& p,
                                                   const std::filesystem::path& sites, diagnostics& problems) {
  auto f = r.find_child("facility");
  if (!f) return nullptr;
  site_tables tables;
  const std::string file = (sites / "sites.json").string();
  tables.text = config::load(file, {"sites", file}, tables.own);
  tables.own.throw_if_any();
  facility_spec out;
  read_power(*f, out);
  out.overheads.pue = f->find_number("pue", {1, 10});
  out.overheads.wue_L_per_kWh = f->find_number("wue_L_per_kWh", config::non_negative);
  read_cooling(*f, out, tables, problems);
  read_carbon(*f, out, tables, problems);
  read_money(*f, p, out);
  f->done();
  return std::make_shared<const facility_spec>(out);
}

namespace {

/// Sets members of an object if they are there.
class writer {
 public:
  template <class D>
  writer& quantity(const char* key, const constant<nvlsim::quantity<D>>& q) {
    if (q.peek().base() != 0) out_.set(key, exact_quantity(q.peek().base(), D::value));
    return *this;
  }
  template <class D>
  writer& quantity(const char* key, const std::optional<constant<nvlsim::quantity<D>>>& q) {
    return q ? quantity(key, *q) : *this;
  }
  writer& number(const char* key, const constant<double>& x) {
    out_.set(key, x.peek());
    return *this;
  }
  writer& number(const char* key, const std::optional<constant<double>>& x) { return x ? number(key, *x) : *this; }
  writer& set(const char* key, value v) {
    out_.set(key, std::move(v));
    return *this;
  }
  value done() { return std::move(out_); }

 private:
  value out_{value::object{}};
};

value write_power(const facility_spec& f) {
  writer out;
  out.quantity("rack_budget", f.budget.rack).quantity("row_budget", f.budget.row);
  if (f.budget.row) out.set("racks_per_row", f.budget.racks_per_row.peek());
  out.quantity("site_budget", f.budget.site)
      .set("when_over", over_limit_names[static_cast<std::size_t>(f.when_over)])
      .quantity("storage_per_gpu", f.smoothing.storage_per_gpu)
      .quantity("rack_floor", f.smoothing.rack_floor)
      .quantity("rack_rise_per_s", f.smoothing.rise_per_s)
      .quantity("rack_fall_per_s", f.smoothing.fall_per_s);
  if (f.capping != capping_policy::rack)
    out.set("capping", capping_policy_names[static_cast<std::size_t>(f.capping)]);
  return out.done();
}

value write_money(const payment& m) {
  writer out;
  out.set("way", purchase_names[static_cast<std::size_t>(m.way)]).quantity("gpu_price", m.gpu_price);
  if (m.way == purchase::reserved || m.way == purchase::spot) out.number("discount", m.discount);
  if (m.owned)
    out.quantity("capital_per_gpu", m.owned->capital_per_gpu)
        .number("years", m.owned->years)
        .number("residual", m.owned->residual)
        .number("interest", m.owned->interest)
        .quantity("staff_per_gpu_year", m.owned->staff_per_gpu_year)
        .number("usd_per_kWh", m.owned->usd_per_kWh);
  if (m.spot)
    out.quantity("eviction_after", m.spot->eviction_after)
        .quantity("notice", m.spot->notice)
        .quantity("save", m.spot->save)
        .quantity("restart", m.spot->restart)
        .quantity("checkpoint_interval", m.spot->checkpoint_interval)
        .set("takes", reclaimed_parts[m.spot->takes_rack ? 1 : 0])
        .quantity("returns_after", m.spot->returns_after);
  return out.number("goodput", m.goodput).done();
}

}  // namespace

value write_facility(const facility_spec& f) {
  writer out;
  out.set("power", write_power(f))
      .number("pue", f.overheads.pue)
      .number("wue_L_per_kWh", f.overheads.wue_L_per_kWh);
  if (f.cooling)
    out.set("cooling", writer()
                           .number("flow_L_per_min", f.cooling->flow_L_per_min)
                           .number("supply_C", f.cooling->supply_C)
                           .number("return_limit_C", f.cooling->return_limit_C)
                           .number("liquid_share", f.cooling->liquid_share)
                           .number("heat_J_per_kg_K", f.cooling->heat_J_per_kg_K)
                           .number("density_kg_per_L", f.cooling->density_kg_per_L)
                           .done());
  if (f.overheads.carbon) {
    value hours{value::array{}};
    for (const constant<double>& g : f.overheads.carbon->g_per_kWh) hours.items()->emplace_back(g.peek());
    out.set("carbon",
            writer().set("g_per_kWh", std::move(hours)).number("start_hour", f.overheads.start_h).done());
  }
  if (f.money) out.set("money", write_money(*f.money));
  return out.done();
}

}  // namespace nvlsim
