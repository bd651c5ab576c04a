// The lines of the log that show a net's outputs, as Caffe's users parse them.
#pragma once

#include <string>
#include <vector>

#include "net/net.h"

namespace crema {

/// Elements of one output that are shown; a line says how many there are beyond them.
constexpr size_t kShownElements = 32;

/// Logs "    LABEL net output #k: NAME = v (* w = wv loss)" for each element of each output; k
/// counts over all of them.
void show_outputs(const char* label, const std::vector<NetOutput>& outputs,
                  const std::vector<std::vector<double>>& values);

/// " (* w = wv loss)", or "" for a weight of 0.
std::string weighted(float loss_weight, double value);

/// The net's outputs of the last forward.
std::vector<std::vector<double>> outputs_of(const Net& net);

}  // namespace crema
