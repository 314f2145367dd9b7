// JSON text to `value`, through nlohmann's SAX interface so that duplicates, depth and positions are seen.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

#include "config/document.hpp"

namespace nvlsim::config {
namespace {

/// Line and column, from one, of a byte offset.
std::pair<std::size_t, std::size_t> position(std::string_view text, std::size_t byte) {
  byte = std::min(byte, text.size());
  const std::string_view before = text.substr(0, byte);
  const auto line = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  const std::size_t newline = before.rfind('\n');
  const std::size_t column = newline == std::string_view::npos ? byte + 1 : byte - newline;
  return {line, column};
}

class builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  builder(std::string_view text, const std::string& where, diagnostics& problems)
      : text_(text), where_(where), problems_(problems) {}

  value take() { return std::move(root_); }

  bool null() override { return put(value{}); }
  bool boolean(bool b) override { return put(value{b}); }
  bool number_integer(number_integer_t i) override { return put(value{static_cast<std::int64_t>(i)}); }
  bool number_unsigned(number_unsigned_t u) override {
    if (u > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max()))
      return put(value{static_cast<double>(u)});
    return put(value{static_cast<std::int64_t>(u)});
  }
  bool number_float(number_float_t d, const string_t&) override { return put(value{static_cast<double>(d)}); }
  bool string(string_t& s) override { return put(value{std::move(s)}); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(value{value::object{}}); }
  bool start_array(std::size_t) override { return open(value{value::array{}}); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& k) override {
    if (stack_.back()->find(k))
      problems_.add(where_, pointer_to(pointer(), k), "duplicate key");
    keys_.back() = k;
    return true;
  }

  bool parse_error(std::size_t byte, const std::string&, const nlohmann::json::exception& e) override {
    // nlohmann: "[json.exception.parse_error.101] parse error at line 3, column 5: syntax error while parsing ..."
    std::string why = e.what();
    if (const auto colon = why.find(": "); colon != std::string::npos) why.erase(0, colon + 2);
    const auto [line, column] = position(text_, byte == 0 ? 0 : byte - 1);
    problems_.add(where_, "", fmt::format("line {}, column {}: {}", line, column, why));
    return false;
  }

 private:
  std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < stack_.size(); ++i) {
      if (const auto* a = stack_[i]->items()) out = pointer_to(out, std::to_string(a->size() - 1));
      else out = pointer_to(out, keys_[i]);
    }
    return out;
  }

  value* place(value v) {
    if (stack_.empty()) {
      root_ = std::move(v);
      return &root_;
    }
    if (auto* a = stack_.back()->items()) return &a->emplace_back(std::move(v));
    return &stack_.back()->set(keys_.back(), std::move(v));
  }
  bool put(value v) {
    place(std::move(v));
    return true;
  }
  bool open(value v) {
    if (stack_.size() >= static_cast<std::size_t>(max_document_depth)) {
      problems_.add(where_, "", fmt::format("nested deeper than {} levels", max_document_depth));
      return false;
    }
    // The parent does not grow while the child is open, so the pointers on the stack stay valid.
    stack_.push_back(place(std::move(v)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  diagnostics& problems_;
  value root_;
  std::vector<value*> stack_;
  std::vector<std::string> keys_;
};

}  // namespace

document parse(std::string_view text, origin self, diagnostics& problems) {
  document doc;
  doc.self = std::move(self);
  if (text.size() > max_document_bytes) {
    problems.add(doc.self.where, "",
                 fmt::format("larger than {} MiB", max_document_bytes >> 20));
    return doc;
  }
  builder b(text, doc.self.where, problems);
  if (!nlohmann::json::sax_parse(text, &b)) return doc;
  doc.root = b.take();
  if (!doc.root.members())
    problems.add(doc.self.where, "", fmt::format("expected an object, found {}", doc.root.type_name()));
  return doc;
}

document load(const std::filesystem::path& path, origin self, diagnostics& problems) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) throw io_error(fmt::format("{}: is a directory", path.string()));
  std::ifstream in(path, std::ios::binary);
  if (!in) throw io_error(fmt::format("{}: cannot be read", path.string()));
  std::string text;
  text.reserve(1 << 16);
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk) || in.gcount() > 0) {
    text.append(chunk, static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_document_bytes) break;
  }
  if (in.bad()) throw io_error(fmt::format("{}: cannot be read", path.string()));
  return parse(text, std::move(self), problems);
}

value parse_scalar(std::string_view text) {
  diagnostics ignored;
  const std::string where;
  builder b(text, where, ignored);
  if (nlohmann::json::sax_parse(text, &b) && ignored.empty()) return b.take();
  return value{text};
}

}  // namespace nvlsim::config
