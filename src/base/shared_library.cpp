// A library stays loaded to the end of the program.
#include "base/shared_library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <climits>

#include "base/file.h"

namespace crema {

std::string beside_program(const std::string& name) {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, size > 0 ? static_cast<size_t>(size) : 0);
  const std::string beside = program.substr(0, program.rfind('/')) + "/../lib/" + name;
  return exists(beside) ? beside : name;
}

void* load_function(const std::string& library, const char* entry, std::string* reason) {
  void* handle = ::dlopen(beside_program(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  void* function = handle != nullptr ? ::dlsym(handle, entry) : nullptr;
  if (function == nullptr) {
    const char* error = ::dlerror();
    *reason = error != nullptr ? error : library;
  }
  return function;
}

}  // namespace crema
