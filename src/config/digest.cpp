#include "nvlsim/config/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace nvlsim::config {
namespace {

class fnv1a {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      hash_ ^= static_cast<unsigned char>(c);
      hash_ *= 0x100000001b3ull;
    }
  }
  void add(std::int64_t n) {
    std::array<char, 24> text{};
    const auto [end, status] = std::to_chars(text.data(), text.data() + text.size(), n);
    add(std::string_view(text.data(), static_cast<std::size_t>(end - text.data())));
  }
  /// With its length, so that no two lists of texts are alike.
  void add_counted(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    add(":");
    add(text);
  }
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

void add(fnv1a& h, const value& v) {
  if (const bool* b = v.boolean()) h.add(*b ? "true" : "false");
  else if (const auto* i = v.integer()) h.add("i"), h.add(*i);
  else if (const double* d = v.number()) h.add(fmt::format("d{}", *d));
  else if (const std::string* s = v.string()) h.add("s"), h.add_counted(*s);
  else if (const auto* a = v.items()) {
    h.add("[");
    for (const value& x : *a) add(h, x);
    h.add("]");
  } else if (const auto* o = v.members()) {
    std::vector<const value::member*> sorted;
    for (const auto& m : *o) sorted.push_back(&m);
    std::sort(sorted.begin(), sorted.end(), [](auto* x, auto* y) { return x->first < y->first; });
    h.add("{");
    for (const auto* m : sorted) {
      h.add_counted(m->first);
      add(h, m->second);
    }
    h.add("}");
  } else {
    h.add("null");
  }
}

}  // namespace

std::string digest(const value& v) {
  fnv1a h;
  add(h, v);
  return fmt::format("{:016x}", h.hash());
}

}  // namespace nvlsim::config
