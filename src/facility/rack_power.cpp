#include "nvlsim/facility/rack_power.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <string_view>

namespace nvlsim {
namespace {

/// The stage of a class named "stage 3", "stage 3 rank 1" or "stage 3 like replica 2".
std::size_t stage_of(const rank_class& c, std::size_t stages) {
  constexpr std::string_view prefix = "stage ";
  const std::string_view name = c.name;
  std::size_t stage = 0;
  if (name.starts_with(prefix)) std::from_chars(name.data() + prefix.size(), name.data() + name.size(), stage);
  return std::min(stage, stages - 1);
}

/// Energy of one stage by pieces of a step.
struct energy_bins {
  double each = 0;  ///< seconds
  std::vector<double> joules = std::vector<double>(wave_pieces);

  /// `level` watts from the beginning to the end of `s`.
  void add(const span& s, double level) {
    for (auto bin = std::min(wave_pieces - 1, static_cast<std::size_t>(s.begin_s / each)); bin < wave_pieces;
         ++bin) {
      const double from = std::max(s.begin_s, static_cast<double>(bin) * each);
      const double to = std::min(s.end_s, static_cast<double>(bin + 1) * each);
      if (to > from) joules[bin] += level * (to - from);
      if (!(s.end_s > static_cast<double>(bin + 1) * each)) return;
    }
  }
};

/// Adds the energy above idle of the GPUs of class `c`.
void add_class(energy_bins& bins, const plan& planned, const timeline& times, std::size_t c, watts idle) {
  const rank_class& ranks = planned.classes[c];
  for (std::size_t s = 0; s < ranks.streams.size(); ++s)
    for (std::size_t i = 0; i < ranks.streams[s].operations.size(); ++i) {
      const operation& o = ranks.streams[s].operations[i];
      const operation_template& t = planned.templates[static_cast<std::size_t>(o.template_index)];
      if (!(t.power > watts{})) continue;
      const span& ran = times.spans[c][s][i];
      bins.add({ran.begin_s, std::min(ran.end_s, ran.begin_s + t.duration.base())},
               (t.power - idle).base() * static_cast<double>(ranks.multiplicity));
    }
}

}  // namespace

std::vector<power_wave> waves_of_stages(const plan& planned, const timeline& times, watts idle,
                                        std::int64_t stages) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(1, stages));
  const double each = times.makespan.base() / static_cast<double>(wave_pieces);
  std::vector<energy_bins> bins(count, {each});
  std::vector<double> gpus(count);
  for (std::size_t c = 0; c < planned.classes.size(); ++c) {
    const std::size_t stage = stage_of(planned.classes[c], count);
    gpus[stage] += static_cast<double>(planned.classes[c].multiplicity);
    if (each > 0) add_class(bins[stage], planned, times, c, idle);
  }
  std::vector<power_wave> out(count);
  for (std::size_t s = 0; s < count; ++s)
    for (const double energy : bins[s].joules) {
      const watts level = idle + watts::from_base(gpus[s] > 0 && each > 0 ? energy / each / gpus[s] : 0);
      out[s].pieces.push_back({seconds::from_base(each), level, level});
    }
  return out;
}

std::int64_t rack_kind::busy() const { return std::accumulate(gpus.begin(), gpus.end(), std::int64_t{0}); }

std::vector<rack_kind> kinds_of_racks(const parallelism& par, const placement& place) {
  const std::int64_t of_stage = par.tp * par.cp * par.dp;
  std::map<std::int64_t, std::vector<std::int64_t>> by_rack;
  for (std::int64_t rank = 0; rank < par.gpus(); ++rank) {
    auto& counts = by_rack[place.domain_of(rank)];
    counts.resize(static_cast<std::size_t>(par.pp));
    ++counts[static_cast<std::size_t>(rank / of_stage)];
  }
  std::map<std::vector<std::int64_t>, std::int64_t> kinds;
  for (const auto& [rack, counts] : by_rack) ++kinds[counts];
  std::vector<rack_kind> out;
  for (const auto& [counts, racks] : kinds) out.push_back({counts, racks});
  return out;
}

watts rack_draw(const platform& p, watts gpus) {
  const watts beside = p.cpu.idle_power * static_cast<double>(p.rack.vms * p.vm.cpus) +
                       p.rack.power_per_vm_other * static_cast<double>(p.rack.vms) +
                       p.rack.power_per_switch_tray * static_cast<double>(p.rack.nvlink_switch_trays);
  return (gpus + beside) / p.rack.power_supply_efficiency;
}

