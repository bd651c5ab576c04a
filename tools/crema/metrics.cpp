// One line for each display and each test:
// {"phase": "train", "iter": 100, "seconds": 1.5, "loss": 0.3, "lr": 0.01, "outputs": {"loss":
// 0.31}}
#include "metrics.h"

#include <gflags/gflags.h>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

DECLARE_string(snapshot);
DEFINE_string(metrics, "", "train: file for the displayed figures, one JSON object a line");
DEFINE_string(tensorboard, "", "train: folder for TensorBoard's event files");

namespace crema {
namespace {

std::string phase_of(const SolverEvent& event) {
  if (event.test_net < 0) return "train";
  return event.test_net == 0 ? "test" : str("test", event.test_net);
}

std::string value_json(const std::vector<double>& values) {
  if (values.size() == 1) return json_number(static_cast<float>(values[0]));
  std::vector<std::string> parts;
  for (const double value : values) parts.push_back(json_number(static_cast<float>(value)));
  return "[" + join(parts) + "]";
}

std::string to_line(const SolverEvent& event) {
  std::string out = str("{\"phase\": ", json_text(phase_of(event)), ", \"iter\": ", event.iter,
                        ", \"seconds\": ", json_number(event.seconds));
  if (event.loss) out += ", \"loss\": " + json_number(static_cast<float>(*event.loss));
  if (event.rate) out += ", \"lr\": " + json_number(*event.rate);
  std::vector<std::string> outputs;
  for (const auto& [name, values] : event.outputs) {
    outputs.push_back(json_text(name) + ": " + value_json(values));
  }
  return out + ", \"outputs\": {" + join(outputs) + "}}\n";
}

}  // namespace

Metrics::Metrics() {
  if (!FLAGS_metrics.empty()) {
    require_writable(FLAGS_metrics);
    file_.open(FLAGS_metrics, FLAGS_snapshot.empty() ? std::ios::trunc : std::ios::app);
    require(file_.is_open(), FLAGS_metrics, ": ", errno_text());
  }
  if (!FLAGS_tensorboard.empty()) events_ = std::make_unique<EventFile>(FLAGS_tensorboard);
}

void Metrics::add(const SolverEvent& event) {
  if (file_.is_open()) {
    file_ << to_line(event) << std::flush;
    require(file_.good(), FLAGS_metrics, ": ", errno_text());
  }
  if (!events_) return;
  std::vector<std::pair<std::string, double>> values;
  const std::string phase = phase_of(event);
  if (event.loss) values.emplace_back(phase + "/smoothed_loss", *event.loss);
  if (event.rate) values.emplace_back("learning_rate", *event.rate);
  for (const auto& [name, elements] : event.outputs) {
    for (size_t i = 0; i < elements.size(); ++i) {
      values.emplace_back(str(phase, "/", name, i > 0 ? str("_", i) : ""), elements[i]);
    }
  }
  events_->add(event.iter, values);
}

}  // namespace crema
