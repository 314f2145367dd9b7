#include "nvlsim/calibration/kernel_knobs.hpp"

#include "nvlsim/units/precision.hpp"

namespace nvlsim {
namespace {

struct limits {
  double low, high;
};

/// Builds knobs for one parameter struct. `where` finds it in a profile.
template <class P>
class kernel_knob_list {
 public:
  explicit kernel_knob_list(std::function<P&(kernel_profile&)> where) : where_(std::move(where)) {}

  template <auto Member>
  kernel_knob_list& number(const char* name, limits l, bool per_gpu = false) {
    return add(
        {name, "", l, per_gpu}, [](const P& p) { return (p.*Member).read(); },
        [](P& p, double v) { p.*Member = v; });
  }
  template <auto Member>
  kernel_knob_list& microseconds(const char* name, limits l, bool per_gpu = false) {
    return quantity<Member>(name, "us", 1e-6, l, per_gpu);
  }
  template <auto Member>
  kernel_knob_list& nanoseconds(const char* name, limits l, bool per_gpu = false) {
    return quantity<Member>(name, "ns", 1e-9, l, per_gpu);
  }
  template <auto Member>
  kernel_knob_list& teraflops(const char* name, limits l) {
    return quantity<Member>(name, "TFLOPS", 1e12, l, true);
  }
  kernel_knob_list& bytes_per_second(const char* name, std::optional<constant<bandwidth>> P::*member, limits l) {
    return add(
        {name, "GB/s", l, false}, [member](const P& p) { return p.*member ? (p.*member)->base() / 1e9 : 0; },
        [member](P& p, double v) { p.*member = bandwidth::from_base(v * 1e9); });
  }
  std::vector<kernel_knob> take() { return std::move(out_); }

