// Training layouts.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "nvlsim/analysis/metrics.hpp"
#include "nvlsim/facility/facility.hpp"
#include "nvlsim/training/idle_settings.hpp"
#include "nvlsim/training/step_floor.hpp"
#include "nvlsim/training/training.hpp"
#include "search/search_space.hpp"

namespace nvlsim {
namespace {

/// Parameters and their Megatron-LM names.
constexpr std::array<std::pair<std::string_view, std::string_view>, 15> axes = {{
    {"tp", "tensor_model_parallel_size"},
    {"pp", "pipeline_model_parallel_size"},
    {"vp", "virtual_pipeline_model_parallel_size"},
    {"cp", "context_parallel_size"},
    {"dp", "data_parallel_size"},
    {"ep", "expert_model_parallel_size"},
    {"etp", "expert_tensor_parallel_size"},
    {"schedule", ""},
    {"num_layers_in_first_pipeline_stage", "decoder_first_pipeline_num_layers"},
    {"num_layers_in_last_pipeline_stage", "decoder_last_pipeline_num_layers"},
    {"sequence_parallel", ""},
    {"micro_batch_size", "mbs"},
    {"data_parallel_sharding", ""},
    {"recompute", ""},
    {"offload_layers", "cpu_offloading_num_layers"},
}};
}  // namespace

std::string_view training_parameter(std::string_view megatron) {
  for (const auto& [name, other] : axes)
    if (!megatron.empty() && other == megatron) return name;
  return {};
}

namespace {

constexpr std::array<std::string_view, 5> schedules = {"1f1b", "interleaved", "zb_h1", "zb_v", "dualpipe"};
constexpr std::array<std::string_view, 4> shardings = {"replicated", "distributed_optimizer", "fsdp",
                                                       "optim_grads"};
constexpr std::int64_t usual_tp = 8, usual_cp = 4,
                       usual_micro_batch = 4;     // a search begins with layouts up to these
constexpr std::int64_t largest_micro_batch = 64;  // sequences; larger ones do not fit or bring no gain

struct recompute_module {
  std::string_view name;
  bool recompute_spec::*on;
};
constexpr std::array<recompute_module, 6> modules = {{{"core_attn", &recompute_spec::core_attention},
                                                      {"layernorm", &recompute_spec::layernorm},
                                                      {"mlp", &recompute_spec::mlp},
                                                      {"moe_act", &recompute_spec::activation},
                                                      {"mla_up_proj", &recompute_spec::mla_up_proj},
                                                      {"moe", &recompute_spec::moe}}};

value value_of(const recompute_spec& r) {
  if (r.full) return "full";
  value::array out;
  for (const recompute_module& m : modules)
    if (r.*m.on) out.emplace_back(m.name);
  if (out.empty()) return "none";
  return out;
}

std::string text_of(const recompute_spec& r) {
  const value v = value_of(r);
  if (v.string()) return *v.string();
  std::string out;
  for (const value& x : *v.items()) out += (out.empty() ? "" : "+") + *x.string();
  return out;
}

/// Every set of modules the model has, plus full recompute.
std::vector<recompute_spec> recomputes(const model& m) {
  const auto any = [&](auto has) { return std::any_of(m.layers.begin(), m.layers.end(), has); };
  const bool dense = any([](const layer_spec& l) { return l.ffn_hidden > 0 && !l.routed(); });
  const bool routed = has_routed_experts(m);
  const bool latent = any([](const layer_spec& l) { return l.attention == attention_kind::mla; });
  const bool attention = any([](const layer_spec& l) { return l.attention != attention_kind::none; });
  const std::array<bool, modules.size()> there = {attention, has_norm_kernels(m), dense, dense || routed, latent,
                                                  routed};
  std::vector<recompute_spec> out;
  for (unsigned bits = 0; bits < 1u << modules.size(); ++bits) {
    recompute_spec r;
    bool possible = true;
    for (std::size_t i = 0; i < modules.size(); ++i) {
      r.*modules[i].on = (bits >> i & 1) != 0;
      possible &= there[i] || !(r.*modules[i].on);
    }
    // Recomputing the MLP or the experts includes the activation.
    const bool twice = r.activation && (!dense || r.mlp) && (!routed || r.moe);
    if (possible && !twice) out.push_back(r);
  }
  out.emplace_back().full = true;
  return out;
}

/// Numbers of model chunks per stage worth trying: each gives smaller chunks than the last or divides the layers
/// evenly.
std::vector<std::int64_t> chunk_counts(std::int64_t layers, std::int64_t pp) {
  std::vector<std::int64_t> out = {1};
  if (pp == 1) return out;
  const std::int64_t places = layers + 2;  // with uneven chunks, embedding and loss count as layers
  for (std::int64_t v = 2, last = (places + pp - 1) / pp; v * pp <= places; ++v) {
    const std::int64_t size = (places + pp * v - 1) / (pp * v);
    if (size < last || layers % (pp * v) == 0) out.push_back(v);
    last = size;
  }
  return out;
}

/// Layers of the first and last stage; 0 if all stages are equal. The end stages may hold fewer because they also
/// hold the embedding and output tables.
struct stage_ends {
  std::int64_t first = 0, last = 0;
};

/// Equal stages, a lighter last stage, or lighter first and last stages, in every size the inner stages can make
/// up for.
std::vector<stage_ends> stage_splits(std::int64_t layers, std::int64_t pp, std::int64_t vp) {
  std::vector<stage_ends> out = {{}};
  const auto add = [&](stage_ends e, std::int64_t inner) {
    const bool lighter = e.last > 0 && e.last < inner && e.first < inner && e.last + 2 >= inner - vp;
    if (lighter && e.first % vp == 0 && e.last % vp == 0 && inner % vp == 0) out.push_back(e);
  };
  if (pp < 2) return out;
  for (std::int64_t inner = layers / pp; inner <= layers / pp + vp; ++inner) {
    add({0, layers - (pp - 1) * inner}, inner);
    const std::int64_t both = layers - (pp - 2) * inner;
    if (pp > 2) add({both - both / 2, both / 2}, inner);
  }
  return out;
}

struct split {
  parallelism par;
  pipeline_schedule schedule = pipeline_schedule::one_f_one_b;
  stage_ends ends;
  std::int64_t micro_batch = 1;
};
struct memory_choice {
  data_parallel_sharding sharding;
  recompute_spec recompute;
};

class training_layouts final : public search_space {
 public:
  training_layouts(const scenario& s, const search_options& o, diagnostics& problems)
      : base_(s), machine_(s.platform) {
    const auto& w = std::get<training_workload>(s.workload);
    const value* written = s.inputs.at_pointer("/scenario/workload");
    for (const auto& [name, alias] : axes) {
      parameters.emplace_back(name);
      pointers.push_back("/workload/" + std::string(written && written->find(alias) ? alias : name));
    }
    for (const metric& m : metrics_of(metric_kind::training)) {
      metrics.emplace_back(m.name);
      if (m.needs_timeline) dear.emplace_back(m.name);
    }
    if (w.degraded.empty() && !w.offload.any())
      for (const metric& m : metrics_of(metric_kind::training)) {
        const bool in_proportion = m.band == metric_band::with_time || m.band == metric_band::against_time;
        // A site's energy costs money, too.
        if (in_proportion && !(s.facility && m.unit == metric_unit::usd)) by_time.emplace_back(m.name);
      }
    const job_place at = place_of(s, o.gpus);
    place_ = at.place;
    machine_.racks = at.racks;
    no_rates_ = format_problems(machine_, s.stack, w);
    everywhere = {{"/platform/racks", at.racks}, {"/placement/gpus_per_rack", at.place.gpus_per_domain}};
    // Settings of the scenario's own recompute and placement would contradict a candidate's.
    for (const char* own : {"/workload/recompute_method", "/workload/recompute_num_layers", "/placement/gpus",
                            "/placement/ranks_per_turn"})
      if (s.inputs.at_pointer("/scenario" + std::string(own))) everywhere.emplace_back(own, value{});
    const value* policy = s.inputs.at_pointer("/scenario/placement/policy");
    if (policy && policy->string() && *policy->string() != "segments")
      everywhere.emplace_back("/placement/policy", "segments");
    const allowed_values allowed(o.restrictions, known_parameters(w), problems);
    if (!problems.empty()) return;
    for (const auto* list : {&s.model.layers, &s.model.mtp_block})
      for (const layer_spec& l : *list)
        if (std::find(kinds_.begin(), kinds_.end(), l) == kinds_.end()) kinds_.push_back(l);
    list_choices(allowed);
    list_splits(o.gpus, w, allowed);
  }

