// train_step --model=NET --batch=N: times forward, backward and update of a net on random data and
// prints a line of JSON; train_step --rates: what the machine gives, in the same form. With --wait
// it measures once for each line of standard input, so that two programs can take turns.
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <omp.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <random>

#include "base/error.h"
#include "io/prototxt.h"
#include "io/weights.h"
#include "layer_table.h"
#include "net/filter.h"
#include "net/net.h"
#include "net/step_cost.h"
#include "net/upgrade.h"
#include "solver/updater.h"

DEFINE_string(model, "", "A train_val or deploy net");
DEFINE_int32(batch, 0, "Pictures per step");
DEFINE_string(shape, "", "C,H,W of a picture; else what deploy.prototxt beside the model says");
DEFINE_int32(classes, 10, "Labels are drawn from 0 to classes - 1");
DEFINE_int32(threads, 0, "Threads; 0: as OpenMP chooses");
DEFINE_bool(inference, false, "The net of phase TEST, forward only");
DEFINE_int32(iterations, 0, "Steps per measurement; 0: as many as fit into --seconds, at least 3");
DEFINE_double(seconds, 2, "Time of one measurement");
DEFINE_string(clock, "wall", "wall, or cpu: processor time of all threads, for one thread");
DEFINE_bool(wait, false, "Measure once for each line of standard input");
DEFINE_string(save_weights, "", "Write the net's weights to this .caffemodel, for another program");
DEFINE_bool(layers, false, "Print a line per layer and direction, the longest first");
DEFINE_bool(rates, false, "Measure matrix products and copies instead of a net");
DEFINE_string(fuse, "on", "on or off");
DEFINE_string(layout, "auto", "auto or nchw");
DEFINE_int32(gpu, -1, "The GPU to measure on; -1: the CPU");
DEFINE_string(precision, "f32", "f32, bf16; or, on a GPU, tf32, f16");

namespace crema {
namespace {

using Clock = std::chrono::steady_clock;

constexpr float kRate = 1e-5f, kMomentum = 0.9f, kDecay = 5e-4f;  // what peer.py uses too
/// Edge of the matrices and bytes of a copy for --rates: a GPU needs more to be busy.
int64_t gemm_size() { return FLAGS_gpu >= 0 ? 8192 : 2048; }
int64_t copy_bytes() { return int64_t{FLAGS_gpu >= 0 ? 512 : 64} << 20; }

/// One flat JSON object on one line.
class JsonLine {
 public:
  JsonLine& add(const char* name, const std::string& text) {
    return add_raw(name, str('"', text, '"'));
  }
  JsonLine& add(const char* name, double value) {
    return add_raw(name, std::isfinite(value) ? str(value) : "null");
  }
  void print() const { std::cout << "{" << text_ << "}" << std::endl; }

