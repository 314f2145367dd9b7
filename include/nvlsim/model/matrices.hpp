// The weight matrices of a layer: what parameters, FLOPs, weights on a rank and GEMMs are counted from.
#pragma once

#include <cstdint>
#include <vector>

#include "nvlsim/model/model.hpp"

namespace nvlsim {

enum class matrix {
  query,
  key_value,
  attention_gate,
  query_down,  ///< to the ranks of low-rank queries, keys and values
  key_value_down,
  pooling,  ///< values and their gates, from which one key of several tokens is made
  query_up,
  key_value_up,
  index_query,
  index_key,
  index_weight,
  scan_in,
  scan_gates_down,
  scan_gates_up,
  scan_out,
  output_down,
  output,
  layer_input,
  layer_input_out,
  up,
  down,
  router,
  latent_down,
  latent_up,
  shared_up,
  shared_down,
  expert_up,
  expert_down
};

/// What training and serving call the GEMM of a matrix: "mlp.up". `joined`: others follow it in the same GEMM.
const char* gemm_name(matrix first, bool joined = false);

/// The part of a layer that a matrix belongs to. `mlp`: a dense MLP, shared experts and latent projections.
enum class matrix_part { mixer, mlp, router, experts };

/// What tensor parallelism divides: columns, of which each rank computes some; rows, whose products ranks sum; or
/// whole groups.
enum class divided { outputs, inputs, groups };

/// `groups` matrices of one shape side by side. Biases are left out.
struct weight_matrix {
  matrix name;
  matrix_part part;
  std::int64_t out = 0, in = 0;
  /// Parts into which tensor parallelism can divide it, such as heads: more ranks than that hold copies. 1: every
  /// rank holds all of it.
  std::int64_t units = 1;
  std::int64_t groups = 1;
  divided by = divided::outputs;
  bool joined = false;  ///< engines compute it in one GEMM with the matrix before it

  std::int64_t parameters() const { return groups * out * in; }
  bool replicated() const { return units == 1; }
};

/// All matrices of a layer, in forward order. A layer with its own token mixer, MLP or experts has its place here
/// alone. `hidden`: width of the hidden state.
std::vector<weight_matrix> layer_matrices(const layer_spec& l, std::int64_t hidden);

/// Parameters outside matrices: gains of norms, and kernels of convolutions. Tensor parallelism divides those of
/// the channels of a scan.
struct vector_parameters {
  std::int64_t whole = 0, divided = 0;
};
vector_parameters layer_vectors(const model& m, const layer_spec& l);

/// A matrix as one of `ranks` tensor-parallel ranks holds it. Experts are not divided: that is up to expert
/// parallelism.
struct rank_matrix {
  double out = 0, in = 0, groups = 1;
  double parameters() const { return groups * out * in; }
};
rank_matrix on_rank(const weight_matrix& w, double ranks);

}  // namespace nvlsim
