#include "nvlsim/output/queue_output.hpp"

#include <catch2/catch.hpp>
#include <sstream>

#include "nvlsim/config/document.hpp"
#include "nvlsim/scheduling/generator.hpp"
#include "nvlsim/scheduling/traces.hpp"

using namespace nvlsim;

namespace {

queue_setting two_racks() {
  queue_setting s;
  s.cluster = {2, 18, 4};
  return s;
}

}  // namespace

TEST_CASE("Nodes are written as Slurm writes them") {
  const queue_cluster c{12, 18, 4};
  CHECK(host_list(c, {0}) == "r00n00");
  CHECK(host_list(c, {0, 1, 2, 5, 17, 18}) == "r00n[00-02,05,17],r01n00");
  CHECK(host_list(c, {198, 199}) == "r11n[00-01]");
  CHECK(host_list(c, {}).empty());
}

TEST_CASE("Jobs that are written can be read and scheduled again, with the same schedule") {
  job_generator g = *find_job_profile("philly");
  g.jobs = 300;
  const job_list jobs = generate_jobs(g, 5);
  const queue_setting s = two_racks();
  const std::string csv = jobs_csv(jobs, s, schedule_jobs(jobs, s));
  diagnostics problems;
  const job_list again = read_jobs_text(csv, "jobs", {}, problems);
  CHECK(problems.empty());
  CHECK(schedule_jobs(again, s).attempts == schedule_jobs(jobs, s).attempts);
}

TEST_CASE("A job's line says what it asked for and what it got") {
  job_list jobs{{}, {"ann, b"}, {"q"}, {}};
  batch_job j;
  j.name = "a";
  j.submit = 5.0_s;
  j.run = 100.0_s;
  j.gpus = 6;
  jobs.jobs = {j, j};
  jobs.jobs[1].gpus = 1000;
  const queue_setting s = two_racks();
  CHECK(jobs_csv(jobs, s, schedule_jobs(jobs, s)) ==
        "job,user,queue,submit_s,run_s,limit_s,gpus,nodes,segment,state,start_s,end_s,wait_s,starts,gpus_held,"
        "node_list\n"
        "a,\"ann, b\",q,5,100,,6,2,0,COMPLETED,5,105,0,1,8,r00n[00-01]\n"
        "a,\"ann, b\",q,5,100,,1000,250,0,PENDING,,,,0,0,\n");
}

TEST_CASE("A trace of a queue has a process a rack, repairs and jobs, and slices of a thread do not overlap") {
  job_generator g = *find_job_profile("philly");
  g.jobs = 300;
  const job_list jobs = generate_jobs(g, 5);
  const queue_setting s = two_racks();
  const queue_schedule played = schedule_jobs(jobs, s);
  std::ostringstream out;
  write_queue_trace(out, {jobs, s, played, {{20, 5, 9, "in repair: \"fan\""}}, {{"a", {{0, 3, "steps"}}}}, {}},
                    value::object{{"tool", "nvlsim"}});
  const value trace = config::parse_scalar(out.str());
  REQUIRE(trace.members());
  std::map<std::pair<std::int64_t, std::int64_t>, double> ends;
  std::size_t slices = 0, names = 0;
  const auto number = [](const value* v) {
    return v->number() ? *v->number() : static_cast<double>(*v->integer());
  };
  for (const value& e : *trace.find("traceEvents")->items()) {
    names += *e.find("name")->string() == "process_name";
    if (*e.find("ph")->string() != "X") continue;
    ++slices;
    double& end = ends[{*e.find("pid")->integer(), *e.find("tid")->integer()}];
    CHECK(number(e.find("ts")) >= end - 0.001);
    end = number(e.find("ts")) + number(e.find("dur"));
  }
  std::size_t stays = 0;
  for (const job_attempt& a : played.attempts) stays += a.nodes.size();
  CHECK(slices == stays + 2);
  CHECK(names == 3);
  // Node 2 of the second rack has a thread for its repairs after those of the rack's 72 GPUs.
  CHECK(out.str().find(R"("pid":2,"tid":75,"name":"thread_name","args":{"name":"node 02 repairs"})") !=
        std::string::npos);
  CHECK(out.str().find(R"("pid":2,"tid":75,"ts":5000000.000,"dur":4000000.000,"name":"in repair: \"fan\"")") !=
        std::string::npos);
  CHECK(out.str().find(R"("pid":3,"tid":1,"ts":0.000,"dur":3000000.000,"name":"steps")") != std::string::npos);
}
