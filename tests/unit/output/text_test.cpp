#include "nvlsim/output/text.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/output/studies.hpp"

namespace {

using namespace nvlsim::output;

TEST_CASE("Text is fitted to columns") {
  CHECK(width("caf\xC3\xA9") == 4);
  CHECK(padded_left("ab", 4) == "  ab");
  CHECK(padded_right("\xC3\xA9", 3) == "\xC3\xA9  ");
  CHECK(padded_left("abc", 2) == "abc");
  CHECK(one_line("a\nb\x7F", 10) == "a b ");
  CHECK(one_line("abcdefghij", 7) == "abc..ij");
  CHECK(one_line("\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9", 4) == "\xC3\xA9..\xC3\xA9");
  CHECK(one_line("abcdefghij", 10) == "abcdefghij");
}

TEST_CASE("Text wraps at words") {
  CHECK(wrapped("one two three", 7) == std::vector<std::string>{"one two", "three"});
  CHECK(wrapped("  a   b\n", 80) == std::vector<std::string>{"a b"});
  CHECK(wrapped("abcdefghij kl", 5) == std::vector<std::string>{"abcdefghij", "kl"});
  CHECK(wrapped("", 5).empty());
  CHECK(wrapped(" \t", 5).empty());
}

TEST_CASE("Text is escaped for XML") {
  CHECK(xml_escaped("<a b=\"c\">&\n\t") == "&lt;a b=&quot;c&quot;&gt;&amp;&#10;&#9;");
  CHECK(xml_escaped(std::string("\0\x1B", 2)) == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(xml_escaped("\xEF\xBF\xBE") == "\xEF\xBF\xBD");
}

TEST_CASE("Grid aligns its columns and ends no line in a blank") {
  CHECK(grid({{"a", "1", ""}, {"bcd", "22", "x"}, {"title"}}, 1) == " a       1\n bcd    22  x\n title\n");
}

TEST_CASE("A search prints the numbers of one layout for reasons whose numbers differ") {
  nvlsim::search_result r;
  r.pruned = {{"tp must divide the heads (N is not divisible by N)", 12,
               "tp must divide the heads (16 is not divisible by 12): tp 12 pp 2"},
              {"no rate for NVFP4", 3, "no rate for NVFP4: tp 4"},
              {"interrupted: not tried", 2, "interrupted"}};
  const std::string text = nvlsim::search_text(r);
  CHECK(text.find("12  tp must divide the heads (16 is not divisible by 12), for") != std::string::npos);
  CHECK(text.find("3  no rate for NVFP4\n") != std::string::npos);
  CHECK(text.find("2  interrupted: not tried\n") != std::string::npos);
}

}  // namespace
