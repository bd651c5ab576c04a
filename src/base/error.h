// The one exception for a user's mistake. The deepest code writes only the rule that was broken;
// each floor above adds its own place in front (the layer, then file and line). Caught in main
// only, which prints it and exits with status 1.
#pragma once

#include <stdexcept>
#include <string>

#include "base/str.h"

namespace crema {

/// A user's mistake or a failing environment: bad file, bad field, full disk. what() is one line,
/// or one line for each of several independent mistakes.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}

  /// The same error with "place: " in front of every line of its message.
  Error at(const std::string& place) const;
};

/// Throws Error(str(parts...)).
template <class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  throw Error(str(parts...));
}

/// Throws Error(str(parts...)) unless ok: for the rules a file can break.
template <class... Parts>
void require(bool ok, const Parts&... parts) {
  if (!ok) fail(parts...);
}

/// Collects the independent mistakes of one file, so that they are reported in one run.
class ErrorList {
 public:
  void add(const Error& error);
  bool empty() const { return text_.empty(); }
  /// Throws one Error with a line for each collected one; does nothing when there is none.
  void throw_if_any() const;

 private:
  std::string text_;
};

}  // namespace crema
