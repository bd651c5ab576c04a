// Flags that several commands share, and what they mean. A description begins with the commands
// that take the flag; without them every command does.
#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "commands.h"
#include "ops/devices.h"

DEFINE_string(solver, "", "train, lint: the solver's file");
DEFINE_string(model, "", "test, time, run, summary, deploy, classify, lint, draw: the net's file");
DEFINE_string(weights, "",
              "train, test, run, classify, lint: weights to begin with (.caffemodel or "
              ".caffemodel.h5); train takes several, with commas between them, and not together "
              "with --snapshot");
DEFINE_string(snapshot, "",
              "train: the solver state (.solverstate or .solverstate.h5) to go on from");
DEFINE_int64(
    seed, -1,
    "train, test, time, run, summary, classify: seed of every draw (fillers, dropout, shuffles, "
    "crops); train takes it instead of random_seed");
DEFINE_string(gpu, "",
              "train, test, time, run, summary, classify, device_query: run on this GPU, by its "
              "number; train, device_query: on several, with commas between them, or on all");
DEFINE_bool(cpu, false, "Run on the CPU, whatever the solver's file says");
DEFINE_string(iterations, "50",
              "test, time: how many batches; test: \"all\" is the whole set once, with a smaller "
              "last batch where it needs one");
DEFINE_string(phase, "", "time, run, summary, lint, draw: TRAIN or TEST");
DEFINE_int32(level, 0,
             "train, test, time, run, summary, deploy, classify, lint, draw: the level of the "
             "net's state");
DEFINE_string(stage, "",
              "train, test, time, run, summary, deploy, classify, lint, draw: stages of the net's "
              "state, with commas between them");
DEFINE_string(fuse, "on",
              "train, test, time, run, summary, classify: on or off: join neighbouring layers into "
              "one step where the results are the same");
DEFINE_string(layout, "auto",
              "train, test, time, run, summary, classify: auto or nchw: the order of blobs in "
              "memory");
DEFINE_string(
    precision, "f32",
    "train, test, time, run, summary, classify: the number type of blobs: f32; bf16 or, on "
    "a GPU, f16: 16 bits where layers take it, parameters stay f32; tf32: products of f32 "
    "on a GPU's tensor cores, rounded to 10 bits of mantissa. Without the flag the net's "
    "fields say");
DEFINE_bool(autotune, false,
            "train, test, time, run, summary, classify: on a GPU, choose cuDNN's engines by "
            "measuring them, once for each convolution; the choices are kept for later runs");
DEFINE_string(autotune_file, "",
              "train, test, time, run, summary, classify: where --autotune keeps them; "
              "~/.cache/crema/autotune.txt where nothing is given");
DEFINE_string(
    memory_limit, "",
    "train, time, run, summary: what the net may take, as 2G or 512M; activations are dropped and "
    "computed again in backward where that helps to fit");
DEFINE_string(trace, "",
              "train, test, time: write a Chrome trace of one iteration, the third, to this file");
DEFINE_bool(strict, false,
            "train, test, time, run, summary, deploy, classify, draw: fields of a layer that are "
            "not known are errors, not warnings; lint: any finding gives exit status 1");

