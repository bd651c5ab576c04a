// `crema run`: sets inputs and parameters from an HDF5 file, runs a net once, writes what came out.
#include <gflags/gflags.h>

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "io/hdf5.h"
#include "io/prototxt.h"
#include "layers/memory_data.h"
#include "net/net.h"

DEFINE_string(input, "",
              "run: HDF5 file with /inputs/BLOB (tops of Input and MemoryData layers) and "
              "/params/LAYER/INDEX to set before the pass");
DEFINE_string(output, "",
              "run: HDF5 file to write; deploy: prototxt, default standard output; draw, plot: "
              "picture; parse_log: folder, default this one");
DEFINE_string(outputs, "net",
              "run: which blobs to write: net (those that nobody reads), all, or names");
DEFINE_bool(backward, false, "run: run backward too and write gradients");

namespace crema {
namespace {

/// Hands MemoryData layers their records, of which the first batch is used, and takes their tops
/// from names.
void set_records(Net& net, const Hdf5File& file, std::vector<std::string>& names) {
  for (int n = 0; n < net.layer_count(); ++n) {
    auto* const memory = dynamic_cast<MemoryDataLayer*>(&net.layer(n));
    if (memory == nullptr) continue;
    const std::string &data = memory->param().top(0), &labels = memory->param().top(1);
    const auto taken = std::erase_if(
        names, [&](const std::string& name) { return name == data || name == labels; });
    if (taken == 0) continue;
    require(taken == 2, file.path(), ": layer \"", memory->param().name(),
            "\" (MemoryData) needs both /inputs/", data, " and /inputs/", labels);
    memory->set_values(file.read("inputs/" + data).data, file.read("inputs/" + labels).data);
  }
}

void set_inputs(Net& net, const Hdf5File& file) {
  std::vector<std::string> names = file.datasets("inputs");
  set_records(net, file, names);
  for (const std::string& name : names) {
    require(net.has_blob(name), file.path(), ": /inputs/", name, ": the net has no such blob",
            did_you_mean(name, net.inputs()));
    const HostBlob blob = file.read("inputs/" + name);
    const Shape own = net.blob_shape(name);
    require(blob.shape.count() == own.count(), file.path(), ": input \"", name, "\" has the shape ",
            blob.shape, " here and ", own, " in the net");
    net.set_blob(name, blob.data);
  }
}

void set_params(Net& net, const Hdf5File& file) {
  for (const std::string& path : file.datasets("params")) {
    const size_t slash = path.rfind('/');
    require(slash != std::string::npos, file.path(), ": /params/", path,
            ": parameters are named LAYER/INDEX");
    const std::string layer = path.substr(0, slash);
    const int node = net.layer_index(layer);
    require(node >= 0, file.path(), ": /params/", path, ": the net has no layer \"", layer, "\"");
    int index = -1;
    std::from_chars(path.data() + slash + 1, path.data() + path.size(), index);
    const int param = str(index) == path.substr(slash + 1) ? net.param_of(node, index) : -1;
    require(param >= 0, file.path(), ": /params/", path, ": layer \"", layer,
            "\" has no such parameter");
    net.set_param_values(param, file.read("params/" + path).data);
  }
}

std::vector<std::string> wanted_blobs(const Net& net) {
  if (FLAGS_outputs == "all") return net.blob_names();
  if (FLAGS_outputs != "net") return split(FLAGS_outputs, ',');
  std::vector<std::string> names;
  for (const NetOutput& output : net.outputs()) names.push_back(output.name);
  return names;
}

/// A scalar is stored as one value on one axis, as most readers expect.
Shape stored_shape(const Shape& shape) { return shape.axes() == 0 ? Shape{1} : shape; }

void write_blobs(const Net& net, Hdf5File& file) {
  file.make_group("outputs");
  for (const std::string& name : wanted_blobs(net)) {
    const bool is_input =
        std::find(net.inputs().begin(), net.inputs().end(), name) != net.inputs().end();
    if (is_input && FLAGS_outputs == "all") continue;
    const std::vector<float> values = net.blob_values(name);
    file.write("outputs/" + name, stored_shape(net.blob_shape(name)), values.data());
  }
}

void write_params(const Net& net, Hdf5File& file, const std::string& group, bool gradients) {
  for (int n = 0; n < net.layer_count(); ++n) {
    for (int i = 0; net.param_of(n, i) >= 0; ++i) {
      const int p = net.param_of(n, i);
      const std::vector<float> values = gradients ? net.param_gradient(p) : net.param_values(p);
      const Shape shape = stored_shape(net.params()[p].value.shape());
      file.write(str(group, "/", net.layer_name(n), "/", i), shape, values.data());
    }
  }
}

void write_input_gradients(const Net& net, Hdf5File& file) {
  for (const std::string& name : net.inputs()) {
    if (!net.wants_gradient(name)) continue;
    const Shape shape = net.blob_shape(name);
    auto gradient = net.blob_gradient(name);
    if (!gradient) gradient = std::vector<float>(static_cast<size_t>(shape.count()), 0.0F);
    file.write("input_grads/" + name, stored_shape(shape), gradient->data());
  }
}

}  // namespace

int run_command() {
  require(!FLAGS_model.empty(), "run needs --model=NET.prototxt");
  require(!FLAGS_output.empty(), "run needs --output=FILE.h5");
  require_writable(FLAGS_output);
  NetParameter param = read_model();
  NetOptions options = net_options();
  options.train = FLAGS_backward;
  options.keep_all = FLAGS_outputs == "all";
  options.log = false;
  if (FLAGS_outputs != "all" && FLAGS_outputs != "net") options.keep = split(FLAGS_outputs, ',');
  std::optional<WeightsFile> weights;  // what is missing is found before the net is built
  if (!FLAGS_weights.empty()) weights = read_weights(FLAGS_weights);
  std::optional<Hdf5File> input;
  if (!FLAGS_input.empty()) input = Hdf5File::open(FLAGS_input);
  Net net(param, options, make_ops(chosen_device()));
  if (weights) net.load_weights(*weights, FLAGS_weights);
  if (input) {
    set_inputs(net, *input);
    set_params(net, *input);
  }
  const float loss = net.forward();
  if (FLAGS_backward) net.backward();
  write_atomically(FLAGS_output, [&](const std::string& path) {
    Hdf5File file = Hdf5File::create(path);
    write_blobs(net, file);
    file.write("loss", Shape{1}, &loss);
    write_params(net, file, "params_after", false);
    if (FLAGS_backward) {
      write_params(net, file, "param_grads", true);
      write_input_gradients(net, file);
    }
    file.close();
  });
  return 0;
}

}  // namespace crema
