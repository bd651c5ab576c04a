// Rules about records: a sample of them is read, pictures and labels compared with what the net
// makes of them.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "feed/database.h"
#include "feed/datum_pixels.h"
#include "feed/list_file.h"
#include "io/mean.h"
#include "net/lint_rules.h"

namespace crema {
namespace {

constexpr uint64_t kLabelSample = 5000, kPictureSample = 64;

struct Sample {
  std::vector<int> labels;        // of the first records
  std::optional<int> last_label;  // of the last record
  uint64_t records = 0;
  std::array<double, 3> means{};  // of the channels of colour pictures
  uint64_t pictures = 0;          // that went into them
  std::string broken;             // what is wrong with a record behind the first
};

void add_picture(const DatumView& datum, Sample& sample) {
  Picture decoded;
  const Pixels pixels = pixels_of_datum(datum, ColorMode::as_stored, decoded);
  if (pixels.channels != 3) return;
  const int64_t plane = static_cast<int64_t>(pixels.height) * pixels.width;
  std::array<double, 3> sums{};
  for (int64_t i = 0; i < 3 * plane; ++i) {
    const auto channel = static_cast<size_t>(pixels.is_interleaved ? i % 3 : i / plane);
    sums[channel] += pixels.bytes != nullptr ? pixels.bytes[i] : pixels.floats[i];
  }
  for (size_t c = 0; c < 3; ++c) sample.means[c] += sums[c] / static_cast<double>(plane);
  ++sample.pictures;
}

Sample sample_database(const std::string& source) {
  Sample sample;
  const auto database = open_database(source);
  sample.records = database->size();
  DatumView datum;
  uint64_t at = 0;
  try {
    for (; at < std::min(sample.records, kLabelSample); ++at) {
      const Record record = database->next();
      parse_datum(record.value, datum);
      sample.labels.push_back(datum.label);
      if (at < kPictureSample) add_picture(datum, sample);
    }
    at = sample.records - 1;
    database->seek(at);
    parse_datum(database->next().value, datum);
    sample.last_label = datum.label;
  } catch (const Error& error) {
    if (at == 0) throw;
    sample.broken = str("record ", at, ", counted from 0: ", error.what());
  }
  for (double& mean : sample.means)
    mean /= static_cast<double>(std::max<uint64_t>(1, sample.pictures));
  return sample;
}

Sample sample_list(const std::string& source) {
  Sample sample;
  const std::vector<ListEntry> entries = read_list(source);
  sample.records = entries.size();
  for (const ListEntry& entry : entries) sample.labels.push_back(entry.label);
  sample.last_label = entries.back().label;
  return sample;
}

/// Whether equal labels lie together far more often than in a random order.
bool is_sorted_by_label(const Sample& sample) {
  const size_t n = sample.labels.size();
  if (n < 20) return false;
  std::map<int, size_t> counts;
  size_t changes = 0;
  for (size_t i = 0; i < n; ++i) {
    ++counts[sample.labels[i]];
    if (i > 0 && sample.labels[i] != sample.labels[i - 1]) ++changes;
  }
  if (counts.size() == 1) return *sample.last_label != sample.labels[0];
  double same = 0;
  for (const auto& [label, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(n);
    same += share * share;
  }
  return static_cast<double>(changes) < 0.1 * (1 - same) * static_cast<double>(n);
}

void order_rule(const LayerParameter& layer, const Sample& sample, LintList& out) {
  const bool is_shuffled =
      layer.type() == "Data" ? layer.data_param().shuffle() : layer.image_data_param().shuffle();
  if (is_shuffled || !is_sorted_by_label(sample)) return;
  out.warn("sorted_without_shuffle", layer,
           "records of one label lie together, and are trained on in that order; shuffle: true or "
           "convert_imageset --shuffle mixes them");
}

/// Whether the three means fit the records better in the reverse order, by more than chance.
bool fits_reversed(const std::array<double, 3>& given, const std::array<double, 3>& seen) {
  double straight = 0, reversed = 0;
  for (size_t c = 0; c < 3; ++c) {
    straight += std::abs(given[c] - seen[c]);
    reversed += std::abs(given[2 - c] - seen[c]);
  }
  return straight > 6 && reversed < 0.5 * straight;
}

void mean_rule(const LayerParameter& layer, const Sample& sample, LintList& out) {
  const TransformationParameter& transform = layer.transform_param();
  if (sample.pictures == 0) return;
  std::array<double, 3> given{};
  if (transform.mean_value_size() == 3) {
    for (int c = 0; c < 3; ++c) given[static_cast<size_t>(c)] = transform.mean_value(c);
  } else if (exists(transform.mean_file())) {
    const HostBlob mean = read_mean(transform.mean_file());
    const size_t plane = mean.data.size() / 3;
    if (mean.data.size() % 3 != 0 || mean.shape.dim_or_one(1) != 3) return;
    for (size_t i = 0; i < mean.data.size(); ++i) {
      given[i / plane] += static_cast<double>(mean.data[i]) / static_cast<double>(plane);
    }
  } else {
    return;
  }
  if (!fits_reversed(given, sample.means)) return;
  out.warn("mean_channel_order", layer,
           str("the mean's channels (", join(given), ") fit the records (", join(sample.means),
               ") better in reverse: records are blue, green, red"));
}

/// Classes of the softmax loss that reads this layer's label, where its scores come straight from
/// an InnerProduct or Convolution; 0: not known.
int64_t classes_of(const NetParameter& net, const std::string& label) {
  for (const LayerParameter& loss : net.layer()) {
    if (loss.type() != "SoftmaxWithLoss" || loss.bottom_size() < 2 || loss.bottom(1) != label)
      continue;
    for (const LayerParameter& layer : net.layer()) {
      if (layer.top_size() == 0 || layer.top(0) != loss.bottom(0)) continue;
      if (layer.type() == "InnerProduct") return layer.inner_product_param().num_output();
      if (layer.type() == "Convolution") return layer.convolution_param().num_output();
    }
  }
  return 0;
}

void label_rule(const NetParameter& net, const LayerParameter& layer, const Sample& sample,
                LintList& out) {
  if (layer.top_size() < 2) return;
  const int64_t classes = classes_of(net, layer.top(1));
  if (classes == 0) return;
  const int largest = *std::max_element(sample.labels.begin(), sample.labels.end());
  if (largest >= classes) {
    out.fail("label_beyond_classes", layer,
             str("holds the label ", largest, ", the net has ", classes,
                 " classes: num_output must be at least ", largest + 1));
  }
}

/// Whether pictures are changed by lot, by more than mirrors and crops.
bool is_drawn(const TransformationParameter& p) {
  return p.has_distort_param() || p.has_expand_param() || p.has_noise_param() ||
         p.max_rotation() > 0 || p.rand_resize_ratio_upper() > p.rand_resize_ratio_lower() ||
         p.img_rand_resize_upper() > p.img_rand_resize_lower() ||
         p.vertical_stretch_upper() > p.vertical_stretch_lower() ||
         p.horizontal_stretch_upper() > p.horizontal_stretch_lower();
}

}  // namespace

void data_rules(const NetParameter& net, int i, LintList& out) {
  const LayerParameter& layer = net.layer(i);
  const bool is_training = net.state().phase() == TRAIN;
  if (layer.transform_param().mirror() && !is_training) {
    out.warn("mirror_in_test", layer,
             "mirror: true mirrors at random in TEST too, so scores differ from run to run");
  }
  if (is_drawn(layer.transform_param()) && !is_training) {
    out.warn("augmented_in_test", layer,
             "transform_param changes pictures at random in TEST too, so scores differ from run to "
             "run and are not those of the pictures as they are");
  }
  if (layer.type() != "Data" && layer.type() != "ImageData") return;
  Sample sample;
  try {
    sample = layer.type() == "Data" ? sample_database(layer.data_param().source())
                                    : sample_list(layer.image_data_param().source());
  } catch (const Error&) {  // wiring names it
    return;
  }
  if (!sample.broken.empty()) return out.fail("unreadable_record", layer, sample.broken);
  if (is_training) order_rule(layer, sample, out);
  try {
    mean_rule(layer, sample, out);
  } catch (const Error&) {  // wiring names it
  }
  label_rule(net, layer, sample, out);
}

std::vector<Finding> lint_phases(const NetParameter& train, const NetParameter& test,
                                 const LintContext& context) {
  LintList out(context.file);
  const auto first_data = [](const NetParameter& net) -> const LayerParameter* {
    for (const LayerParameter& layer : net.layer()) {
      if (layer.type() == "Data" || layer.type() == "ImageData") return &layer;
    }
    return nullptr;
  };
  const LayerParameter *a = first_data(train), *b = first_data(test);
  if (a == nullptr || b == nullptr) return {};
  const TransformationParameter &x = a->transform_param(), &y = b->transform_param();
  if (x.scale() != y.scale()) {
    out.warn("phases_differ", *b,
             str("scale is ", y.scale(), " here and ", x.scale(), " in TRAIN; they should agree"));
  }
  const auto mean = [](const TransformationParameter& transform) {
    return transform.has_mean_file() ? transform.mean_file() : join(transform.mean_value(), " ");
  };
  if (mean(x).empty() != mean(y).empty()) {
    out.warn("phases_differ", *b,
             str("a mean is subtracted in ", mean(x).empty() ? "TEST" : "TRAIN",
                 " only; it should be in both"));
  }
  return out.findings();
}

}  // namespace crema
