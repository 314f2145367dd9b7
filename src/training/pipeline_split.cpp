// Custom assignment of layers to model chunks. [docs/models-and-assumptions.md#pipeline]
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "nvlsim/training/training.hpp"

namespace nvlsim {
namespace {

constexpr std::size_t longest_layout = std::size_t{1} << 16;
constexpr std::string_view layout_letters = "EtmL|";

/// Megatron's short form: letters, groups in parentheses, and "*n" after either.
class layout_parser {
 public:
  explicit layout_parser(std::string_view text) : text_(text) {}

  std::optional<std::string> parse(std::string& why) {
    std::string out = sequence(0);
    if (why_.empty() && at_ < text_.size()) fail("unmatched closing parenthesis");
    why = why_;
    if (!why_.empty()) return {};
    return out;
  }

 private:
  void fail(std::string_view what) {
    if (why_.empty()) why_ = fmt::format("character {}: {}", at_ + 1, what);
  }
  std::string sequence(int depth) {
    std::string out;
    while (why_.empty() && at_ < text_.size() && text_[at_] != ')') {
      std::string item;
      if (text_[at_] == ',' || text_[at_] == ' ') {
        ++at_;
        continue;
      }
      if (text_[at_] == '(' && depth < 16) {
        ++at_;
        item = sequence(depth + 1);
        if (at_ >= text_.size()) fail("missing closing parenthesis");
        ++at_;
      } else if (layout_letters.find(text_[at_]) != layout_letters.npos) {
        item = text_[at_++];
      } else {
        fail("expected E, t, m, L, |, a group in parentheses, or *n after one of them");
        break;
      }
      const std::size_t times = repeats();
      if (out.size() + item.size() * times > longest_layout) fail("more than 65536 letters");
      for (std::size_t i = 0; why_.empty() && i < times; ++i) out += item;
    }
    return out;
  }
  std::size_t repeats() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    std::size_t n = 0;
    const char* const end = text_.data() + text_.size();
    const auto [last, error] = std::from_chars(text_.data() + at_ + 1, end, n);
    if (error != std::errc{} || n == 0 || n > longest_layout) {
      fail("expected a number from 1 to 65536 after *");
      return 1;
    }
    at_ = static_cast<std::size_t>(last - text_.data());
    return n;
  }
  std::string_view text_;
  std::size_t at_ = 0;
  std::string why_;
};

std::int64_t count(const std::string& s, char letter) { return std::count(s.begin(), s.end(), letter); }

std::vector<std::string> layout_problems(const model& m, const std::vector<std::string>& layout,
                                         std::int64_t chunks) {
  std::vector<std::string> out;
  const auto size = static_cast<std::int64_t>(layout.size());
  if (size != chunks)
    out.push_back(fmt::format("the pipeline layout has {} chunks, but pp x vp is {}", size, chunks));
  const std::string all = std::accumulate(layout.begin(), layout.end(), std::string{});
  const auto layers = static_cast<std::int64_t>(m.layers.size());
  if (count(all, 't') != layers)
    out.push_back(
        fmt::format("the pipeline layout has {} layers (t), but the model has {}", count(all, 't'), layers));
  if (count(all, 'm') != m.mtp_layers)
    out.push_back(fmt::format("the pipeline layout has {} prediction modules (m), but the model has {}",
                              count(all, 'm'), m.mtp_layers));
  std::string wanted(1, 'E');
  wanted.append(static_cast<std::size_t>(count(all, 't')), 't')
      .append(static_cast<std::size_t>(count(all, 'm')), 'm')
      .push_back('L');
  if (all != wanted)
    out.push_back("the pipeline layout must be one E, then layers, then prediction modules, then one L");
  else if (count(layout.front(), 'E') == 0 || count(layout.back(), 'L') == 0)
    out.push_back("the pipeline layout must have E in its first chunk and L in its last chunk");
  return out;
}

/// Layers of each stage if the first and last have numbers of their own, or tables count as layers. Empty if the
/// layers do not divide evenly.
std::vector<std::int64_t> stage_layers(const model& m, const training_workload& w) {
  const pipeline_split& s = w.split;
  const std::int64_t pp = w.par.pp;
  std::vector<std::int64_t> out(static_cast<std::size_t>(pp), 0);
  std::int64_t places = static_cast<std::int64_t>(m.layers.size()) - s.first - s.last;
  places += (s.embedding.value_or(false) ? 1 : 0) + (s.loss.value_or(false) ? 1 : 0);
  const std::int64_t rest = pp - (s.first > 0 ? 1 : 0) - (s.last > 0 ? 1 : 0);
  if (rest < 0 || places < 0 || (rest == 0 ? places != 0 : places % rest != 0)) return {};
  for (std::int64_t& n : out) n = rest > 0 ? places / rest : 0;
  if (s.first > 0) out.front() = s.first;
  if (s.last > 0) out.back() = s.last;
  return out;
}

}  // namespace

