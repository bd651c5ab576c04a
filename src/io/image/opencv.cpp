// PictureLibrary on OpenCV. Its own threads and messages are off: we thread over pictures, and name
// the file ourselves.
#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "base/error.h"
#include "io/image/picture_library.h"

namespace crema {
namespace {

int flag_of(ColorMode mode, int reduction = 1) {
  if (reduction > 1) {
    // IMREAD_REDUCED_GRAYSCALE_2, _4 and _8 are 16, 32 and 64; the colour ones have IMREAD_COLOR
    // too.
    return 8 * reduction | (mode == ColorMode::gray ? cv::IMREAD_GRAYSCALE : cv::IMREAD_COLOR);
  }
  switch (mode) {
    case ColorMode::as_stored:
      return cv::IMREAD_UNCHANGED;
    case ColorMode::color:
      return cv::IMREAD_COLOR;
    case ColorMode::gray:
      break;
  }
  return cv::IMREAD_GRAYSCALE;
}

int flag_of(Interpolation how) {
  switch (how) {
    case Interpolation::nearest:
      return cv::INTER_NEAREST;
    case Interpolation::linear:
      return cv::INTER_LINEAR;
    case Interpolation::cubic:
      return cv::INTER_CUBIC;
    case Interpolation::area:
      return cv::INTER_AREA;
    case Interpolation::lanczos:
      break;
  }
  return cv::INTER_LANCZOS4;
}

void copy_out(const cv::Mat& mat, Picture& out) {
  require(mat.depth() == CV_8U,
          "the picture has more than 8 bits per channel; ask for it in "
          "colour or gray (force_color, force_gray)");
  const size_t row = mat.cols * mat.elemSize();
  out.height = mat.rows;
  out.width = mat.cols;
  out.channels = mat.channels();
  out.pixels.resize(row * mat.rows);
  for (int y = 0; y < mat.rows; ++y) {
    std::copy_n(mat.ptr(y), row, out.pixels.data() + y * row);
  }
}

/// A view, for OpenCV calls that only read.
cv::Mat view(const Picture& picture) {
  require(picture.height > 0 && picture.width > 0 && picture.channels > 0, "the picture is empty");
  return {picture.height, picture.width, CV_8UC(picture.channels),
          const_cast<uint8_t*>(picture.pixels.data())};
}

/// Runs call; OpenCV's exceptions become Errors.
template <class Call>
auto translated(const Call& call) {
  try {
    return call();
  } catch (const cv::Exception& error) {
    throw Error("OpenCV: " + error.err);
  }
}

/// Applies change to a gray picture, or to the luma of one in colours.
template <class Change>
cv::Mat with_luma(const cv::Mat& in, const Change& change) {
  cv::Mat out;
  if (in.channels() == 1) {
    change(in, out);
    return out;
  }
  cv::Mat whole, luma, changed;
  cv::cvtColor(in, whole, cv::COLOR_BGR2YCrCb);
  cv::extractChannel(whole, luma, 0);
  change(luma, changed);
  cv::insertChannel(changed, whole, 0);
  cv::cvtColor(whole, out, cv::COLOR_YCrCb2BGR);
  return out;
}

cv::Mat filtered_mat(const cv::Mat& in, PictureFilter filter) {
  constexpr double kSigma = 1.5, kClipLimit = 4;
  cv::Mat out, gray;
  switch (filter) {
    case PictureFilter::gray:
      cv::cvtColor(in, gray, cv::COLOR_BGR2GRAY);
      cv::cvtColor(gray, out, cv::COLOR_GRAY2BGR);
      break;
    case PictureFilter::blur:
      cv::GaussianBlur(in, out, cv::Size(7, 7), kSigma);
      break;
    case PictureFilter::equalize:
      return with_luma(in, [](const cv::Mat& x, cv::Mat& y) { cv::equalizeHist(x, y); });
    case PictureFilter::clahe:
      return with_luma(
          in, [](const cv::Mat& x, cv::Mat& y) { cv::createCLAHE(kClipLimit)->apply(x, y); });
    case PictureFilter::erode:
      cv::erode(in, out, cv::getStructuringElement(cv::MORPH_ELLIPSE, cv::Size(3, 3)));
      break;
    case PictureFilter::hsv:
      cv::cvtColor(in, out, cv::COLOR_BGR2HSV);
      break;
    case PictureFilter::lab:
      cv::cvtColor(in, out, cv::COLOR_BGR2Lab);
      break;
  }
  return out;
}

class OpenCv final : public PictureLibrary {
 public:
  OpenCv() {
    cv::setNumThreads(1);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  }

  void decode(std::string_view bytes, ColorMode mode, int reduction, Picture& out) const override {
    require(!bytes.empty(), "no bytes, a picture was expected");
    const cv::Mat mat = translated([&] {
      const cv::Mat buffer(1, static_cast<int>(bytes.size()), CV_8UC1,
                           const_cast<char*>(bytes.data()));
      // Into a reused Mat, failure would leave the old picture.
      return cv::imdecode(buffer, flag_of(mode, reduction));
    });
    require(!mat.empty(), "not a picture, or a broken one");
    copy_out(mat, out);
  }

  Picture read(const std::string& path, ColorMode mode) const override {
    const cv::Mat mat = translated([&] { return cv::imread(path, flag_of(mode)); });
    require(!mat.empty(), "not a picture, or a broken one");
    Picture out;
    copy_out(mat, out);
    return out;
  }

  std::string encode(const Picture& picture, const std::string& extension) const override {
    std::vector<uint8_t> bytes;
    require(translated([&] {
              return cv::haveImageWriter("x" + extension) &&
                     cv::imencode(extension, view(picture), bytes);
            }),
            "cannot encode a picture as \"", extension, "\"");
    return {bytes.begin(), bytes.end()};
  }

  std::string encode_jpeg(const Picture& picture, int quality) const override {
    std::vector<uint8_t> bytes;
    require(
        translated([&] {
          return cv::imencode(".jpg", view(picture), bytes, {cv::IMWRITE_JPEG_QUALITY, quality});
        }),
        "cannot encode a picture as a JPEG");
    return {bytes.begin(), bytes.end()};
  }

  Picture filtered(const Picture& picture, PictureFilter filter) const override {
    Picture out;
    translated([&] { copy_out(filtered_mat(view(picture), filter), out); });
    return out;
  }

  Picture resize(const Picture& picture, int height, int width, Interpolation how) const override {
    require(height > 0 && width > 0, "cannot resize a picture to ", height, " x ", width);
    Picture out;
    translated([&] {
      cv::Mat mat;
      cv::resize(view(picture), mat, cv::Size(width, height), 0, 0, flag_of(how));
      copy_out(mat, out);
    });
    return out;
  }
};

}  // namespace
}  // namespace crema

extern "C" __attribute__((visibility("default"))) const crema::PictureLibrary*
crema_picture_library() {
  static const crema::OpenCv library;
  return &library;
}
