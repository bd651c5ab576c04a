// Six significant digits of float values, as streams give them.
#include "solver/show_outputs.h"

#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"

namespace crema {

std::string weighted(float loss_weight, double value) {
  if (loss_weight == 0) return "";
  return str(" (* ", loss_weight, " = ", static_cast<float>(loss_weight * value), " loss)");
}

void show_outputs(const char* label, const std::vector<NetOutput>& outputs,
                  const std::vector<std::vector<double>>& values) {
  size_t number = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const size_t shown = std::min(values[i].size(), kShownElements);
    for (size_t k = 0; k < shown; ++k) {
      LOG(INFO) << "    " << label << " net output #" << number + k << ": " << outputs[i].name
                << " = " << static_cast<float>(values[i][k])
                << weighted(outputs[i].loss_weight, values[i][k]);
    }
    // BVLC: shows every element, a label picture's million of them too.
    if (shown < values[i].size()) {
      LOG(INFO) << "    The first " << shown << " of " << values[i].size() << " values of \""
                << outputs[i].name << "\" are shown; a Silence layer would hide it.";
    }
    number += values[i].size();
  }
}

void add_outputs(const std::vector<NetOutput>& outputs,
                 const std::vector<std::vector<double>>& values,
                 std::vector<std::vector<double>>& sums) {
  if (sums.empty()) {
    sums = values;
    return;
  }
  // BVLC: adds beyond the end of what the first batch gave.
  for (size_t i = 0; i < values.size(); ++i) {
    require(sums[i].size() == values[i].size(), "output \"", outputs[i].name, "\" has ",
            values[i].size(), " values in this batch and had ", sums[i].size(),
            " before: there is no mean over batches; a Silence layer hides it");
    for (size_t k = 0; k < values[i].size(); ++k) sums[i][k] += values[i][k];
  }
}

std::vector<std::vector<double>> outputs_of(const Net& net) {
  std::vector<std::vector<double>> out;
  for (const std::vector<float>& values : net.output_values())
    out.emplace_back(values.begin(), values.end());
  return out;
}

}  // namespace crema
