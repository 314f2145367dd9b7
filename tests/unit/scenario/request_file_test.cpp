#include "scenario/request_file.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

namespace nvlsim {
namespace {

namespace fs = std::filesystem;

class text_file {
 public:
  explicit text_file(const std::string& text) : path_(fs::temp_directory_path() / "nvlsim-request-file-test.txt") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~text_file() { fs::remove(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

struct outcome {
  request_trace trace;
  std::vector<std::string> problems;
};
outcome read_path(const fs::path& p) {
  diagnostics problems;
  outcome out{read_request_file(p, "t", problems), {}};
  for (const problem& x : problems.sorted()) out.problems.push_back(x.text());
  return out;
}
outcome read_text(const std::string& text) { return read_path(text_file(text).path()); }

TEST_CASE("Request files of Azure are known by their header") {
  const outcome r = read_text(
      "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 23:59:59.5000000,374,44\r\n"
      "2023-11-17 00:00:01.2500000,396,0\r\n");
  CHECK(r.problems.empty());
  CHECK(r.trace.format == "Azure 2023");
  CHECK(r.trace.timed);
  REQUIRE(r.trace.list.requests.size() == 2);
  CHECK(r.trace.list.requests[0].arrival_s == 0);
  CHECK(r.trace.list.requests[1].arrival_s == Approx(1.75).epsilon(1e-6));
  CHECK(r.trace.list.requests[1].input == 396);
  CHECK(r.trace.list.requests[1].output == 1);
  CHECK(r.trace.empty_outputs == 1);
}

TEST_CASE("Request files of Mooncake carry their blocks") {
  const outcome r = read_text(
      "{\"timestamp\": 3000, \"input_length\": 900, \"output_length\": 5, \"hash_ids\": [7, 8]}\n"
      "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 6, \"hash_ids\": [7, 9]}\n"
      "{\"timestamp\": 3000, \"input_length\": 10, \"output_length\": 7, \"hash_ids\": []}\n");
  CHECK(r.problems.empty());
  CHECK(r.trace.format == "Mooncake");
  REQUIRE(r.trace.list.requests.size() == 3);
  CHECK(r.trace.list.requests[0].input == 600);  // in order of time
  CHECK(r.trace.list.requests[1].arrival_s == 3);
  CHECK(r.trace.list.prefix_tokens == 512);
  CHECK(r.trace.list.prefixes[r.trace.list.requests[0].first_prefix + 1] == 9);
  CHECK(r.trace.list.requests[1].prefixes == 2);
  CHECK(r.trace.shared_arrivals == 1);
}

TEST_CASE("Request files of Vidur have lengths and no times, generic ones both") {
  const outcome vidur =
      read_text("num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n3772,54,3826,69.8\n");
  CHECK(vidur.problems.empty());
  CHECK_FALSE(vidur.trace.timed);
  CHECK(vidur.trace.list.requests.at(0).output == 54);
  const outcome csv = read_text("user,arrival_s,output_tokens,input_tokens\nx,1.5,20,10\ny,2,40,30.0");
  CHECK(csv.problems.empty());
  CHECK(csv.trace.list.requests.at(1).arrival_s == 0.5);
  CHECK(csv.trace.list.requests.at(1).input == 30);
  const outcome json = read_text("{\"input_tokens\": 3, \"output_tokens\": 4, \"arrival_s\": 0.25}\n");
  CHECK(json.trace.format == "generic");
  CHECK(json.trace.list.requests.at(0).output == 4);
  for (const char* time : {"", ", \"arrival_s\": 1"}) {
    const outcome named = read_text(
        std::string("{\"input_tokens\": 600, \"output_tokens\": 4, \"prefix_blocks\": [7, 8]") + time + "}\n");
    CHECK(named.trace.list.prefixes == std::vector<std::uint64_t>{7, 8});
  }
}

TEST_CASE("Request files are read as CSV") {
  const outcome quoted = read_text("arrival_s,input_tokens,output_tokens,note\n0,10,20,\"a, \"\"b\"\"\"\n");
  CHECK(quoted.problems.empty());
  CHECK(quoted.trace.list.requests.at(0).output == 20);
  for (const char* wrong : {"\"\"", "\"0,10,20", "0,1\"2\"3,4"})
    CHECK_FALSE(
        read_text(std::string("arrival_s,input_tokens,output_tokens\n0,1,1\n") + wrong + "\n").problems.empty());
  CHECK_FALSE(read_text("\"\"\n").problems.empty());
}

TEST_CASE("Request files report every line that cannot be read") {
  const outcome r =
      read_text("arrival_s,input_tokens,output_tokens\n0,10,10\nnan,10,10\n1,-3,10\n2,10\n3,10,x\n4,0,1\n");
  CHECK(r.problems.size() == 5);
  CHECK(r.problems.at(0).find("line") != std::string::npos);
  CHECK(read_text("").problems.size() == 1);
  CHECK(read_text("arrival_s,input_tokens,output_tokens\n").problems.size() == 1);
  CHECK(read_text("a,b\n1,2\n").problems.at(0).find("with columns a, b") != std::string::npos);
  CHECK(read_text("{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": 3}\n")
            .problems.size() == 1);
  std::string many = "arrival_s,input_tokens,output_tokens\n";
  for (int i = 0; i < 1000; ++i) many += "x,y,z\n";
  const outcome cut = read_text(many);
  CHECK(cut.problems.size() <= 23);
  CHECK(cut.problems.back().find("the rest of the file is not read") != std::string::npos);
  std::string just = "arrival_s,input_tokens,output_tokens\n";
  for (int i = 0; i < 20; ++i) just += "0,1,x\n";
  CHECK(read_text(just).problems.size() == 20);  // nothing is left to be read
  CHECK(read_text(",input_tokens,output_tokens,\n0,1,2,3\n").problems.empty());
  CHECK(read_text("arrival_s,input_tokens,input_tokens,output_tokens\n0,1,2,3\n")
            .problems.at(0)
            .find("column input_tokens occurs twice") != std::string::npos);
  for (const char* time : {"2023-11-16 24:00:00", "2023-11-16 10:60:00", "2023-11-16 10:00:61",
                           "2023-11-16 10:00:-1", "2023-13-01 10:00:00"})
    CHECK(read_text(std::string("TIMESTAMP,ContextTokens,GeneratedTokens\n") + time + ",1,1\n").problems.size() ==
          1);
  CHECK_THROWS_AS(read_path("/no/such/file"), io_error);
  CHECK_THROWS_AS(read_path(fs::temp_directory_path()), io_error);
}

TEST_CASE("Public traces are read whole where they are", "[.][public]") {
  const char* folder = std::getenv("NVLSIM_TRACES");
  REQUIRE(folder);
  const std::pair<const char*, std::size_t> files[] = {{"azure_llm_2023_code.csv", 8819},
                                                       {"azure_llm_2023_conv.csv", 19366},
                                                       {"mooncake_fast25_conversation.jsonl", 12031},
                                                       {"mooncake_fast25_synthetic.jsonl", 3993},
                                                       {"vidur_arxiv_summarization.csv", 28257}};
  for (const auto& [file, count] : files) {
    const outcome r = read_path(fs::path(folder) / file);
    CHECK(r.problems.empty());
    CHECK(r.trace.list.requests.size() == count);
  }
}

}  // namespace
}  // namespace nvlsim
