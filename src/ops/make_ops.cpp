// The only place that names a backend. libcrema_cuda.so is loaded on first use: linked, its
// libraries would cost every start half a second of CPU.
#include <dlfcn.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "ops/cpu/make_cpu_ops.h"
#include "ops/cuda/cuda_library.h"
#include "ops/devices.h"
#include "ops/ops.h"

namespace crema {
namespace {

constexpr const char* kLibraryName = "libcrema_cuda.so";
constexpr const char* kDriverName = "libcuda.so.1";

/// Cheap, unlike loading the backend: whether there is a driver at all.
bool driver_is_there() {
  static const bool found =
      ::dlopen(beside_program(kDriverName).c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
  return found;
}

/// The backend, or nullptr and the loader's reason.
const CudaLibrary* load(std::string& reason) {
  void* entry = load_function(kLibraryName, kCudaLibraryEntry, &reason);
  return entry != nullptr ? reinterpret_cast<CudaLibraryEntry>(entry)() : nullptr;
}

const CudaLibrary* library(std::string* reason = nullptr) {
  static std::string text;
  static const CudaLibrary* const loaded = load(text);
  if (reason) *reason = text;
  return loaded;
}

bool was_built() {
  const std::string path = beside_program(kLibraryName);
  return path != kLibraryName || library() != nullptr;
}

}  // namespace

std::shared_ptr<Ops> make_ops(const Device& device) {
  if (!device.gpu) return make_cpu_ops();
  require(was_built(), "this build has no CUDA support: use --cpu, or leave out --gpu ",
          device.index, " and solver_mode: GPU");
  std::string reason;
  const CudaLibrary* cuda = library(&reason);
  require(cuda, "the CUDA backend does not load (", reason, "): use --cpu");
  return cuda->make(device);
}

int gpu_count() {
  if (!driver_is_there() || !library()) return 0;
  try {
    return library()->device_count();
  } catch (const Error&) {
    return 0;  // the reason is told where a GPU is asked for
  }
}

bool gpu_present() { return gpu_count() > 0; }

}  // namespace crema
