// crema time: how long each layer takes forward and backward, after one warm-up pass, how near that
// is to what the machine can do, and where the memory goes.
#include <glog/logging.h>

#include <chrono>
#include <cstdio>
#include <iomanip>

#include "base/error.h"
#include "base/trace.h"
#include "commands.h"
#include "time_table.h"

namespace crema {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Runs call and waits for the device; returns milliseconds.
template <class Call>
double timed(Net& net, const Call& call) {
  const Clock::time_point start = Clock::now();
  call();
  net.ops().synchronize();
  return milliseconds_since(start);
}

struct Times {
  std::vector<double> forward, backward;  // per layer, summed over iterations
  double forward_total = 0, backward_total = 0;
};

void time_once(Net& net, Times& times) {
  const int layers = net.layer_count();
  times.forward_total += timed(net, [&] {
    for (int i = 0; i < layers; ++i) {
      times.forward[static_cast<size_t>(i)] += timed(net, [&] { net.forward_layer(i); });
    }
  });
  net.clear_gradients();
  times.backward_total += timed(net, [&] {
    for (int i = layers - 1; i >= 0; --i) {
      if (!net.layer_needs_backward(i)) continue;
      times.backward[static_cast<size_t>(i)] += timed(net, [&] { net.backward_layer(i); });
    }
  });
}

void show_times(const Net& net, const Times& times, double total) {
  LOG(INFO) << "Average time per layer: ";
  for (int i = 0; i < net.layer_count(); ++i) {
    const auto line = [&](const char* direction, const std::vector<double>& sums) {
      LOG(INFO) << std::setw(10) << net.layer_name(i) << "\t" << direction << ": "
                << sums[static_cast<size_t>(i)] / iterations() << " ms.";
    };
    line("forward", times.forward);
    line("backward", times.backward);
  }
  LOG(INFO) << "Average Forward pass: " << times.forward_total / iterations() << " ms.";
  LOG(INFO) << "Average Backward pass: " << times.backward_total / iterations() << " ms.";
  LOG(INFO) << "Average Forward-Backward: " << total / iterations() << " ms.";
  LOG(INFO) << "Total Time: " << total << " ms.";
}

/// To standard output, which no log parser reads.
void show_table(const Net& net, Times times) {
  for (std::vector<double>* sums : {&times.forward, &times.backward}) {
    for (double& ms : *sums) ms /= iterations();
  }
  const double gemm_rate = measure_gemm_rate(net.ops());
  std::printf("%s\n%s\n", time_table(net, {times.forward, times.backward}, gemm_rate).c_str(),
              net.describe_plan().c_str());
  std::fflush(stdout);
}

void show_memory(const MemoryReport& memory) {
  const auto line = [](const char* what, size_t bytes) {
    LOG(INFO) << "Memory of " << what << ": " << static_cast<double>(bytes) / (1 << 20) << " MiB.";
  };
  line("activations and their gradients", memory.activations);
  line("the same without a plan", memory.unplanned);
  line("parameters", memory.parameters);
  line("parameter gradients", memory.gradients);
  line("scratch", memory.scratch);
  line("what backward keeps", memory.saved);
  line("state", memory.state);
  line("packed weights", memory.packed);
}

}  // namespace

int time_command() {
  require_flag(FLAGS_model, "time", "model", "the net to measure");
  iterations();
  NetOptions options = net_options();
  options.train = true;
  const NetParameter model = read_model(phase_flag().value_or(TRAIN));
  Net net(model, options, make_ops(chosen_device()));
  LOG(INFO) << "Performing Forward";
  const float loss = net.forward();
  LOG(INFO) << "Initial loss: " << loss;
  LOG(INFO) << "Performing Backward";
  net.clear_gradients();
  net.backward();
  LOG(INFO) << "*** Benchmark begins ***";
  LOG(INFO) << "Testing for " << iterations() << " iterations.";
  Times times;
  times.forward.resize(static_cast<size_t>(net.layer_count()));
  times.backward.resize(static_cast<size_t>(net.layer_count()));
  const IterationTrace trace(FLAGS_trace, iterations());
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < iterations(); ++i) {
    trace.begin(i);
    const double once = timed(net, [&] { time_once(net, times); });
    trace.end(i);
    LOG(INFO) << "Iteration: " << i + 1 << " forward-backward time: " << once << " ms.";
  }
  show_times(net, times, milliseconds_since(start));
  LOG(INFO) << "*** Benchmark ends ***";
  show_memory(net.memory());
  show_table(net, times);
  return 0;
}

}  // namespace crema
