// crema deploy: the net that is used, from the net that was trained, and how its pictures are to be
// made.
#include "net/deploy.h"

#include <gflags/gflags.h>
#include <glog/logging.h>

#include <cstdio>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "commands.h"
#include "feed/transform.h"
#include "io/mean.h"

DECLARE_string(output);

DEFINE_string(input_shape, "",
              "deploy: shape of the input, 1,3,224,224, where the records are not there to tell");
DEFINE_string(preprocessing, "", "deploy: JSON file for how pictures are to be prepared");

namespace crema {
namespace {

std::optional<Shape> input_shape() {
  if (FLAGS_input_shape.empty()) return std::nullopt;
  Shape shape;
  for (const std::string& part : split(FLAGS_input_shape, ',')) {
    const bool is_number = !part.empty() && part.size() < 8 &&
                           part.find_first_not_of("0123456789") == std::string::npos;
    require(is_number && std::stoi(part) > 0,
            "--input_shape takes sizes above 0 with commas between them, not \"", FLAGS_input_shape,
            "\"");
    shape.push_back(std::stoi(part));
  }
  return shape;
}

/// Mean of each channel of a mean file, for readers that take only those.
std::vector<double> channel_means(const std::string& file) {
  const HostBlob mean = read_mean(file);
  const auto channels = static_cast<size_t>(mean.shape.dim_or_one(1));
  const size_t size = mean.data.size() / channels;
  std::vector<double> out(channels);
  for (size_t i = 0; i < mean.data.size(); ++i)
    out[i / size] += mean.data[i] / static_cast<double>(size);
  return out;
}

std::string numbers(const auto& values) {
  std::vector<std::string> parts;
  for (const auto value : values) parts.push_back(json_number(static_cast<float>(value)));
  return "[" + join(parts) + "]";
}

std::string to_json(const DeployNet& deploy) {
  const Preprocessing& made = *deploy.preprocessing;
  const TransformationParameter& transform = made.transform;
  std::vector<int64_t> shape;
  for (const LayerParameter& layer : deploy.net.layer()) {
    if (layer.type() != "Input" || layer.top(0) != made.input) continue;
    const auto& dims = layer.input_param().shape(0).dim();
    shape.assign(dims.begin(), dims.end());
  }
  std::string out = "{\n";
  out += "  \"input\": " + json_text(made.input) + ",\n";
  out += "  \"shape\": " + numbers(shape) + ",\n";
  out += "  \"outputs\": [";
  for (size_t i = 0; i < deploy.outputs.size(); ++i) {
    out += (i > 0 ? ", " : "") + json_text(deploy.outputs[i]);
  }
  out += "],\n  \"channel_order\": ";
  out += shape.size() > 1 && shape[1] == 3 ? "\"BGR\",\n" : "\"as stored\",\n";
  out += "  \"resize\": " +
         (made.resize_height > 0 ? numbers(std::vector<int>{made.resize_height, made.resize_width})
                                 : std::string("null")) +
         ",\n";
  if (transform.has_resize_param()) {
    const ResizeParameter& resize = transform.resize_param();
    const bool is_scaled = resize.height_scale() > 0;
    const std::vector<uint32_t> size = {is_scaled ? resize.height_scale() : resize.height(),
                                        is_scaled ? resize.width_scale() : resize.width()};
    out += str("  \"resize_mode\": \"", ResizeParameter::Resize_mode_Name(resize.resize_mode()),
               "\",\n  \"resize_to\": ", numbers(size), ",\n");
  }
  if (transform.img_rand_resize_lower() > 0) {
    out += str("  \"shorter_side\": ", transform.img_rand_resize_lower(), ",\n");
  }
  const CropSize crop = crop_size_of(transform);
  const std::string crop_text = crop.height == 0 ? "null"
                                : crop.height == crop.width
                                    ? std::to_string(crop.height)
                                    : numbers(std::vector<int64_t>{crop.height, crop.width});
  out += str("  \"centre_crop\": ", crop_text, ",\n");
  if (transform.has_mean_file()) {
    out += "  \"mean_file\": " + json_text(transform.mean_file()) + ",\n";
    if (exists(transform.mean_file())) {
      out += "  \"mean_of_channels\": " + numbers(channel_means(transform.mean_file())) + ",\n";
    }
  }
  if (transform.mean_value_size() > 0) {
    out += "  \"mean_value\": " + numbers(transform.mean_value()) + ",\n";
  }
  out += "  \"scale\": " + json_number(transform.scale()) + "\n}\n";
  return out;
}

}  // namespace

int deploy_command() {
  require_flag(FLAGS_model, "deploy", "model", "the net that was trained");
  if (!FLAGS_output.empty()) require_writable(FLAGS_output);
  const DeployNet deploy = derive_deploy(read_model(TEST), FLAGS_model, input_shape());
  for (const std::string& note : deploy.notes) LOG(WARNING) << note;
  if (!FLAGS_preprocessing.empty()) {
    require(deploy.preprocessing.has_value(), FLAGS_model,
            ": no layer makes pictures, so there is no preprocessing to write");
    write_file(FLAGS_preprocessing, to_json(deploy));
  }
  const std::string text = write_text(deploy.net);
  if (FLAGS_output.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    write_file(FLAGS_output, text);
    LOG(INFO) << "Wrote " << FLAGS_output << ": outputs " << join(deploy.outputs);
  }
  return 0;
}

}  // namespace crema
