// Pictures as files: decode, encode, resize, with OpenCV's results. The work is done by
// libcrema_image.so, loaded on first use; a build without it gives one clear Error. All functions
// may be called from several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

/// A decoded picture: rows of pixels, channels innermost (blue, green, red), 8 bits each.
struct Picture {
  int height = 0, width = 0, channels = 0;
  std::vector<uint8_t> pixels;

  friend bool operator==(const Picture&, const Picture&) = default;
};

/// as_stored keeps gray, colour and alpha as they are; color gives 3 channels, gray 1, whatever is
/// stored (alpha dropped, 16 bits cut to 8, a camera's orientation mark followed).
enum class ColorMode { as_stored, color, gray };

/// The picture in the bytes of a PNG, JPEG, BMP, ... file. `out` keeps its storage between calls.
/// Throws Error when the bytes are no picture, are broken, or hold more than 8 bits per channel
/// under as_stored.
void decode(std::string_view bytes, ColorMode mode, Picture& out);

/// decode() of a file, which for a JPEG that ends early gives the part that is there. Throws Error
/// "PATH: reason".
Picture read_picture(const std::string& path, ColorMode mode);

/// The bytes of a file; extension ".png", ".jpg" (quality 95) and others of OpenCV. Throws Error
/// for an unknown one.
std::string encode(const Picture& picture, const std::string& extension);

/// Bilinear, the same bits as cv::resize. Throws Error for an empty size.
Picture resize(const Picture& picture, int height, int width);

/// True when the bytes begin as a JPEG but its end mark is missing: the picture was cut off.
bool is_cut_jpeg(std::string_view bytes);

}  // namespace crema
