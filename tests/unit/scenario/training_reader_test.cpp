#include "scenario/training_reader.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/config/document.hpp"
#include "scenario/placement_reader.hpp"

namespace nvlsim {
namespace {

using texts = std::vector<std::string>;

struct training_read {
  training_workload workload;
  config::document document;
  texts problems;
};

/// A workload with what every one needs, and `more`.
training_read read_training(const std::string& more, const std::string& precision = "bf16") {
  training_read out;
  diagnostics problems;
  out.document = config::parse(
      R"({"seq_length": 4096, "global_batch_size": 8, "dp": 8, "precision": ")" + precision + "\"" + more + "}",
      {"scenario", "s.json"}, problems);
  config::reader r(out.document, problems);
  out.workload = read_training_workload(r);
  for (const problem& p : problems.sorted()) out.problems.push_back(p.text());
  return out;
}

TEST_CASE("Training reader reads how whole layers are recomputed") {
  const auto method = [](const std::string& more) {
    return read_training(R"(, "recompute": "full")" + more).workload.recompute;
  };
  CHECK(method("").full);
  CHECK_FALSE(method("").block);
  CHECK(method("").num_layers == 1);
  CHECK(method(R"(, "recompute_num_layers": 4)").num_layers == 4);
  const recompute_spec block = method(R"(, "recompute_method": "block", "recompute_num_layers": 3)");
  CHECK(block.block);
  CHECK(block.num_layers == 3);
}

TEST_CASE("Training reader refuses recompute methods without what they need") {
  CHECK(
      read_training(R"(, "recompute": "full", "recompute_method": "blok")").problems ==
      texts{"s.json#/recompute_method: expected one of uniform, block, found \"blok\"; did you mean \"block\"?"});
  CHECK(read_training(R"(, "recompute": "full", "recompute_method": "block")").problems ==
        texts{"s.json#/recompute_method: block needs recompute_num_layers, the number of recomputed layers per "
              "model chunk"});
  CHECK(read_training(R"(, "recompute": "selective", "recompute_method": "uniform", "recompute_num_layers": 2)")
            .problems == texts{"s.json#/recompute_method: needs recompute \"full\"",
                               "s.json#/recompute_num_layers: needs recompute \"full\""});
}

TEST_CASE("Training reader reads what decides memory, and writes it as it was") {
  const std::string all = R"(, "offload_modules": ["core_attn", "expert_fc1"], "optimizer": "muon",
      "exp_avg_dtype": "bf16", "exp_avg_sq_dtype": "fp8", "main_params_dtype": "fp16", "grad_reduce_in_fp32": false,
      "activation_func_fp8_input_store": true, "recompute": ["mhc", "shared_experts"],
      "task": "lora", "lora_rank": 32, "lora_target_modules": ["linear_fc1"], "freeze_vision_model": true,
      "freeze_language_model": true, "deterministic_mode": true)";
  const training_read r = read_training(all);
  REQUIRE(r.problems.empty());
  const training_workload& w = r.workload;
  CHECK(w.offload.core_attn);
  CHECK(w.offload.expert_fc1);
  CHECK_FALSE(w.offload.moe_act);
  CHECK(w.optimizer.kind == optimizer_kind::muon);
  CHECK(w.optimizer.master == 2);
  CHECK(moment_bytes(w).first == 2);
  CHECK(moment_bytes(w).second == 1);
  CHECK(w.optimizer.fp32_gradients == false);
  CHECK(keeps_fp8_inputs(w));
  CHECK(w.recompute.hyper_connections);
  CHECK(w.recompute.shared_experts);
  CHECK(w.lora.rank == 32);
  CHECK(w.lora.fc1);
  CHECK_FALSE(w.lora.qkv);
  CHECK(w.freeze_towers);
  CHECK(w.freeze_language);
  CHECK(w.deterministic);
  const value written = write_training_workload(w);
  CHECK(written.find("offload_modules")->items()->size() == 2);
  CHECK(*written.find("exp_avg_sq_dtype")->string() == "fp8");
  CHECK(*written.find("lora_rank")->integer() == 32);
  CHECK(*written.find("freeze_language_model")->boolean());
  CHECK(*written.find("deterministic")->boolean());
}

