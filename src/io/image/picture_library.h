// What libcrema_image.so offers to io/image.cpp, the only file that loads it.
#pragma once

#include "io/image.h"

namespace crema {

/// The functions of io/image.h under the same rules.
class PictureLibrary {
 public:
  virtual ~PictureLibrary() = default;
  virtual void decode(std::string_view bytes, ColorMode mode, int reduction,
                      Picture& out) const = 0;
  virtual Picture read(const std::string& path, ColorMode mode) const = 0;
  virtual std::string encode(const Picture& picture, const std::string& extension) const = 0;
  virtual std::string encode_jpeg(const Picture& picture, int quality) const = 0;
  virtual Picture resize(const Picture& picture, int height, int width,
                         Interpolation how) const = 0;
  virtual Picture filtered(const Picture& picture, PictureFilter filter) const = 0;
};

/// Name and type of the one function that the library exports.
constexpr const char* kPictureLibraryEntry = "crema_picture_library";
using PictureLibraryEntry = const PictureLibrary* (*)();

}  // namespace crema
