// The file: a head line, a line for each choice (key, place, engine, milliseconds, with tabs
// between), and a last line with their number, so that a file that was cut is known for one.
#include "ops/cuda/autotune.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/str.h"

namespace crema::cuda {
namespace {

constexpr char kHead[] = "crema autotune 1";
constexpr int kWarmUps = 2, kRounds = 3, kRunsPerRound = 5;

template <class Number>
Number number_in(const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  require(result.ec == std::errc() && result.ptr == end, "\"", text, "\" is no number");
  return number;
}

std::map<std::string, EngineChoice> parse(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  require(!lines.empty() && lines[0] == kHead, "it does not begin with \"", kHead, "\"");
  require(text.back() == '\n' && lines.size() > 1, "its end is missing");
  std::map<std::string, EngineChoice> choices;
  const size_t last = lines.size() - (lines.back().empty() ? 2 : 1);
  for (size_t i = 1; i < last; ++i) {
    const std::vector<std::string> parts = split(lines[i], '\t');
    require(parts.size() == 4, "line ", i + 1, " is no choice");
    choices[parts[0]] = {.place = number_in<size_t>(parts[1]),
                         .engine = number_in<int64_t>(parts[2]),
                         .milliseconds = number_in<float>(parts[3])};
  }
  require(lines[last] == str("end ", choices.size()), "its end is missing");
  return choices;
}

std::string numbers(const std::vector<int64_t>& values) {
  std::string out;
  for (const int64_t value : values) out += str(out.empty() ? "" : "x", value);
  return out;
}

const char* name_of(DType type) {
  return type == DType::f16 ? "f16" : type == DType::bf16 ? "bf16" : "f32";
}

std::string text_of(const ConvProblem& p) {
  const char* directions[] = {"forward", "data", "filter"};
  return str(directions[static_cast<int>(p.direction)], " x ", numbers(p.x), " w ", numbers(p.w),
             " y ", numbers(p.y), " pad ", numbers(p.pad), " stride ", numbers(p.stride),
             " dilation ", numbers(p.dilation), p.layout == Layout::nhwc ? " nhwc " : " nchw ",
             name_of(p.dtype), p.direction == ConvDirection::filter ? " to " : "",
             p.direction == ConvDirection::filter ? name_of(p.dw_dtype) : "", p.bias ? " bias" : "",
             p.residual ? " residual" : "", p.relu ? " relu" : "");
}

std::string text_of(const EngineRules& rules) {
  return str("workspace ", rules.workspace_limit, rules.allow_tf32 ? " tf32" : "",
             rules.is_deterministic ? " deterministic" : "");
}

size_t bytes_of(const std::vector<int64_t>& sizes, DType type) {
  size_t bytes = size_of(type);
  for (const int64_t size : sizes) bytes *= static_cast<size_t>(size);
  return bytes;
}

/// Memory to run a problem's plans in, taken for the time of measuring alone.
class Bench {
 public:
  Bench(const ConvProblem& p, const ConvPlans& plans, const Stream& stream) : stream_(stream) {
    size_t workspace = 0;
    for (const auto& plan : plans) workspace = std::max(workspace, plan->workspace_bytes());
    const DType w = p.direction == ConvDirection::filter ? p.dw_dtype : p.dtype;
    pointers_.x = take(bytes_of(p.x, p.dtype));
    pointers_.w = take(bytes_of(p.w, w));
    pointers_.y = take(bytes_of(p.y, p.dtype));
    if (p.bias) pointers_.bias = take(static_cast<size_t>(p.y[1]) * sizeof(float));
    if (p.residual) pointers_.residual = take(bytes_of(p.y, p.dtype));
    if (workspace > 0) pointers_.workspace = take(workspace);
  }

  /// Of one run: the least of a few rounds.
  float milliseconds(cudnnHandle_t handle, const ConvGraph& plan) const {
    for (int i = 0; i < kWarmUps; ++i) plan.run(handle, pointers_);
    float least = std::numeric_limits<float>::max();
    for (int round = 0; round < kRounds; ++round) {
      watch_.start(stream_);
      for (int i = 0; i < kRunsPerRound; ++i) plan.run(handle, pointers_);
      least = std::min(least, watch_.stop(stream_) / kRunsPerRound);
    }
    return least;
  }

 private:
  void* take(size_t bytes) {
    buffers_.push_back(allocate(bytes, Memory::device, stream_));
    return buffers_.back().get();
  }

  const Stream& stream_;
  Stopwatch watch_;
  std::vector<Buffer> buffers_;
  ConvPointers pointers_;
};

}  // namespace

std::shared_ptr<EngineChoices> EngineChoices::of(const std::string& file) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<EngineChoices>> all;
  const std::lock_guard lock(mutex);
  std::shared_ptr<EngineChoices> choices = all[file].lock();
  if (choices == nullptr) all[file] = choices = std::make_shared<EngineChoices>(file);
  return choices;
}

EngineChoices::EngineChoices(const std::string& file) : file_(file) {
  require_writable(file);
  if (!exists(file)) return;
  try {
    choices_ = parse(read_file(file));
  } catch (const Error& error) {
    LOG(WARNING) << file << ": no whole file of --autotune (" << error.what()
                 << "): it is not read, and will be written anew";
  }
}

std::optional<EngineChoice> EngineChoices::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = choices_.find(key);
  return found == choices_.end() ? std::nullopt : std::optional(found->second);
}

void EngineChoices::add(const std::string& key, const EngineChoice& choice) {
  const std::lock_guard lock(mutex_);
  choices_[key] = choice;
  std::string text = str(kHead, "\n");
  for (const auto& [line, one] : choices_) {
    text += str(line, '\t', one.place, '\t', one.engine, '\t', one.milliseconds, '\n');
  }
  write_file(file_, text + str("end ", choices_.size(), "\n"));
}

Autotune::Autotune(const std::string& file, std::string where, const Stream& stream)
    : choices_(EngineChoices::of(file)), where_(std::move(where)), stream_(stream) {}

size_t Autotune::choose(cudnnHandle_t handle, const ConvProblem& problem, const EngineRules& rules,
                        const ConvPlans& plans) {
  const std::string key = str(text_of(problem), " | ", text_of(rules), " | ", where_);
  const std::optional<EngineChoice> kept = choices_->find(key);
  const bool still_fits =
      kept && kept->place < plans.size() && plans[kept->place]->engine() == kept->engine;
  if (still_fits) return kept->place;
  const Bench bench(problem, plans, stream_);
  std::vector<float> times;
  for (const auto& plan : plans) times.push_back(bench.milliseconds(handle, *plan));
  const auto best = std::min_element(times.begin(), times.end());
  const auto place = static_cast<size_t>(best - times.begin());
  LOG(INFO) << "Measured " << plans.size() << " engines for " << text_of(problem) << ": engine "
            << plans[place]->engine() << " takes " << *best << " ms, the heuristics' " << times[0]
            << " ms";
  choices_->add(key, {.place = place, .engine = plans[place]->engine(), .milliseconds = *best});
  return place;
}

}  // namespace crema::cuda
