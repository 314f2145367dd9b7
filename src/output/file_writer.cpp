#include "nvlsim/output/file_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <streambuf>
#include <vector>

#include "nvlsim/config/read_file.hpp"
#include "nvlsim/diagnostics/diagnostics.hpp"

namespace nvlsim::output {
namespace {

/// Level 1 shrinks traces to a tenth in a third of the default level's time.
constexpr const char* mode = "wb1";

/// Compresses its input with constant memory.
class gzip_buffer : public std::streambuf {
 public:
  explicit gzip_buffer(const std::filesystem::path& file) : file_(gzopen(file.c_str(), mode)), room_(1 << 18) {
    setp(room_.data(), room_.data() + room_.size());
  }
  ~gzip_buffer() override { close(); }
  gzip_buffer(const gzip_buffer&) = delete;
  gzip_buffer& operator=(const gzip_buffer&) = delete;

  bool is_open() const { return file_ != nullptr; }
  bool close() {
    if (!file_) return false;
    const bool written = put();
    const bool closed = gzclose(file_) == Z_OK;
    file_ = nullptr;
    return written && closed;
  }

 protected:
  int_type overflow(int_type c) override {
    if (!put()) return traits_type::eof();
    return traits_type::eq_int_type(c, traits_type::eof()) ? traits_type::not_eof(c)
                                                           : sputc(traits_type::to_char_type(c));
  }
  int sync() override { return put() ? 0 : -1; }

 private:
  bool put() {
    const auto size = static_cast<unsigned>(pptr() - pbase());
    setp(room_.data(), room_.data() + room_.size());
    return file_ && (size == 0 || gzwrite(file_, room_.data(), size) == static_cast<int>(size));
  }

  gzFile file_;
  std::vector<char> room_;
};

/// The system's reason for a failure that has set `errno`.
[[noreturn]] void not_written(const std::filesystem::path& file, int error) {
  throw io_error(error != 0 ? fmt::format("{}: cannot be written ({})", file.string(), std::strerror(error))
                            : fmt::format("{}: cannot be written", file.string()));
}

}  // namespace

void refuse_inputs(std::span<const std::filesystem::path> outputs) {
  diagnostics problems;
  for (const std::filesystem::path& file : outputs)
    if (was_read(file)) problems.add(file.string(), "", "is read as an input and would be overwritten");
  problems.throw_if_any();
}

file_writer::file_writer(const std::filesystem::path& file) : file_(file), target_(file) {
  refuse_inputs(std::array{file});
  std::error_code ec;
  for (int links = 0; links < 16 && std::filesystem::is_symlink(target_, ec); ++links)
    target_ = target_.parent_path() / std::filesystem::read_symlink(target_, ec);
  const bool special = std::filesystem::exists(file, ec) && !std::filesystem::is_regular_file(file, ec);
  part_ = special ? target_ : std::filesystem::path(fmt::format("{}.{}.part", target_.string(), ::getpid()));
  bool open = false;
  errno = 0;
  if (file.extension() == ".gz") {
    auto b = std::make_unique<gzip_buffer>(part_);
    open = b->is_open();
    buffer_ = std::move(b);
  } else {
    auto b = std::make_unique<std::filebuf>();
    open = b->open(part_, std::ios::binary | std::ios::out) != nullptr;
    buffer_ = std::move(b);
  }
  if (!open) not_written(file, errno);
  stream_ = std::make_unique<std::ostream>(buffer_.get());
}

file_writer::~file_writer() {
  if (closed_ || part_ == target_) return;
  std::error_code ignored;
  std::filesystem::remove(part_, ignored);
}

void file_writer::close() {
  bool good = !stream_->fail();
  errno = 0;
  if (auto* z = dynamic_cast<gzip_buffer*>(buffer_.get())) good = z->close() && good;
  else good = static_cast<std::filebuf&>(*buffer_).close() != nullptr && good;
  const int error = errno;
  std::error_code ec;
  if (good && part_ != target_) std::filesystem::rename(part_, target_, ec);
  if (!good || ec) not_written(file_, good ? ec.value() : error);
  closed_ = true;
}

void write_whole(const std::filesystem::path& file, std::string_view text) {
  file_writer out(file);
  out.stream() << text;
  out.close();
}

}  // namespace nvlsim::output
