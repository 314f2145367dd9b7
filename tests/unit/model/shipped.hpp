// Shipped model files, read without a problem.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "nvlsim/model/load.hpp"

namespace nvlsim::test {

inline const std::filesystem::path models_folder = std::filesystem::path(NVLSIM_SOURCE_DIR) / "scenarios/models";

inline model shipped(const std::string& name) {
  diagnostics problems;
  config::document doc = config::load_named(models_folder, {"model", name, {"test", "/model", "", ""}}, problems);
  problems.throw_if_any();
  model m = read_model(doc, name, problems);
  problems.throw_if_any();
  return m;
}

/// A layer of grouped heads and a dense MLP.
inline layer_spec dense_layer(std::int64_t heads, std::int64_t kv_heads, std::int64_t head_dim, std::int64_t ffn,
                              bool gated = true, qk_norm_kind qk_norm = qk_norm_kind::none) {
  return {.heads = heads,
          .kv_heads = kv_heads,
          .head_dim = head_dim,
          .ffn_hidden = ffn,
          .gated_mlp = gated,
          .qk_norm = qk_norm};
}

/// A small model of equal layers.
inline model small_model(std::size_t layers, const layer_spec& l) {
  model m;
  m.hidden = 128;
  m.vocab = 1000;
  m.layers.assign(layers, l);
  return m;
}

/// What Hugging Face's files are tested against: data beside the source, if it is there.
inline const std::filesystem::path shared_data = std::filesystem::path(NVLSIM_SOURCE_DIR) / "../shared/data";

/// The cells of a CSV line; quoted ones may hold commas.
inline std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') quoted = !quoted;
    else if (c == ',' && !quoted) out.emplace_back();
    else if (c != '\r') out.back() += c;
  }
  return out;
}

/// The rows of a CSV file; none when there is no such file.
inline std::vector<std::map<std::string, std::string>> table(const std::filesystem::path& path) {
  std::vector<std::map<std::string, std::string>> rows;
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> header = cells(line);
  while (std::getline(in, line)) {
    const std::vector<std::string> row = cells(line);
    for (std::size_t i = 0; i < header.size() && i < row.size(); ++i) {
      if (i == 0) rows.emplace_back();
      rows.back()[header[i]] = row[i];
    }
  }
  return rows;
}

}  // namespace nvlsim::test