 private:
  template <auto Member>
  kernel_knob_list& quantity(const char* name, const char* unit, double scale, limits l, bool per_gpu) {
    using type = typename std::remove_reference_t<decltype(std::declval<P>().*Member)>::value_type;
    return add(
        {name, unit, l, per_gpu}, [scale](const P& p) { return (p.*Member).base() / scale; },
        [scale](P& p, double v) { p.*Member = type::from_base(v * scale); });
  }
  struct described {
    const char *name, *unit;
    limits l;
    bool per_gpu = false;
  };
  template <class Get, class Set>
  kernel_knob_list& add(const described& d, Get get, Set set) {
    out_.push_back({d.name, d.unit, d.per_gpu, d.l.low, d.l.high,
                    [w = where_, get](const kernel_profile& k) { return get(w(const_cast<kernel_profile&>(k))); },
                    [w = where_, set](kernel_profile& k, double v) { set(w(k), v); }});
    return *this;
  }
  std::function<P&(kernel_profile&)> where_;
  std::vector<kernel_knob> out_;
};

/// With `by_silicon`, the architecture's GPUs run different kernels and share only the launch and the cast.
std::vector<kernel_knob> gemm_knobs(std::function<gemm_params&(kernel_profile&)> where, bool by_silicon = false,
                                    bool repeated = false) {
  kernel_knob_list<gemm_params> k(std::move(where));
  k.teraflops<&gemm_params::tensor_rate>("tensor_rate", {10, 20000})
      .nanoseconds<&gemm_params::step_time>("step_time", {0.02, 8}, by_silicon)
      .number<&gemm_params::fill_depth>("fill_depth", {1, 5000}, by_silicon)
      .number<&gemm_params::hbm_share>("hbm_share", {0.1, 1}, by_silicon)
      .microseconds<&gemm_params::launch>("launch", {0.5, 40})
      .number<&gemm_params::cast_passes>("cast_passes", {0.01, 20})
      .nanoseconds<&gemm_params::cast_row_time>("cast_row_time", {0.05, 5})
      .number<&gemm_params::output_bytes>("output_bytes", {0.01, 12}, by_silicon);
  if (repeated) k.number<&gemm_params::l2_speedup>("l2_speedup", {0.5, 5});
  return k.take();
}

std::vector<kernel_knob> attention_knobs(std::function<attention_params&(kernel_profile&)> where, bool speedup) {
  kernel_knob_list<attention_params> k(std::move(where));
  k.teraflops<&attention_params::tensor_rate>("tensor_rate", {20, 20000})
      .number<&attention_params::exponential_share>("exponential_share", {0.05, 4}, true)
      .microseconds<&attention_params::item_time>("item_time", {0.01, 10})
      .number<&attention_params::tail_share>("tail_share", {0.01, 3})
      .microseconds<&attention_params::launch>("launch", {1, 60})
      .number<&attention_params::io_passes>("io_passes", {0.02, 40});
  if (speedup) k.number<&attention_params::fp8_speedup>("fp8_speedup", {1, 2});
  return k.take();
}

std::vector<kernel_knob> decode_knobs(std::function<decode_params&(kernel_profile&)> where) {
  return kernel_knob_list<decode_params>(std::move(where))
      .number<&decode_params::hbm_share>("hbm_share", {0.2, 1})
      .microseconds<&decode_params::launch>("launch", {1, 40})
      .microseconds<&decode_params::item_time>("item_time", {0.01, 30})
      .microseconds<&decode_params::head_time>("head_time", {0.001, 10})
      .microseconds<&decode_params::split_time>("split_time", {0.001, 20})
      .microseconds<&decode_params::part_time>("part_time", {0.0001, 5})
      .number<&decode_params::chunk>("chunk", {16, 4096})
      .number<&decode_params::l2_speedup>("l2_speedup", {1, 4})
      .bytes_per_second("part_rate", &decode_params::part_rate, {5, 5000})
      .take();
}

std::vector<kernel_knob> ungrouped_knobs() {
  return kernel_knob_list<ungrouped_decode_params>(
             [](kernel_profile& k) -> ungrouped_decode_params& { return *k.ungrouped_decode; })
      .microseconds<&ungrouped_decode_params::item_time>("item_time", {0.01, 10})
      .nanoseconds<&ungrouped_decode_params::key_time>("key_time", {0.1, 100})
      .number<&ungrouped_decode_params::chunk>("chunk", {16, 8192})
      .take();
}

std::vector<kernel_knob> mla_decode_knobs(precision cache) {
  return kernel_knob_list<mla_decode_params>(
             [cache](kernel_profile& k) -> mla_decode_params& { return k.mla_decode.at(cache); })
      .teraflops<&mla_decode_params::tensor_rate>("tensor_rate", {50, 6000})
      .number<&mla_decode_params::hbm_share>("hbm_share", {0.1, 1})
      .microseconds<&mla_decode_params::launch>("launch", {1, 40})
      .microseconds<&mla_decode_params::item_time>("item_time", {0.01, 30})
      .microseconds<&mla_decode_params::split_time>("split_time", {0.001, 10})
      .microseconds<&mla_decode_params::part_time>("part_time", {0.0001, 2})
      .number<&mla_decode_params::chunk>("chunk", {16, 4096})
      .take();
}

std::vector<kernel_knob> moe_knobs(const std::string& name) {
  return kernel_knob_list<moe_params>([name](kernel_profile& k) -> moe_params& { return k.moe.at(name); })
      .teraflops<&moe_params::tensor_rate>("tensor_rate", {50, 12000})
      .nanoseconds<&moe_params::step_time>("step_time", {0.02, 20})
      .number<&moe_params::fill_depth>("fill_depth", {1, 5000})
      .number<&moe_params::hbm_share>("hbm_share", {0.02, 1})
      .microseconds<&moe_params::launch>("launch", {2, 150})
      .microseconds<&moe_params::expert_time>("expert_time", {1e-4, 5})
      .number<&moe_params::pair_passes>("pair_passes", {0.01, 30})
      .number<&moe_params::token_passes>("token_passes", {0.01, 30})
      .number<&moe_params::exposed_share>("exposed_share", {0.001, 1})
      .take();
}

std::vector<kernel_knob> stream_knobs(std::function<stream_params&(kernel_profile&)> where) {
  return kernel_knob_list<stream_params>(std::move(where))
      .number<&stream_params::hbm_share>("hbm_share", {0.05, 1.3})
      .microseconds<&stream_params::launch>("launch", {0.3, 30}, true)
      .number<&stream_params::l2_speedup>("l2_speedup", {0.3, 6}, true)
      .take();
}

}  // namespace

std::vector<kernel_knob> knobs_of(const std::string& family) {
  const auto slash = family.find('/');
  const std::string group = family.substr(0, slash),
                    member = slash == std::string::npos ? "" : family.substr(slash + 1);
  const precision p = precision_by_name(member).value_or(precision::bf16);
  if (group == "gemm")
    return gemm_knobs([p](kernel_profile& k) -> gemm_params& { return k.gemm.at(p); }, p == precision::nvfp4);
  if (group == "weight_only")
    return gemm_knobs([p](kernel_profile& k) -> gemm_params& { return k.weight_only.at(p); });
  if (group == "absorb_keys")
    return gemm_knobs([p](kernel_profile& k) -> gemm_params& { return k.absorb_keys.at(p); }, false, true);
  if (group == "absorb_values")
    return gemm_knobs([p](kernel_profile& k) -> gemm_params& { return k.absorb_values.at(p); }, false, true);
  if (group == "attention")
    return attention_knobs([](kernel_profile& k) -> attention_params& { return k.attention; }, true);
  if (group == "attention_fp8")
    return attention_knobs([](kernel_profile& k) -> attention_params& { return *k.attention_fp8; }, false);
  if (group == "mla_context")
    return attention_knobs([p](kernel_profile& k) -> attention_params& { return k.mla_context.at(p); }, false);
  if (group == "decode") return decode_knobs([](kernel_profile& k) -> decode_params& { return k.decode; });
  if (group == "decode_fp8")
    return decode_knobs([](kernel_profile& k) -> decode_params& { return *k.decode_fp8; });
  if (group == "single_decode")
    return decode_knobs([p](kernel_profile& k) -> decode_params& { return k.single_decode.at(p); });
  if (group == "ungrouped_decode") return ungrouped_knobs();
  if (group == "mla_decode") return mla_decode_knobs(p);
  if (group == "moe") return moe_knobs(member);
  if (group == "amax") return stream_knobs([](kernel_profile& k) -> stream_params& { return *k.amax; });
  return stream_knobs([](kernel_profile& k) -> stream_params& { return k.stream; });
}

}  // namespace nvlsim
