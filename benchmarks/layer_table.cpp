// The table: times come from the net's own single steps, rates from the count of each layer.
#include "layer_table.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/str.h"
#include "net/step_cost.h"

namespace crema {
namespace {

struct Line {
  std::string name;
  double operations = 0, bytes = 0;
  std::vector<double> seconds;
};

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Two lines per layer of the net: forward, then backward.
std::vector<Line> lines_of(const Net& net, const NetParameter& param) {
  std::map<std::string, const LayerParameter*> written;
  for (const LayerParameter& layer : param.layer()) written[layer.name()] = &layer;
  std::vector<Line> lines;
  for (int i = 0; i < net.layer_count(); ++i) {
    const auto layer = written.find(net.layer_name(i));
    const LayerCost cost = layer == written.end() ? LayerCost{} : count_layer(net, *layer->second);
    const std::string name = str(net.layer_name(i), " (", net.layer(i).param().type(), ")");
    lines.push_back({name + " forward", cost.forward_operations, cost.forward_bytes, {}});
    lines.push_back({name + " backward", cost.backward_operations, cost.backward_bytes, {}});
  }
  return lines;
}

void time_layers(Net& net, const std::function<double()>& clock, std::vector<Line>& lines) {
  const auto timed = [&](size_t line, const auto& call) {
    const double start = clock();
    call();
    net.ops().synchronize();
    lines[line].seconds.push_back(clock() - start);
  };
  const int layers = net.layer_count();
  for (int i = 0; i < layers; ++i) {
    timed(2 * static_cast<size_t>(i), [&] { net.forward_layer(i); });
  }
  net.clear_gradients();
  for (int i = layers - 1; i >= 0; --i) {
    if (!net.layer_needs_backward(i)) continue;
    timed(2 * static_cast<size_t>(i) + 1, [&] { net.backward_layer(i); });
  }
}

}  // namespace

void print_layer_table(Net& net, const NetParameter& param, int iterations,
                       const std::function<double()>& clock) {
  std::vector<Line> lines = lines_of(net, param);
  for (int i = 0; i < iterations; ++i) time_layers(net, clock, lines);
  std::vector<std::pair<double, const Line*>> order;
  double total = 0;
  for (Line& line : lines) {
    if (line.seconds.empty()) continue;
    order.emplace_back(median(line.seconds), &line);
    total += order.back().first;
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::printf("%7s %10s %9s %7s  layer\n", "share", "ms", "GFLOP/s", "GB/s");
  for (const auto& [seconds, line] : order) {
    std::printf("%6.1f%% %10.3f %9.1f %7.1f  %s\n", 100 * seconds / total, 1e3 * seconds,
                line->operations / seconds / 1e9, line->bytes / seconds / 1e9, line->name.c_str());
  }
}

}  // namespace crema
