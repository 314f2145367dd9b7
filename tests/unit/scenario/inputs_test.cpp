#include "nvlsim/scenario/inputs.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

#include "unit/config/texts.hpp"

using namespace nvlsim;
using nvlsim::config::test::scratch_folder;
using nvlsim::config::test::text_of;

namespace {

/// A folder with one framework of one library.
struct small_stacks : scratch_folder {
  small_stacks() {
    std::filesystem::create_directory(path() / "kernels");
    write("kernels/lib.json", R"({"schema": "nvlsim.stack/1", "description": "lib", "kernels": {}})");
    write("engine.json", R"({"schema": "nvlsim.stack/1", "description": "engine", "kernels": "lib"})");
    data.stacks = path();
  }
  data_folders data;
};

}  // namespace

TEST_CASE("Shared stack is read again when a library of it changes") {
  const small_stacks folder;
  diagnostics problems;
  const auto read = [&] { return share_stack("engine", folder.data, {}, {}, problems); };
  const auto first = read();
  CHECK(text_of(problems) == "");
  CHECK(read() == first);
  folder.write("kernels/lib.json",
               R"({"schema": "nvlsim.stack/1", "description": "lib", "kernels": {"h100": 1}})");
  CHECK(read() != first);
  CHECK(text_of(problems).find("kernels/lib.json#/kernels/h100: ") != std::string::npos);
}

TEST_CASE("Stack of a path is found with the libraries beside it, then with those that ship") {
  const small_stacks folder, own;
  own.write("mine.json",
            R"({"schema": "nvlsim.stack/1", "description": "mine", "base": "engine", "kernels": "other"})");
  std::filesystem::remove(own.path() / "engine.json");
  std::filesystem::remove(own.path() / "kernels/lib.json");
  diagnostics problems;
  const std::string path = (own.path() / "mine.json").string();
  load_stack(path, folder.data, {}, {}, problems);
  CHECK(text_of(problems) == path + "#/kernels: unknown kernels library \"other\"; known: lib\n");
  own.write("kernels/other.json", R"({"schema": "nvlsim.stack/1", "description": "other", "kernels": {}})");
  diagnostics none;
  CHECK(load_stack(path, folder.data, {}, {}, none).content.description == "mine");
  CHECK(text_of(none) == "");
}
