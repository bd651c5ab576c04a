// crema test: a net with its weights over some batches, or over the whole set once; the outputs of
// each batch, their means, and on request what became of each class.
#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/trace.h"
#include "commands.h"
#include "confusion.h"
#include "detections.h"
#include "feed/feed.h"
#include "io/weights.h"
#include "label_names.h"
#include "net/upgrade.h"
#include "solver/show_outputs.h"

DEFINE_bool(
    per_class, false,
    "test: show accuracy, precision, F1 and IoU of each class; average precision for detectors");
DEFINE_string(confusion_matrix, "", "test: CSV file for how often each class was taken for which");

namespace crema {
namespace {

/// Means over batches, each weighted by its size.
struct Means {
  double weight = 0, loss = 0;
  std::vector<std::vector<double>> outputs;

  void add(double batch_weight, double batch_loss, const std::vector<NetOutput>& names,
           const std::vector<std::vector<double>>& values) {
    weight += batch_weight;
    loss += batch_weight * batch_loss;
    std::vector<std::vector<double>> parts = values;
    for (std::vector<double>& part : parts) {
      for (double& value : part) value *= batch_weight;
    }
    add_outputs(names, parts, outputs);
  }
};

/// What is run: full batches, then perhaps a smaller one.
struct Amount {
  uint64_t batches = 0, batch_size = 1, rest = 0;
};

void show_batch(uint64_t batch, const Net& net, const std::vector<std::vector<double>>& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t shown = std::min(values[i].size(), kShownElements);
    for (size_t k = 0; k < shown; ++k) {
      LOG(INFO) << "Batch " << batch << ", " << net.outputs()[i].name << " = "
                << static_cast<float>(values[i][k]);
    }
  }
}

void show_means(const Net& net, const Means& means) {
  LOG(INFO) << "Loss: " << static_cast<float>(means.loss / means.weight);
  for (size_t i = 0; i < means.outputs.size(); ++i) {
    const NetOutput& output = net.outputs()[i];
    const std::vector<double>& sums = means.outputs[i];
    const size_t shown = std::min(sums.size(), kShownElements);
    for (size_t k = 0; k < shown; ++k) {
      const double mean = sums[k] / means.weight;
      LOG(INFO) << output.name << " = " << static_cast<float>(mean)
                << weighted(output.loss_weight, mean);
    }
    if (shown < sums.size()) {
      LOG(INFO) << "The first " << shown << " of " << sums.size() << " values of \"" << output.name
                << "\" are shown.";
    }
  }
}

/// Records and batch size of the net's data layers, which must agree.
Amount whole_set(const Net& net) {
  uint64_t records = 0, batch_size = 0;
  std::string first;
  for (int i = 0; i < net.layer_count(); ++i) {
    const Feed* feed = net.layer(i).feed();
    if (feed == nullptr || feed->size() == 0) continue;
    const auto own_batch = static_cast<uint64_t>(feed->shapes().at(0)[0]);
    require(first.empty() || (feed->size() == records && own_batch == batch_size),
            "--iterations=all: layer \"", net.layer_name(i), "\" has ", feed->size(),
            " records in batches of ", own_batch, ", layer \"", first, "\" ", records,
            " in batches of ", batch_size, ": they must agree");
    first = net.layer_name(i);
    records = feed->size();
    batch_size = own_batch;
  }
  require(!first.empty(), FLAGS_model,
          ": --iterations=all needs a layer that reads records from a database or files");
  return {records / batch_size, batch_size, records % batch_size};
}

void set_batch_size(NetParameter& net, uint64_t size) {
  const auto batch = static_cast<uint32_t>(size);
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() == "Data" || layer.type() == "AnnotatedData") {
      layer.mutable_data_param()->set_batch_size(batch);
    }
    if (layer.type() == "ImageData") layer.mutable_image_data_param()->set_batch_size(batch);
    if (layer.type() == "HDF5Data") layer.mutable_hdf5_data_param()->set_batch_size(batch);
  }
}