TEST_CASE("Training reader reads images of samples and fused routers, and writes them as they were") {
  const training_read r = read_training(R"(, "images": {"count": 2, "tokens": 64}, "moe_router_fusion": false)");
  REQUIRE(r.problems.empty());
  REQUIRE(r.workload.images);
  CHECK(r.workload.images->count == 2);
  CHECK(r.workload.images->tokens_each == 64);
  CHECK(r.workload.router_fusion == false);
  const value written = write_training_workload(r.workload);
  CHECK(*written.find("images")->find("tokens")->integer() == 64);
  CHECK_FALSE(*written.find("moe_router_fusion")->boolean());
  CHECK_FALSE(write_training_workload(read_training("").workload).find("images"));
}

TEST_CASE("Training reader refuses images with more tokens than a sequence") {
  const texts problems = read_training(R"(, "images": {"count": 1000, "tokens": 4096})").problems;
  REQUIRE(problems.size() == 1);
  CHECK(problems.front().starts_with("s.json#/images: 1000 images of 4096 tokens exceed the sample of "));
}

TEST_CASE("Training reader refuses settings of memory that contradict each other") {
  CHECK(read_training(R"(, "offload_modules": ["core_atn"], "lora_rank": 8, "fp8_param_gather": true)").problems ==
        texts{"s.json#/fp8_param_gather: needs a precision of 8 bits", "s.json#/lora_rank: needs task \"lora\"",
              "s.json#/offload_modules: element 0: expected one of attn_norm, qkv_linear, core_attn, attn_proj, "
              "mlp_norm, expert_fc1, moe_act; did you mean \"core_attn\"?"});
  CHECK(read_training(R"(, "offload_modules": "core_attn")").problems ==
        texts{"s.json#/offload_modules: expected a list of attn_norm, qkv_linear, core_attn, attn_proj, mlp_norm, "
              "expert_fc1, moe_act, found string"});
  CHECK(read_training(R"(, "offload_modules": ["core_attn"], "offload_layers": 2)").problems ==
        texts{"s.json#/offload_modules: offload_layers moves whole layers; give one of them"});
}

TEST_CASE("Training reader reads capacities of experts") {
  const training_workload none = read_training("").workload;
  CHECK_FALSE(none.expert_capacity_factor);
  CHECK_FALSE(none.static_experts());
  const training_workload w =
      read_training(R"(, "moe_expert_capacity_factor": 1.25, "moe_pad_expert_input_to_capacity": true)").workload;
  CHECK(*w.expert_capacity_factor == 1.25);
  CHECK(w.static_experts());
  CHECK(read_training(R"(, "moe_pad_expert_input_to_capacity": true, "moe_expert_capacty_factor": 2)").problems ==
        texts{"s.json#/moe_expert_capacty_factor: unknown member; did you mean \"moe_expert_capacity_factor\"?",
              "s.json#/moe_pad_expert_input_to_capacity: needs moe_expert_capacity_factor, which defines the "
              "capacity"});
}

TEST_CASE("DualPipe in 8 bits keeps what DeepSeek's framework keeps, unless the scenario says otherwise") {
  const training_workload own = read_training(R"(, "schedule": "dualpipe")", "fp8_block").workload;
  CHECK(keeps_fp8_inputs(own));
  CHECK(moment_bytes(own).first == 2);
  CHECK(moment_bytes(own).second == 2);
  CHECK(own.optimizer.master == 4);
  const training_workload stated =
      read_training(
          R"(, "schedule": "dualpipe", "activation_func_fp8_input_store": false, "exp_avg_dtype": "fp32")",
          "fp8_block")
          .workload;
  CHECK_FALSE(keeps_fp8_inputs(stated));
  CHECK(moment_bytes(stated).first == 4);
  for (const training_workload& w : {read_training(R"(, "schedule": "dualpipe")").workload,
                                     read_training(R"(, "schedule": "zb_v", "vp": 2)", "fp8_block").workload}) {
    CHECK_FALSE(keeps_fp8_inputs(w));
    CHECK(moment_bytes(w).second == 4);
  }
}

TEST_CASE("Training reader reads whether routers choose, and writes it as it was") {
  CHECK(read_training("").workload.forced_balance);
  const training_workload w =
      read_training(R"(, "moe_router_force_load_balancing": false, "moe_expert_skew": 0.8)").workload;
  CHECK_FALSE(w.forced_balance);
  CHECK(*w.expert_skew == 0.8);
  const value written = write_training_workload(w);
  CHECK(written.find("moe_router_force_load_balancing"));
  CHECK(written.find("moe_expert_skew"));
  CHECK(read_training(R"(, "moe_expert_skew": 0.8)").problems ==
        texts{"s.json#/moe_expert_skew: needs \"moe_router_force_load_balancing\": false; forced balance has no "
              "skew"});
  CHECK(read_training(R"(, "dispatcher": "hybrid")").problems.size() == 1);
}

