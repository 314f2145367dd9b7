// Problems in user input, collected so that one run reports all of them; exit codes.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace nvlsim {

enum class exit_code {
  ok = 0,
  gate_failed = 1,  ///< a comparison or service-level gate failed
  bad_input = 2,    ///< bad usage or bad input
  infeasible = 3,   ///< the job does not fit, or its layout is impossible
  io = 4,           ///< a file cannot be read or written
  internal = 70,    ///< our bug
  interrupted = 130,
};

/// One thing wrong with an input: `file#/json/pointer: what; did you mean "hint"?`, on one line.
struct problem {
  std::string file;     ///< file as the user named it, or "--set"
  std::string pointer;  ///< RFC 6901, "" for the document itself
  std::string what;
  std::string hint;         ///< nearest valid name, or empty
  bool unreadable = false;  ///< the file does not exist or cannot be read

  std::string text() const;
};

/// The problems found while reading; sorted by file and pointer when they are returned.
class diagnostics {
 public:
  void add(problem p);
  void add(std::string file, std::string pointer, std::string what, std::string hint = {});
  bool empty() const { return problems_.empty(); }
  std::vector<problem> sorted() const;
  /// Throws `input_error` with all problems if there are any.
  void throw_if_any() const;

 private:
  std::vector<problem> problems_;
};

/// The input is wrong. Holds every problem.
class input_error : public std::runtime_error {
 public:
  explicit input_error(std::vector<problem> problems);
  const std::vector<problem>& problems() const { return problems_; }
  /// 2, or 4 if one of the problems is an unreadable file.
  exit_code code() const;

 private:
  std::vector<problem> problems_;
};

/// A file cannot be read or written. Exit code 4.
class io_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A defect of nvlsim itself, such as a deadlock of simulated actors. Exit code 70.
class internal_error : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// The candidate with the smallest edit distance to `name`, ignoring case, if it is close enough for `name` to be
/// a typing error of it; else "".
std::string nearest(std::string_view name, std::span<const std::string> candidates);

}  // namespace nvlsim