  std::size_t groups() const override { return splits_.size(); }
  /// Visits steps of the same structure consecutively.
  std::vector<std::size_t> visiting_order() const override {
    const auto key = [this](std::size_t i) {
      const split& s = splits_[i];
      return std::tuple(s.par.pp, s.par.vp, s.par.dp * s.micro_batch, s.schedule, s.ends.first, s.ends.last);
    };
    std::vector<std::size_t> out = search_space::visiting_order();
    std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return out;
  }
  std::size_t size(std::size_t group) const override { return choices_.size() * offloads(group).size(); }
  std::int64_t layouts_in(std::size_t group) const override {
    const auto more = refused_.find(group);
    return more != refused_.end() ? more->second : static_cast<std::int64_t>(size(group));
  }

  std::vector<value> layout(std::size_t group, std::size_t index) const override {
    const training_workload w = workload(group, index);
    const parallelism& p = w.par;
    return {p.tp,
            p.pp,
            p.vp,
            p.cp,
            p.dp,
            p.ep,
            p.etp,
            schedules[static_cast<std::size_t>(w.schedule)],
            w.split.first,
            w.split.last,
            p.sequence_parallel,
            w.micro_batch_size,
            shardings[static_cast<std::size_t>(w.sharding)],
            value_of(w.recompute),
            w.offload_layers};
  }

