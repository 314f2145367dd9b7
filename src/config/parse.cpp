// JSON text to `value`. nlohmann's SAX interface makes duplicate keys and depth visible.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

#include "config/syntax.hpp"
#include "nvlsim/config/document.hpp"
#include "nvlsim/config/read_file.hpp"

namespace nvlsim::config {
namespace {

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
    level& l = levels_.back();
    if (!l.seen.insert(k).second) problems_.add(where_, pointer_to(pointer(), k), "duplicate key");
    l.key = std::move(k);
    return true;
  }

  bool parse_error(std::size_t byte, const std::string& token, const nlohmann::json::exception& e) override {
    problems_.add(where_, "", syntax_message(text_, byte, token, e.what()));
    return false;
  }

 private:
  /// An open object or array.
  struct level {
    value* node;
    std::string key;
    std::unordered_set<std::string> seen;
  };

  std::string pointer() const {
    std::string out;
    for (std::size_t i = 0; i + 1 < levels_.size(); ++i) {
      const auto* a = levels_[i].node->items();
      out = pointer_to(out, a ? std::to_string(a->size() - 1) : levels_[i].key);
    }
    return out;
  }

  value* place(value v) {
    if (levels_.empty()) return &(root_ = std::move(v));
    value& parent = *levels_.back().node;
    if (auto* a = parent.items()) return &a->emplace_back(std::move(v));
    return &parent.members()->emplace_back(levels_.back().key, std::move(v)).second;
  }
  bool put(value v) {
    place(std::move(v));
    return true;
  }
  bool open(value v) {
    if (levels_.size() >= static_cast<std::size_t>(max_document_depth)) {
      problems_.add(where_, "", fmt::format("nested deeper than {} levels", max_document_depth));
      return false;
    }
    // The pointers in the levels stay valid, because a parent does not grow while a child is open.
    levels_.push_back({place(std::move(v)), {}, {}});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  std::string_view text_;
  const std::string& where_;
  diagnostics& problems_;
  value root_;
  std::vector<level> levels_;
};

struct wording {
  std::string_view theirs, ours;
};
/// Replacements have the width of the words if possible, so that messages name the right column.
constexpr wording python_literals[] = {{"-Infinity", "null     "}, {"Infinity", "null    "}, {"NaN", "null"}};

std::string without_python_literals(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  while (!text.empty()) {
    const auto* found = in_string ? std::end(python_literals)
                                  : std::find_if(std::begin(python_literals), std::end(python_literals),
                                                 [&](const wording& w) { return text.starts_with(w.theirs); });
    const bool replaced = found != std::end(python_literals);
    const std::size_t taken = replaced ? found->theirs.size() : in_string && text.starts_with('\\') ? 2 : 1;
    if (text.starts_with('"')) in_string = !in_string;
    out += replaced ? found->ours : text.substr(0, taken);
    text.remove_prefix(std::min(taken, text.size()));
  }
  return out;
}

}  // namespace

document parse(std::string_view text, origin self, diagnostics& problems, root_type wanted, literals accepted) {
  document doc;
  doc.self = std::move(self);
  if (text.size() > max_document_bytes) {
    problems.add(doc.self.where, "", fmt::format("larger than {} MiB", max_document_bytes >> 20));
    return doc;
  }
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {  // the parser would stop there
    problems.add(doc.self.where, "", fmt::format("byte {} is 0: this is not a text file", at + 1));
    return doc;
  }
  std::string changed;
  if (accepted == literals::python) text = changed = without_python_literals(text);
  builder b(text, doc.self.where, problems);
  if (!nlohmann::json::sax_parse(text, &b)) return doc;
  doc.root = b.take();
  if (wanted == root_type::object && !doc.root.members())
    problems.add(doc.self.where, "", fmt::format("expected an object, found {}", doc.root.type_name()));
  return doc;
}

document load(const std::filesystem::path& path, origin self, diagnostics& problems, literals accepted) {
  std::error_code ec;
  if (std::filesystem::is_directory(path, ec)) throw io_error(fmt::format("{}: is a directory", path.string()));
  std::ifstream in(path, std::ios::binary);
  note_read(path);
  if (!in) throw io_error(fmt::format("{}: cannot be read", path.string()));
  std::string text;
  text.reserve(1 << 16);
  char chunk[1 << 16];
  while (in.read(chunk, sizeof chunk) || in.gcount() > 0) {
    text.append(chunk, static_cast<std::size_t>(in.gcount()));
    if (text.size() > max_document_bytes) break;
  }
  if (in.bad()) throw io_error(fmt::format("{}: cannot be read", path.string()));
  return parse(text, std::move(self), problems, root_type::object, accepted);
}

value parse_scalar(std::string_view text) {
  diagnostics ignored;
  const std::string where;
  builder b(text, where, ignored);
  if (text.find('\0') == std::string_view::npos && nlohmann::json::sax_parse(text, &b) && ignored.empty())
    return b.take();
  return value{text};
}

}  // namespace nvlsim::config
