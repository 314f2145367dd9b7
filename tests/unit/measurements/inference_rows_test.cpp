// How a row of inference.csv becomes a workload.
#include "nvlsim/measurements/inference_rows.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <memory>

namespace nvlsim {
namespace {

using cells = std::map<std::string, std::string>;

csv_row row_of(const cells& given) {
  auto columns = std::make_shared<std::map<std::string, std::size_t, std::less<>>>();
  std::vector<std::string> values;
  for (const auto& [column, cell] : given) {
    columns->emplace(column, values.size());
    values.push_back(cell);
  }
  return {columns, values};
}

inference_row read(cells given) {
  static input_cache inputs(folders_under(NVLSIM_SOURCE_DIR));
  const cells usual = {{"id", "x"},
                       {"engine", "vLLM"},
                       {"engine_version", "0.19.0"},
                       {"model", "llama3.3-70b"},
                       {"system", "b200"},
                       {"gpus", "4"},
                       {"tp", "4"},
                       {"weight_precision", "fp8"},
                       {"disaggregated", "no"},
                       {"scenario", "closed-loop"},
                       {"concurrency", "8"},
                       {"isl", "1024"},
                       {"osl", "512"},
                       {"tpot_ms", "10"}};
  given.insert(usual.begin(), usual.end());
  return read_inference_row(row_of(given), "inference", inputs);
}

TEST_CASE("Lengths are numbers, about numbers, or ranges in their common spellings") {
  const auto input = [](const char* cell) {
    const inference_row r = read({{"isl", cell}});
    INFO(cell << ": " << r.record.reason);
    CHECK(r.record.status == record_status::ok);
    return r.workload.input;
  };
  CHECK(input("8192").mean == 8192);
  CHECK(input("~273").mean == 273);
  CHECK(input("8k").mean == 8192);
  for (const char* range : {"128-2048", "128 - 2048", "128..2048", "128\u20132048", "128 to 2048"}) {
    CHECK(input(range).mean == 1088);
    CHECK(input(range).mean * (1 + input(range).spread) == Approx(2048));
  }
  CHECK(input("1k-2K").mean == 1536);
  for (const char* bad : {"many", "2048-128", "128-", "-5", "0", "1e400", "12x"}) {
    INFO(bad);
    CHECK(read({{"isl", bad}}).record.status == record_status::error);
  }
}

TEST_CASE("Counts and rates of a row are positive, and small enough to reckon with") {
  CHECK(read({}).record.status == record_status::ok);
  for (const char* column :
       {"gpus", "tp", "pp", "ep", "concurrency", "batch_limit_per_instance", "num_prompts", "request_rate_per_s"})
    for (const char* bad : {"0", "-4"}) {
      INFO(column << " " << bad);
      const inference_row r = read({{column, bad}});
      CHECK(r.record.status == record_status::error);
      CHECK(r.record.reason.find(column) == 0);
    }
  CHECK(read({{"gpus", "1e12"}}).record.status == record_status::error);
}

TEST_CASE("Prompts alone are the time of a pass, or prompt tokens a second") {
  const inference_row pass =
      read({{"scenario", "prefill-iteration"}, {"tpot_ms", ""}, {"ttft_ms", "50"}, {"osl", ""}});
  REQUIRE(pass.record.status == record_status::ok);
  CHECK(pass.workload.load == load_kind::static_batch);
  CHECK(pass.workload.requests == 8);
  CHECK(pass.workload.output.mean == 1);
  const inference_row rate = read({{"scenario", "prefill-only"},
                                   {"disaggregated", "prefill only"},
                                   {"tpot_ms", ""},
                                   {"osl", ""},
                                   {"concurrency", ""},
                                   {"gpus", ""},
                                   {"prefill_gpus", "4"},
                                   {"total_in_out_tokens_per_s_per_gpu", "6000"}});
  REQUIRE(rate.record.status == record_status::ok);
  CHECK(rate.counts_prompts);
  REQUIRE(rate.targets.size() == 1);
  CHECK(rate.targets.front().published == 6000);
}

TEST_CASE("More prompts than clients are a closed loop of prompts") {
  const inference_row r = read({{"scenario", "prefill-only"},
                                {"tpot_ms", ""},
                                {"ttft_ms", "900"},
                                {"osl", "1"},
                                {"concurrency", "32"},
                                {"num_prompts", "200"}});
  REQUIRE(r.record.status == record_status::ok);
  CHECK(r.workload.load == load_kind::closed_loop);
  CHECK(r.workload.concurrency == 32);
  CHECK(r.workload.requests == 200);
  CHECK(r.workload.output.mean == 1);
  CHECK(r.workload.output.spread == 0);
}

TEST_CASE("Lengths that a client reports go before those it asked for") {
  const inference_row r = read({{"isl", "1000"},
                                {"osl", "1000"},
                                {"random_range_ratio", "0.0"},
                                {"notes", "measured mean lengths 610.1 in / 422.0 out"}});
  REQUIRE(r.record.status == record_status::ok);
  CHECK(r.workload.input.mean == Approx(610.1));
  CHECK(r.workload.output.mean == Approx(422));
  CHECK(r.workload.output.spread > 0.5);
}

TEST_CASE("Pools are read from a layout of workers") {
  const inference_row r = read({{"disaggregated", "yes"},
                                {"gpus", "8"},
                                {"tp", "2"},
                                {"prefill_gpus", "2"},
                                {"decode_gpus", "6"},
                                {"launch_layout", "1P3D of tp2"}});
  REQUIRE(r.record.status == record_status::ok);
  REQUIRE(r.workload.prefill_pool);
  CHECK((r.workload.prefill_pool->replicas == 1 && r.workload.prefill_pool->tp == 2));
  CHECK((r.workload.replicas == 3 && r.workload.tp == 2));
}

TEST_CASE("Marks that reading resolves leave no doubt about a row") {
  for (const char* clear : {"", "caution: read as TP 4 EP 4: gpus, ep and per-GPU columns count tp x dp",
                            "caution: the page runs MoE models with attention DP, the column says no",
                            "caution: TTFT holds start-up compilation, use TPOT only"})
    CHECK_FALSE(doubtful(clear));
  for (const char* unclear : {"caution: layout of the table not stated",
                              "caution: layout of the table not stated; caution: read as TP 2 EP 2",
                              "caution: read as TP 2 EP 2; caution: release regression"})
    CHECK(doubtful(unclear));
}

TEST_CASE("A budget that prompts fill is taken to be for parts of them") {
  const cells row = {{"engine", "TRT-LLM"}, {"engine_version", "1.1+"}, {"isl", "8192"}};
  CHECK(read(row).workload.engine.prefill == prefill_policy::chunked);
  cells roomy = row;
  roomy["max_num_tokens"] = "8320";
  CHECK_FALSE(read(roomy).workload.engine.prefill);
}

TEST_CASE("Launch settings of attention data parallelism are read") {
  const inference_row r = read({{"attention_dp_balance", "balance=yes wait_iters=0 timeout_iters=60"}});
  CHECK(r.workload.engine.rank_wait_iterations == 60);
  CHECK_FALSE(read({{"attention_dp_balance", "balance=no"}}).workload.engine.rank_wait_iterations);
  cells delayed = {{"engine", "SGLang"},
                   {"engine_version", "0.5.9"},
                   {"model", "deepseek-r1"},
                   {"gpus", "8"},
                   {"tp", "8"},
                   {"dp_attention", "yes"},
                   {"launch_layout", "tp8 dp8"},
                   {"notes", "prefill delayer"}};
  CHECK(read(delayed).workload.engine.rank_wait_iterations == 30);
  delayed["notes"] = "";
  CHECK_FALSE(read(delayed).workload.engine.rank_wait_iterations);
}

TEST_CASE("CUDA graphs, stream interval and chunked prompts are read as a row's launch file has them") {
  const auto graphs = [](const char* cell) {
    return read({{"cuda_graph", cell}}).workload.engine.cuda_graph_max_batch_size;
  };
  CHECK(graphs("no") == 0);
  CHECK(graphs("padded<=512+piecewise") == 512);
  CHECK(graphs("<=64") == 64);
  for (const char* unlimited : {"", "padded", "piecewise", "full_decode_only"}) CHECK_FALSE(graphs(unlimited));
  CHECK(read({{"stream_interval", "20"}}).workload.engine.stream_interval == 20);
  CHECK_FALSE(read({}).workload.engine.stream_interval);
  CHECK(read({{"stream_interval", "0"}}).record.status == record_status::error);
  CHECK(read({{"chunked_prefill", "on"}}).workload.engine.prefill == prefill_policy::chunked);
  CHECK(read({{"chunked_prefill", "off"}}).workload.engine.prefill == prefill_policy::whole_prompt);
  CHECK_FALSE(read({}).workload.engine.prefill);
}

TEST_CASE("Drafts are as many as a row says, and as good as it measured or as others were") {
  const auto drafts = [](cells more) {
    more.insert({{"model", "deepseek-r1"}, {"gpus", "8"}, {"tp", "8"}, {"ep", "8"}});
    return read(more).workload.drafts;
  };
  const speculation three = drafts({{"spec_decode", "mtp3 (config)"}});
  CHECK(three.draft_tokens == 3);
  CHECK(three.tokens_per_step == Approx(1 + 0.64 + 0.64 * 0.64 + 0.64 * 0.64 * 0.64));
  CHECK(drafts({{"spec_decode", "mtp3"}, {"notes", "2.82 tokens per step"}}).tokens_per_step == 2.82);
  CHECK(drafts({{"spec_decode", "mtp"}}).draft_tokens == 3);
  CHECK(drafts({{"spec_decode", "mtp"}, {"concurrency", "1023"}}).draft_tokens == 3);
  CHECK(drafts({{"spec_decode", "mtp"}, {"concurrency", "1024"}}).draft_tokens == 1);
  CHECK(drafts({{"spec_decode", "mtp?"}}).draft_tokens == 0);
}

TEST_CASE("Submissions that state neither precision nor layout are in eight bit, on as few GPUs as leave room") {
  const cells row = {{"scenario", "mlperf-server"},
                     {"weight_precision", "UNSET"},
                     {"request_rate_per_s", "10"},
                     {"tp", ""},
                     {"gpus", "8"}};
  const inference_row blackwell = read(row);
  CHECK(blackwell.workload.weights == precision::fp8);
  CHECK(blackwell.workload.tp == 1);
  cells hopper = row;
  hopper["system"] = "h100";  // 70 of 80 GB would be weights
  CHECK(read(hopper).workload.tp == 2);
  CHECK(read(hopper).workload.replicas == 4);
  CHECK(read({{"weight_precision", "UNSET"}}).workload.weights == precision::bf16);
}

TEST_CASE("Requests have equal lengths where a client is known to send them, and vary elsewhere") {
  const auto spread = [](cells more) { return read(std::move(more)).workload.output.spread; };
  CHECK(spread({}) == Approx(0.2));
  CHECK(spread({{"random_range_ratio", "1.0"}}) == 0);
  CHECK(spread({{"source", "vllm-project/vllm-project.github.io"}}) == 0);
  CHECK(spread({{"client", "vllm bench serve"}}) == 0);
  // The client of InferenceX draws from 0.8 of the length to the length.
  CHECK(spread({{"client", "InferenceX client"}}) == Approx(1.0 / 9));
  CHECK(read({{"client", "InferenceX client"}}).workload.output.mean == Approx(0.9 * 512));
  CHECK(spread({{"random_range_ratio", "0.5"}}) == Approx(1.0 / 3));
  // Accepted drafts keep requests apart.
  CHECK(spread({{"random_range_ratio", "1.0"},
                {"spec_decode", "mtp3"},
                {"model", "deepseek-r1"},
                {"gpus", "8"},
                {"tp", "8"},
                {"ep", "8"}}) == Approx(0.2));
}

TEST_CASE("A row's checkpoint and the maker of its GPU choose formats and builds") {
  const cells meta = {{"model", "llama3.1-405b"}, {"system", "h200"}, {"gpus", "8"}, {"tp", "8"}};
  CHECK(read(meta).workload.attention_weights == precision::fp8);
  cells stated = meta;
  stated["checkpoint"] = "Meta FP8 checkpoint";
  CHECK(read(stated).workload.attention_weights == precision::bf16);
  CHECK(read(stated).workload.weights == precision::fp8);
  const auto built = [](const char* system) {
    return read({{"system", system}, {"weight_precision", "bf16"}}).software->name;
  };
  CHECK(built("h200") == "vllm-0.19");
  CHECK(built("mi300x") == "vllm-rocm-0.19");
}

TEST_CASE("The first engine of vLLM takes prompts whole and before other work") {
  const inference_row r = read({{"engine_version", "0.7.4.dev"}, {"system", "h200"}});
  const engine_settings set = settings_of(*r.software->inference, r.workload);
  CHECK(set.prefill == prefill_policy::exclusive);
  CHECK(set.max_batch_size == 256);
}

TEST_CASE("A limit of requests is a rank's in vLLM and TensorRT-LLM, and shared by the ranks in SGLang") {
  const auto limit = [](const char* engine, const char* version, const char* apart) {
    const inference_row r = read({{"engine", engine},
                                  {"engine_version", version},
                                  {"model", "deepseek-r1"},
                                  {"gpus", "8"},
                                  {"tp", "8"},
                                  {"ep", "8"},
                                  {"dp_attention", apart},
                                  {"launch_layout", *apart == 'y' ? "tp8 dp8" : "tp8"},
                                  {"max_batch", "256"}});
    REQUIRE(r.workload.attention_dp == (*apart == 'y' ? 8 : 1));
    return settings_of(*r.software->inference, r.workload).max_batch_size.read();
  };
  CHECK(limit("SGLang", "0.5.9", "yes") == 32);
  CHECK(limit("SGLang", "0.5.9", "no") == 256);
  CHECK(limit("vLLM", "0.19.0", "yes") == 256);
  CHECK(limit("TRT-LLM", "1.2.0", "yes") == 256);
}

}  // namespace
}  // namespace nvlsim