  std::string group_reason(std::size_t group) const override {
    if (!no_rates_.empty()) return no_rates_.front();
    const auto all = training_problems(machine_, base_.model, workload(group, 0));
    return all.empty() ? std::string() : all.front();
  }

  /// Splits with equal passes one after another.
  std::vector<std::size_t> bounding_order() const override {
    const auto key = [this](std::size_t i) {
      const split& s = splits_[i];
      return std::tuple(s.par.tp, s.par.cp, s.par.dp, s.par.ep, s.par.etp, s.par.sequence_parallel, s.micro_batch);
    };
    std::vector<std::size_t> out = search_space::visiting_order();
    std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    return out;
  }
  std::size_t part_size(std::size_t) const override { return recomputations_; }
  std::vector<std::size_t> usual_groups() const override {
    std::vector<std::size_t> out;
    for (std::size_t g = 0; g < splits_.size(); ++g) {
      const split& s = splits_[g];
      const bool in_domain = s.par.ep == 1 || s.par.ep % 8 == 0 || s.par.ep * 2 > place_.gpus_per_domain;
      if (s.par.tp <= usual_tp && s.par.cp <= usual_cp && s.micro_batch <= usual_micro_batch && in_domain &&
          (s.par.etp == 1 || s.par.etp == s.par.tp) && (s.par.sequence_parallel || s.par.tp == 1) &&
          s.ends.last == 0 && !refused_.contains(g) &&
          (s.schedule == pipeline_schedule::one_f_one_b || s.schedule == pipeline_schedule::interleaved))
        out.push_back(g);
    }
    return out;
  }
  /// Those that divide the ranks alike and differ in one of the rest, and those where one factor of the ranks is
  /// moved, with micro-batches of the same or of twice or half the size.
  std::vector<std::size_t> groups_near(std::size_t group) const override {
    const split& s = splits_[group];
    std::vector<std::size_t> out;
    for (const auto& [of, range] : by_division_) {
      const int moves = factors_moved(of, division_of(s.par));
      if (moves > 1) continue;
      for (std::size_t g = range.first; g < range.second; ++g)
        if (g != group && !refused_.contains(g) && is_near(splits_[g], s, moves == 1)) out.push_back(g);
    }
    return out;
  }
  std::unique_ptr<floor_reader> floors() const override { return std::make_unique<floors_of_space>(*this); }

