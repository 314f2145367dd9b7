#include "nvlsim/units/in_parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace nvlsim {

std::size_t processors() { return std::max(1U, std::thread::hardware_concurrency()); }

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& each) {
  std::vector<std::exception_ptr> failed(count);
  std::atomic<std::size_t> next = 0;
  const auto run_each = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        each(i);
      } catch (...) {
        failed[i] = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < std::min(processors(), count); ++i) threads.emplace_back(run_each);
  for (std::thread& t : threads) t.join();
  for (const std::exception_ptr& e : failed)
    if (e) std::rethrow_exception(e);
}

}  // namespace nvlsim
