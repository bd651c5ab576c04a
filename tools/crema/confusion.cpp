// Counts are exact; all figures come from them.
#include "confusion.h"

#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"
#include "net/filter.h"
#include "net/upgrade.h"

namespace crema {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string class_name(size_t index, const std::vector<std::string>& names) {
  return index < names.size() ? names[index] : std::to_string(index);
}

/// A field of a CSV row, in quotation marks where it needs them.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

}  // namespace

ScoredBlobs find_scored_blobs(const NetParameter& param, const std::string& file) {
  NetParameter net = param;
  upgrade_net(net, file);
  ErrorList errors;
  filter_net(net, net.state(), file, errors);
  errors.throw_if_any();
  for (const char* type : {"Accuracy", "SoftmaxWithLoss", "InfogainLoss"}) {
    for (const LayerParameter& layer : net.layer()) {
      if (layer.type() != type || layer.bottom_size() < 2) continue;
      ScoredBlobs blobs{.scores = layer.bottom(0), .labels = layer.bottom(1), .ignored_label = {}};
      if (layer.type() == "Accuracy") {
        blobs.axis = layer.accuracy_param().axis();
        if (layer.accuracy_param().has_ignore_label()) {
          blobs.ignored_label = layer.accuracy_param().ignore_label();
        }
      } else {
        const bool is_softmax = layer.type() == "SoftmaxWithLoss";
        blobs.axis = is_softmax ? layer.softmax_param().axis() : layer.infogain_loss_param().axis();
        if (layer.loss_param().has_ignore_label()) {
          blobs.ignored_label = layer.loss_param().ignore_label();
        }
      }
      return blobs;
    }
  }
  fail(file,
       ": has no Accuracy, SoftmaxWithLoss or InfogainLoss layer whose scores and labels could "
       "be compared class by class");
}

void ConfusionMatrix::add(const Net& net) {
  const Shape shape = net.blob_shape(blobs_.scores);
  const int axis = shape.canonical(blobs_.axis);
  const auto classes = static_cast<size_t>(shape[axis]);
  if (classes_ == 0) {
    classes_ = classes;
    counts_.resize(classes * classes);
  }
  const std::vector<float> scores = net.blob_values(blobs_.scores);
  const std::vector<float> labels = net.blob_values(blobs_.labels);
  const auto inner = static_cast<size_t>(shape.count(axis + 1));
  for (size_t i = 0; i < labels.size(); ++i) {
    const int label = static_cast<int>(labels[i]);
    if (blobs_.ignored_label && label == *blobs_.ignored_label) continue;
    require(label >= 0 && static_cast<size_t>(label) < classes, "label ", label, " of blob \"",
            blobs_.labels, "\" is none of the ", classes, " classes of \"", blobs_.scores, "\"");
    const float* first = scores.data() + i / inner * classes * inner + i % inner;
    size_t chosen = static_cast<size_t>(label);
    float best = first[chosen * inner];
    // A score that is not a number is never right: the first other class is taken for it.
    const bool is_lost = !(best == best);
    for (size_t k = 0; k < classes; ++k) {
      if (k == static_cast<size_t>(label)) continue;
      const float score = first[k * inner];
      const bool is_own = chosen == static_cast<size_t>(label);
      if (score > best || (is_own && (score == best || is_lost))) {
        chosen = k;
        best = score;
      }
    }
    ++counts_[static_cast<size_t>(label) * classes + chosen];
  }
}

void ConfusionMatrix::log_per_class(const std::vector<std::string>& names) const {
  double recalls = 0, precisions = 0, f1s = 0, overlaps = 0;
  int present = 0;
  for (size_t k = 0; k < classes_; ++k) {
    int64_t labelled = 0, chosen = 0;
    for (size_t other = 0; other < classes_; ++other) {
      labelled += at(k, other);
      chosen += at(other, k);
    }
    const double recall = ratio(at(k, k), labelled), precision = ratio(at(k, k), chosen);
    const double f1 = ratio(2 * at(k, k), labelled + chosen);
    const double overlap = ratio(at(k, k), labelled + chosen - at(k, k));
    LOG(INFO) << "Class " << k << (k < names.size() ? " (" + names[k] + ")" : "")
              << ": accuracy = " << static_cast<float>(recall)
              << ", precision = " << static_cast<float>(precision)
              << ", F1 = " << static_cast<float>(f1) << ", IoU = " << static_cast<float>(overlap)
              << ", " << labelled << " samples";
    if (labelled == 0) continue;
    ++present;
    recalls += recall;
    precisions += precision;
    f1s += f1;
    overlaps += overlap;
  }
  if (present == 0) return;
  LOG(INFO) << "Mean of " << present
            << " classes: accuracy = " << static_cast<float>(recalls / present)
            << ", precision = " << static_cast<float>(precisions / present)
            << ", F1 = " << static_cast<float>(f1s / present)
            << ", IoU = " << static_cast<float>(overlaps / present);
}

std::string ConfusionMatrix::to_csv(const std::vector<std::string>& names) const {
  std::string out = "true\\chosen";
  for (size_t k = 0; k < classes_; ++k) out += "," + csv_field(class_name(k, names));
  out += "\n";
  for (size_t label = 0; label < classes_; ++label) {
    out += csv_field(class_name(label, names));
    for (size_t k = 0; k < classes_; ++k) out += str(",", at(label, k));
    out += "\n";
  }
  return out;
}

}  // namespace crema
