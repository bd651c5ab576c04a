// Loads libcrema_image.so on first use, from the lib folder beside the program's own folder, else
// from the system's paths.
#include "io/image.h"

#include <dlfcn.h>
#include <unistd.h>

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

}  // namespace

void decode(std::string_view bytes, ColorMode mode, Picture& out) {
  require(!is_cut_jpeg(bytes), "the JPEG ends early");
  library().decode(bytes, mode, out);
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
  constexpr char kStartOfScan = '\xDA';
  if (bytes.substr(0, 2) != "\xFF\xD8") return false;
  size_t at = 2;
  while (at + 4 <= bytes.size() && bytes[at] == '\xFF') {
    if (bytes[at + 1] == '\xFF') {  // fill bytes are allowed before a marker
      ++at;
      continue;
    }
    if (bytes[at + 1] == kStartOfScan) return bytes.find("\xFF\xD9", at) == std::string_view::npos;
    at += 2 + big_endian16(bytes, at + 2);
  }
  return at + 4 > bytes.size();  // else no marker where one must be: broken in another way
}

}  // namespace crema
