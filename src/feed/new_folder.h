// A folder that is written beside its place and moved there when it is whole.
#pragma once

#include <string>

namespace crema {

class NewFolder {
 public:
  /// Makes path.tmp.PID, or path.tmp.PID.N where that is left from a process that was killed.
  /// Throws Error when path is there already or cannot be made.
  explicit NewFolder(const std::string& path);
  /// Removes all of it, unless keep() was reached.
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Where it will be.
  const std::string& path() const { return path_; }
  /// Where it is written.
  const std::string& temporary() const { return temporary_; }
  /// Moves it to its place. Throws Error when something has appeared there meanwhile.
  void keep();

 private:
  std::string path_, temporary_;
  bool is_kept_ = false;
};

}  // namespace crema
