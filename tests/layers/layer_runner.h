// The net that the harness builds around the text of a row, with its inputs and parameters set.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layers/layer_harness.h"

namespace crema {

/// An output of the text, and what it counts for in the loss.
struct Objective {
  std::string blob;
  float weight = 0;          // of each element, where there is no loss layer
  std::string loss_layer{};  // the HarnessLoss put on it
  std::vector<float> weights{};
};

/// The net around the text of a row.
struct Around {
  NetParameter net;
  std::vector<Objective> objectives;
  std::vector<std::string> outputs;
  std::map<std::string, std::string> renamed;  // blob as the row calls it -> blob of the net
};

/// A net with its inputs and parameters set.
class LayerRunner {
 public:
  /// test must outlive the runner. Throws Error as Net does.
  LayerRunner(const LayerCase& test, const LayerRunOptions& options);

  Net& net() { return *net_; }

  /// The blob that the Input layer of a row's input makes.
  std::string input_name(const LayerInput& input) const;
  const std::vector<float>& input_values(size_t input) const { return inputs_[input]; }
  /// Draws as the first pass after set-up does.
  void forward();
  /// The loss in float64.
  double objective() const;
  /// Places in net.params() of the text's parameters.
  std::vector<int> params() const;
  /// Everything that can be read now.
  LayerRun results() const;

 private:
  uint64_t key(uint64_t purpose, uint64_t index) const;
  bool belongs_to_loss(const NetParam& param) const;
  void set_params();
  void set_loss_weights();
  void spoil_gradients();
  void take_params(LayerRun& run) const;

  const LayerCase& test_;
  LayerRunOptions options_;
  Around around_;
  std::vector<std::vector<float>> inputs_;
  std::unique_ptr<Net> net_;
};

}  // namespace crema
