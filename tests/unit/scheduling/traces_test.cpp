#include "nvlsim/scheduling/traces.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace nvlsim;

namespace {

job_list read(std::string_view text, const job_file_options& options = {}) {
  diagnostics problems;
  job_list out = read_jobs_text(text, "jobs", options, problems);
  problems.throw_if_any();
  return out;
}

std::string problem_in(std::string_view text, const job_file_options& options = {}) {
  diagnostics problems;
  read_jobs_text(text, "jobs", options, problems);
  std::string out;
  for (const problem& p : problems.sorted()) out += p.text() + "\n";
  return out;
}

}  // namespace

TEST_CASE("Slurm's accounting is read, without its steps") {
  const job_list l = read(
      "JobID|User|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|NNodes|AllocTRES|State\n"
      "7|ann|batch|2026-11-01T10:00:05|2026-11-01T10:01:00|2026-11-01T11:01:00|3600|120|2|"
      "billing=64,cpu=64,gres/gpu=8,gres/gpu:gb300=8,node=2|COMPLETED\n"
      "7.batch|||2026-11-01T10:00:05|2026-11-01T10:01:00|2026-11-01T11:01:00|3600||1||COMPLETED\n"
      "6|bob|batch|2026-11-01T10:00:00|2026-11-01T10:00:00|2026-11-01T10:00:09|9|UNLIMITED|1|gres/gpu:gb300=4|"
      "CANCELLED by 0\n"
      "8|bob|batch|2026-11-01T10:00:07|Unknown|Unknown|0|60|1||PENDING\n");
  REQUIRE(l.jobs.size() == 2);
  CHECK(l.jobs[0].name == "6");
  CHECK(l.jobs[0].submit == 0.0_s);
  CHECK(l.jobs[0].gpus == 4);
  CHECK(l.jobs[0].limit == 0.0_s);
  CHECK(l.jobs[0].outcome == job_outcome::cancelled);
  CHECK(l.jobs[1].submit == 5.0_s);
  CHECK(l.jobs[1].run == 3600.0_s);
  CHECK(l.jobs[1].limit == 7200.0_s);
  CHECK(l.jobs[1].gpus == 8);
  CHECK(l.jobs[1].nodes == 2);
  CHECK(l.users.at(static_cast<std::size_t>(l.jobs[1].user)) == "ann");
  CHECK(l.notes == std::vector<std::string>{"1 job without GPUs left out"});
}

TEST_CASE("The Standard Workload Format is read") {
  const job_list l = read(
      "; Version: 2.2\n"
      "1 100 5 60 16 -1 -1 16 120 -1 1 3 1 -1 2 1 -1 -1\n"
      "  2\t130 5 30 -1 -1 -1 8 -1 -1 5 4 1 -1 2 1 -1 -1\n"
      "3 140 -1 -1 -1 -1 -1 8 -1 -1 5 4 1 -1 2 1 -1 -1\n");
  REQUIRE(l.jobs.size() == 2);
  CHECK(l.jobs[0].gpus == 16);
  CHECK(l.jobs[0].limit == 120.0_s);
  CHECK(l.jobs[1].submit == 30.0_s);
  CHECK(l.jobs[1].gpus == 8);
  CHECK(l.jobs[1].outcome == job_outcome::cancelled);
}

TEST_CASE("Philly's log is read: attempts add up") {
  const job_list l = read(R"([{"status": "Killed", "vc": "ee9e8c", "jobid": "application_1", "attempts": [
      {"start_time": "2017-10-07 01:00:00", "end_time": "2017-10-07 01:10:00",
       "detail": [{"ip": "m1", "gpus": ["gpu0", "gpu1"]}, {"ip": "m2", "gpus": ["gpu0"]}]},
      {"start_time": "2017-10-07 02:00:00", "end_time": "2017-10-07 02:00:30", "detail": []}],
      "submitted_time": "2017-10-07 00:59:00", "user": "f}9"},
      {"status": "Pass", "vc": "ee9e8c", "jobid": "application_2", "attempts": [],
       "submitted_time": "2017-10-07 01:59:00", "user": "x"}])");
  REQUIRE(l.jobs.size() == 1);
  CHECK(l.jobs[0].gpus == 3);
  CHECK(l.jobs[0].run == 630.0_s);
  CHECK(l.jobs[0].outcome == job_outcome::cancelled);
  CHECK(l.notes.size() == 1);
  CHECK(problem_in("[{\"jobid\": ") == "jobs#: job 1: not a JSON object\n");
}