  evaluation evaluate_layout(std::size_t group, std::size_t index, bool in_full) const override {
    const training_workload w = workload(group, index);
    evaluation out;
    const memory_report memory = steps_.memory_of(machine_, base_.stack, base_.model, w);
    if (!memory.fits()) {
      out.reason = "does not fit in GPU memory";
      return out;
    }
    training_metrics t = in_full || !step_cache::covers(w)
                             ? measured(w)
                             : measure_training_totals(machine_, base_.model, w,
                                                       steps_.cost_of(machine_, base_.stack, base_.model, w));
    t.memory_peak = memory.peak;
    if (base_.facility)
      t.site = figures_of(*base_.facility, {t.energy.total(), static_cast<double>(t.gpus), t.step_time}, {});
    for (const auto& [about, read] : training_table())
      out.metrics.push_back(applies(about, t) ? number_of(read(t)) : std::nullopt);
    return out;
  }

 private:
  /// Bounds by the passes of no recomputation and of each way of it alone: a layout that recomputes several
  /// modules takes no less than with one of them.
  class floors_of_space final : public floor_reader {
   public:
    explicit floors_of_space(const training_layouts& s) : space_(s), choices_(s.choices_.size(), -1) {
      for (recompute_spec& r : ways(s)) {
        ways_.push_back(r);
        floors_.push_back(std::make_unique<step_floor>(s.machine_, s.base_.stack, s.base_.model));
      }
    }

    double seconds(std::size_t group) override { return of_way(space_.workload(group, 0), 0); }
    double seconds(std::size_t group, std::size_t index) override {
      look_at(group);
      const std::size_t choice = index % space_.choices_.size();
      double& known = choices_[choice];
      if (known < 0)
        for (std::size_t i = 0; i < ways_.size(); ++i)
          if (within(ways_[i], space_.choices_[choice].recompute)) known = std::max(known, way(group, i));
      return known;
    }
    double bytes(std::size_t group) override {
      return least(space_.workload(group, space_.size(group) - 1), true);
    }
    double bytes(std::size_t group, std::size_t index) override {
      look_at(group);
      const training_workload w = space_.workload(group, index);
      const auto [it, fresh] = bytes_.try_emplace({w.sharding, w.offload_layers}, 0);
      return fresh ? it->second = least(w, false) : it->second;
    }
    std::optional<double> memory(std::size_t group, std::size_t index) override {
      const memory_report r = space_.steps_.memory_of(space_.machine_, space_.base_.stack, space_.base_.model,
                                                      space_.workload(group, index));
      return r.fits() ? std::optional(r.peak.base()) : std::nullopt;
    }
    bool fits(double size) const override { return size <= space_.machine_.gpu.hbm_usable.base(); }

   private:
    static std::vector<recompute_spec> ways(const training_layouts& s) {
      std::vector<recompute_spec> out = {{}};
      for (const recompute_spec& r : recomputes(s.base_.model)) {
        std::size_t on = 0;
        for (const recompute_module& m : modules) on += r.*m.on ? 1 : 0;
        if (r.full || on == 1) out.push_back(r);
      }
      return out;
    }
    static bool within(const recompute_spec& part, const recompute_spec& all) {
      if (part.full || all.full) return part.full == all.full;
      return std::all_of(modules.begin(), modules.end(),
                         [&](const recompute_module& m) { return all.*m.on || !(part.*m.on); });
    }
    void look_at(std::size_t group) {
      if (group_ == group) return;
      group_ = group;
      std::fill(choices_.begin(), choices_.end(), -1);
      taken_.assign(ways_.size(), -1);
      bytes_.clear();
    }
    double way(std::size_t group, std::size_t i) {
      if (taken_[i] < 0) taken_[i] = of_way(space_.workload(group, 0), i);
      return taken_[i];
    }
    double of_way(training_workload w, std::size_t i) {
      w.recompute = ways_[i];
      return floors_[i]->of(w).base();
    }
    double least(const training_workload& w, bool any_sharding) const {
      return space_.steps_.min_memory(space_.machine_, space_.base_.stack, space_.base_.model, w, any_sharding)
          .base();
    }

    const training_layouts& space_;
    std::vector<recompute_spec> ways_;
    std::vector<std::unique_ptr<step_floor>> floors_;
    std::optional<std::size_t> group_;  ///< of what follows
    std::vector<double> choices_, taken_;
    std::map<std::pair<data_parallel_sharding, std::int64_t>, double> bytes_;
  };

