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
outcome read_path(const fs::path& p, const request_file_options& options = {}) {
  diagnostics problems;
  outcome out{read_request_file(p, "t", options, problems), {}};
  for (const problem& x : problems.sorted()) out.problems.push_back(x.text());
  return out;
}
outcome read_text(const std::string& text, const request_file_options& options = {}) {
  return read_path(text_file(text).path(), options);
}

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

TEST_CASE("Request files of Azure 2024 name the zone of their times") {
  const outcome r = read_text(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.500000+00:00,914,96\n"
      "2024-05-10 01:00:01+01:00,521,89\n");
  CHECK(r.problems.empty());
  CHECK(r.trace.format == "Azure 2024");
  CHECK(r.trace.list.requests.at(1).arrival_s == Approx(0.5));
  CHECK(read_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00+99:00,1,1\n").problems.size() ==
        1);
  CHECK(read_text("TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00,1,1\n", {1e-3, {}})
            .problems.size() == 1);
}

TEST_CASE("Request files of Qwen Bailian have seconds and short blocks") {
  const std::string two =
      "{\"chat_id\":0,\"parent_chat_id\":-1,\"timestamp\":0.25,\"input_length\":40,\"output_length\":5,"
      "\"type\":\"text\",\"turn\":1,\"hash_ids\":[0,1,2]}\n"
      "{\"chat_id\":1,\"parent_chat_id\":0,\"timestamp\":1.75,\"input_length\":32,\"output_length\":6,"
      "\"type\":\"text\",\"turn\":2,\"hash_ids\":[0,3]}\n";
  const outcome r = read_text(two);
  CHECK(r.problems.empty());
  CHECK(r.trace.format == "Qwen Bailian");
  CHECK(r.trace.list.prefix_tokens == 16);
  CHECK(r.trace.list.requests.at(1).arrival_s == 1.5);
  CHECK(read_text(two, {1e-3, {}}).trace.list.requests.at(1).arrival_s == Approx(1.5e-3));
  const outcome other = read_text(two, {{}, 512});
  REQUIRE(other.problems.size() == 2);
  CHECK(other.problems.at(0).find("line 1: hash_ids: 40 tokens have 1 blocks of 512 tokens, but the line has 3") !=
        std::string::npos);
}

TEST_CASE("Request files that contradict their format are refused with the line") {
  // Seconds and blocks of 16 in members of Mooncake.
  const outcome seconds = read_text(
      "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}\n"
      "{\"timestamp\": 0.136, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}\n");
  REQUIRE(seconds.problems.size() == 1);
  CHECK(seconds.problems.at(0).find("line 2: timestamp: 0.136") != std::string::npos);
  CHECK(read_text("{\"timestamp\": 0.136, \"input_length\": 9, \"output_length\": 1}\n", {1.0, {}})
            .problems.empty());
  for (const char* blocks : {"[1, 2, 3]", "[1]"})
    CHECK(
        read_text(std::string("{\"timestamp\": 0, \"input_length\": 1024, \"output_length\": 1, \"hash_ids\": ") +
                  blocks + "}\n")
            .problems.size() == 1);
  CHECK(read_text("num_prefill_tokens,num_decode_tokens,num_total_tokens\n10,5,15\n10,5,16\n").problems.size() ==
        1);
  const outcome burst = read_text(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,,,ChatGPT,472,18,490,API log\n45,,,ChatGPT,1087,230,1318,API log\n");
  REQUIRE(burst.problems.size() == 1);
  CHECK(burst.problems.at(0).find("line 3: Total tokens: 1318 is not the sum of 1087 and 230") !=
        std::string::npos);
}

TEST_CASE("Request files of ServeGen have seconds") {
  const outcome r = read_text("request_id,timestamp,input_tokens,output_tokens\n0,0.5,100,20\n1,2.5,50,10\n");
  CHECK(r.problems.empty());
  CHECK(r.trace.format == "ServeGen");
  CHECK(r.trace.list.requests.at(1).arrival_s == 2);
}

TEST_CASE("Turns of AIPerf sessions follow each other and send what was said before") {
  const outcome r = read_text(
      "{\"session_id\": \"a\", \"timestamp\": 1000, \"input_length\": 300, \"output_length\": 40}\n"
      "{\"session_id\": \"b\", \"timestamp\": 0, \"input_length\": 200, \"output_length\": 10}\n"
      "{\"session_id\": \"a\", \"delay\": 2500, \"input_length\": 150, \"output_length\": 20}\n");
  CHECK(r.problems.empty());
  CHECK(r.trace.timed);
  const auto& all = r.trace.list.requests;
  REQUIRE(all.size() == 3);
  CHECK(all[0].input == 200);
  CHECK(all[1].arrival_s == 1);
  CHECK(all[2].after == 1);
  CHECK(all[2].wait_s == 2.5);
  CHECK(all[2].input == 300 + 40 + 150);
  // The second turn begins with the blocks of the first; the other session shares none.
  CHECK(r.trace.list.prefix_tokens == 64);
  CHECK(all[1].first_prefix == all[2].first_prefix);
  CHECK(all[2].prefixes == (300 + 40 + 150 + 20) / 64);
  CHECK(r.trace.list.prefixes[all[0].first_prefix] != r.trace.list.prefixes[all[1].first_prefix]);
  const outcome untimed =
      read_text("{\"session_id\": \"a\", \"input_length\": 3, \"output_length\": 4, \"hash_ids\": [5]}\n");
  CHECK(untimed.problems.empty());
  CHECK_FALSE(untimed.trace.timed);
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
