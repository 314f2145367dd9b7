// Actors that only sleep, in SimGrid alone: why four times the ranks cost more than four times the time without
// folding. Not built with the rest (docs/models-and-assumptions.md has the figures):
//
//   g++ -O2 -std=c++17 sleepers.cpp -lsimgrid -o sleepers
//   ./sleepers 13824 400 --cfg=contexts/stack-size:256
//   valgrind --tool=cachegrind --cache-sim=yes --LL=33554432,16,64 ./sleepers 13824 15
//   --cfg=contexts/stack-size:256
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <simgrid/s4u.hpp>

#include "sleepers.hpp"

int main(int argc, char** argv) {
  namespace sg4 = simgrid::s4u;
  sg4::Engine engine(&argc, argv);
  if (argc < 3) return std::puts("sleepers ACTORS SLEEPS [--cfg=...]"), 2;
  const long actors = std::atol(argv[1]), sleeps = std::atol(argv[2]);
  sg4::NetZone* zone = sg4::create_empty_zone("zone");
  sg4::Host* host = zone->create_host("host", 1e9);
  zone->seal();
  for (long a = 0; a < actors; ++a) sg4::Actor::create("sleeper", host, nvlsim::sleeper(a, sleeps));
  engine.run();
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const double cpu = static_cast<double>(used.ru_utime.tv_sec) + 1e-6 * static_cast<double>(used.ru_utime.tv_usec);
  std::printf("%ld actors, %ld sleeps each: %.2f s user, %.0f ns a sleep, %ld MiB\n", actors, sleeps, cpu,
              1e9 * cpu / static_cast<double>(actors * sleeps), used.ru_maxrss / 1024);
}
