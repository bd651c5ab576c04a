// Arithmetic comes from the layers as they are written, bytes from the steps as they were planned.
#include "time_table.h"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "base/str.h"
#include "net/step_cost.h"

namespace crema {
namespace {

constexpr int64_t kGemmSize = 1024;
constexpr int kGemmRounds = 7;

struct Direction {
  double ms = 0, gflop = 0, bytes = 0;
  void add(const Direction& other) {
    ms += other.ms;
    gflop += other.gflop;
    bytes += other.bytes;
  }
};

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string cells(const Direction& d, double gemm_rate) {
  std::string text = number("%11.3f", d.ms);
  const bool has_time = d.ms > 0;
  text += d.gflop > 0 ? number("%9.3f", d.gflop) : "         ";
  text +=
      d.gflop > 0 && has_time ? number("%6.0f %%", 1e5 * d.gflop / d.ms / gemm_rate) : "        ";
  text += d.bytes > 0 && has_time ? number("%8.1f", d.bytes / d.ms / 1e6) : "        ";
  return text;
}

std::string line(std::string name, const Direction& forward, const Direction& backward,
                 double gemm_rate) {
  constexpr size_t kNameWidth = 38;
  if (name.size() > kNameWidth) name = name.substr(0, kNameWidth - 3) + "...";
  name.resize(kNameWidth, ' ');
  return name + cells(forward, gemm_rate) + "  |" + cells(backward, gemm_rate) + "\n";
}

}  // namespace

double measure_gemm_rate(Ops& ops) {
  const TensorDesc square{Shape{kGemmSize, kGemmSize}};
  std::vector<Buffer> memory;
  std::vector<Tensor> tensors;
  for (int i = 0; i < 3; ++i) {
    memory.push_back(ops.allocate(square.bytes(), Memory::device));
    tensors.push_back({memory.back().get(), square});
    ops.fill(0.5F, tensors.back());
  }
  std::vector<double> seconds;
  for (int i = 0; i <= kGemmRounds; ++i) {
    ops.synchronize();
    const auto start = std::chrono::steady_clock::now();
    ops.gemm(false, false, 1, tensors[0], tensors[1], tensors[2], Write::overwrite);
    ops.synchronize();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (i > 0) seconds.push_back(taken.count());
  }
  std::nth_element(seconds.begin(), seconds.begin() + kGemmRounds / 2, seconds.end());
  const auto n = static_cast<double>(kGemmSize);
  return 2 * n * n * n / seconds[kGemmRounds / 2] / 1e9;
}

std::string time_table(const Net& net, const StepTimes& times, double gemm_rate) {
  std::string text =
      str(std::string(38, ' '), "    forward                             |   backward\n", "step",
          std::string(34, ' '),
          "         ms    GFLOP of GEMM    GB/s  |         ms    GFLOP of GEMM    GB/s\n");
  Direction all_forward, all_backward;
  for (int i = 0; i < net.layer_count(); ++i) {
    const std::vector<std::string> layers = net.layers_of_step(i);
    if (layers.empty()) continue;
    const auto at = static_cast<size_t>(i);
    const StepTraffic traffic = net.traffic_of_step(i);
    Direction forward{times.forward[at], 0, traffic.forward};
    Direction backward{times.backward[at], 0, traffic.backward};
    for (const std::string& name : layers) {
      const Layer* layer = net.find_layer(name);
      if (layer == nullptr) continue;
      const LayerCost cost = count_layer(net, layer->param());
      forward.gflop += cost.forward_operations / 1e9;
      if (net.layer_needs_backward(i)) backward.gflop += cost.backward_operations / 1e9;
    }
    text += line(join(layers, " + "), forward, backward, gemm_rate);
    all_forward.add(forward);
    all_backward.add(backward);
  }
  text += line("all steps", all_forward, all_backward, gemm_rate);
  return text + str("GEMM rate: ", number("%.1f", gemm_rate), " GFLOP/s (", kGemmSize, " x ",
                    kGemmSize, " matrices, f32, this run)\n");
}

}  // namespace crema
