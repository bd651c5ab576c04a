// What kind of file this is, told from its content and never from its name: a weights file given
// where a solver state is needed deserves a plain sentence.
#pragma once

#include <string>
#include <string_view>

namespace crema {

enum class FileKind {
  empty,
  hdf5,
  git_lfs,  // a pointer to a file that was not fetched
  web_page,
  prototxt,
  text,          // any other text
  weights,       // binary NetParameter
  solver_state,  // binary SolverState
  blob,          // binary BlobProto: a mean file
  unknown
};

/// Kind of a file that begins with head (64 KiB are enough).
FileKind kind_of_bytes(std::string_view head);

/// Words for a message: "a weights file (.caffemodel)".
std::string describe(FileKind kind);

}  // namespace crema
