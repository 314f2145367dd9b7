// Files that are compressed when their name ends in ".gz".
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>

namespace nvlsim::output {

/// Opens a file for writing. The stream fails, when it is flushed or destroyed at the latest, where the file cannot be
/// written; `close` tells.
class file_writer {
 public:
  explicit file_writer(const std::filesystem::path& file);
  ~file_writer();
  std::ostream& stream() { return *stream_; }
  /// Writes what is left. Throws io_error when anything could not be written.
  void close();

 private:
  std::filesystem::path file_;
  std::unique_ptr<std::streambuf> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

}  // namespace nvlsim::output
