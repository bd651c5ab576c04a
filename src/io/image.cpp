// Loads libcrema_image.so on first use, from the lib folder beside the program's own folder, else
// from the system's paths.
#include "io/image.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <climits>

#include "base/error.h"
#include "base/file.h"
#include "io/image/picture_library.h"

namespace crema {
namespace {

constexpr const char* kLibraryName = "libcrema_image.so";

std::string folder_of_program() {
  char path[PATH_MAX];
  const ssize_t size = ::readlink("/proc/self/exe", path, sizeof path);
  const std::string program(path, size > 0 ? static_cast<size_t>(size) : 0);
  return program.substr(0, program.rfind('/'));
}

/// The library, or nullptr and the loader's reason.
const PictureLibrary* load(std::string& reason) {
  const std::string beside = folder_of_program() + "/../lib/" + kLibraryName;
  void* handle = ::dlopen(exists(beside) ? beside.c_str() : kLibraryName, RTLD_NOW | RTLD_LOCAL);
  void* entry = handle ? ::dlsym(handle, kPictureLibraryEntry) : nullptr;
  if (!entry) {
    const char* error = ::dlerror();
    reason = error ? error : kLibraryName;
    return nullptr;
  }
  return reinterpret_cast<PictureLibraryEntry>(entry)();
}

const PictureLibrary& library() {
  static std::string reason;
  static const PictureLibrary* const loaded = load(reason);
  require(loaded, "this build cannot read or write pictures: build it with OpenCV (", reason, ")");
  return *loaded;
}

size_t big_endian16(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]) * size_t{256} +
         static_cast<unsigned char>(bytes[at + 1]);
}

/// What stands before the first scan of a JPEG; zeros for other files and where it is not there.
struct JpegHeader {
  size_t height = 0, width = 0;
  size_t scan = 0;      // where the first scan's marker lies
  bool is_cut = false;  // the file ends before it
};

/// Whether marker begins the description of a frame; of that range three mean other things.
bool begins_frame(unsigned marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

JpegHeader jpeg_header(std::string_view bytes) {
  constexpr unsigned kStartOfScan = 0xDA, kFill = 0xFF;
  JpegHeader header;
  if (bytes.substr(0, 2) != "\xFF\xD8") return header;
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == '\xFF') {
    const auto marker = static_cast<unsigned char>(bytes[at + 1]);
    if (marker == kFill) {  // allowed before a marker
      ++at;
      continue;
    }
    if (marker == kStartOfScan) {
      header.scan = at;
      return header;
    }
    if (begins_frame(marker) && at + 9 <= bytes.size()) {
      header.height = big_endian16(bytes, at + 5);
      header.width = big_endian16(bytes, at + 7);
    }
    at += 2 + big_endian16(bytes, at + 2);
  }
  header.is_cut = at + 4 > bytes.size();  // else no marker where one must be: broken in another way
  return header;
}

}  // namespace

void decode(std::string_view bytes, ColorMode mode, Picture& out, int reduction) {
  require(!is_cut_jpeg(bytes), "the JPEG ends early");
  library().decode(bytes, mode, reduction, out);
}

int jpeg_reduction(std::string_view bytes, int height, int width) {
  const JpegHeader header = jpeg_header(bytes);
  const size_t shorter = std::min(header.height, header.width);
  const auto wanted = static_cast<size_t>(std::max(height, width));
  int reduction = 1;
  while (reduction < 8 && shorter / (2 * static_cast<size_t>(reduction)) >= wanted) reduction *= 2;
  return reduction;
}

Picture read_picture(const std::string& path, ColorMode mode) {
  try {
    if (!exists(path)) fail(errno_text());
    require(!is_directory(path), "is a folder, a picture was expected");
    if (::access(path.c_str(), R_OK) != 0) fail(errno_text());
    return library().read(path, mode);
  } catch (const Error& error) {
    throw error.at(path);
  }
}

std::string encode(const Picture& picture, const std::string& extension) {
  return library().encode(picture, extension);
}

std::string encode_jpeg(const Picture& picture, int quality) {
  return library().encode_jpeg(picture, quality);
}

Picture resize(const Picture& picture, int height, int width, Interpolation how) {
  return library().resize(picture, height, width, how);
}

Picture filtered(const Picture& picture, PictureFilter filter) {
  const bool needs_colors =
      filter == PictureFilter::gray || filter == PictureFilter::hsv || filter == PictureFilter::lab;
  require(picture.channels == 3 || (picture.channels == 1 && !needs_colors), "the picture has ",
          picture.channels, " channels, ", needs_colors ? "3" : "1 or 3", " are needed");
  return library().filtered(picture, filter);
}

bool is_cut_jpeg(std::string_view bytes) {
  const JpegHeader header = jpeg_header(bytes);
  return header.is_cut ||
         (header.scan > 0 && bytes.find("\xFF\xD9", header.scan) == std::string_view::npos);
}

std::string extension_of(const std::string& path) {
  const size_t dot = path.rfind('.');
  if (dot == std::string::npos || path.find('/', dot) != std::string::npos) return "";
  std::string extension = path.substr(dot + 1);
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension == "jpeg" ? "jpg" : extension;
}

}  // namespace crema
