// What fits write into stack files.
#include "calibration/stack_files.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>

#include <fstream>
#include <sstream>

#include "nvlsim/stack/compose.hpp"
#include "unit/config/texts.hpp"

using namespace nvlsim;
using nvlsim::config::test::scratch_folder;

TEST_CASE("Quantities are written in a unit that a person reads, with the same digits") {
  CHECK(readable_quantity("2.423e+04 us") == "24.23 ms");
  CHECK(readable_quantity("9820 us") == "9.82 ms");
  CHECK(readable_quantity("1920.61 us") == "1.92061 ms");
  CHECK(readable_quantity("2e+04 us") == "20 ms");
  CHECK(readable_quantity("1.2e+06 us") == "1.2 s");
  CHECK(readable_quantity("5e+03 s") == "5000 s");
  CHECK(readable_quantity("3e-05 ms") == "30 ns");
  CHECK(readable_quantity("1.142e+04 TFLOPS") == "11.42 PFLOPS");
  CHECK(readable_quantity("1.5e+04 GB/s") == "15 TB/s");
  for (const char* same : {"24.23 ms", "0.04379 us", "1500.43 TFLOPS", "0 B", "0 us", "12", "1.5e+03",
                           "whole_prompt", "2000 min", ""})
    CHECK(readable_quantity(same) == same);
}

TEST_CASE("Shipped stack files are as fits write them") {
  for (const std::filesystem::path& file : stack_files_in(NVLSIM_SOURCE_DIR "/platforms/stacks")) {
    INFO(file.string());
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    diagnostics problems;
    const config::document doc = config::parse(text.str(), {"", file.string()}, problems);
    if (std::getenv("NVLSIM_APPROVE")) std::ofstream(file) << stack_file_text(doc.root);
    else CHECK((stack_file_text(doc.root) == text.str()));
  }
}

TEST_CASE("Numbers go where the file says them for the stack") {
  const scratch_folder folder;
  std::filesystem::create_directory(folder.path() / "kernels");
  folder.write("kernels/lib.json",
               R"({"kernels": {"h100": {"a": {"value": 1, "kind": "measured", "source": "s"}}}})");
  folder.write(
      "engine.json",
      R"({"inference": {"kind": "derived", "source": "fit", "x": 1}, "releases": {"kind": "derived", "source": "fit",
    "columns": ["/inference/factor", "/inference/delay"], "rows": {"1.0": [1, null], "10.0": [2, "2 us"]}}})");
  stack_files files(folder.path());
  files.set_number("lib", "/kernels/h100/a", "2");
  files.set_number_from("lib", "/kernels/h100/b", "3", "fit-kernels");
  files.set_number("engine", "/inference/x", "4");
  files.set_number("engine-1.0", "/inference/delay", "1.5e+04 us");
  files.set_number_from("engine-10.0", "/inference/factor", "5", "fit-x");
  files.set_number_from("engine-10.0", "/inference/y", "6", "fit-x");
  REQUIRE(files.find("engine-10.0", "/inference/factor"));
  CHECK(*files.find("engine-10.0", "/inference/factor") == value{5});
  const auto texts = files.texts();
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].first == "engine.json");
  CHECK(texts[0].second == R"({
  "inference": {"kind": "derived", "source": "fit", "x": 4},
  "releases": {
    "kind": "derived",
    "source": "fit",
    "columns": ["/inference/factor", "/inference/delay"],
    "rows": {
      "1.0":  [1, "15 ms"],
      "10.0": [5, "2 us"]
    },
    "details": {"10.0": {"inference": {"y": {"value": 6, "kind": "derived", "source": "fit-x"}}}}
  }
}
)");
  CHECK(texts[1].first == "kernels/lib.json");
  CHECK(texts[1].second == R"({
  "kernels": {
    "h100": {
      "a": {"value": 2, "kind": "measured", "source": "s"},
      "b": {"value": 3, "kind": "derived", "source": "fit-kernels"}
    }
  }
}
)");
  CHECK_THROWS_AS(files.set_number("engine-2.0", "/inference/x", "1"), input_error);
}
