#include "training/gradient_buckets.hpp"

#include <algorithm>

namespace nvlsim {
namespace {

/// Megatron's DDP default: buckets of at least 40 M parameters, or 1 M per data-parallel rank.
double bucket_parameters(const training_workload& w) {
  return std::max(40e6, 1e6 * static_cast<double>(w.par.dp * w.par.cp));
}

}  // namespace

layer_kinds kinds_of(const model& m, const training_workload& w) {
  layer_kinds k;
  const auto index = [&](const layer_spec& l) {
    const auto it = std::find(k.distinct.begin(), k.distinct.end(), l);
    if (it != k.distinct.end()) return static_cast<std::size_t>(it - k.distinct.begin());
    k.distinct.push_back(l);
    return k.distinct.size() - 1;
  };
  for (const layer_spec& l : m.layers) k.of_layer.push_back(index(l));
  for (std::int64_t i = 0; i < m.mtp_layers; ++i)
    for (const layer_spec& l : m.mtp_block) k.of_layer.push_back(index(l));
  k.workloads = {w};
  const bool blocks = w.recompute.full && w.recompute.block;
  if (blocks) k.workloads.push_back(w), k.workloads.back().recompute = {};
  if (w.kept.by_layer())
    for (std::size_t i = 0, n = k.workloads.size(); i < n; ++i)
      k.workloads.push_back(k.workloads[i]), k.workloads.back().gemm_precision = precision::bf16;
  if (k.workloads.size() == 1) return k;
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  std::size_t at = 0;
  for (const std::int64_t n : chunk_layers(m, w))
    for (std::int64_t i = 0; i < n; ++i, ++at) {
      const auto layer = static_cast<std::int64_t>(at);
      const bool predicts = layer >= layers;
      const bool in_bf16 =
          predicts ? w.kept.predictors : layer < w.kept.first_layers || layer >= layers - w.kept.last_layers;
      if (in_bf16 && w.kept.by_layer()) k.of_layer[at] += k.distinct.size() * (blocks ? 2 : 1);
      if (blocks && !recomputes_layer(w.recompute, i, predicts)) k.of_layer[at] += k.distinct.size();
    }
  return k;
}

std::vector<bucket> buckets_of(const training_context& c, const layer_kinds& kinds,
                               std::span<const std::size_t> layers, bool embedding, bool head) {
  const double vocabulary = local_vocabulary_parameters(c);
  const bool own_head = head && !(embedding && c.net.tied_embeddings);
  double total = vocabulary * ((embedding ? 1 : 0) + (own_head ? 1 : 0));
  for (const std::size_t k : layers) total += parameters_on_gpu(c.net, kinds.spec(k), c.workload.par).total();
  const auto count = static_cast<std::int64_t>(layers.size());
  const auto wanted = static_cast<std::int64_t>(total / bucket_parameters(c.workload));
  const std::int64_t n = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, count));
  std::vector<bucket> out;
  std::int64_t next = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bucket b;
    b.layers.assign(kinds.count(), 0);
    b.embedding = embedding && i == 0;
    b.head = head && i == n - 1;
    b.parameters.dense = vocabulary * ((b.embedding ? 1 : 0) + (b.head && own_head ? 1 : 0));
    if (b.head) b.parameters.dense += local_predictor_parameters(c);
    for (const std::int64_t end = next + count / n + (i < count % n ? 1 : 0); next < end; ++next) {
      const std::size_t k = layers[static_cast<std::size_t>(next)];
      const local_parameters p = parameters_on_gpu(c.net, kinds.spec(k), c.workload.par);
      ++b.layers[k];
      b.parameters.dense += p.dense;
      b.parameters.expert += p.expert;
    }
    out.push_back(std::move(b));
  }
  return out;
}

bucket merged(const std::vector<bucket>& buckets) {
  bucket whole = buckets.front();
  for (std::size_t i = 1; i < buckets.size(); ++i) {
    for (std::size_t k = 0; k < whole.layers.size(); ++k) whole.layers[k] += buckets[i].layers[k];
    whole.embedding |= buckets[i].embedding;
    whole.head |= buckets[i].head;
    whole.parameters.dense += buckets[i].parameters.dense;
    whole.parameters.expert += buckets[i].parameters.expert;
  }
  return whole;
}

bool gathers_once(data_parallel_sharding s) {
  return s == data_parallel_sharding::distributed_optimizer || s == data_parallel_sharding::optim_grads;
}

}  // namespace nvlsim
