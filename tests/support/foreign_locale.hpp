// A hostile locale: decimal commas and grouped thousands, in C and in C++.
#pragma once

#include <clocale>
#include <cstdlib>
#include <locale>
#include <string>

namespace nvlsim::test {

/// While it lives, C and C++ print 1.5 as "1,5". `c_too()` says whether the system could provide the C half (the
/// tests' CMake file builds it with localedef).
class foreign_locale {
 public:
  foreign_locale() : c_before_(std::setlocale(LC_ALL, nullptr)), before_(std::locale()) {
    std::locale::global(std::locale(std::locale(), new comma));
    setenv("LOCPATH", NVLSIM_BINARY_DIR "/locales", 1);
    c_too_ = std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
  }
  ~foreign_locale() {
    std::locale::global(before_);
    std::setlocale(LC_ALL, c_before_.c_str());
  }
  foreign_locale(const foreign_locale&) = delete;
  foreign_locale& operator=(const foreign_locale&) = delete;
  bool c_too() const { return c_too_; }

 private:
  struct comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  std::string c_before_;
  std::locale before_;
  bool c_too_ = false;
};

}  // namespace nvlsim::test