TEST_CASE("Training reader reads the lengths of packed sequences") {
  CHECK_FALSE(read_training("").workload.packed);
  const training_workload w =
      read_training(
          R"(, "packed_sequences": {"mean": 300, "distribution": "lognormal", "variation": 0.8, "max": 2048})")
          .workload;
  REQUIRE(w.packed);
  CHECK(w.packed->mean == 300);
  CHECK(w.packed->shape == length_shape::lognormal);
  CHECK(w.packed->max == 2048);
  CHECK(read_training(R"(, "packed_sequences": {"mean": 5000})").problems ==
        texts{"s.json#/packed_sequences: the mean sequence length of 5000 tokens exceeds the window, seq_length "
              "4096"});
  CHECK(read_training(R"(, "packed_sequences": {"men": 500})").problems.size() ==
        2);  // what is missing, and what is not known
}

TEST_CASE("Members that a scenario does not give leave no default behind") {
  // Results list every default, so that a new member would change those of scenarios that do not use it.
  const value resolved = read_training("").document.resolved();
  for (const char* member : {"/recompute_method", "/recompute_num_layers", "/moe_expert_capacity_factor",
                             "/moe_pad_expert_input_to_capacity", "/packed_sequences"})
    CHECK(resolved.at_pointer(member) == nullptr);
}

struct placed {
  placement place;
  texts problems;
};
placed place(const std::string& text, std::int64_t ranks, std::int64_t tp = 1) {
  platform p;
  p.vm.gpus = 4;
  p.rack.vms = 18;
  p.racks = 4;
  placed out;
  diagnostics problems;
  config::document doc = config::parse(text, {"scenario", "s.json"}, problems);
  config::reader r(doc, problems);
  out.place = read_placement(r, p, ranks, tp, 64);
  for (const problem& x : problems.sorted()) out.problems.push_back(x.text());
  return out;
}

TEST_CASE("Placement reader places ranks by its policy") {
  CHECK(place("{}", 128).place.gpus_per_domain == 64);
  CHECK(place(R"({"placement": {"policy": "racks"}})", 128).place.gpus_per_domain == 72);
  const placement rails = place(R"({"placement": {"policy": "rails"}})", 128, 4).place;
  REQUIRE(rails.table);
  CHECK(rails.domain_of(3) == 0);
  CHECK(rails.domain_of(4) == 1);
  CHECK(rails.domain_of(8) == 0);
  const placement list = place(R"({"placement": {"policy": "list", "gpus": "72-75,0,1-3"}})", 8).place;
  REQUIRE(list.table);
  CHECK(list.table->gpu_of(0) == 72);
  CHECK(list.table->gpu_of(4) == 0);
  CHECK(list.domain_of(3) == 1);
}

TEST_CASE("Placement reader says what is wrong with a placement") {
  const auto problems = [](const std::string& inside) {
    return place(R"({"placement": {)" + inside + "}}", 8).problems;
  };
  CHECK(
      problems(R"("policy": "rail")") ==
      texts{"s.json#/placement/policy: expected one of segments, racks, rails, list, found \"rail\"; did you mean "
            "\"rails\"?"});
  CHECK(problems(R"("policy": "list")") ==
        texts{"s.json#/placement/gpus: policy list needs the GPUs in rank order, such as \"0-63,72-135\""});
  CHECK(problems(R"("policy": "list", "gpus": "0-4,3-6")") ==
        texts{"s.json#/placement/gpus: GPU 3 is listed twice"});
  CHECK(problems(R"("policy": "list", "gpus": "0-6,288")") ==
        texts{"s.json#/placement/gpus: GPU 288 does not exist; the platform has 288"});
  CHECK(problems(R"("policy": "racks", "gpus_per_rack": 64)") ==
        texts{"s.json#/placement/gpus_per_rack: has no effect with policy racks"});
  CHECK(problems(R"("policy": "rails", "ranks_per_turn": 65)") ==
        texts{"s.json#/placement/ranks_per_turn: 65 ranks do not fit in the 64 GPUs used per rack"});
  CHECK(problems(R"("gpus": "0-7")") == texts{"s.json#/placement/gpus: unknown member"});
}

}  // namespace
}  // namespace nvlsim
