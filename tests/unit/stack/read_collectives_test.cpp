#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "nvlsim/config/document.hpp"
#include "stack/read_parts.hpp"

namespace nvlsim {
namespace {

struct collectives_read {
  collective_profile profile;
  std::vector<std::string> problems;
};

collectives_read read_profile(const std::string& text) {
  diagnostics problems;
  config::document doc = config::parse("{\"collectives\": " + text + "}", {"stack", "s.json"}, problems);
  problems.throw_if_any();
  config::reader r(doc, problems);
  r.require_sources();
  config::reader section = r.child("collectives");
  collectives_read out{read_collectives(section), {}};
  for (const problem& p : problems.sorted()) out.problems.push_back(p.text());
  return out;
}

const std::string line = R"({"latency": "7 us", "hop": "1 us", "rate": "200 GB/s"})";
const std::string domain = R"("kind": "measured", "source": "fit", "ll": )" + line + R"(, "simple": )" + line +
                           R"(, "simple_power": 2, "local_copy": "1 TB/s", "pipeline": "2 us")";
const std::string fabric = R"("kind": "measured", "source": "fit",
  "ll": {"latency": "20 us", "hop": "5 us", "rate": "20 GB/s", "pipeline": "3 us"},
  "ring": {"latency": "50 us", "nvlink_step": "1.5 us", "fabric_step": "20 us", "power": 1, "nic_share": 0.9})";

TEST_CASE("Spreads of collectives, and kinds that are like others, are read and checked") {
  const auto with = [](const std::string& like, const std::string& families) {
    return read_profile(R"({"domain": {"nvlink5": {"all_reduce": {)" + domain + R"(}}},
      "measured_on": {"nvlink6": {"kind": "derived", "source": "none", "like": ")" +
                        like + R"("}},
      "spreads": {"kind": "derived", "source": "fit", "families": [)" +
                        families + "]}}");
  };
  const std::string one = R"({"family": "domain/nvlink5/all_reduce", "rows": 30, "low": 0.9, "high": 1.1})";
  const collectives_read r = with("nvlink5", one);
  CHECK(r.problems == std::vector<std::string>{});
  CHECK(r.profile.measured_on.at("nvlink6").like == "nvlink5");
  CHECK(r.profile.spreads.at("domain/nvlink5/all_reduce").high == 1.1);
  CHECK(with("nvlink5", one + ", " + one).problems.size() == 1);
  CHECK(with("nvlink5", R"({"family": "x", "rows": 30, "low": 1.2, "high": 1.1})").problems.size() == 1);
  CHECK(with("nvlink5", R"({"family": "x", "rows": 0, "low": -1, "high": 1.1})").problems.size() == 2);
  REQUIRE(with("nvlink4", one).problems.size() == 1);
  CHECK_THAT(with("nvlink4", one).problems[0],
             Catch::Contains("\"like\" of nvlink6: nvlink4 must have parameters"));
}

TEST_CASE("Exchanges were measured on links that the profile knows") {
  const auto with = [](const std::string& links) {
    return read_profile(
        R"({"measured_on": {"nvlink5": {"kind": "vendor", "source": "data sheet", "nvlink": "900 GB/s"}},
      "expert_exchange": {"links": ")" +
        links + R"("}})");
  };
  CHECK(with("nvlink5").problems == std::vector<std::string>{});
  CHECK(with("nvlink5").profile.expert_links == "nvlink5");
  REQUIRE(with("nvlink-5").problems.size() == 1);
  CHECK_THAT(with("nvlink-5").problems[0], Catch::Contains("nvlink5"));
  // Of other tables it is no member.
  CHECK(read_profile(R"({"all_to_all": {"links": "nvlink5"}})").problems.size() == 1);
}

TEST_CASE("Collective parameters are read with their units") {
  const collectives_read r = read_profile(R"({
    "domain": {"nvlink5": {"all_reduce": {)" +
                                          domain + R"(, "nvls_rate": "500 GB/s", "nvls_latency": "27 us",
      "nvls_pipeline_per_rank": "2 us",
      "nvls_pipeline_limit_per_rank": "4 MB"}}},
    "fabric": {"quantum-2": {"all_gather": {)" +
                                          fabric + R"(, "sharp": {"latency": "58 us", "pipeline": "8 us",
      "nic_share": 0.95}}}},
    "all_to_all": {"default": {"kind": "assumed", "source": "guess", "latency": "50 us", "per_rank": "2 us",
      "pipeline_per_rank": "0 us", "nic_share": 0.85}},
    "measured_on": {"nvlink5": {"kind": "vendor", "source": "data sheet", "nvlink": "900 GB/s"},
      "quantum-2": {"kind": "assumed", "source": "guess", "latency": "2 us"}}})");
  CHECK(r.problems == std::vector<std::string>{});
  const domain_collective& d = r.profile.domain.at("nvlink5").at("all_reduce");
  CHECK(d.ll.latency.base() == Approx(7e-6));
  CHECK_FALSE(d.ll_few);
  CHECK(d.simple_power == 2);
  CHECK(d.nvls_rate->base() == Approx(500e9));
  CHECK_FALSE(d.nvls_tree_many);
  const fabric_collective& f = r.profile.fabric.at("quantum-2").at("all_gather");
  CHECK(f.ring.fabric_step.base() == Approx(20e-6));
  CHECK(f.sharp->nic_share == 0.95);
  CHECK_FALSE(f.tree);
  CHECK(r.profile.all_to_all.at("default").nic_share == 0.85);
  CHECK(r.profile.measured_on.at("nvlink5").nvlink->base() == 900e9);
  CHECK_FALSE(r.profile.measured_on.at("quantum-2").nvlink);
}

TEST_CASE("Collective parameters that are wrong are all named") {
  const collectives_read r = read_profile(R"({
    "domain": {"nvlink5": {"all_gathr": {)" +
                                          domain + R"(},
                           "all_gather": {)" +
                                          domain + R"(, "nvls_rate": "0 GB/s", "nvls_latency": "27 us"}}},
    "fabric": {"quantum-2": {"all_to_all": {)" +
                                          fabric + R"(}}},
    "custom": {"gb300": {"kind": "measured", "source": "fit", "one_latency": 4, "per_peer": "1 us",
      "two_extra": "20 us", "one_share": 0, "two_share": 0.6}},
    "tunning": {}})");
  const auto has = [&](const std::string& part) {
    for (const std::string& p : r.problems)
      if (p.find(part) != std::string::npos) return true;
    return false;
  };
  CAPTURE(r.problems);
  CHECK(has("/collectives/domain/nvlink5/all_gathr: expected one of all_reduce, all_gather"));
  CHECK(has("did you mean \"all_gather\"?"));
  CHECK(has("/collectives/domain/nvlink5/all_gather/nvls_rate"));
  CHECK(has("nvls_pipeline_per_rank"));
  CHECK(has("/collectives/fabric/quantum-2/all_to_all: expected one of"));
  CHECK(has("/collectives/custom/gb300/one_latency: expected a time"));
  CHECK(has("/collectives/custom/gb300/one_share"));
  CHECK(has("/collectives/tunning: unknown member; did you mean \"tuning\"?"));
}

TEST_CASE("Collective parameters without a source are a problem") {
  const collectives_read r =
      read_profile(R"({"domain": {"nvlink5": {"all_reduce": {"ll": )" + line + R"(, "simple": )" + line +
                   R"(, "simple_power": 1, "local_copy": "1 TB/s", "pipeline": "2 us"}}}})");
  CHECK(r.problems.size() == 9);
}

}  // namespace
}  // namespace nvlsim
