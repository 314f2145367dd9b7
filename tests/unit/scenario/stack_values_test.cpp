#include "nvlsim/scenario/stack_values.hpp"

#include <catch2/catch.hpp>

#include "nvlsim/config/document.hpp"
#include "nvlsim/output/output.hpp"

using namespace nvlsim;

TEST_CASE("Stack values are those that apply to the machine, without sources") {
  const value stack = config::parse_scalar(R"({
    "schema": "nvlsim.stack/1", "description": "d", "sources": {"x": "y"},
    "kernels": {"kind": "measured", "source": "x",
      "blackwell": {"launch": {"value": "2 us", "kind": "measured", "source": "x", "note": "n"}, "power_exponent": 0.5},
      "gb300": {"like": "blackwell", "launch": "1 us"}, "hopper": {"launch": "3 us"}},
    "collectives": {"domain": {"nvlink4": {"r": 1}, "nvlink5": {"r": 2}}, "fabric": {"quantum-2": 1, "default": 2},
                    "expert_exchange": {"two_sided": {"latency": "1 us"}}, "spreads": {"families": []}},
    "training": {"kind": "derived", "source": "fit", "tp_exposed": 0.5},
    "inference": {"gpus": {"gb300": {"x": 1}, "h100": {"x": 2}}}})");
  platform p;
  p.gpu.name = "gb300";
  p.gpu.architecture = "blackwell";
  p.gpu.nvlink_generation = 5;
  p.fabric.name = "quantum-x800";
  CHECK(stack_values(stack, p, "training") == config::parse_scalar(R"({
    "kernels": {"blackwell": {"launch": "2 us", "power_exponent": 0.5}, "gb300": {"like": "blackwell", "launch": "1 us"}},
    "collectives": {"domain": {"nvlink5": {"r": 2}}, "fabric": {"default": 2}, "expert_exchange": {"two_sided": {"latency": "1 us"}}},
    "training": {"tp_exposed": 0.5}})"));
  CHECK(stack_values(stack, p, "inference").find("inference")->at_pointer("/gpus")->members()->size() == 1);
  CHECK_FALSE(stack_values(stack, p, "").find("training"));
  const value like = config::parse_scalar(R"({"collectives": {"measured_on": {"nvlink6": {"like": "nvlink5"}},
    "domain": {"nvlink5": {"r": 2}, "nvlink4": {"r": 1}}}})");
  p.gpu.nvlink_generation = 6;
  CHECK(stack_values(like, p, "").at_pointer("/collectives/domain")->members()->size() == 1);
  CHECK(stack_values(like, p, "").at_pointer("/collectives/domain/nvlink5"));
  p.gpu.name = p.gpu.architecture = "volta";  // unknown, and no default
  CHECK(stack_values(stack, p, "training").find("kernels")->members()->empty());
}