  using division = std::array<std::int64_t, 4>;
  static division division_of(const parallelism& p) { return {p.tp, p.pp, p.cp, p.dp}; }
  /// Between which of the four a factor went over: 0 if they are equal, 1 if from one to another, else 2.
  static int factors_moved(const division& a, const division& b) {
    int more = 0, less = 0;
    for (std::size_t i = 0; i < a.size(); ++i) more += a[i] > b[i] ? 1 : 0, less += a[i] < b[i] ? 1 : 0;
    return more == 0 ? 0 : more == 1 && less == 1 ? 1 : 2;
  }
  static bool is_near(const split& a, const split& b, bool moved) {
    const bool same_stages = std::tie(a.par.vp, a.schedule, a.ends.first, a.ends.last) ==
                             std::tie(b.par.vp, b.schedule, b.ends.first, b.ends.last);
    if (moved) {
      const bool simple = a.par.vp == 1 && a.schedule == pipeline_schedule::one_f_one_b && a.ends.last == 0;
      const bool alike = a.par.pp == b.par.pp ? same_stages : same_stages || simple;
      return alike && a.par.ep == b.par.ep && (a.par.etp == b.par.etp || a.par.etp == a.par.tp) &&
             (a.par.tp == 1 || b.par.tp == 1 || a.par.sequence_parallel == b.par.sequence_parallel) &&
             a.micro_batch <= 2 * b.micro_batch && b.micro_batch <= 2 * a.micro_batch;
    }
    return (same_stages ? 0 : 1) + (a.par.ep == b.par.ep ? 0 : 1) + (a.par.etp == b.par.etp ? 0 : 1) +
               (a.par.sequence_parallel == b.par.sequence_parallel ? 0 : 1) +
               (a.micro_batch == b.micro_batch ? 0 : 1) ==
           1;
  }

  std::vector<search_parameter> known_parameters(const training_workload& w) const {
    const parallelism& p = w.par;
    const auto count = [](std::int64_t n, std::int64_t min = 1) {
      return search_parameter{"", std::to_string(n), {}, min};
    };
    const auto words = [](std::string_view own, std::vector<std::string> all) {
      return search_parameter{"", std::string(own), std::move(all)};
    };
    std::vector<std::string> recompute_words;
    for (const recompute_spec& r : recomputes(base_.model)) recompute_words.push_back(text_of(r));
    std::vector<search_parameter> out = {
        count(p.tp),
        count(p.pp),
        count(p.vp),
        count(p.cp),
        count(p.dp),
        count(p.ep),
        count(p.etp),
        words(schedules[static_cast<std::size_t>(w.schedule)], {schedules.begin(), schedules.end()}),
        count(w.split.first, 0),
        count(w.split.last, 0),
        words(p.sequence_parallel ? "true" : "false", {"true", "false"}),
        count(w.micro_batch_size),
        words(shardings[static_cast<std::size_t>(w.sharding)], {shardings.begin(), shardings.end()}),
        words(text_of(w.recompute), std::move(recompute_words)),
        count(w.offload_layers, 0)};
    for (std::size_t i = 0; i < axes.size(); ++i) out[i].name = axes[i].first;
    return out;
  }

  void list_splits(std::int64_t gpus, const training_workload& w, const allowed_values& allowed) {
    const auto layers = static_cast<std::int64_t>(base_.model.layers.size());
    for (const std::int64_t tp : divisors(gpus))
      for (const std::int64_t pp : divisors(gpus / tp))
        for (const std::int64_t cp : divisors(gpus / tp / pp)) {
          const std::int64_t dp = gpus / tp / pp / cp;
          if (tp > place_.gpus_per_domain || pp > layers || !allowed.allows("tp", tp) ||
              !allowed.allows("pp", pp) || !allowed.allows("cp", cp) || !allowed.allows("dp", dp))
            continue;
          const std::int64_t max = layers / pp;  // offload none, half or all of a stage's layers
          offloads_[pp] = allowed.integers("offload_layers", {0, max / 2, max});
          const std::size_t before = splits_.size();
          for (const std::int64_t vp : allowed.integers("vp", chunk_counts(layers, pp)))
            add_pipelines({tp, pp, vp, cp, dp}, w, allowed);
          by_division_.push_back({{tp, pp, cp, dp}, {before, splits_.size()}});
        }
  }

