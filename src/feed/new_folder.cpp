// The same promise as base/file.h gives for files: nothing half written is left under the wanted
// name.
#include "feed/new_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

constexpr int kMostLeftovers = 100;

}  // namespace

NewFolder::NewFolder(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  require(!exists(path_), path_, ": is there already; remove it or name another place");
  // A killed process leaves its folder, and process numbers come again, in containers soon.
  for (int i = 0; i < kMostLeftovers; ++i) {
    temporary_ = str(path_, ".tmp.", ::getpid(), i > 0 ? str(".", i) : "");
    if (::mkdir(temporary_.c_str(), 0755) == 0) return;
    if (errno != EEXIST) break;
  }
  fail("cannot make ", path_, ": ", errno_text());
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!is_kept_) std::filesystem::remove_all(temporary_, ignored);
}

void NewFolder::keep() {
  require(!exists(path_), path_, ": appeared while it was written");
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
    fail("cannot make ", path_, ": ", errno_text());
  }
  is_kept_ = true;
}

}  // namespace crema
