#include "nvlsim/output/nccl_table.hpp"

#include <catch2/catch.hpp>
#include <sstream>
#include <vector>

namespace nvlsim {
namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream in(line);
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

TEST_CASE("nccl table has the columns of nccl-tests") {
  const std::vector<nccl_row> rows = {{8.0_B, 15.1_us, "ll"}, {17179869184.0_B, 42091.7_us, "simple"}};
  nccl_table_head head{.kind = collective::all_gather, .ranks = 8};
  head.platform = "gb300-nvl72";
  head.stack = "nccl-2.29";
  head.begin = 8.0_B;
  head.end = 17179869184.0_B;
  head.factor = 2;
  head.regimes = {{8.0_B, "ll"}, {1048576.0_B, "simple"}};
  const auto table = lines(nccl_table(head, rows));
  REQUIRE(table.size() == 15);
  CHECK(table[0].starts_with("# simulated by nvlsim: all_gather of 8 ranks on gb300-nvl72 with nccl-2.29"));
  CHECK(table[1] == "# Collective test starting: all_gather_perf");
  CHECK(
      table[2] ==
      "# nThread 1 nGpus 1 minBytes 8 maxBytes 17179869184 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 "
      "validation: 0 graph: 0 unalign: 0");
  // As its format strings print them: "%10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s %*s".
  CHECK(table[5] ==
        "#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   "
        "busbw  #wrong ");
  CHECK(table[6] ==
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  "
        "(GB/s)         ");
  CHECK(table[7] ==
        "           8             0     float    none      -1    15.10    0.00    0.00    N/A    15.10    "
        "0.00    0.00    N/A");
  CHECK(words(table[8]) == std::vector<std::string>{"17179869184", "536870912", "float", "none", "-1", "42091.7",
                                                    "408.15", "357.13", "N/A", "42091.7", "408.15", "357.13",
                                                    "N/A"});
  CHECK(table[10] == "# Avg bus bandwidth    : 178.567 ");
  CHECK(table[12] == "# From            8 B     : ll");
  CHECK(table[13] == "# From      1048576 B     : simple");
  CHECK(table[14] == "# Collective test concluded: all_gather_perf");
  for (std::size_t i = 1; i < 7; ++i) CHECK(table[i].front() == '#');
}

TEST_CASE("nccl table and JSON say where measured times would lie, once for rows that are alike") {
  std::vector<nccl_row> rows(3, {1024.0_B, 10.0_us, "ll"});
  rows[0].low = rows[1].low = 0.9;
  rows[0].high = rows[1].high = 1.2;
  const auto table = lines(nccl_table({.ranks = 4}, rows));
  CHECK(table[table.size() - 2] ==
        "# From         1024 B     : 90 % of measured times lie within -10 and +20 % of these");
  CHECK_FALSE(table[table.size() - 3].ends_with("of these"));
  const value json = nccl_json({.ranks = 4}, rows);
  CHECK(*json.at_pointer("/results/0/time_band/0")->number() == Approx(9));
  CHECK(*json.at_pointer("/results/0/time_band/1")->number() == Approx(12));
  CHECK(json.at_pointer("/results/2/time_band")->is_null());
}

TEST_CASE("nccl table names reduction and root as nccl-tests does") {
  const auto of = [](collective c) {
    const std::vector<nccl_row> rows = {{1024.0_B, 10.0_us, "ll"}};
    return words(
        lines(nccl_table({.kind = c, .ranks = 4, .type = "half", .type_bytes = 2, .reduction = "max"}, rows))[7]);
  };
  CHECK(of(collective::all_reduce)[1] == "512");
  CHECK(of(collective::all_reduce)[3] == "max");
  CHECK(of(collective::reduce_scatter)[1] == "128");
  CHECK(of(collective::all_to_all)[3] == "none");
  CHECK(of(collective::broadcast)[4] == "0");
  CHECK(of(collective::all_reduce)[4] == "-1");
}

TEST_CASE("nccl JSON has the members of nccl-tests, and says that it is simulated") {
  const std::vector<nccl_row> rows = {{1073741824.0_B, 1000.0_us, "nvls", 800.0_us, true}};
  nccl_table_head head{.kind = collective::all_reduce, .ranks = 8};
  head.factor = 2;
  head.begin = head.end = 1073741824.0_B;
  const value v = nccl_json(head, rows);
  CHECK(*v.find("simulated")->boolean());
  CHECK(*v.at_pointer("/config/step_factor")->integer() == 2);
  CHECK(*v.at_pointer("/results/0/size")->integer() == 1073741824);
  CHECK(*v.at_pointer("/results/0/count")->integer() == 268435456);
  CHECK(*v.at_pointer("/results/0/out_of_place/time")->number() == Approx(1000));
  CHECK(*v.at_pointer("/results/0/out_of_place/bus_bw")->number() == Approx(1073.741824 * 1.75));
  CHECK(*v.at_pointer("/results/0/in_place/time")->number() == Approx(800));
  CHECK(*v.at_pointer("/results/0/algorithm")->string() == "nvls");
  CHECK(*v.at_pointer("/results/0/derived")->boolean());
  CHECK(v.at_pointer("/results/0/in_place/nwrong")->is_null());
  CHECK(v.at_pointer("/average_bus_bandwidth/bandwidth"));
}

// Keys, their order and types as its src/util.cu writes them (JSON_FILE_VERSION 2); what it has and a simulation
// lacks are start_time, env, nccl_version and end_time.
TEST_CASE("nccl JSON has every field that a simulation can fill") {
  const std::vector<nccl_row> rows = {{1073741824.0_B, 1000.0_us, "nvls"}};
  nccl_table_head head{.kind = collective::all_to_all, .ranks = 8};
  head.factor = 1;
  head.step = 1048576;
  head.begin = head.end = 1073741824.0_B;
  const value v = nccl_json(head, rows);
  const auto keys = [&](const char* pointer) {
    std::string out;
    for (const auto& [key, x] : *(*pointer ? v.at_pointer(pointer) : &v)->members())
      out += (out.empty() ? "" : " ") + key;
    return out;
  };
  CHECK(keys("") ==
        "simulated platform stack operation version args config results out_of_bounds average_bus_bandwidth "
        "errors regimes");
  CHECK(keys("/config") ==
        "ranks nthreads ngpus minimum_bytes maximum_bytes step_bytes warmup_iters iterations "
        "aggregated_iterations validation graph blocking_collectives per_iter_timing parallel_init devices");
  CHECK(keys("/results/0") ==
        "size count type redop root out_of_place in_place actual_iterations experiment_name algorithm "
        "derived time_band");
  CHECK(keys("/results/0/in_place") == "time alg_bw bus_bw nwrong");
  CHECK(keys("/out_of_bounds") == "count okay");
  CHECK(keys("/average_bus_bandwidth") == "bandwidth okay");
  CHECK(*v.find("version")->integer() == 2);
  CHECK(*v.at_pointer("/args/0")->string() == "alltoall_perf");
  CHECK(*v.at_pointer("/args/6")->string() == "1048576");
  CHECK(*v.at_pointer("/config/graph")->integer() == 0);
  CHECK(*v.at_pointer("/config/blocking_collectives")->string() == "false");
  CHECK(*v.at_pointer("/results/0/root")->string() == "-1");
  CHECK(*v.at_pointer("/results/0/count")->integer() == 33554432);
  CHECK(*v.at_pointer("/out_of_bounds/okay")->string() == "true");
  CHECK(*v.at_pointer("/average_bus_bandwidth/okay")->string() == "unchecked");
}

TEST_CASE("nccl table keeps its columns however large the numbers") {
  const std::vector<nccl_row> rows = {
      {8.0_B, 0.0123_s, "ring"}, {8.0_B, 0.123_s, "ring"}, {8.0_B, 12.3_s, "ring"}};
  const auto table = lines(nccl_table({.ranks = 2}, rows));
  CHECK(words(table[7])[5] == "12300.0");  // getFloatStr: five digits leave room for one decimal in seven
  CHECK(words(table[8])[5] == "123000");
  CHECK(words(table[9])[5] == "1.2e+07");
  for (std::size_t i = 8; i < 10; ++i) CHECK(table[i].size() == table[7].size());
}

TEST_CASE("nccl-tests moves whole elements, and whole 16 bytes to each rank") {
  const auto moved = [](collective c, int ranks, int type_bytes, double size) {
    return whole_elements(c, ranks, type_bytes, bytes::from_base(size)).base();
  };
  CHECK(moved(collective::all_reduce, 72, 4, 1073741824) == 1073741824);
  CHECK(moved(collective::all_reduce, 72, 4, 1023) == 1020);
  // 1 GiB of float over 72: 3,728,270 elements each, of which 3,728,268 make whole 16 bytes.
  for (const collective c : {collective::all_gather, collective::reduce_scatter, collective::all_to_all})
    CHECK(moved(c, 72, 4, 1073741824) == 3728268.0 * 4 * 72);
  CHECK(moved(collective::all_gather, 8, 2, 1048576) == 1048576);
  CHECK(moved(collective::all_gather, 8, 1, 1000) == 896);  // 125 bytes each, 112 of them
  CHECK(moved(collective::send_recv, 8, 8, 100) == 96);
  CHECK(moved(collective::all_gather, 8, 4, 8) == 8);  // it would move nothing
}

TEST_CASE("nccl table of one rank or of nothing has no bandwidth") {
  const std::vector<nccl_row> rows = {{1024.0_B, {}, "none"}};
  CHECK(words(lines(nccl_table({.ranks = 1}, rows))[7])[6] == "0.00");
  CHECK(nccl_table({}, {}).find("Avg bus bandwidth    : 0") != std::string::npos);
}

}  // namespace
}  // namespace nvlsim
