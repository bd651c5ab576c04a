// Binary kinds differ in the wire types of their first fields: NetParameter opens with a text
// (name) or a layer, SolverState with a number and then texts or blobs, BlobProto with numbers or
// values.
#include "io/file_kind.h"

#include <algorithm>

#include "base/error.h"
#include "io/wire.h"

namespace crema {
namespace {

bool is_text(std::string_view head) {
  return std::none_of(head.begin(), head.end(), [](char c) {
    const auto code = static_cast<unsigned char>(c);
    return code < 9 || (code > 13 && code < 32 && code != 27);
  });
}

bool contains(std::string_view text, std::string_view word) {
  return text.find(word) != std::string_view::npos;
}

FileKind kind_of_text(std::string_view head) {
  if (head.substr(0, 35) == "version https://git-lfs.github.com/") return FileKind::git_lfs;
  if (head.find_first_not_of(" \t\r\n") == head.find('<')) {
    return head.find('<') == head.npos ? FileKind::text : FileKind::web_page;
  }
  const bool has_fields = contains(head, "layer") || contains(head, "lr_policy");
  return has_fields && contains(head, ":") ? FileKind::prototxt : FileKind::text;
}

// Kind that the fields read so far allow no doubt about, else unknown.
FileKind kind_of_fields(std::string_view head) {
  WireReader reader(head);
  bool has_number_first = false;
  while (const auto field = reader.peek()) {
    const bool is_bytes = field->type == WireType::bytes;
    switch (field->number) {
      case 1:
        if (is_bytes) return FileKind::weights;
        has_number_first = true;
        reader.next();
        break;
      case 2:
      case 3:
        if (!is_bytes) return FileKind::blob;
        return has_number_first ? FileKind::solver_state : FileKind::weights;
      case 4:
        return has_number_first ? FileKind::solver_state : FileKind::weights;
      case 5:
        if (field->type == WireType::varint) return FileKind::weights;
        return is_bytes || field->type == WireType::fixed32 ? FileKind::blob : FileKind::unknown;
      case 6:  // a net's state; gradients come before values in no blob
        if (!is_bytes) return FileKind::unknown;
        reader.next();
        break;
      case 7:
        return is_bytes ? FileKind::blob : FileKind::weights;
      case 8:
      case 12:
      case 100:
        return is_bytes ? FileKind::weights : FileKind::unknown;
      default:
        return FileKind::unknown;
    }
  }
  return has_number_first ? FileKind::solver_state : FileKind::unknown;
}

}  // namespace

FileKind kind_of_bytes(std::string_view head) {
  if (head.empty()) return FileKind::empty;
  if (head.substr(0, 8) == "\x89HDF\r\n\x1a\n") return FileKind::hdf5;
  if (is_text(head)) return kind_of_text(head);
  try {
    return kind_of_fields(head);
  } catch (const Error&) {  // cut off or damaged before anything told
    return FileKind::unknown;
  }
}

std::string describe(FileKind kind) {
  switch (kind) {
    case FileKind::empty:
      return "empty";
    case FileKind::hdf5:
      return "an HDF5 file";
    case FileKind::git_lfs:
      return "a git-lfs pointer (fetch the file itself: git lfs pull)";
    case FileKind::web_page:
      return "a web page (a failed download?)";
    case FileKind::prototxt:
      return "a text file (prototxt)";
    case FileKind::text:
      return "a text file";
    case FileKind::weights:
      return "a weights file (.caffemodel)";
    case FileKind::solver_state:
      return "a solver state (.solverstate)";
    case FileKind::blob:
      return "a single blob (a mean file?)";
    case FileKind::unknown:
      break;
  }
  return "binary data of no known kind";
}

}  // namespace crema
