#include "output/picture.hpp"

#include <catch2/catch.hpp>

namespace nvlsim {
namespace {

TEST_CASE("Pictures have points where their values are, within 80 columns") {
  CHECK(picture_of({}, {"x", "y"}).empty());
  const std::string p = picture_of({{0, 0, 'a'}, {10, 4, 'b'}}, {"x", "y", false, false, 40, 8});
  CHECK(p ==
        "  y\n"
        "       4+                              b\n"
        "       3+\n"
        "       2+\n"
        "       1+\n"
        "       0+a\n"
        "        ++-----+-----+-----+-----+-----+\n"
        "         0     2     4     6     8    10\n"
        "                                       x\n");
}

}  // namespace
}  // namespace nvlsim
