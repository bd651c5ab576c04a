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
/// under as_stored. reduction: 2, 4 or 8 decodes a JPEG at that part of its height and width,
/// rounded up, under color or gray; other formats are decoded and made smaller.
void decode(std::string_view bytes, ColorMode mode, Picture& out, int reduction = 1);

/// The largest of 1, 2, 4 and 8 at which a JPEG still is as large as height x width, lying or
/// standing; 1 for every other file.
int jpeg_reduction(std::string_view bytes, int height, int width);

/// decode() of a file, which for a JPEG that ends early gives the part that is there. Throws Error
/// "PATH: reason".
Picture read_picture(const std::string& path, ColorMode mode);

/// What follows the last dot of a path's name, in lower letters, jpg for jpeg; empty: there is
/// none.
std::string extension_of(const std::string& path);

/// The bytes of a file; extension ".png", ".jpg" (quality 95) and others of OpenCV. Throws Error
/// for an unknown one.
std::string encode(const Picture& picture, const std::string& extension);

/// A JPEG of this quality, 1..100.
std::string encode_jpeg(const Picture& picture, int quality);

/// How resize() finds a value between pixels.
enum class Interpolation : uint8_t { nearest, linear, cubic, area, lanczos };

/// The same bits as cv::resize. Throws Error for an empty size.
Picture resize(const Picture& picture, int height, int width,
               Interpolation how = Interpolation::linear);

/// Changes of a whole picture. On pictures of three channels equalize and clahe change the luma of
/// YCrCb; gray keeps three equal channels. Others must have one channel, for gray, hsv and lab
/// (8 bits, as OpenCV packs them) three.
enum class PictureFilter : uint8_t {
  gray,
  blur,      // Gaussian, 7 x 7, sigma 1.5
  equalize,  // of the histogram
  clahe,     // the same within tiles, 4 as the limit of contrast (Zuiderveld 1994)
  erode,     // the minimum of a pixel and its four neighbours
  hsv,
  lab
};
/// Throws Error for a number of channels that the filter does not take.
Picture filtered(const Picture& picture, PictureFilter filter);

/// True when the bytes begin as a JPEG but its end mark is missing: the picture was cut off.
bool is_cut_jpeg(std::string_view bytes);

}  // namespace crema
