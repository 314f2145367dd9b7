#include "calibration/collective_knobs.hpp"

#include <string_view>
#include <type_traits>

namespace nvlsim {
namespace {

/// Prior widths, in log. Well-measured parameters may move far from their prior; others are held near it.
constexpr double loose_prior = 1.5, held_prior = 0.5, known_prior = 0.3, tight_prior = 0.12;
/// Prior width of parameters that differ between pooled fabrics.
constexpr double pooled_prior = 2;

/// Builds knobs for one object of the profile.
struct knob_unit {
  const char* name;
  double scale = 1;  ///< of the unit, in base units
};
/// Where a fit looks, in the knob's unit; `width` is the prior's, in log.
struct search_range {
  double prior = 0, low = 0, high = 0, width = 1;
  std::optional<double> other_start = {};
};
template <class P>
class knob_list {
 public:
  knob_list(std::string pointer, std::function<P&(collective_profile&)> where)
      : pointer_(std::move(pointer)), where_(std::move(where)) {}

  template <class Get>
  knob_list& us(const char* name, const search_range& r, Get member) {
    return add(name, {"us", 1e-6}, r, member);
  }
  template <class Get>
  knob_list& ns(const char* name, const search_range& r, Get member) {
    return add(name, {"ns", 1e-9}, r, member);
  }
  template <class Get>
  knob_list& GBps(const char* name, const search_range& r, Get member) {
    return add(name, {"GB/s", 1e9}, r, member);
  }
  template <class Get>
  knob_list& MB(const char* name, const search_range& r, Get member) {
    return add(name, {"MB", 1e6}, r, member);
  }
  template <class Get>
  knob_list& number(const char* name, const search_range& r, Get member) {
    return add(name, {"", 1}, r, member);
  }
  /// Adds latency, hop and rate of a protocol.
  template <class Get>
  knob_list& protocol(const std::string& name, const protocol_params& prior, double width, Get member) {
    us((name + "/latency").c_str(), {prior.latency.base() * 1e6, 0.1, 2000, width},
       [member](P& p) -> constant<seconds>& { return member(p).latency; });
    us((name + "/hop").c_str(), {prior.hop.base() * 1e6, 1e-3, 1000, width},
       [member](P& p) -> constant<seconds>& { return member(p).hop; });
    return GBps((name + "/rate").c_str(), {prior.rate.base() / 1e9, 0.1, 5000, width},
                [member](P& p) -> constant<bandwidth>& { return member(p).rate; });
  }
  std::vector<collective_knob> take() { return std::move(out_); }

 private:
  template <class Get>
  knob_list& add(const char* name, const knob_unit& u, const search_range& r, Get member) {
    const double scale = u.scale;
    const auto at = [ w = where_, member ](const collective_profile& c) -> auto& {
      return member(w(const_cast<collective_profile&>(c)));
    };
    using type = typename std::remove_cvref_t<decltype(at(std::declval<const collective_profile&>()))>::value_type;
    const auto read = [at, scale](const collective_profile& c) {
      if constexpr (std::is_same_v<type, double>) return at(c) / scale;
      else return at(c).base() / scale;
    };
    const auto write = [at, scale](collective_profile& c, double v) {
      if constexpr (std::is_same_v<type, double>) at(c) = v * scale;
      else at(c) = type::from_base(v * scale);
    };
    out_.push_back({pointer_ + "/" + name, u.name, r.prior, r.low, r.high, r.width, r.other_start, read, write});
    return *this;
  }

