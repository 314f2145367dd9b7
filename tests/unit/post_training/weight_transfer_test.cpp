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
  r.hop = seconds::from_base(0.25);
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
  // 1e12 / 60e9, 10,000 tensors of 10 us, 0.2 s and five doublings of 0.25 s
  CHECK(time_of(j, rates()).total().base() == Approx(1e12 / 60e9 + 0.1 + 0.2 + 5 * 0.25));
  const double at_32 = time_of(j, rates()).total().base();
  j.servers = 512;
  j.replicas = 128;
  j.rollout_ranks = 4096;
  CHECK(time_of(j, rates()).total().base() / at_32 < 1.15);
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
