// Writes files that replace the old ones only when complete. Compresses if the name ends in ".gz".
#pragma once

#include <filesystem>
#include <memory>
#include <ostream>
#include <span>
#include <string_view>

namespace nvlsim::output {

/// Writes to a temporary file in the same folder. `close` moves it into place and follows a link; without `close`
/// the old file stays unchanged. Several processes may write the same file. Devices and pipes are written
/// directly. If writing fails, the stream fails at the latest when flushed, and `close` reports it.
class file_writer {
 public:
  /// Throws io_error if the file cannot be written, and input_error if this process has read it.
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

/// Throws input_error with one problem for each file that this process has read: before hours of work whose result
/// would have no place.
void refuse_inputs(std::span<const std::filesystem::path> outputs);

/// Writes `text` to a file. Throws io_error, or input_error as `file_writer` does.
void write_whole(const std::filesystem::path& file, std::string_view text);

}  // namespace nvlsim::output
