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

/// Adds the elements of each output to sums; empty sums become the values. Throws Error naming the
/// output whose number of elements is another than in the batches before: a size that follows the
/// data has no mean.
void add_outputs(const std::vector<NetOutput>& outputs,
                 const std::vector<std::vector<double>>& values,
                 std::vector<std::vector<double>>& sums);

/// The net's outputs of the last forward, in the order of its outputs().
std::vector<std::vector<double>> outputs_of(const Net& net);

}  // namespace crema
