#include "nvlsim/config/digest.hpp"

#include <fmt/format.h>

#include <algorithm>
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
  std::uint64_t hash() const { return hash_; }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325ull;
};

void add(fnv1a& h, const value& v) {
  if (const bool* b = v.boolean()) h.add(*b ? "true" : "false");
  else if (const auto* i = v.integer()) h.add(fmt::format("i{}", *i));
  else if (const double* d = v.number()) h.add(fmt::format("d{}", *d));
  else if (const std::string* s = v.string()) h.add(fmt::format("s{}:{}", s->size(), *s));
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
      h.add(fmt::format("{}:{}", m->first.size(), m->first));
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
