#include <catch2/catch.hpp>

#include "nvlsim/post_training/weight_transfer.hpp"

namespace nvlsim {
namespace {

transfer_rates rates() {
  transfer_rates r;
  r.broadcast = bandwidth::from_base(60e9);
  r.port_share = 0.5;
  r.fixed = seconds::from_base(0.2);
  r.per_tensor = seconds::from_base(1e-5);
  r.per_tensor_shared = seconds::from_base(1e-3);
  r.growth = 0.03;
  r.rdma = bandwidth::from_base(120e9);
  r.rdma_fixed = seconds::from_base(0.3);
  r.requantise_rate = bandwidth::from_base(10e9);
  return r;
}

transfer_job job(transfer_path path) {
  transfer_job j;
  j.path = path;
  j.weights = j.weights_16bit = bytes::from_base(1e12);
  j.tensors = 10'000;
  j.train_ranks = 256;
  j.rollout_ranks = 256;
  j.rollout_shards = 32;
  j.replicas = 8;
  j.servers = 32;
  j.port = bandwidth::from_base(50e9);
  return j;
}

TEST_CASE("A broadcast costs the model once, whatever the number of engines") {
  transfer_job j = job(transfer_path::broadcast);
  // 1e12 / 60e9 and five doublings of 3 % of it, 10,000 tensors of 10 us, 0.2 s
  CHECK(time_of(j, rates()).total().base() == Approx(1e12 / 60e9 * 1.15 + 0.1 + 0.2));
  const double at_32 = time_of(j, rates()).total().base();
  j.servers = 512;
  j.replicas = 128;
  j.rollout_ranks = 4096;
  CHECK(time_of(j, rates()).total().base() / at_32 < 1.15);
}

TEST_CASE("A broadcast grows with the servers as published, of a small model as of a large one") {
  // checkpoint-engine, 16 to 256 GPUs of H20: 10.19 to 11.33 s (DeepSeek-V3.1), 14.36 to 16.04 s (Kimi K2)
  for (const double size : {60e9, 688e9, 1030e9}) {
    transfer_job j = job(transfer_path::broadcast);
    j.weights = bytes::from_base(size);
    j.servers = 2;
    const double few = time_of(j, rates()).wire.base();
    j.servers = 32;
    CHECK(time_of(j, rates()).wire.base() / few == Approx(1.115).margin(0.01));
  }
}

TEST_CASE("RDMA has a rate and a fixed cost of its own, whatever the number of engines") {
  transfer_job j = job(transfer_path::rdma);
  CHECK(time_of(j, rates()).total().base() == Approx(1e12 / 120e9 + 0.3));
  j.servers = 512;
  j.replicas = 128;
  j.rollout_ranks = 4096;
  CHECK(time_of(j, rates()).total().base() == Approx(1e12 / 120e9 + 0.3));
}

TEST_CASE("Resharding sends each rank its part; the slower side decides") {
  transfer_job j = job(transfer_path::reshard);
  CHECK(time_of(j, rates()).wire.base() == Approx(1e12 / 32 / 25e9));
  j.replicas = 16;  // a trainer rank sends 16 / 256 of the model, more than a rollout rank receives
  CHECK(time_of(j, rates()).wire.base() == Approx(1e12 / 16 / 25e9));
  j.path = transfer_path::ipc;
  CHECK(time_of(j, rates()).wire.base() == Approx(1e12 / 32 / 25e9));
  CHECK(time_of(j, rates()).tensors.base() == Approx(10.0));  // all ranks handle all 10,000 tensors
}

TEST_CASE("Requantisation is paid for the 16-bit weights of a rank") {
  transfer_job j = job(transfer_path::reshard);
  const double plain = time_of(j, rates()).total().base();
  j.requantise = true;
  CHECK(time_of(j, rates()).total().base() - plain == Approx(1e12 / 32 / 10e9));
}

}  // namespace
}  // namespace nvlsim