TEST_CASE("Helios, Acme, openb and spot tables are told by their columns") {
  const job_list helios = read(
      "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"
      "1,u1,vc2,16,64,2,COMPLETED,2020-04-01 00:00:10,2020-04-01 00:00:12,2020-04-01 00:01:12,60,2\n"
      "2,u1,vc2,0,4,1,COMPLETED,2020-04-01 00:00:20,2020-04-01 00:00:20,2020-04-01 00:01:20,60,0\n");
  REQUIRE(helios.jobs.size() == 1);
  CHECK(helios.queues.front() == "vc2");
  CHECK(helios.jobs[0].gpus == 16);
  const job_list acme = read(
      "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time\n"
      "d1,u1,1,8,8,Eval,FAILED,2023-03-01 08:00:00+08:00,2023-03-01 08:00:00+08:00,2023-03-01 "
      "08:02:00+08:00,120,0,960\n");
  CHECK(acme.queues.front() == "Eval");
  CHECK(acme.jobs.at(0).outcome == job_outcome::failed);
  const job_list openb = read(
      "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_"
      "time\n"
      "p1,12000,16384,1,500,,LS,Succeeded,10,400,100.0\n"
      "p2,12000,16384,1,1000,,BE,Pending,20,400,\n");
  REQUIRE(openb.jobs.size() == 1);
  CHECK(openb.jobs[0].run == 300.0_s);
  CHECK(openb.jobs[0].gpus == 1);
  const job_list spot = read(
      "job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type\n"
      "j1,o1,A,8,4,2,100,50,HP\n");
  CHECK(spot.jobs.at(0).gpus == 8);
  CHECK(spot.jobs.at(0).nodes == 2);
}

TEST_CASE("A limit is made where a file has none, if asked for") {
  const std::string text = "job,submit_s,run_s,gpus\n1,5,100,4\n";
  CHECK(read(text).jobs[0].limit == 0.0_s);
  CHECK(read(text).jobs[0].submit == 5.0_s);
  CHECK(read(text, {"", 2.0}).jobs[0].limit == 200.0_s);
}

TEST_CASE("What cannot be read is told by line, up to a bound") {
  CHECK(problem_in("") == "jobs#: no jobs\n");
  CHECK(problem_in("a,b\n1,2\n").find("unknown job file with columns a, b") != std::string::npos);
  CHECK(problem_in("job,submit_s,gpus\n1,2,3\n").find("nvlsim files have a column run_s") != std::string::npos);
  const std::string bad = problem_in(
      "job,submit_s,run_s,gpus,nodes\n1,-5,100,4,1\n2,x,100,4,1\n3,1,-2,4,1\n4,1,nan1,4,1\n5,1,100,1e99,1\n6,1,"
      "2\n");
  CHECK(bad.find("line 2: submit_s: \"-5\" is not a time of the simulation") != std::string::npos);
  CHECK(bad.find("line 3: submit_s: \"x\" is not a time") != std::string::npos);
  CHECK(bad.find("line 4: run_s: \"-2\" is not a time") != std::string::npos);
  CHECK(bad.find("line 5: run_s: \"nan1\" is not a time") != std::string::npos);
  CHECK(bad.find("line 6: gpus: \"1e99\" is not a number of GPUs") != std::string::npos);
  CHECK(bad.find("line 7: 3 cells, and the header has 5 columns") != std::string::npos);
  std::string many = "job,submit_s,run_s,gpus\n";
  for (int i = 0; i < 100; ++i) many += "1,x,1,1\n";
  CHECK(problem_in(many).find("too many problems") != std::string::npos);
  CHECK(problem_in("1 2 3\n").find("line 1: an SWF job needs 18 numbers") != std::string::npos);
}