  /// Adds schedules with their chunk counts, and equal and unequal stages.
  void add_pipelines(const parallelism& par, const training_workload& w, const allowed_values& allowed) {
    using enum pipeline_schedule;
    std::vector<pipeline_schedule> usable = {par.vp > 1 ? interleaved : one_f_one_b};
    if (par.pp > 1 && par.vp == 1) usable.insert(usable.end(), {zb_h1, dualpipe});
    if (par.pp > 1 && par.vp == 2) usable.push_back(zb_v);
    const auto named = [&](pipeline_schedule x) {
      return allowed.allows("schedule", schedules[static_cast<std::size_t>(x)]);
    };
    for (const pipeline_schedule schedule : usable) {
      const bool usual = schedule == one_f_one_b ||
                         schedule == interleaved;  // one schedule, distinguished by the number of chunks
      if (usual ? !named(one_f_one_b) && !named(interleaved) : !named(schedule)) continue;
      const bool uneven = usual || schedule == zb_h1;
      for (const stage_ends& e :
           uneven ? stage_sizes(par, w) : std::vector<stage_ends>{{w.split.first, w.split.last}})
        if (allowed.allows("num_layers_in_first_pipeline_stage", e.first) &&
            allowed.allows("num_layers_in_last_pipeline_stage", e.last))
          add_splits({par, schedule, e}, w, allowed);
    }
  }

  /// The scenario's stage sizes if it gives any; otherwise all splits to try.
  std::vector<stage_ends> stage_sizes(const parallelism& par, training_workload w) const {
    if (w.split.given() || base_.model.mtp_layers > 0) return {{w.split.first, w.split.last}};
    std::vector<stage_ends> out =
        stage_splits(static_cast<std::int64_t>(base_.model.layers.size()), par.pp, par.vp);
    w.par = par;
    w.schedule = par.vp > 1 ? pipeline_schedule::interleaved : pipeline_schedule::one_f_one_b;
    const std::vector<std::int64_t> usual = chunk_layers(base_.model, w);
    std::erase_if(out, [&](const stage_ends& e) {
      w.split.first = e.first, w.split.last = e.last;
      return e.last > 0 && chunk_layers(base_.model, w) == usual;
    });
    return out;
  }

  void add_splits(split base, const training_workload& w, const allowed_values& allowed) {
    parallelism& par = base.par;
    std::int64_t experts = 1;
    for (const layer_spec& l : base_.model.layers) experts = std::max(experts, l.moe.experts);
    std::vector<std::int64_t> micro_batches;
    for (std::int64_t b = 1;
         b <= std::max<std::int64_t>(1, std::min(largest_micro_batch, w.global_batch_size / par.dp)); b *= 2)
      micro_batches.push_back(b);
    micro_batches = allowed.integers("micro_batch_size", micro_batches);
    for (par.ep = 1; par.ep <= experts; ++par.ep) {
      if (experts % par.ep != 0 || par.ep > par.tp * par.cp * par.dp || !allowed.allows("ep", par.ep)) continue;
      for (const std::int64_t etp : experts > 1 ? divisors(par.tp) : std::vector<std::int64_t>{par.tp}) {
        if (experts > 1 && !allowed.allows("etp", etp)) continue;
        par.etp = etp;
        for (const bool sequence : {true, false}) {
          par.sequence_parallel = sequence;
          if ((sequence && par.tp == 1) ||
              (par.tp > 1 && !allowed.allows("sequence_parallel", sequence ? "true" : "false")))
            continue;
          for (const std::int64_t b : micro_batches) {
            base.micro_batch = b;
            add_split(base, w);
          }
        }
      }
    }
  }

  /// Lists a split; one of those that break the same rule of divisibility stands for all of them.
  void add_split(const split& s, const training_workload& w) {
    const rule broken = broken_rule(s, w);
    const auto layouts = static_cast<std::int64_t>(choices_.size() * offloads_.at(s.par.pp).size());
    if (const auto like = by_rule_.find(broken); broken != rule::none && like != by_rule_.end()) {
      refused_[like->second] += layouts;
      return;
    }
    if (broken != rule::none) by_rule_[broken] = splits_.size(), refused_[splits_.size()] = layouts;
    splits_.push_back(s);
  }

