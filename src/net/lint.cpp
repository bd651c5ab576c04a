// Rules about layers are here; those about records are in lint_data.cpp. The net is wired without
// memory, so that its own errors stand in the same list.
#include "net/lint.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "base/error.h"
#include "feed/feed.h"
#include "net/crop_offsets.h"
#include "net/filter.h"
#include "net/graph.h"
#include "net/lint_rules.h"
#include "net/upgrade.h"
#include "net/wire.h"

namespace crema {
namespace {

using Layers = google::protobuf::RepeatedPtrField<LayerParameter>;

bool is_loss(const LayerParameter& layer) {
  const std::string& type = layer.type();
  const bool is_named = type.size() > 4 && type.compare(type.size() - 4, 4, "Loss") == 0;
  return layer.loss_weight_size() > 0 ? layer.loss_weight(0) != 0 : is_named;
}

/// Layers behind `from` that read a blob, in place or not.
std::vector<const LayerParameter*> readers(const Layers& layers, int from,
                                           const std::string& blob) {
  std::vector<const LayerParameter*> out;
  for (int i = from + 1; i < layers.size(); ++i) {
    const auto& bottoms = layers[i].bottom();
    if (std::find(bottoms.begin(), bottoms.end(), blob) != bottoms.end()) out.push_back(&layers[i]);
  }
  return out;
}

/// The layer before `before` that makes a blob's version read there, or nullptr.
const LayerParameter* producer(const Layers& layers, int before, const std::string& blob) {
  for (int i = before - 1; i >= 0; --i) {
    const auto& tops = layers[i].top();
    if (std::find(tops.begin(), tops.end(), blob) != tops.end()) return &layers[i];
  }
  return nullptr;
}

void batch_norm_rules(const Layers& layers, int i, Phase phase, LintList& out) {
  const LayerParameter& layer = layers[i];
  if (layer.type() != "BatchNorm" || layer.top_size() == 0) return;
  const auto after = readers(layers, i, layer.top(0));
  const bool has_scale = std::any_of(after.begin(), after.end(), [](const LayerParameter* reader) {
    return reader->type() == "Scale" || reader->type() == "Bias";
  });
  if (!has_scale && !layer.batch_norm_param().scale_bias()) {
    out.warn("batch_norm_without_scale", layer,
             "no Scale layer follows: what BatchNorm takes away cannot be learned again; a Scale "
             "with bias_term: true belongs behind it");
  }
  const bool is_given = layer.batch_norm_param().has_use_global_stats();
  const bool is_global = layer.batch_norm_param().use_global_stats();
  if (phase == TRAIN && is_given && is_global) {
    out.warn("frozen_statistics", layer,
             "use_global_stats: true in TRAIN keeps the statistics as they are (0 in a new net); "
             "leave the field out, unless a finished net is tuned");
  }
  if (phase == TEST && is_given && !is_global) {
    out.warn("batch_statistics_in_test", layer,
             "use_global_stats: false in TEST normalises by the test batch; leave the field out");
  }
}

bool has_rate(const LayerParameter& layer) {
  return layer.param_size() == 0 || layer.param(0).lr_mult() != 0;
}

void filler_rules(const LayerParameter& layer, bool is_finetuned, LintList& out) {
  const std::map<std::string, std::pair<bool, const FillerParameter*>> fillers = {
      {"Convolution",
       {layer.convolution_param().has_weight_filler(), &layer.convolution_param().weight_filler()}},
      {"Deconvolution",
       {layer.convolution_param().has_weight_filler(), &layer.convolution_param().weight_filler()}},
      {"InnerProduct",
       {layer.inner_product_param().has_weight_filler(),
        &layer.inner_product_param().weight_filler()}},
      {"Embed", {layer.embed_param().has_weight_filler(), &layer.embed_param().weight_filler()}},
      {"LSTM",
       {layer.recurrent_param().has_weight_filler(), &layer.recurrent_param().weight_filler()}},
      {"RNN",
       {layer.recurrent_param().has_weight_filler(), &layer.recurrent_param().weight_filler()}}};
  const auto found = fillers.find(layer.type());
  if (found == fillers.end()) return;
  const auto& [is_given, filler] = found->second;
  const bool is_constant = filler->type() == "constant" && filler->value() == 0;
  if (!is_finetuned && has_rate(layer) && is_constant) {
    out.warn("no_weight_filler", layer,
             is_given ? "weight_filler is constant 0: such a layer hardly ever learns; xavier or "
                        "msra suit it"
                      : "has no weight_filler, so its weights begin at 0 and hardly ever learn; "
                        "xavier or msra suit it");
  }
  const ConvolutionParameter& conv = layer.convolution_param();
  if (layer.type() == "Deconvolution" && filler->type() == "bilinear" &&
      conv.group() != conv.num_output()) {
    out.warn("bilinear_without_groups", layer,
             str("a bilinear filler with group ", conv.group(),
                 " adds up all channels; group: ", conv.num_output(), " enlarges each by itself"));
  }
}

void loss_rules(const Layers& layers, int i, LintList& out) {
  const LayerParameter& layer = layers[i];
  if (layer.type() != "SoftmaxWithLoss" && layer.type() != "InfogainLoss") return;
  if (layer.bottom_size() == 0) return;
  const LayerParameter* before = producer(layers, i, layer.bottom(0));
  if (before != nullptr && before->type() == "Softmax") {
    out.warn("softmax_twice", layer,
             str("takes the softmax of \"", before->name(),
                 "\", which is one already; give it that layer's bottom"));
  }
}

/// The first fork with a Crop worked out where it begins; BVLC's begins at 0 unless told.
void crop_rules(const NetParameter& net, int i, LintList& out) {
  const LayerParameter& layer = net.layer(i);
  if (layer.type() != "Crop" || layer.crop_param().offset_size() > 0) return;
  const auto offsets = aligned_offsets(net, i);
  if (!offsets || (*offsets)[0] <= 0 || (*offsets)[1] <= 0) return;
  out.warn("crop_without_offset", layer,
           str("begins at 0, for no offset is written; crop_param { offset: ", (*offsets)[0],
               " offset: ", (*offsets)[1], " } lays it on \"", layer.bottom(1), '"'));
}

/// Results that nobody reads and that are no result for people either.
void unused_blob_rules(const Layers& layers, Phase phase, LintList& out) {
  static const std::set<std::string> results = {
      "Accuracy",        "Softmax",           "Sigmoid",          "ArgMax",
      "DetectionOutput", "DetectionEvaluate", "CTCGreedyDecoder", "Proposal"};
  for (int i = 0; i < layers.size(); ++i) {
    const LayerParameter& layer = layers[i];
    if (results.count(layer.type()) > 0 || is_loss(layer) || layer.type() == "Silence") continue;
    for (const std::string& top : layer.top()) {
      if (!readers(layers, i, top).empty()) continue;
      const bool is_last = i + 1 == layers.size();
      if (phase == TEST && is_last) continue;  // a deploy net's own output
      out.warn("unused_blob", layer,
               str("nobody reads top \"", top, "\"",
                   phase == TRAIN ? ", so what leads there alone does not learn" : "",
                   "; a Silence layer says that this is meant"));
    }
  }
}

void learning_rules(const Layers& layers, const LintContext& context, LintList& out) {
  if (std::none_of(layers.begin(), layers.end(), is_loss)) {
    out.add({"nothing_learns",
             str(context.file, ": no layer is a loss in TRAIN, so nothing learns"), false});
  }
}

void wiring_errors(const NetParameter& net, const LintContext& context, LintList& out) {
  WireOptions options;
  options.file = context.file;
  options.context.phase = net.state().phase();
  options.train = net.state().phase() == TRAIN;
  ErrorList errors;
  try {
    wire(net, options, errors);
    errors.throw_if_any();
  } catch (const Error& error) {
    for (const std::string& line : split(error.what(), '\n')) out.add({"error", line, true});
  }
}

}  // namespace

void LintList::warn(const char* rule, const LayerParameter& layer, const std::string& text) {
  add({rule, place_of(layer, file_) + ": " + text, false});
}

void LintList::fail(const char* rule, const LayerParameter& layer, const std::string& text) {
  add({rule, place_of(layer, file_) + ": " + text, true});
}

void LintList::add(const Finding& finding) {
  for (const Finding& known : findings_) {
    if (known.rule == finding.rule && known.text == finding.text) return;
  }
  findings_.push_back(finding);
}

NetParameter net_in_phase(const NetParameter& param, Phase phase, const std::string& file) {
  NetParameter net = param;
  upgrade_net(net, file);
  if (!net.state().has_phase()) net.mutable_state()->set_phase(phase);
  ErrorList errors;
  filter_net(net, net.state(), file, errors);
  errors.throw_if_any();
  return net;
}

std::vector<Finding> lint_net(const NetParameter& net, const LintContext& context) {
  LintList out(context.file);
  const Phase phase = net.state().phase();
  wiring_errors(net, context, out);
  const Layers& layers = net.layer();
  for (int i = 0; i < layers.size(); ++i) {
    batch_norm_rules(layers, i, phase, out);
    loss_rules(layers, i, out);
    crop_rules(net, i, out);
    if (phase == TRAIN) filler_rules(layers[i], context.is_finetuned, out);
    data_rules(net, i, out);
  }
  unused_blob_rules(layers, phase, out);
  if (phase == TRAIN) learning_rules(layers, context, out);
  return out.findings();
}

SetSize set_size(const NetParameter& net) {
  for (const LayerParameter& layer : net.layer()) {
    static const std::set<std::string> sources = {"Data", "ImageData", "HDF5Data", "AnnotatedData"};
    if (sources.count(layer.type()) == 0) continue;
    try {
      const auto feed =
          make_feed(layer, {.phase = net.state().phase(), .seed = 0, .layer_name = layer.name()});
      return {layer.name(), feed->size(), static_cast<uint64_t>(feed->shapes().at(0)[0])};
    } catch (const Error&) {  // lint_net says it
    }
  }
  return {};
}

}  // namespace crema
