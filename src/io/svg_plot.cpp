// Coordinates are in pixels, y downwards. Ticks lie at 1, 2 or 5 times a power of ten.
#include "io/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "base/str.h"

namespace crema {
namespace {

constexpr double kWidth = 860, kPanel = 260, kLeft = 70, kRight = 200, kTop = 46, kGap = 50;
constexpr const char* kPalette[] = {"#1f77b4", "#d62728", "#2ca02c", "#ff7f0e",
                                    "#9467bd", "#8c564b", "#17becf", "#7f7f7f"};

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return low > high; }
};

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.5g", value);
  return text;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const std::string& text, const char* anchor,
                    int size = 11) {
  return str("<text x=\"", number(x), "\" y=\"", number(y), "\" font-size=\"", size,
             "\" text-anchor=\"", anchor, "\">", escaped(text), "</text>\n");
}

/// Steps of a scale: about `wanted` round numbers from low to high.
std::vector<double> ticks(const Range& range, int wanted) {
  const double rough = (range.high - range.low) / wanted;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough) break;
  }
  std::vector<double> out;
  for (double i = std::ceil(range.low / step - 1e-9); i * step <= range.high + 1e-9 * step; ++i) {
    out.push_back(i * step == 0 ? 0 : i * step);
  }
  return out;
}

/// A range that is not empty and has room around it.
Range widened(Range range) {
  if (range.high - range.low < 1e-12 * std::max(1.0, std::abs(range.high))) {
    const double around = range.low == 0 ? 1 : 0.1 * std::abs(range.low);
    return {range.low - around, range.high + around};
  }
  return range;
}

class Panel {
 public:
  Panel(const PlotPanel& panel, const Range& x, double top)
      : panel_(panel), x_(x), top_(top), is_log_(panel.is_logarithmic) {
    for (const PlotLine& line : panel.lines) {
      for (const auto& [px, py] : line.points) is_log_ &= !std::isfinite(py) || py > 0;
    }
    for (const PlotLine& line : panel.lines) {
      for (const auto& [px, py] : line.points) {
        if (std::isfinite(py)) y_.add(scaled(py));
      }
    }
    y_ = widened(y_);
  }

  std::string draw() const {
    std::string out = text_at(kLeft, top_ - 8, panel_.title, "start", 13);
    out += grid();
    for (size_t i = 0; i < panel_.lines.size(); ++i) out += line(i);
    return out;
  }

 private:
  double scaled(double y) const { return is_log_ ? std::log10(y) : y; }
  double place_x(double x) const {
    return kLeft + (x - x_.low) / (x_.high - x_.low) * (kWidth - kLeft - kRight);
  }
  double place_y(double y) const {
    return top_ + kPanel - (scaled(y) - y_.low) / (y_.high - y_.low) * kPanel;
  }

  std::string grid() const {
    const double right = kWidth - kRight, bottom = top_ + kPanel;
    std::string out =
        str("<rect x=\"", kLeft, "\" y=\"", number(top_), "\" width=\"", number(right - kLeft),
            "\" height=\"", kPanel, "\" fill=\"none\" stroke=\"#888\"/>\n");
    const auto rule = [](double x1, double y1, double x2, double y2) {
      return str("<path d=\"M", number(x1), " ", number(y1), "L", number(x2), " ", number(y2),
                 "\" stroke=\"#ddd\"/>\n");
    };
    for (const double tick : ticks(y_, 5)) {
      const double value = is_log_ ? std::pow(10, tick) : tick, y = place_y(value);
      out += rule(kLeft, y, right, y) + text_at(kLeft - 6, y + 4, number(value), "end");
    }
    for (const double tick : ticks(x_, 8)) {
      const double x = place_x(tick);
      out += rule(x, top_, x, bottom) + text_at(x, bottom + 15, number(tick), "middle");
    }
    return out;
  }

  std::string line(size_t index) const {
    const PlotLine& line = panel_.lines[index];
    const char* colour = kPalette[line.colour % std::size(kPalette)];
    const std::string style = str("fill=\"none\" stroke=\"", colour, "\" stroke-width=\"1.5\"",
                                  line.is_dashed ? " stroke-dasharray=\"5 3\"" : "");
    std::string path;
    bool is_down = false;
    for (const auto& [x, y] : line.points) {
      if (!std::isfinite(y)) {
        is_down = false;
        continue;
      }
      path += (is_down ? "L" : "M") + number(place_x(x)) + " " + number(place_y(y));
      is_down = true;
    }
    std::string out = "<path d=\"" + path + "\" " + style + "/>\n";
    if (line.points.size() == 1 && is_down) {  // a line of one point would not be seen
      out += str("<circle cx=\"", number(place_x(line.points[0].first)), "\" cy=\"",
                 number(place_y(line.points[0].second)), "\" r=\"2.5\" fill=\"", colour, "\"/>\n");
    }
    const double legend = kWidth - kRight + 12, y = top_ + 12 + 16 * static_cast<double>(index);
    out += str("<path d=\"M", number(legend), " ", number(y), "h22\" ", style, "/>\n");
    return out + text_at(legend + 28, y + 4, line.name, "start");
  }

  const PlotPanel& panel_;
  Range x_, y_;
  double top_;
  bool is_log_;
};

bool has_points(const PlotPanel& panel) {
  return std::any_of(panel.lines.begin(), panel.lines.end(), [](const PlotLine& line) {
    return std::any_of(line.points.begin(), line.points.end(),
                       [](const auto& point) { return std::isfinite(point.second); });
  });
}

}  // namespace

std::string draw_svg(const std::string& title, const std::string& x_name,
                     const std::vector<PlotPanel>& panels) {
  std::vector<const PlotPanel*> shown;
  Range x;
  for (const PlotPanel& panel : panels) {
    if (!has_points(panel)) continue;
    shown.push_back(&panel);
    for (const PlotLine& line : panel.lines) {
      for (const auto& point : line.points) x.add(point.first);
    }
  }
  const double height =
      kTop + static_cast<double>(std::max<size_t>(1, shown.size())) * (kPanel + kGap) + 10;
  std::string out = str("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth,
                        "\" height=\"", height, "\" font-family=\"Helvetica,Arial,sans-serif\">\n",
                        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  out += text_at(kLeft, 18, title, "start", 14);
  if (shown.empty()) return out + text_at(kLeft, 60, "nothing to show yet", "start") + "</svg>\n";
  x = widened(x);
  double top = kTop;
  for (const PlotPanel* panel : shown) {
    out += Panel(*panel, x, top).draw();
    top += kPanel + kGap;
  }
  out += text_at((kLeft + kWidth - kRight) / 2, top - 16, x_name, "middle");
  return out + "</svg>\n";
}

}  // namespace crema