namespace {

/// Adds `factor` times the wave, whose pieces begin and end where pieces of the sum do.
void add_wave(power_wave& sum, double factor, const power_wave& wave) {
  std::size_t i = 0;
  double begin = 0, t = 0;  // of piece i; of the sum
  for (wave_piece& s : sum.pieces) {
    const double middle = t + s.time.base() / 2;
    while (i + 1 < wave.pieces.size() && begin + wave.pieces[i].time.base() <= middle)
      begin += wave.pieces[i++].time.base();
    const wave_piece& p = wave.pieces[i];
    const double slope = (p.to - p.from).base() / p.time.base();
    s.from += watts::from_base(factor * (p.from.base() + slope * (t - begin)));
    t += s.time.base();
    s.to += watts::from_base(factor * (p.from.base() + slope * (t - begin)));
  }
}

}  // namespace

power_wave sum_of(const std::vector<std::pair<double, power_wave>>& parts) {
  std::vector<double> cuts;
  for (const auto& [factor, wave] : parts) {
    double t = 0;
    for (const wave_piece& p : wave.pieces) cuts.push_back(t += p.time.base());
  }
  std::sort(cuts.begin(), cuts.end());
  // Waves of one step have equal pieces but for rounding.
  const double least = cuts.empty() ? 0 : cuts.back() * 1e-12;
  power_wave out;
  double from = 0;
  for (const double to : cuts) {
    if (!(to - from > least)) continue;
    out.pieces.push_back({seconds::from_base(to - from), {}, {}});
    from = to;
  }
  for (const auto& [factor, wave] : parts) add_wave(out, factor, wave);
  return out;
}

namespace {

/// The load of one rack: its ranks, idle GPUs, and what is beside them.
power_wave load_of(const platform& p, const std::vector<power_wave>& stages, const rack_kind& kind) {
  power_wave gpus = stages.front();
  for (std::size_t i = 0; i < gpus.pieces.size(); ++i) {
    watts sum = p.gpu.idle_power * static_cast<double>(p.gpus_per_rack() - kind.busy());
    for (std::size_t s = 0; s < stages.size(); ++s)
      sum += stages[s].pieces[i].from * static_cast<double>(kind.gpus[s]);
    gpus.pieces[i].from = gpus.pieces[i].to = rack_draw(p, sum);
  }
  return gpus;
}

power_wave smoothed(const power_wave& load, const power_smoothing& s, int gpus) {
  power_wave out = with_storage(load, s.storage_per_gpu.read() * gpus);
  if (s.rise_per_s.base() > 0 || s.fall_per_s.base() > 0)
    out = with_ramp_limits(out, s.rise_per_s.base(), s.fall_per_s.base());
  return s.rack_floor.base() > 0 ? with_floor(out, s.rack_floor) : out;
}

}  // namespace

site_power power_of_site(const platform& p, const facility_spec& f, const std::vector<power_wave>& stages,
                         const std::vector<rack_kind>& kinds) {
  site_power out;
  out.idle_rack = rack_draw(p, p.gpu.idle_power * static_cast<double>(p.gpus_per_rack()));
  std::vector<std::pair<double, power_wave>> loads, draws;
  for (const rack_kind& kind : kinds) {
    power_wave load = load_of(p, stages, kind), draw = smoothed(load, f.smoothing, p.gpus_per_rack());
    if (out.rack_load.pieces.empty() || draw.peak() > out.rack_draw.peak()) {
      out.rack_load = load;
      out.rack_draw = draw;
    }
    loads.emplace_back(static_cast<double>(kind.racks), std::move(load));
    draws.emplace_back(static_cast<double>(kind.racks), std::move(draw));
    out.busy_racks += kind.racks;
  }
  const auto idle_racks = static_cast<double>(std::max<std::int64_t>(0, p.racks - out.busy_racks));
  const watts idle = std::max(out.idle_rack, f.smoothing.rack_floor.read()) * idle_racks;
  out.load = scaled(sum_of(loads), 1, out.idle_rack * idle_racks);
  out.draw = scaled(sum_of(draws), 1, idle);
  out.meter = scaled(out.draw, 1, out.draw.mean() * (f.pue() - 1));
  return out;
}

}  // namespace nvlsim