  /// Rules that most splits break. All are checked again by training_problems().
  enum class rule { none, heads, width, copies, batch, sequence, interleaving, both_ends };
  rule broken_rule(const split& s, const training_workload& w) const {
    const parallelism& p = s.par;
    for (const layer_spec& l : kinds_) {
      if (l.heads > 0 && l.heads % p.tp != 0) return rule::heads;
      if (l.ffn_hidden > 0 && l.ffn_hidden % p.tp != 0) return rule::width;
    }
    if (has_routed_experts(base_.model) && p.tp * p.cp * p.dp % (p.ep * p.etp) != 0) return rule::copies;
    const std::int64_t batch = s.micro_batch * p.dp, n = w.global_batch_size / batch;
    if (w.global_batch_size % batch != 0 || n == 0) return rule::batch;
    if (w.seq_length % (p.cp * (p.sequence_parallel ? p.tp : 1)) != 0) return rule::sequence;
    using enum pipeline_schedule;
    if (s.schedule == interleaved && p.vp > 1 && p.pp > 1 && n % p.pp != 0) return rule::interleaving;
    if (s.schedule == dualpipe && (p.pp % 2 != 0 || n % 2 != 0 || n < 2 * p.pp)) return rule::both_ends;
    return rule::none;
  }

  void list_choices(const allowed_values& allowed) {
    for (const recompute_spec& r : recomputes(base_.model))
      recomputations_ += allowed.allows("recompute", text_of(r));
    const data_parallel_sharding own = std::get<training_workload>(base_.workload).sharding;
    for (std::size_t s = 0; s < shardings.size(); ++s) {
      // Tried only when asked for.
      if (s == static_cast<std::size_t>(data_parallel_sharding::optim_grads) &&
          static_cast<std::size_t>(own) != s && !allowed.asks("data_parallel_sharding", shardings[s]))
        continue;
      for (const recompute_spec& r : recomputes(base_.model))
        if (allowed.allows("data_parallel_sharding", shardings[s]) && allowed.allows("recompute", text_of(r)))
          choices_.push_back({static_cast<data_parallel_sharding>(s), r});
    }
  }

  training_workload workload(std::size_t group, std::size_t index) const {
    training_workload w = std::get<training_workload>(base_.workload);
    const split& s = splits_[group];
    w.par = s.par;
    w.place = place_;
    w.micro_batch_size = s.micro_batch;
    w.schedule = s.schedule;
    w.split.first = s.ends.first, w.split.last = s.ends.last;
    const memory_choice& c = choices_[index % choices_.size()];
    w.sharding = c.sharding;
    w.recompute = c.recompute;
    w.offload_layers = offloads(group)[index / choices_.size()];
    return w;
  }

  const std::vector<std::int64_t>& offloads(std::size_t group) const {
    return offloads_.at(splits_[group].par.pp);
  }

  training_metrics measured(const training_workload& w) const {
    const plan planned = plan_training(machine_, base_.stack, base_.model, w);
    return measure_training(machine_, base_.model, w, planned, evaluate(planned));
  }

  const scenario& base_;
  platform machine_;
  std::vector<std::string> no_rates_;  ///< why no layout can run in the formats of the workload
  placement place_;
  mutable step_cache steps_;
  std::vector<split> splits_;
  std::vector<memory_choice> choices_;
  std::size_t recomputations_ = 0;  ///< of each sharding in `choices_`
  std::vector<std::pair<division, std::pair<std::size_t, std::size_t>>> by_division_;  ///< its splits
  std::map<std::int64_t, std::vector<std::int64_t>> offloads_;                         ///< by pp
  std::vector<layer_spec> kinds_;                                                      ///< distinct layers
  std::map<rule, std::size_t> by_rule_;          ///< the split that stands for those that break it
  std::map<std::size_t, std::int64_t> refused_;  ///< layouts that such a split stands for
};

}  // namespace

std::unique_ptr<search_space> training_space(const scenario& s, const search_options& o, diagnostics& problems) {
  return std::make_unique<training_layouts>(s, o, problems);
}

}  // namespace nvlsim