std::optional<std::vector<std::string>> parse_pipeline_layout(std::string_view text, std::string& why) {
  const std::optional<std::string> letters = layout_parser(text).parse(why);
  if (!letters) return {};
  std::vector<std::string> out(1);
  for (const char c : *letters) {
    if (c == '|') out.emplace_back();
    else out.back() += c;
  }
  return out;
}

std::vector<std::string> split_problems(const model& m, const training_workload& w) {
  const pipeline_split& s = w.split;
  if (!s.given()) return {};
  std::vector<std::string> out;
  const bool numbers = s.first > 0 || s.last > 0, tables = s.embedding || s.loss;
  if (!s.layout.empty() && (numbers || tables))
    out.push_back("a pipeline layout excludes the other settings of the pipeline split");
  if (numbers && (s.embedding.value_or(false) || s.loss.value_or(false)))
    out.push_back(
        "the layer counts of the first and last stage cannot be combined with embedding or loss counted as "
        "layers");
  if (!out.empty()) return out;
  if (!s.layout.empty()) return layout_problems(m, s.layout, w.par.pp * w.par.vp);
  if (m.mtp_layers > 0) return {"with prediction modules, uneven stages need a pipeline layout"};
  const std::vector<std::int64_t> stages = stage_layers(m, w);
  if (stages.empty())
    return {"the layers outside the first and last stage do not divide evenly among the other stages"};
  for (const std::int64_t n : stages)
    if (n % w.par.vp != 0)
      return {fmt::format("a stage of {} layers cannot be split into vp {} equal chunks", n, w.par.vp)};
  const pipeline_geometry shape = geometry_of(w);
  const auto loss_stage = static_cast<std::size_t>(shape.stage_of(shape.chunks() - 1, 0));
  if ((s.embedding.value_or(false) && stages.front() < w.par.vp) ||
      (s.loss.value_or(false) && stages[loss_stage] < w.par.vp))
    return {"embedding and loss count as layers, so their chunk needs at least one layer"};
  return {};
}

std::vector<std::int64_t> chunk_layers(const model& m, const training_workload& w) {
  const std::int64_t chunks = geometry_of(w).chunks();
  const pipeline_split& s = w.split;
  if (!s.given() || w.par.pp == 1)
    return layers_by_chunk(static_cast<std::int64_t>(m.layers.size()), chunks, predicting_layers(m));
  std::vector<std::int64_t> out;
  for (const std::string& chunk : s.layout)
    out.push_back(count(chunk, 't') + count(chunk, 'm') * static_cast<std::int64_t>(m.mtp_block.size()));
  if (!s.layout.empty()) return out;
  const std::vector<std::int64_t> stages = stage_layers(m, w);
  const pipeline_geometry shape = geometry_of(w);
  for (std::int64_t k = 0; k < chunks; ++k)
    out.push_back(stages[static_cast<std::size_t>(shape.stage_of(k, 0))] / w.par.vp);
  if (s.embedding.value_or(false)) --out.front();
  if (s.loss.value_or(false)) --out.back();
  return out;
}

}  // namespace nvlsim