class Tester {
 public:
  Tester(NetParameter model, NetOptions options)
      : model_(std::move(model)), options_(std::move(options)) {
    upgrade_net(model_, FLAGS_model);
    options_.keep_all = model_.debug_info();
    detections_.emplace(model_);
    const bool per_class = FLAGS_per_class && !detections_->is_needed();
    if (per_class || !FLAGS_confusion_matrix.empty()) {
      const ScoredBlobs blobs = find_scored_blobs(model_, FLAGS_model);
      options_.keep = {blobs.scores, blobs.labels};
      confusion_.emplace(blobs);
    }
  }

  void run() {
    const WeightsFile weights = read_weights(FLAGS_weights);
    ops_ = make_ops(chosen_device());
    Net net(model_, options_, ops_);
    net.load_weights(weights, FLAGS_weights);
    net.params_changed();
    const bool is_whole = FLAGS_iterations == "all";
    const Amount amount =
        is_whole ? whole_set(net) : Amount{.batches = static_cast<uint64_t>(iterations())};
    LOG(INFO) << "Running for " << amount.batches + (amount.rest > 0) << " iterations.";
    if (is_whole) {
      LOG(INFO) << "The whole set once: " << amount.batches * amount.batch_size + amount.rest
                << " records, " << amount.batches << " batches of " << amount.batch_size
                << (amount.rest > 0 ? str(" and one of ", amount.rest) : "");
    }
    trace_ = IterationTrace(FLAGS_trace, static_cast<int>(amount.batches + (amount.rest > 0)));
    for (uint64_t i = 0; i < amount.batches; ++i) run_batch(net, amount.batch_size);
    if (amount.rest > 0) run_rest(net, amount);
    show_means(net, means_);
    report_classes(net);
  }

 private:
  void run_batch(Net& net, uint64_t weight) {
    trace_.begin(static_cast<int>(batch_));
    const float loss = net.forward();
    if (model_.debug_info()) net.log_debug_forward();
    trace_.end(static_cast<int>(batch_));
    std::vector<std::vector<double>> values = outputs_of(net);
    detections_->take(net.outputs(), values);
    show_batch(batch_++, net, values);
    means_.add(static_cast<double>(weight), loss, net.outputs(), values);
    if (confusion_) confusion_->add(net);
  }

  /// A net of the smaller batch that shares the parameters and goes on where the other one ended.
  void run_rest(Net& net, const Amount& amount) {
    NetParameter model = model_;
    set_batch_size(model, amount.rest);
    NetOptions options = options_;
    options.log = false;
    std::unique_ptr<Net> rest;
    try {
      rest = std::make_unique<Net>(model, options, ops_, &net);
    } catch (const Error& error) {
      throw error.at(str("the last batch of ", amount.rest));
    }
    for (const auto& [layer, position] : rest->cursors()) {
      rest->seek(layer, amount.batches * amount.batch_size);
    }
    run_batch(*rest, amount.rest);
  }

  void report_classes(const Net& net) const {
    std::string source;
    for (int i = 0; i < net.layer_count() && source.empty(); ++i) {
      source = net.layer(i).param().data_param().source();
    }
    const std::vector<std::string> names = label_names(source);
    detections_->log(FLAGS_per_class, names);
    if (!confusion_) return;
    if (FLAGS_per_class) confusion_->log_per_class(names);
    if (FLAGS_confusion_matrix.empty()) return;
    write_file(FLAGS_confusion_matrix, confusion_->to_csv(names));
    LOG(INFO) << "Wrote the confusion matrix to " << FLAGS_confusion_matrix;
  }

  NetParameter model_;
  NetOptions options_;
  std::shared_ptr<Ops> ops_;
  std::optional<ConfusionMatrix> confusion_;
  std::optional<DetectionTest> detections_;
  IterationTrace trace_;
  Means means_;
  uint64_t batch_ = 0;
};

}  // namespace

int test_command() {
  require_flag(FLAGS_model, "test", "model", "the net to score");
  require_flag(FLAGS_weights, "test", "weights", "its weights");
  if (FLAGS_iterations != "all") iterations();
  if (!FLAGS_confusion_matrix.empty()) require_writable(FLAGS_confusion_matrix);
  label_names("");  // --labels, which is needed after the long work
  Tester(read_model(TEST), net_options()).run();
  return 0;
}

}  // namespace crema
