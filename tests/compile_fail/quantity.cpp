// Compiled with -DMISUSE=<n>: 0 must compile, every other value must not. See CMakeLists.txt.
#include "nvlsim/units/units.hpp"

using namespace nvlsim;

int main() {
  [[maybe_unused]] const bytes b = 1.0_GB;
  [[maybe_unused]] const seconds s = 1.0_s;
#if MISUSE == 0
  return (b + b) / (b / s) > s ? 1 : 0;
#elif MISUSE == 1
  b + s;
#elif MISUSE == 2
  bytes from_number = 1e9;
#elif MISUSE == 3
  double to_number = b;
#elif MISUSE == 4
  return b < s;
#elif MISUSE == 5
  bandwidth wrong = b * s;
#elif MISUSE == 6
  bytes sum;
  sum += s;
#elif MISUSE == 7
  return b > 0.0;
#endif
}
