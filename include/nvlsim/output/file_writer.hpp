// Files that are replaced once they are whole, and compressed when their name ends in ".gz".
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <string_view>

namespace nvlsim::output {

/// Writes a file, beside it (other processes may write it too) until `close` puts it in its place, where a link
/// leads; what is no file (a device, a pipe) is written into. The stream fails, when it is flushed or destroyed at
/// the latest, where the file cannot be written; `close` tells. Without `close` nothing has happened.
class file_writer {
 public:
  explicit file_writer(const std::filesystem::path& file);
  ~file_writer();
  std::ostream& stream() { return *stream_; }
  /// Writes what is left, and replaces the file. Throws io_error when anything could not be written.
  void close();

 private:
  std::filesystem::path file_, target_, part_;  ///< `part_` is the target itself where that is no file
  bool closed_ = false;
  std::unique_ptr<std::streambuf> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

/// A file of that text. Throws io_error.
void write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace nvlsim::output
