#include "output/nccl_table.hpp"

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
  head.regimes = {{8.0_B, "ll"}, {1048576.0_B, "simple"}};
  const auto table = lines(nccl_table(head, rows));
  REQUIRE(table.size() == 12);
  CHECK(table[0].starts_with("# simulated by nvlsim: all_gather of 8 ranks on gb300-nvl72 with nccl-2.29"));
  CHECK(table[5] ==
        "           8             0     float    none      -1    15.10    0.00    0.00    N/A    15.10    "
        "0.00    0.00    N/A");
  CHECK(words(table[6]) == std::vector<std::string>{"17179869184", "536870912", "float", "none", "-1", "42091.7",
                                                    "408.15", "357.13", "N/A", "42091.7", "408.15", "357.13",
                                                    "N/A"});
  CHECK(table[8] == "# Avg bus bandwidth    : 178.567 ");
  CHECK(table[10] == "# From            8 B     : ll");
  CHECK(table[11] == "# From      1048576 B     : simple");
  for (std::size_t i = 1; i < 5; ++i) CHECK(table[i].front() == '#');
}

TEST_CASE("nccl table and JSON say where measured times would lie, once for rows that are alike") {
  std::vector<nccl_row> rows(3, {1024.0_B, 10.0_us, "ll"});
  rows[0].low = rows[1].low = 0.9;
  rows[0].high = rows[1].high = 1.2;
  const auto table = lines(nccl_table({.ranks = 4}, rows));
  CHECK(table.back() == "# From         1024 B     : 90 % of measured times lie within -10 and +20 % of these");
  CHECK_FALSE(table[table.size() - 2].ends_with("of these"));
  const value json = nccl_json({.ranks = 4}, rows);
  CHECK(*json.at_pointer("/results/0/time_band/0")->number() == Approx(9));
  CHECK(*json.at_pointer("/results/0/time_band/1")->number() == Approx(12));
  CHECK(json.at_pointer("/results/2/time_band")->is_null());
}

TEST_CASE("nccl table names reduction and root as nccl-tests does") {
  const auto of = [](collective c) {
    const std::vector<nccl_row> rows = {{1024.0_B, 10.0_us, "ll"}};
    return words(
        lines(nccl_table({.kind = c, .ranks = 4, .type = "half", .type_bytes = 2, .reduction = "max"}, rows))[5]);
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

TEST_CASE("nccl table of one rank or of nothing has no bandwidth") {
  const std::vector<nccl_row> rows = {{1024.0_B, {}, "none"}};
  CHECK(words(lines(nccl_table({.ranks = 1}, rows))[5])[6] == "0.00");
  CHECK(nccl_table({}, {}).find("Avg bus bandwidth    : 0") != std::string::npos);
}

}  // namespace
}  // namespace nvlsim
