#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "nvlsim/measurements/posttraining_rows.hpp"
#include "nvlsim/measurements/validate.hpp"
#include "support/root.hpp"

namespace nvlsim {
namespace {

using test::root;
const std::filesystem::path post_training_table = root / "tests/measurements/posttraining.csv";

std::map<std::string, csv_row> rows() {
  std::map<std::string, csv_row> out;
  for (const csv_row& r : read_csv(post_training_table).rows) out.emplace(r["id"], r);
  return out;
}

TEST_CASE("A published step states its loop, and the rest is assumed and said") {
  input_cache inputs(folders_under(root));
  const auto all = rows();
  const post_training_row on = read_post_training_row(all.at("R040"), inputs);  // 32 H100, on policy
  CHECK(on.loop.loop.colocated);
  CHECK(on.loop.loop.prompts * on.loop.loop.samples == 2048);
  CHECK(on.loop.mini_batch == 512);
  CHECK(on.rollout.tp == 2);
  CHECK(on.rollout.gpus() == 32);
  CHECK(on.training.par.ep == 8);
  CHECK(on.training.par.gpus() == 32);
  CHECK(on.loop.loop.samples == 32);
  CHECK_FALSE(on.training.recompute.full);  // its recipe keeps activations
  CHECK(on.notes.find("no recomputation") != std::string::npos);
  CHECK(read_post_training_row(all.at("R016"), inputs).loop.loop.prompts == 16);
  CHECK(read_post_training_row(all.at("R042"), inputs).training.par.gpus() == 128);  // two thirds train
  const post_training_row off = read_post_training_row(all.at("R031"), inputs);      // 32 GB200, one step off
  CHECK_FALSE(off.loop.loop.colocated);
  CHECK(off.loop.loop.staleness == 1);
  CHECK(off.rollout.gpus() == 16);
  CHECK(off.training.par.gpus() == 16);
  CHECK(off.hardware.gpu.name == "gb200");
  const post_training_row verl = read_post_training_row(all.at("R056"), inputs);  // 32 + 32 H20
  CHECK(verl.loop.loop.prompts == 512);
  CHECK(verl.loop.loop.samples == 16);
  CHECK(verl.loop.algorithm == post_training_algorithm::dapo);
  CHECK_FALSE(verl.loop.reference_logprobs);
  CHECK(verl.training.sharding == data_parallel_sharding::fsdp);
  CHECK(verl.training.sharding_groups == 4);  // states over 8 GPUs
  CHECK_FALSE(verl.loop.policy_logprobs);     // those of the rollouts
  CHECK(verl.loop.packing == packing_kind::dynamic);
  CHECK_FALSE(verl.unknown_lengths.empty());
  CHECK(on.unknown_lengths.empty());
}

TEST_CASE("Rows that cannot be compared say why") {
  const auto all = rows();
  for (const char* id : {"R015", "R039", "R043", "R049", "R052"})
    CHECK_FALSE(post_training_exclusion(all.at(id)).empty());
  CHECK_FALSE(post_training_exclusion(all.at("R080")).empty());  // a transfer alone, between unknown pools
  CHECK_FALSE(post_training_exclusion(all.at("R097")).empty());  // of a program without a loop
  CHECK(post_training_exclusion(all.at("R083")).empty());
  CHECK(all.size() == 100);
  CHECK(post_training_exclusion(all.at("R018")).empty());
  CHECK(post_training_exclusion(all.at("R053")).empty());
}

TEST_CASE("Transfers alone are compared where their pools are stated") {
  const std::filesystem::path few =
      std::filesystem::temp_directory_path() / ("transfers-" + std::to_string(::getpid()) + ".csv");
  {
    std::ifstream in(post_training_table);
    std::ofstream out(few);
    for (std::string line; std::getline(in, line);)
      for (const char* id : {"id,", "R077,", "R078,", "R083,", "R087,", "R088,"})
        if (line.starts_with(id)) out << line << '\n';
  }
  const auto records = validate_table(few, folders_under(root));
  std::filesystem::remove(few);
  REQUIRE(records.size() == 5);
  for (const validation_record& r : records) {
    INFO(r.id << " " << r.reason << " " << r.simulated.value_or(-1));
    REQUIRE(r.status == record_status::ok);
    CHECK(r.metric == "weight_sync_s");
    CHECK(std::abs(*r.error()) < 0.35);  // docs/post-training.md#validation
  }
}

TEST_CASE("GB200 steps follow from costs fitted on H100") {
  const std::filesystem::path few =
      std::filesystem::temp_directory_path() / ("posttraining-" + std::to_string(::getpid()) + ".csv");
  {
    std::ifstream in(post_training_table);
    std::ofstream out(few);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with("id,") || line.starts_with("R024,") || line.starts_with("R031,")) out << line << '\n';
  }
  const auto records = validate_table(few, folders_under(root));
  std::filesystem::remove(few);
  REQUIRE(records.size() == 2);
  for (const validation_record& r : records) {
    INFO(r.id << " " << r.reason);
    REQUIRE(r.status == record_status::ok);
    CHECK(r.metric == "step_s");
    CHECK(std::abs(*r.error()) < 0.25);  // docs/post-training.md#validation
  }
}

}  // namespace
}  // namespace nvlsim
