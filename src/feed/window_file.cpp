// Words apart from paths may stand on any line, as Caffe reads them.
// BVLC: trusts the numbers, and takes the picture's number for its place in the list.
#include "feed/window_file.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

constexpr int kLargestSide = 1 << 15;

class WindowReader {
 public:
  explicit WindowReader(std::string_view text) : rest_(text) {}

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }
  int line() const { return line_; }

  std::string_view word(const char* what) {
    require(!at_end(), "the file ends before ", what);
    return take(rest_.find_first_of(" \t\r\n"));
  }

  std::string path() {
    require(!at_end(), "the file ends before the picture's path");
    std::string_view text = take(rest_.find('\n'));
    return std::string(text.substr(0, text.find_last_not_of(" \t\r") + 1));
  }

  template <class Number>
  Number number(const char* what) {
    const std::string_view text = word(what);
    Number value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    require(error == std::errc() && end == text.data() + text.size(), what, ": \"", text,
            "\" is not a number");
    return value;
  }

 private:
  void skip_blanks() {
    const size_t at = std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size());
    for (const char c : rest_.substr(0, at)) line_ += c == '\n';
    rest_.remove_prefix(at);
  }
  std::string_view take(size_t end) {
    const std::string_view out = rest_.substr(0, end);
    rest_.remove_prefix(out.size());
    return out;
  }

  std::string_view rest_;
  int line_ = 1;
};

PictureWindow read_window(WindowReader& reader, const WindowFile::Entry& picture) {
  PictureWindow w;
  w.label = reader.number<int>("class");
  w.overlap = reader.number<float>("overlap");
  w.left = reader.number<int>("left");
  w.top = reader.number<int>("top");
  w.right = reader.number<int>("right");
  w.bottom = reader.number<int>("bottom");
  require(std::isfinite(w.overlap), "overlap must be a number, not ", w.overlap);
  require(w.label >= 0, "class must not be negative, got ", w.label);
  const bool is_within = w.left >= 0 && w.left <= w.right && w.right < picture.width &&
                         w.top >= 0 && w.top <= w.bottom && w.bottom < picture.height;
  require(is_within, "the window ", w.left, " ", w.top, " ", w.right, " ", w.bottom,
          " (left, top, right, bottom) does not lie in a picture of height ", picture.height,
          ", width ", picture.width);
  return w;
}

void read_entry(WindowReader& reader, WindowFile* out) {
  const std::string_view mark = reader.word("\"#\"");
  require(mark == "#", "\"#\" and the picture's number were expected, not \"", mark, "\"");
  reader.number<int>("the picture's number");
  WindowFile::Entry picture{.path = reader.path()};
  picture.channels = reader.number<int>("channels");
  picture.height = reader.number<int>("height");
  picture.width = reader.number<int>("width");
  require(picture.channels == 1 || picture.channels == 3, "channels must be 1 or 3, not ",
          picture.channels);
  require(picture.height > 0 && picture.height <= kLargestSide && picture.width > 0 &&
              picture.width <= kLargestSide,
          "height ", picture.height, " and width ", picture.width, " must be in 1..", kLargestSide);
  require(out->pictures.empty() || out->pictures[0].channels == picture.channels, "has ",
          picture.channels, " channels, the pictures before it ",
          out->pictures.empty() ? 0 : out->pictures[0].channels);
  const int windows = reader.number<int>("the number of windows");
  require(windows >= 0, "the number of windows must not be negative, got ", windows);
  for (int i = 0; i < windows; ++i) {
    out->windows.push_back(read_window(reader, picture));
    out->windows.back().picture = static_cast<int>(out->pictures.size());
  }
  out->pictures.push_back(std::move(picture));
}

}  // namespace

WindowFile read_windows(const std::string& path) {
  const std::string content = read_file(path);
  WindowReader reader(content);
  WindowFile out;
  try {
    while (!reader.at_end()) read_entry(reader, &out);
  } catch (const Error& error) {
    throw error.at(str(path, ":", reader.line()));
  }
  require(!out.pictures.empty(), path, ": names no picture");
  return out;
}

}  // namespace crema
