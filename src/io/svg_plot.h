// Line charts as SVG, written by hand: panels one below the other over one x axis.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

struct PlotLine {
  std::string name;                               // in the legend
  std::vector<std::pair<double, double>> points;  // gaps where y is not finite
  size_t colour = 0;                              // one of a fixed palette, counted round
  bool is_dashed = false;
};

struct PlotPanel {
  std::string title;
  std::vector<PlotLine> lines;
  bool is_logarithmic = false;  // y; only where all values are above 0
};

/// The whole file. Panels without points are left out; without any the picture says so.
std::string draw_svg(const std::string& title, const std::string& x_name,
                     const std::vector<PlotPanel>& panels);

}  // namespace crema