namespace crema {
namespace {

void require_choice(const std::string& value, const char* flag,
                    const std::vector<std::string>& choices) {
  for (const std::string& choice : choices) {
    if (value == choice) return;
  }
  fail("--", flag, " is ", join(choices, " or "), ", not \"", value, "\"",
       did_you_mean(value, choices));
}

/// "512M", "2G" or plain bytes; 0 where nothing is given.
size_t bytes_flag(const char* flag, const std::string& text) {
  if (text.empty()) return 0;
  double number = 0;  // stays that where the text is no number, or none that a double can hold
  const char* end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  const std::string unit(end, text.data() + text.size());
  const std::vector<std::string> units = {"", "K", "M", "G"};
  const auto found = std::find(units.begin(), units.end(), unit);
  require(number > 0 && number < 1e9 && found != units.end(), "--", flag,
          " is a size such as 512M or 2G, not \"", text, "\"");
  return static_cast<size_t>(number * std::pow(1024.0, found - units.begin()));
}

/// Of blobs: f32 with tf32 too.
DType blob_type() {
  if (FLAGS_precision == "bf16") return DType::bf16;
  return FLAGS_precision == "f16" ? DType::f16 : DType::f32;
}

void require_precision(const Device& device) {
  if (blob_type() == DType::f32) return;
  const auto reason = make_ops(device)->why_not_precision(blob_type());
  require(!reason, "--precision=", FLAGS_precision, ": ", reason.value_or(""));
}

/// The file of --autotune, in a folder that is there; empty without the flag.
std::string autotune_file() {
  if (!FLAGS_autotune) return "";
  if (!FLAGS_autotune_file.empty()) return FLAGS_autotune_file;
  const char* home = std::getenv("HOME");
  require(home != nullptr && *home != 0,
          "--autotune: there is no home folder to keep the choices in: name a file with "
          "--autotune_file");
  const std::filesystem::path folder = std::filesystem::path(home) / ".cache" / "crema";
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  require(!error, "--autotune: cannot make the folder ", folder.string(), ": ", error.message());
  return (folder / "autotune.txt").string();
}

Device use_cpu() {
  require(!FLAGS_autotune, "--autotune needs a GPU: the CPU has one way for each convolution");
  require(FLAGS_precision != "tf32", "--precision=tf32 needs a GPU: the CPU computes in f32");
  LOG(INFO) << "Use CPU.";
  const Device device{.gpu = false, .index = 0};
  require_precision(device);
  return device;
}

std::vector<Device> use_gpus(const std::vector<int>& indices) {
  std::vector<Device> devices;
  LOG(INFO) << "Using GPUs " << join(indices);
  for (const int index : indices) {
    const Device device{.gpu = true,
                        .index = index,
                        .tf32 = FLAGS_precision == "tf32",
                        .autotune = autotune_file()};
    LOG(INFO) << "GPU " << index << ": " << make_ops(device)->describe();
    require_precision(device);
    devices.push_back(device);
  }
  return devices;
}

Device use_gpu(int index) { return use_gpus({index})[0]; }

}  // namespace

std::vector<int> gpu_list() {
  std::vector<int> out;
  if (FLAGS_gpu == "all") {
    // Where none answers, GPU 0 is asked for the reason.
    for (int index = 0; index < std::max(1, gpu_count()); ++index) out.push_back(index);
    return out;
  }
  for (const std::string& part : split(FLAGS_gpu, ',')) {
    const bool is_number = !part.empty() && part.size() < 5 &&
                           part.find_first_not_of("0123456789") == std::string::npos;
    require(is_number,
            "--gpu takes the number of a GPU, or several with commas between them, not \"",
            FLAGS_gpu, "\"");
    const int index = std::stoi(part);
    require(std::find(out.begin(), out.end(), index) == out.end(), "--gpu=", FLAGS_gpu,
            " names GPU ", index, " twice");
    out.push_back(index);
  }
  return out;
}

std::vector<Device> chosen_devices(const SolverParameter& solver) {
  if (FLAGS_cpu || FLAGS_gpu.empty()) return {chosen_device(&solver)};
  return use_gpus(gpu_list());
}

Device chosen_device(const SolverParameter* solver) {
  require(!FLAGS_cpu || FLAGS_gpu.empty(), "--cpu and --gpu exclude each other");
  if (FLAGS_cpu) return use_cpu();
  if (!FLAGS_gpu.empty()) {
    return use_gpu(gpu_list().at(0));
  }
  if (solver != nullptr && solver->has_solver_mode()) {
    if (solver->solver_mode() == SolverParameter::CPU) return use_cpu();
    require(gpu_present(), FLAGS_solver,
            ": solver_mode is GPU and there is none: --cpu trains on the CPU");
    return use_gpu(solver->device_id());
  }
  // BVLC: the CPU, although the default of solver_mode is GPU.
  return gpu_present() ? use_gpu(0) : use_cpu();
}

std::vector<std::string> stages() { return split(FLAGS_stage, ','); }

std::optional<Phase> phase_flag() {
  if (FLAGS_phase.empty()) return std::nullopt;
  require_choice(FLAGS_phase, "phase", {"TRAIN", "TEST"});
  return FLAGS_phase == "TRAIN" ? TRAIN : TEST;
}

NetParameter read_model(std::optional<Phase> phase) {
  NetParameter net = read_net(FLAGS_model, read_options());
  if (phase) net.mutable_state()->set_phase(*phase);
  // BVLC: without the flags too the level becomes 0 and an empty stage is added.
  if (FLAGS_level != 0) net.mutable_state()->set_level(FLAGS_level);
  for (const std::string& stage : stages()) net.mutable_state()->add_stage(stage);
  return net;
}

NetOptions net_options() {
  require_choice(FLAGS_fuse, "fuse", {"on", "off"});
  require_choice(FLAGS_layout, "layout", {"auto", "nchw"});
  require_choice(FLAGS_precision, "precision", {"f32", "tf32", "bf16", "f16"});
  NetOptions options;
  options.fuse = FLAGS_fuse == "on";
  options.force_nchw = FLAGS_layout == "nchw";
  if (!gflags::GetCommandLineFlagInfoOrDie("precision").is_default) options.precision = blob_type();
  if (FLAGS_seed >= 0) options.seed = static_cast<uint64_t>(FLAGS_seed);
  options.file = FLAGS_model;
  options.memory_limit = bytes_flag("memory_limit", FLAGS_memory_limit);
  return options;
}

int iterations() {
  const std::string& text = FLAGS_iterations;
  const bool is_number = !text.empty() && text.size() < 10 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  require(is_number && std::stoi(text) > 0, "--iterations must be a number above 0, not ", text);
  return std::stoi(text);
}

ReadOptions read_options() { return {.strict = FLAGS_strict}; }

void require_flag(const std::string& value, const char* command, const char* flag,
                  const char* what) {
  require(!value.empty(), "crema ", command, " needs --", flag, "=FILE, ", what);
}

}  // namespace crema
