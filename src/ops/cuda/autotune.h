// cuDNN's engines by the time that they take on this card, and the file in which the choices are
// kept from run to run.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "ops/cuda/cuda_api.h"
#include "ops/cuda/cudnn_conv.h"

namespace crema::cuda {

/// What was chosen for one problem on one card, with its versions.
struct EngineChoice {
  size_t place = 0;    // among the plans that kept the rules, in the order of the heuristics
  int64_t engine = 0;  // the library's number of it, against lists that have changed
  float milliseconds = 0;
};

/// Choices by a line of text. Each add() writes the file whole, beside its place, and renames it.
/// Several threads may use one.
class EngineChoices {
 public:
  /// The choices of a file, one object for all that name it. A file that is not there is empty; one
  /// that is damaged, or something else, is told in a warning and counts as empty. Throws Error
  /// where it could not be written.
  static std::shared_ptr<EngineChoices> of(const std::string& file);

  explicit EngineChoices(const std::string& file);
  std::optional<EngineChoice> find(const std::string& key);
  void add(const std::string& key, const EngineChoice& choice);

 private:
  const std::string file_;
  std::mutex mutex_;
  std::map<std::string, EngineChoice> choices_;
};

/// Chooses among plans: the kept choice, else the plan that runs fastest here, which is kept.
class Autotune {
 public:
  /// where: the card and all versions that a time depends on.
  Autotune(const std::string& file, std::string where, const Stream& stream);
  size_t choose(cudnnHandle_t handle, const ConvProblem& problem, const EngineRules& rules,
                const ConvPlans& plans);

 private:
  std::shared_ptr<EngineChoices> choices_;
  std::string where_;
  const Stream& stream_;
};

}  // namespace crema::cuda
