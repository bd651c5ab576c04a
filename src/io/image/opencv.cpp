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

int flag_of(ColorMode mode) {
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

class OpenCv final : public PictureLibrary {
 public:
  OpenCv() {
    cv::setNumThreads(1);
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    cv::redirectError([](int, const char*, const char*, const char*, int, void*) { return 0; });
  }

  void decode(std::string_view bytes, ColorMode mode, Picture& out) const override {
    require(!bytes.empty(), "no bytes, a picture was expected");
    const cv::Mat mat = translated([&] {
      const cv::Mat buffer(1, static_cast<int>(bytes.size()), CV_8UC1,
                           const_cast<char*>(bytes.data()));
      return cv::imdecode(buffer,
                          flag_of(mode));  // into a reused Mat, failure would leave the old picture
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

  Picture resize(const Picture& picture, int height, int width) const override {
    require(height > 0 && width > 0, "cannot resize a picture to ", height, " x ", width);
    Picture out;
    translated([&] {
      cv::Mat mat;
      cv::resize(view(picture), mat, cv::Size(width, height));
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
