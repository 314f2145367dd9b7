#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "nvlsim/output/output.hpp"
#include "nvlsim/output/studies.hpp"
#include "nvlsim/output/text.hpp"
#include "output/lists.hpp"

namespace nvlsim {
namespace {

double per_user(const pareto_point& p) { return p.metrics.output_tokens_per_s_per_user.value_or(0); }
double per_gpu(const pareto_point& p) { return p.metrics.output_tokens_per_s_per_gpu; }

value point_value(const pareto_point& p) {
  return value{value::object{{"layout", p.layout},
                             {"tp", p.tp},
                             {"pp", p.pp},
                             {"ep", p.ep},
                             {"attention_dp", p.attention_dp},
                             {"replicas", p.replicas},
                             {"concurrency", p.concurrency},
                             {"output_tokens_per_s_per_user", per_user(p)},
                             {"output_tokens_per_s_per_gpu", per_gpu(p)},
                             {"ttft_p50_s", p.metrics.ttft_s.p50},
                             {"ttft_p99_s", p.metrics.ttft_s.p99},
                             {"tpot_mean_s", p.metrics.tpot_s ? value{p.metrics.tpot_s->mean} : value{}},
                             {"efficient", p.efficient}}};
}

// Size of the plot, in points.
constexpr double width = 720, height = 480, left_margin = 70, right_margin = 190, top = 40, bottom = 50;
constexpr std::array<const char*, 10> colours = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                                 "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};

/// A linear axis from 0 to a round number.
struct axis {
  double step = 1, end = 1;
  explicit axis(double largest) {
    const double rough = std::max(largest, 1e-9) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    for (const double m : {1.0, 2.0, 5.0, 10.0}) {
      step = m * power;
      if (step >= rough) break;
    }
    end = step * std::ceil(largest / step);
  }
};

double x_of(const axis& a, double v) { return left_margin + v / a.end * (width - left_margin - right_margin); }
double y_of(const axis& a, double v) { return height - bottom - v / a.end * (height - top - bottom); }

void render_axes(std::string& out, const axis& x, const axis& y) {
  const auto text = [&](double px, double py, const char* anchor, const std::string& what) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", px, py, anchor, what);
  };
  const auto line = [&](double x1, double y1, double x2, double y2) {
    out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ccc\"/>\n", x1, y1,
                       x2, y2);
  };
  for (double v = 0; v <= x.end * 1.0001; v += x.step) {
    line(x_of(x, v), y_of(y, 0), x_of(x, v), y_of(y, y.end));
    text(x_of(x, v), height - bottom + 18, "middle", fmt::format("{:.6g}", v));
  }
  for (double v = 0; v <= y.end * 1.0001; v += y.step) {
    line(x_of(x, 0), y_of(y, v), x_of(x, x.end), y_of(y, v));
    text(left_margin - 8, y_of(y, v) + 4, "end", fmt::format("{:.6g}", v));
  }
  text((left_margin + width - right_margin) / 2, height - 12, "middle", "output tokens/s per user");
  out += fmt::format(
      "<text transform=\"translate(16,{:.1f}) rotate(-90)\" text-anchor=\"middle\">output tokens/s per "
      "GPU</text>\n",
      (top + height - bottom) / 2);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') out += "&amp;";
    else if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else out += c;
  }
  return out;
}

void render_polyline(std::string& out, const std::vector<const pareto_point*>& points, const axis& x,
                     const axis& y, const std::string& style) {
  out += "<polyline fill=\"none\" " + style + " points=\"";
  for (const pareto_point* p : points)
    out += fmt::format("{:.1f},{:.1f} ", x_of(x, per_user(*p)), y_of(y, per_gpu(*p)));
  out += "\"/>\n";
}

}  // namespace

std::string pareto_table(const pareto_study& p) {
  std::string out = fmt::format("{}: {} GPUs, closed loops\n\n  {:<24} {:>8} {:>12} {:>12} {:>10}\n", p.name,
                                p.gpus, "layout", "clients", "tok/s/user", "tok/s/GPU", "TTFT p50");
  for (const pareto_point& x : p.points)
    out += fmt::format("{} {:<24} {:>8} {:>12.1f} {:>12.1f} {:>8.0f} ms\n", x.efficient ? '*' : ' ', x.layout,
                       x.concurrency, per_user(x), per_gpu(x), 1e3 * x.metrics.ttft_s.p50);
  if (!p.points.empty())
    out += "\n* Pareto front: no other point is better in one rate and no worse in the other\n";
  for (const std::string& reason : p.left_out)
    for (const std::string& line : output::wrapped("left out: " + reason, output::table_columns - 2))
      out += (line.starts_with("left out: ") ? "" : "  ") + line + '\n';
  return out;
}

std::string pareto_json(const pareto_study& p) {
  return to_json(value{value::object{{"schema", "nvlsim.pareto/1"},
                                     {"name", p.name},
                                     {"gpus", p.gpus},
                                     {"points", output::list_of(p.points, point_value)},
                                     {"left_out", output::list_of(p.left_out)}}});
}

std::string pareto_svg(const pareto_study& p) {
  double max_user = 0, max_gpu = 0;
  std::map<std::string, std::vector<const pareto_point*>> by_layout;
  std::vector<const pareto_point*> front;
  for (const pareto_point& x : p.points) {
    max_user = std::max(max_user, per_user(x));
    max_gpu = std::max(max_gpu, per_gpu(x));
    by_layout[x.layout].push_back(&x);
    if (x.efficient) front.push_back(&x);
  }
  // Without points the axes end at 1.
  const axis x(max_user > 0 ? max_user : 1), y(max_gpu > 0 ? max_gpu : 1);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
      "<text x=\"{2:.0f}\" y=\"22\" font-size=\"15\">{3}: {4} GPUs</text>\n",
      width, height, left_margin, escaped(p.name), p.gpus);
  render_axes(out, x, y);
  render_polyline(out, front, x, y, "stroke=\"#bbb\" stroke-width=\"6\" stroke-linejoin=\"round\"");
  std::size_t i = 0;
  for (const auto& [name, points] : by_layout) {
    const char* colour = colours[i % colours.size()];
    render_polyline(out, points, x, y, fmt::format("stroke=\"{}\" stroke-width=\"1.5\"", colour));
    for (const pareto_point* q : points)
      out += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"><title>{}, {} clients</title></circle>\n",
          x_of(x, per_user(*q)), y_of(y, per_gpu(*q)), colour, escaped(name), q->concurrency);
    const double at = top + 16 * static_cast<double>(i++);
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", width - right_margin + 14, at,
                       colour, escaped(name));
  }
  return out + "</svg>\n";
}

}  // namespace nvlsim
