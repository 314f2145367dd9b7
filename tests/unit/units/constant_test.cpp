#include <catch2/catch.hpp>

#include "nvlsim/units/constant.hpp"

namespace nvlsim {
namespace {

const constant<seconds> launch{3.0_us, constant_named("/stack/launch")};
const constant<bandwidth> rate_of_links{900.0_GBps, constant_named("/platform/nvlink")};
const constant<double> share{0.5, constant_named("/stack/share")};

using names = std::vector<std::string>;

TEST_CASE("Equal names have equal ids") {
  CHECK(constant_named("/stack/launch") == launch.id());
  CHECK(constant_named("/stack/other") != launch.id());
}

TEST_CASE("A constant computes as its value") {
  CHECK(launch + 1.0_us == 4.0_us);
  CHECK(launch + launch == 6.0_us);
  CHECK((9.0_GB / rate_of_links).base() == Approx(0.01));
  CHECK(rate_of_links * 2.0_s == 1800.0_GB);
  CHECK(rate_of_links * share == 450.0_GBps);
  CHECK(share * share == 0.25);
  CHECK(rate_of_links / rate_of_links == 1);
  CHECK(launch > seconds{});
  CHECK(launch.base() == 3e-6);
}

TEST_CASE("What is read is recorded, and what is copied or printed is not") {
  const constant_recorder recorder;
  const constant<seconds> copy = launch;
  CHECK(copy.peek() == 3.0_us);
  CHECK(copy == launch);
  CHECK(recorder.names().empty());
  const seconds t = copy;
  CHECK(t == 3.0_us);
  CHECK(recorder.names() == names{"/stack/launch"});
  {
    const constants_unrecorded silence;
    CHECK(share > 0);
  }
  CHECK(recorder.names() == names{"/stack/launch"});
  const constant<double> none{2.0};
  CHECK(none > 1);
  CHECK(recorder.names() == names{"/stack/launch"});
}

TEST_CASE("What is written over a constant is still that constant") {
  constant<seconds> c = launch;
  c = 5.0_us;
  c *= 2;
  CHECK(c.peek() == 10.0_us);
  CHECK(c.id() == launch.id());
  c = {};
  CHECK(c.id() == 0);
}

TEST_CASE("Who reads a derived constant reads what it was derived from") {
  constant<bandwidth> shared = rate_of_links;
  const constant_recorder recorder;
  shared.derive([&] { return rate_of_links * share; });
  CHECK(recorder.names().empty());
  constant<seconds> time;
  time.derive([&] { return 9.0_GB / shared + launch; });
  CHECK(recorder.names().empty());
  CHECK(shared > bandwidth{});
  CHECK(recorder.names() == names{"/platform/nvlink", "/stack/share"});
  CHECK(time > seconds{});
  CHECK(recorder.names() == names{"/platform/nvlink", "/stack/launch", "/stack/share"});
}

TEST_CASE("Without a recorder a derived constant is its value alone") {
  constant<double> c = share;
  c.derive([&] { return share * 4; });
  CHECK(c.peek() == 2);
  CHECK(c.id() == share.id());
}

TEST_CASE("The innermost recorder records alone") {
  const constant_recorder outer;
  {
    const constant_recorder inner;
    CHECK(share > 0);
    CHECK(inner.names() == names{"/stack/share"});
  }
  CHECK(outer.names().empty());
  CHECK(share > 0);
  CHECK(outer.names() == names{"/stack/share"});
}

}  // namespace
}  // namespace nvlsim
