// Members of a platform that follow others which are overridden.
#include <catch2/catch.hpp>

#include "nvlsim/diagnostics/diagnostics.hpp"
#include "nvlsim/scenario/inputs.hpp"
#include "unit/config/texts.hpp"

namespace nvlsim {
namespace {

using config::test::text_of;

struct companions_read {
  platform p;
  std::string problems, origin;
};

companions_read with(const char* name, const std::vector<std::pair<const char*, value>>& sets) {
  std::vector<override_at> list;
  for (const auto& [pointer, v] : sets) list.push_back({pointer, v, {"--set", "--set", true}, {}});
  diagnostics problems;
  data_folders data;
  data.platforms = NVLSIM_SOURCE_DIR "/platforms";
  auto in = load_platform(name, data, list, {}, problems);
  return {in.content, text_of(problems), in.source.origin_of("/gpu/hbm_stream").label};
}

TEST_CASE("The streaming rate follows the data-sheet bandwidth of the memory, up and down") {
  const platform as_is = with("gb300-nvl72", {}).p;
  for (const auto& [text, factor] : {std::pair("16 TB/s", 2.0), std::pair("4 TB/s", 0.5)}) {
    const companions_read r = with("gb300-nvl72", {{"/gpu/hbm_bandwidth", text}});
    CHECK(r.problems == "");
    CHECK(r.p.gpu.hbm_stream.base() == Approx(as_is.gpu.hbm_stream.base() * factor));
    CHECK(r.origin == "--set, with /gpu/hbm_bandwidth");
  }
}

TEST_CASE("A member that is overridden itself follows nothing") {
  const companions_read r =
      with("gb300-nvl72", {{"/gpu/hbm_bandwidth", "16 TB/s"}, {"/gpu/hbm_stream", "9 TB/s"}});
  CHECK(r.p.gpu.hbm_stream.base() == 9e12);
  CHECK(r.origin == "--set");
}

TEST_CASE("Usable memory follows the nominal one") {
  const platform as_is = with("gb300-nvl72", {}).p, half = with("gb300-nvl72", {{"/gpu/hbm_nominal", "144 GB"}}).p;
  CHECK(half.gpu.hbm_usable.base() == Approx(as_is.gpu.hbm_usable.base() / 2));
}

TEST_CASE("Larger domains take their switch trays along, smaller ones keep theirs") {
  CHECK(with("gb300-nvl144", {{"/rack/vms", value{72}}}).p.rack.nvlink_switch_trays == 108);
  CHECK(with("gb300-nvl144", {{"/rack/vms", value{38}}}).p.rack.nvlink_switch_trays == 57);
  CHECK(with("gb300-nvl72", {{"/rack/vms", value{9}}}).p.rack.nvlink_switch_trays == 9);
  // Without trays there are none to take.
  CHECK(with("nd-h100-v5", {{"/rack/vms", value{2}}}).p.rack.nvlink_switch_trays == 0);
  // More GPUs than the planes of one level reach: refused.
  for (const int vms : {19, 36, 144})
    CHECK(with("gb300-nvl72", {{"/rack/vms", value{vms}}}).problems.find("two levels") != std::string::npos);
}

TEST_CASE("A leader that cannot be read is reported once") {
  const std::string told = with("gb300-nvl72", {{"/gpu/hbm_bandwidth", "fast"}}).problems;
  CHECK(told.find("/gpu/hbm_bandwidth") != std::string::npos);
  CHECK(told.find("/gpu/hbm_stream") == std::string::npos);
}

}  // namespace
}  // namespace nvlsim
