// Assignment of layers to pipeline stages. [docs/models-and-assumptions.md#pipeline]
#include <algorithm>

#include "nvlsim/training/training.hpp"

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
  // Embedding and loss count as a layer of the first and last chunk.
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

pipeline_geometry geometry_of(const training_workload& w) {
  return {w.schedule, w.par.pp, w.schedule == pipeline_schedule::dualpipe ? 2 : w.par.vp, w.micro_batches()};
}

std::int64_t pipeline_geometry::chunks() const {
  return schedule == pipeline_schedule::dualpipe ? pp : pp * local;
}

std::int64_t pipeline_geometry::chunk_of(std::int64_t stage, std::int64_t local_chunk) const {
  switch (schedule) {
    case pipeline_schedule::zb_v:
      return local_chunk == 0 ? stage : 2 * pp - 1 - stage;
    case pipeline_schedule::dualpipe:
      return local_chunk == 0 ? stage : pp - 1 - stage;
    case pipeline_schedule::one_f_one_b:
    case pipeline_schedule::interleaved:
    case pipeline_schedule::zb_h1:
      break;
  }
  return local_chunk * pp + stage;
}

std::int64_t pipeline_geometry::stage_of(std::int64_t chunk, std::int64_t micro_batch) const {
  switch (schedule) {
    case pipeline_schedule::zb_v:
      return chunk < pp ? chunk : 2 * pp - 1 - chunk;
    case pipeline_schedule::dualpipe:
      return 2 * micro_batch < micro_batches ? chunk : pp - 1 - chunk;
    case pipeline_schedule::one_f_one_b:
    case pipeline_schedule::interleaved:
    case pipeline_schedule::zb_h1:
      break;
  }
  return chunk % pp;
}

}  // namespace nvlsim