 private:
  JsonLine& add_raw(const char* name, const std::string& value) {
    text_ += str(text_.empty() ? "" : ", ", '"', name, "\": ", value);
    return *this;
  }
  std::string text_;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds of the clock that --clock names, from any point.
double now() {
  timespec time{};
  clock_gettime(FLAGS_clock == "cpu" ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

template <class Call>
double timed(const Call& call) {
  const double start = now();
  call();
  return now() - start;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Calls step again and again, as --iterations and --seconds say.
template <class Step>
void repeat(const Step& step) {
  const Clock::time_point start = Clock::now();
  for (int i = 0;
       FLAGS_iterations > 0 ? i < FLAGS_iterations : i < 3 || seconds_since(start) < FLAGS_seconds;
       ++i) {
    step();
  }
}

/// Once, or with --wait once for each line that comes.
template <class Measure>
void measure_as_asked(const Measure& measure) {
  if (!FLAGS_wait) return measure().print();
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) measure().print();
}

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::minstd_rand generator(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = uniform(generator);
  return values;
}

// ---- The net ----

/// The first Input layer of a deploy net.
BlobShape deploy_shape(const std::string& file) {
  NetParameter net = read_net(file);
  upgrade_net(net, file);
  for (const LayerParameter& layer : net.layer()) {
    if (layer.type() == "Input" && layer.input_param().shape_size() > 0) {
      return layer.input_param().shape(0);
    }
  }
  fail(file, ": no Input layer gives a shape; --shape=C,H,W does");
}

BlobShape picture_shape() {
  if (FLAGS_shape.empty()) {
    return deploy_shape(FLAGS_model.substr(0, FLAGS_model.rfind('/') + 1) + "deploy.prototxt");
  }
  BlobShape shape;
  shape.add_dim(1);
  for (const std::string& part : split(FLAGS_shape, ',')) {
    const int size = std::atoi(part.c_str());
    require(size > 0, "--shape is C,H,W, not \"", FLAGS_shape, "\"");
    shape.add_dim(size);
  }
  return shape;
}

/// An Input layer with the tops of a source: pictures first, then labels.
LayerParameter input_in_place_of(const LayerParameter& source) {
  LayerParameter input;
  input.set_name(source.name());
  input.set_type("Input");
  *input.mutable_top() = source.top();
  *input.mutable_input_param() = source.input_param();
  if (source.type() != "Input") {
    for (int top = 0; top < source.top_size(); ++top) {
      BlobShape& shape = *input.mutable_input_param()->add_shape();
      if (top == 0) {
        shape = picture_shape();
      } else {
        shape.add_dim(1);
      }
    }
  }
  for (BlobShape& shape : *input.mutable_input_param()->mutable_shape()) {
    shape.set_dim(0, FLAGS_batch);
  }
  return input;
}

NetParameter net_to_measure() {
  NetParameter net = read_net(FLAGS_model);
  upgrade_net(net, FLAGS_model);
  net.mutable_state()->set_phase(FLAGS_inference ? TEST : TRAIN);
  ErrorList errors;
  filter_net(net, net.state(), FLAGS_model, errors);
  errors.throw_if_any();
  for (LayerParameter& layer : *net.mutable_layer()) {
    if (layer.bottom_size() == 0) layer = input_in_place_of(layer);
  }
  return net;
}

/// One axis: labels; more: pictures.
void fill_inputs(Net& net) {
  for (const std::string& name : net.inputs()) {
    const Shape shape = net.blob_shape(name);
    std::vector<float> values = random_values(shape.count(), 1);
    if (shape.axes() == 1) {
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<float>(i % static_cast<size_t>(FLAGS_classes));
      }
    }
    net.set_blob(name, values);
  }
}

SolverParameter sgd() {
  SolverParameter param;
  param.set_type("SGD");
  param.set_momentum(kMomentum);
  param.set_weight_decay(kDecay);
  return param;
}

// ---- Measuring ----

/// A step as the solver makes it, each part timed.
class StepTimer {
 public:
  explicit StepTimer(Net& net) : net_(net) {
    if (FLAGS_inference) return;
    updater_ = std::make_unique<Updater>(sgd(), net);
    StepScalars step = net.ops().step();
    step.loss_scale = scale_.value();
    net.ops().set_step(step);
  }

  void step() {
    forward_.push_back(timed([&] { loss_ = net_.forward(); }));
    total_.push_back(forward_.back());
    if (!updater_) return;
    backward_.push_back(timed([&] {
      net_.clear_gradients();
      net_.backward();
      net_.ops().synchronize();
    }));
    update_.push_back(timed([&] {
      updater_->update(iteration_++, kRate, scale_);
      net_.ops().synchronize();
    }));
    total_.back() += backward_.back() + update_.back();
  }

  void clear() {
    for (std::vector<double>* times : {&forward_, &backward_, &update_, &total_}) times->clear();
  }

  void report(JsonLine& line) const {
    line.add("forward_ms", 1e3 * median(forward_));
    if (updater_) {
      line.add("backward_ms", 1e3 * median(backward_)).add("update_ms", 1e3 * median(update_));
    }
    line.add("step_ms", 1e3 * median(total_));
    line.add("images_per_s", FLAGS_batch / median(total_));
    line.add("iterations", static_cast<double>(total_.size())).add("loss", loss_);
  }

 private:
  Net& net_;
  std::unique_ptr<Updater> updater_;
  LossScale scale_{NetParameter(), net_.precision()};
  std::vector<double> forward_, backward_, update_, total_;
  float loss_ = 0;
  int iteration_ = 0;
};

void report_cost(const Net& net, const NetParameter& param, JsonLine& line) {
  const StepCost cost = count_cost(net, param);
  line.add("operations", FLAGS_inference ? cost.forward_operations : cost.training_operations);
  line.add("bytes_moved", FLAGS_inference ? cost.forward_bytes : cost.training_bytes);
  line.add("bytes_norm", cost.norm_bytes).add("bytes_update", cost.update_bytes);
  line.add("bytes_packing", cost.packing_bytes);
  const MemoryReport& memory = net.memory();
  line.add("bytes_parameters", static_cast<double>(memory.parameters));
  line.add("bytes_planned", static_cast<double>(memory.activations + memory.state));
  line.add("bytes_unplanned", static_cast<double>(memory.unplanned));
  line.add("bytes_packed", static_cast<double>(memory.packed));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  line.add("bytes_peak", 1024.0 * static_cast<double>(usage.ru_maxrss));
}

DType blob_type() {
  if (FLAGS_precision == "bf16") return DType::bf16;
  return FLAGS_precision == "f16" ? DType::f16 : DType::f32;
}

void measure_net(const std::shared_ptr<Ops>& ops) {
  require(!FLAGS_model.empty() && FLAGS_batch > 0, "--model=FILE and --batch=N are needed");
  const NetParameter param = net_to_measure();
  NetOptions options;
  options.phase = FLAGS_inference ? TEST : TRAIN;
  options.train = !FLAGS_inference;
  options.fuse = FLAGS_fuse == "on";
  options.force_nchw = FLAGS_layout == "nchw";
  options.precision = blob_type();
  options.log = false;
  options.seed = 1;
  options.file = FLAGS_model;
  Net net(param, options, ops);
  fill_inputs(net);
  if (!FLAGS_save_weights.empty()) {
    write_weights_binary(FLAGS_save_weights, net.to_proto(),
                         [&](int layer) { return net.saved_blobs(layer, false, false); });
  }
  StepTimer timer(net);
  for (int i = 0; i < 2; ++i) timer.step();
  if (FLAGS_layers) return print_layer_table(net, param, std::max(3, FLAGS_iterations), now);
  measure_as_asked([&] {
    timer.clear();
    repeat([&] { timer.step(); });
    JsonLine line;
    line.add("model", FLAGS_model).add("batch", FLAGS_batch).add("threads", omp_get_max_threads());
    line.add("gpu", FLAGS_gpu).add("precision", FLAGS_precision);
    timer.report(line);
    report_cost(net, param, line);
    return line;
  });
}

/// Of the blobs' type, but on a CPU, whose plain products are of f32.
Tensor new_tensor(Ops& ops, const Shape& shape, std::vector<Buffer>& owned) {
  const TensorDesc desc{shape}, wanted{shape, FLAGS_gpu >= 0 ? blob_type() : DType::f32};
  owned.push_back(ops.allocate(desc.bytes(), Memory::device));
  const Tensor tensor{owned.back().get(), desc};
  ops.upload(random_values(shape.count(), 1).data(), tensor);
  if (wanted.dtype == DType::f32) return tensor;
  owned.push_back(ops.allocate(desc.bytes(), Memory::device));
  const Tensor converted{owned.back().get(), wanted};
  ops.convert(tensor, converted);
  return converted;
}

void measure_rates(Ops& ops) {
  std::vector<Buffer> owned;
  const Shape square{gemm_size(), gemm_size()};
  const Shape flat{copy_bytes() /
                   static_cast<int64_t>(size_of(FLAGS_gpu >= 0 ? blob_type() : DType::f32))};
  const Tensor a = new_tensor(ops, square, owned), b = new_tensor(ops, square, owned),
               c = new_tensor(ops, square, owned), source = new_tensor(ops, flat, owned),
               target = new_tensor(ops, flat, owned);
  const auto gemm = [&] {
    ops.gemm(false, false, 1, a, b, c, Write::overwrite);
    ops.synchronize();
  };
  const auto copy = [&] {
    ops.convert(source, target);
    ops.synchronize();
  };
  gemm();
  copy();
  measure_as_asked([&] {
    std::vector<double> gemms, copies;
    repeat([&] {
      gemms.push_back(timed(gemm));
      copies.push_back(timed(copy));
    });
    const auto n = static_cast<double>(gemm_size());
    JsonLine line;
    line.add("device", ops.describe()).add("threads", omp_get_max_threads());
    line.add("precision", FLAGS_precision);
    line.add("gemm_gflops", 2 * n * n * n / median(gemms) / 1e9);
    line.add("copy_gbytes", 2.0 * static_cast<double>(copy_bytes()) / median(copies) / 1e9);
    return line;
  });
}

int run_program() {
  try {
    require(FLAGS_clock == "wall" || FLAGS_clock == "cpu", "--clock is wall or cpu, not \"",
            FLAGS_clock, "\"");
    if (FLAGS_threads > 0) omp_set_num_threads(FLAGS_threads);
    const bool is_of_gpu = FLAGS_precision == "tf32" || FLAGS_precision == "f16";
    require(FLAGS_precision == "f32" || FLAGS_precision == "bf16" || (is_of_gpu && FLAGS_gpu >= 0),
            "--precision is f32, bf16 or, with --gpu, tf32 or f16, not \"", FLAGS_precision, "\"");
    const std::shared_ptr<Ops> ops = make_ops({.gpu = FLAGS_gpu >= 0,
                                               .index = std::max(0, FLAGS_gpu),
                                               .tf32 = FLAGS_precision == "tf32"});
    if (FLAGS_rates) {
      measure_rates(*ops);
    } else {
      measure_net(ops);
    }
    return 0;
  } catch (const Error& error) {
    std::fprintf(stderr, "train_step: %s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  gflags::SetUsageMessage("times a training step");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  return crema::run_program();
}
