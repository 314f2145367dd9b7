// Writes files that replace the old ones only when complete. Compresses if the name ends in ".gz".
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <string_view>

namespace nvlsim::output {

/// Writes to a temporary file in the same folder. `close` moves it into place and follows a link; without `close`
/// the old file stays unchanged. Several processes may write the same file. Devices and pipes are written
/// directly. If writing fails, the stream fails at the latest when flushed, and `close` reports it.
class file_writer {
 public:
  explicit file_writer(const std::filesystem::path& file);
  ~file_writer();
  std::ostream& stream() { return *stream_; }
  /// Flushes and replaces the file. Throws io_error if anything could not be written.
  void close();

 private:
  std::filesystem::path file_, target_, part_;  ///< `part_` is the target itself for devices and pipes
  bool closed_ = false;
  std::unique_ptr<std::streambuf> buffer_;
  std::unique_ptr<std::ostream> stream_;
};

/// Writes `text` to a file. Throws io_error.
void write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace nvlsim::output
