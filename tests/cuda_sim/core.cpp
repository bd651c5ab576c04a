// Violations, the lock, the dice and what the environment asks for.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/philox.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

uint64_t number_from(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == 0 ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Settings {
  uint64_t seed = number_from("CREMA_SIM_SEED", 0);
  uint64_t throws = 0;
  bool keep = false;
  std::vector<std::string> violations;
};

Settings& settings() {
  static auto* const the = new Settings;  // asked until the very end of the program
  return *the;
}

thread_local int card = 0;
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

void violation(const std::string& text) {
  std::fprintf(stderr, "cuda_sim: %s\n", text.c_str());
  if (!settings().keep) std::abort();
  settings().violations.push_back(text);
}

void keep_violations(bool keep) { settings().keep = keep; }

std::vector<std::string> take_violations() {
  std::vector<std::string> taken;
  std::swap(taken, settings().violations);
  last_error = cudaSuccess;
  return taken;
}

void set_seed(uint64_t seed) {
  settings().seed = seed;
  settings().throws = 0;
}

cudaError_t device_state() {
  return settings().violations.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

std::recursive_mutex& big_lock() {
  static std::recursive_mutex the;
  return the;
}

std::condition_variable_any& news() {
  static std::condition_variable_any the;
  return the;
}

uint32_t dice() {
  Settings& s = settings();
  return s.seed == 0 ? 0 : philox(s.seed, s.throws++).v[0];
}

int card_count() {
  static const int count =
      static_cast<int>(std::min<uint64_t>(8, number_from("CREMA_SIM_CARDS", 1)));
  return count;
}

int& current_card() { return card; }

cudaError_t result(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

}  // namespace crema::cuda_sim

using crema::cuda_sim::device_state;

cudaError_t cudaGetLastError() {
  if (device_state() != cudaSuccess) return device_state();
  return std::exchange(crema::cuda_sim::last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  return device_state() != cudaSuccess ? device_state() : crema::cuda_sim::last_error;
}