  std::string pointer_;
  std::function<P&(collective_profile&)> where_;
  std::vector<collective_knob> out_;
};

/// Knobs inside a domain. Priors are the library's own tuning values for its protocols.
std::vector<collective_knob> domain_knobs(const std::string& pointer, const std::string& kind,
                                          const std::string& c, const domain_collective& now,
                                          const protocol_tuning& believed) {
  using D = domain_collective;
  knob_list<D> k(pointer, [kind, c](collective_profile& p) -> D& { return p.domain.at(kind).at(c); });
  const auto share = [](protocol_params p, double of_rate) { return p.rate *= of_rate, p; };
  // Small messages use one of sixteen channels.
  protocol_params few = share(believed.ll, 1.0 / 16), simple = believed.simple;
  few.latency = few.latency * 0.75;
  // All pairs exchange at the same time: no message waits for another.
  if (c == "all_to_all") simple.hop = believed.ll.hop;
  if (now.ll_few) k.protocol("ll_few", few, loose_prior, [](D& d) -> protocol_params& { return *d.ll_few; });
  k.protocol("ll", believed.ll, loose_prior, [](D& d) -> protocol_params& { return d.ll; });
  if (now.ll128)
    k.protocol("ll128", believed.ll128, loose_prior, [](D& d) -> protocol_params& { return *d.ll128; });
  if (now.simple_few)
    k.protocol("simple_few", share(simple, 0.5), loose_prior,
               [](D& d) -> protocol_params& { return *d.simple_few; });
  k.protocol("simple", simple, loose_prior, [](D& d) -> protocol_params& { return d.simple; });
  k.GBps("local_copy", {1000, 200, 3000, held_prior}, [](D& d) -> constant<bandwidth>& { return d.local_copy; });
  k.us("pipeline", {3, 0.01, 50, loose_prior}, [](D& d) -> constant<seconds>& { return d.pipeline; });
  if (now.nvls_rate && c == "all_reduce") {
    const protocol_params nvls = believed.nvls.value_or(believed.simple);
    k.GBps("nvls_rate", {nvls.rate.base() / 1e9, 100, 900, held_prior},
           [](D& d) -> constant<bandwidth>& { return *d.nvls_rate; });
    k.us("nvls_latency", {nvls.latency.base() * 1e6, 10, 60, tight_prior},
         [](D& d) -> constant<seconds>& { return d.nvls_latency; });
    k.us("nvls_pipeline_per_rank", {1, 0.01, 10, loose_prior},
         [](D& d) -> constant<seconds>& { return d.nvls_pipeline_per_rank; });
    k.MB("nvls_pipeline_limit_per_rank", {1.5, 0.1, 1000, held_prior},
         [](D& d) -> constant<bytes>& { return d.nvls_pipeline_limit; });
  }
  return k.take();
}

/// Knobs of a fabric. Measured fabrics start from the default fabric. Priors for latencies, ring steps (LL128's
/// over NVLink) and the ring's share are the library's own (NCCL src/graph/tuning.cc: base latencies, trees and
/// rings over a network, 0.92 for LL128). A step takes 14 us on a fabric with 2 us latency and scales with
/// latency. The other priors are round numbers. Library properties have tight priors when fabrics are pooled.
std::vector<collective_knob> fabric_knobs(const std::string& pointer, const std::string& fabric,
                                          const std::string& c, const fabric_collective& now) {
  using F = fabric_collective;
  const bool general = fabric == "default";
  const double free = general ? pooled_prior : loose_prior, tied = general ? pooled_prior : held_prior,
               share = general ? tight_prior : held_prior;
  knob_list<F> k(pointer, [fabric, c](collective_profile& p) -> F& { return p.fabric.at(fabric).at(c); });
  k.protocol("ll", {6.8_us, 5.0_us, 5.0_GBps}, free, [](F& f) -> protocol_params& { return f.ll; });
  k.us("ll/pipeline", {10, 0.01, 200, free}, [](F& f) -> constant<seconds>& { return f.ll_pipeline; });
  if (now.ll128)
    k.protocol("ll128", {14.0_us, 8.5_us, 30.0_GBps}, free, [](F& f) -> protocol_params& { return *f.ll128; });
  k.us("ring/latency", {70, 1, 2000, free}, [](F& f) -> constant<seconds>& { return f.ring.latency; });
  k.us("ring/nvlink_step", {1.9, 0.5, 4, tight_prior},
       [](F& f) -> constant<seconds>& { return f.ring.nvlink_step; });
  k.us("ring/fabric_step", {14, 2, 400, free}, [](F& f) -> constant<seconds>& { return f.ring.fabric_step; });
  if (now.ring.pipeline > seconds{})
    k.us("ring/pipeline", {3, 0.01, 3000, free}, [](F& f) -> constant<seconds>& { return f.ring.pipeline; });
  k.number("ring/power", {1.25, 1, 6, tied}, [](F& f) -> constant<double>& { return f.ring.power; });
  k.number("ring/nic_share", {0.92, 0.2, 1, share}, [](F& f) -> constant<double>& { return f.ring.nic_share; });
  if (general)
    k.number("ring/per_latency", {7, 0.5, 20, known_prior},
             [](F& f) -> constant<double>& { return f.ring.per_latency; });
  if (now.nvls_tree) {
    // Pooled, there are two optima: trees that take over early, and late.
    k.us("nvls_tree/latency", {20, 0.5, 1500, free, general ? std::optional(90.0) : std::nullopt},
         [](F& f) -> constant<seconds>& { return f.nvls_tree->latency; });
    k.us("nvls_tree/hop", {14, 2, 200, general ? known_prior : tight_prior},
         [](F& f) -> constant<seconds>& { return f.nvls_tree->hop; });
    k.number("nvls_tree/pipeline", {3, 1, 20, tied},
             [](F& f) -> constant<double>& { return f.nvls_tree->pipeline; });
    if (general)
      k.number("nvls_tree/per_latency", {7, 0.5, 20, known_prior},
               [](F& f) -> constant<double>& { return f.nvls_tree->per_latency; });
    k.number("nvls_tree/domain_share", {0.85, 0.5, 1, tight_prior},
             [](F& f) -> constant<double>& { return f.nvls_tree->domain_share; });
    if (now.nvls_tree->many_share < 1)  // elsewhere what NCCL's trees make of the NICs is all there is
      k.number("nvls_tree/many_share", {0.9, 0.2, 1, share},
               [](F& f) -> constant<double>& { return f.nvls_tree->many_share; });
  }
  if (now.sharp) {
    k.us("sharp/latency", {150, 5, 1000, free}, [](F& f) -> constant<seconds>& { return f.sharp->latency; });
    k.us("sharp/pipeline", {10, 0.01, 500, free}, [](F& f) -> constant<seconds>& { return f.sharp->pipeline; });
    k.number("sharp/nic_share", {0.6, 0.2, 1, share},
             [](F& f) -> constant<double>& { return f.sharp->nic_share; });
  }
  return k.take();
}

std::vector<collective_knob> all_to_all_knobs(const std::string& pointer, const std::string& fabric) {
  using A = fabric_all_to_all;
  const bool general = fabric == "default";
  const double tied = general ? pooled_prior : held_prior, share = general ? tight_prior : held_prior;
  return knob_list<A>(pointer, [fabric](collective_profile& p) -> A& { return p.all_to_all.at(fabric); })
      .us("latency", {50, 1, 1000, tied}, [](A& a) -> constant<seconds>& { return a.latency; })
      .us("per_rank", {1, 0.05, 50, tied}, [](A& a) -> constant<seconds>& { return a.per_rank; })
      .us("pipeline_per_rank", {1, 0.001, 20, tied},
          [](A& a) -> constant<seconds>& { return a.pipeline_per_rank; })
      .number("nic_share", {0.9, 0.1, 1, share}, [](A& a) -> constant<double>& { return a.nic_share; })
      .take();
}

/// Knobs of the fused all-reduce. Priors belong to an NVLink generation; a GPU starts from its generation.
std::vector<collective_knob> custom_knobs(const std::string& pointer, const std::string& gpu) {
  using C = custom_all_reduce;
  return knob_list<C>(pointer, [gpu](collective_profile& p) -> C& { return p.custom.at(gpu); })
      .us("one_latency", {4, 0.5, 30, held_prior}, [](C& c) -> constant<seconds>& { return c.one_latency; })
      .us("per_peer", {0.1, 0.001, 5, held_prior}, [](C& c) -> constant<seconds>& { return c.per_peer; })
      .us("two_extra", {27, 0.5, 100, held_prior}, [](C& c) -> constant<seconds>& { return c.two_extra; })
      .number("one_share", {0.6, 0.1, 1, held_prior}, [](C& c) -> constant<double>& { return c.one_share; })
      .number("two_share", {0.7, 0.1, 1, held_prior}, [](C& c) -> constant<double>& { return c.two_share; })
      .take();
}

std::vector<collective_knob> exchange_knobs(const std::string& pointer, const std::string& kind,
                                            const expert_exchange& now) {
  using E = expert_exchange;
  knob_list<E> k(pointer, [kind](collective_profile& p) -> E& { return p.expert.at(kind); });
  k.us("latency", {10, 1, 100, loose_prior}, [](E& e) -> constant<seconds>& { return e.latency; });
  k.number("per_doubling", {0.1, 1e-3, 2, loose_prior}, [](E& e) -> constant<double>& { return e.per_doubling; });
  k.ns("per_token", {40, 0.01, 1000, loose_prior}, [](E& e) -> constant<seconds>& { return e.per_token; });
  if (now.element_bytes > 0) {
    k.number("nvlink_share", {0.65, 0.05, 1, loose_prior},
             [](E& e) -> constant<double>& { return e.nvlink_share; });
    k.number("per_peer", {1.5e-3, 1e-5, 0.05, loose_prior}, [](E& e) -> constant<double>& { return e.per_peer; });
  }
  return k.take();
}

std::vector<std::string> parts_of(const std::string& path) {
  std::vector<std::string> out;
  for (std::size_t from = 0;;) {
    const std::size_t to = path.find('/', from);
    out.push_back(path.substr(from, to - from));
    if (to == std::string::npos) return out;
    from = to + 1;
  }
}

}  // namespace

std::vector<collective_knob> collective_knobs_of(const std::string& family, const collective_profile& profile) {
  const std::vector<std::string> at = parts_of(family);
  const std::string pointer = "/" + family;
  if (at[0] == "domain")
    return domain_knobs(pointer, at[1], at[2], profile.domain.at(at[1]).at(at[2]), profile.tuning.at(at[1]));
  if (at[0] == "fabric") return fabric_knobs(pointer, at[1], at[2], profile.fabric.at(at[1]).at(at[2]));
  if (at[0] == "measured_on")
    return knob_list<measured_hardware>(
               pointer,
               [kind = at[1]](collective_profile& p) -> measured_hardware& { return p.measured_on.at(kind); })
        .us("host_step", {40, 1, 500, pooled_prior},
            [](measured_hardware& m) -> constant<seconds>& { return *m.host_step; })
        .take();
  if (at[0] == "all_to_all") return all_to_all_knobs(pointer, at[1]);
  if (at[0] == "custom") return custom_knobs(pointer, at[1]);
  return exchange_knobs(pointer, at[1], profile.expert.at(at[1]));
}

}  // namespace nvlsim
