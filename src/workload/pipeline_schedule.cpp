// Which stage runs which layers, and in which order it runs micro-batches. [docs/models-and-assumptions.md#pipeline]
#include <algorithm>

#include "nvlsim/training.hpp"

namespace nvlsim {

std::vector<std::int64_t> layers_by_chunk(std::int64_t layers, std::int64_t chunks, std::int64_t mtp_layers) {
  const auto n = static_cast<std::size_t>(chunks);
  if (chunks == 1) return {layers + mtp_layers};
  if (mtp_layers > 0) {
    const std::int64_t base = (layers + 2 + mtp_layers + chunks - 1) / chunks;
    std::vector<std::int64_t> out(n, base);
    std::int64_t over = base * chunks - layers;
    for (std::size_t c = n; c-- > 0 && over > 0;) {
      const std::int64_t cut = std::min(over, out[c]);
      out[c] -= cut;
      over -= cut;
    }
    out.back() += mtp_layers;
    return out;
  }
  if (layers % chunks == 0) return std::vector<std::int64_t>(n, layers / chunks);
  // Embedding and loss take a layer's place on the first and last chunk.
  const std::int64_t places = layers + 2;
  std::vector<std::int64_t> out(n, places / chunks);
  for (std::size_t c = 0; c < static_cast<std::size_t>(places % chunks); ++c) ++out[c];
  --out.front();
  --out.back();
  for (std::int64_t& x : out)
    if (x < 0) {
      ++x;
      --*std::max_element(out.begin(), out.end());
    }
  return out;
}

std::vector<pipeline_slot> stage_schedule(const parallelism& par, std::int64_t micro_batches, std::int64_t stage) {
  const std::int64_t pp = par.pp, vp = par.vp, total = micro_batches * vp;
  // Micro-batches go through the chunks in groups of PP (Megatron's microbatch_group_size_per_vp_stage).
  std::vector<std::pair<std::int32_t, std::int32_t>> order;  // (micro-batch, chunk)
  order.reserve(static_cast<std::size_t>(total));
  const std::int64_t group = vp == 1 ? micro_batches : pp;
  for (std::int64_t first = 0; first < micro_batches; first += group)
    for (std::int64_t chunk = 0; chunk < vp; ++chunk)
      for (std::int64_t mb = first; mb < std::min(first + group, micro_batches); ++mb)
        order.emplace_back(static_cast<std::int32_t>(mb), static_cast<std::int32_t>(chunk));

  const std::int64_t wanted = vp == 1 ? pp - stage - 1 : (pp - stage - 1) * 2 + (vp - 1) * pp;
  const std::int64_t warmup = std::min(wanted, total);
  std::vector<pipeline_slot> out;
  out.reserve(static_cast<std::size_t>(2 * total));
  const auto forward = [&](std::int64_t i) {
    const auto& [mb, chunk] = order[static_cast<std::size_t>(i)];
    out.push_back({true, chunk, mb});
  };
  const auto backward = [&](std::int64_t i) {
    const auto& [mb, chunk] = order[static_cast<std::size_t>(i)];
    out.push_back({false, static_cast<std::int32_t>(vp) - 1 - chunk, mb});
  };
  for (std::int64_t i = 0; i < warmup; ++i) forward(i);
  for (std::int64_t i = warmup; i < total; ++i) {
    forward(i);
    backward(i - warmup);
  }
  for (std::int64_t i = total - warmup; i < total; ++i) backward(i);
  return out;
}

}  // namespace nvlsim
