// An idx file: big-endian magic number (type and number of axes), sizes, then bytes. zlib reads
// plain files as they are.
#include "feed/idx_file.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

constexpr uint32_t kImagesMagic = 2051, kLabelsMagic = 2049;
constexpr uint32_t kLargestSide = 65535;

class IdxReader {
 public:
  explicit IdxReader(const std::string& path) : path_(path), file_(nullptr, &gzclose) {
    require(!is_directory(path), path, ": is a folder, an idx file is needed");
    errno = 0;
    file_.reset(gzopen(path.c_str(), "rb"));
    require(file_ != nullptr, path, ": ", errno_text());
  }

  void read_magic(uint32_t expected, const char* what) {
    const uint32_t magic = read_number();
    require(magic == expected, path_, ": is not an idx file of ", what, " (magic number ", magic,
            ", not ", expected, ")");
  }
  uint32_t read_number() {
    unsigned char b[4];
    read(b, sizeof b);
    return uint32_t{b[0]} << 24 | uint32_t{b[1]} << 16 | uint32_t{b[2]} << 8 | b[3];
  }
  int read_size(const char* what, uint32_t limit) {
    const uint32_t size = read_number();
    require(size > 0 && size <= limit, path_, ": claims to hold ", size, " ", what);
    return static_cast<int>(size);
  }
  /// size bytes; grows with what is there, so a wrong size in a short file costs nothing.
  std::vector<uint8_t> read_bytes(uint64_t size) {
    constexpr uint64_t kStep = uint64_t{16} << 20;
    std::vector<uint8_t> bytes;
    while (bytes.size() < size) {
      const uint64_t old = bytes.size();
      bytes.resize(std::min(size, old + kStep));
      read(bytes.data() + old, bytes.size() - old);
    }
    return bytes;
  }

 private:
  void read(unsigned char* to, uint64_t size) {
    const int got = gzread(file_.get(), to, static_cast<unsigned>(size));
    int code = 0;
    const std::string text = gzerror(file_.get(), &code);  // with the path in front
    const size_t start = text.rfind(path_ + ": ", 0) == 0 ? path_.size() + 2 : 0;
    require(got >= 0, path_, ": ", code == Z_ERRNO ? errno_text() : text.substr(start));
    require(static_cast<uint64_t>(got) == size, path_, ": the file is cut short");
  }

  std::string path_;
  std::unique_ptr<gzFile_s, int (*)(gzFile)> file_;
};

}  // namespace

IdxImages read_idx_images(const std::string& path) {
  IdxReader reader(path);
  reader.read_magic(kImagesMagic, "images");
  IdxImages images;
  images.count = reader.read_size("images", INT32_MAX);
  images.rows = reader.read_size("rows", kLargestSide);
  images.cols = reader.read_size("columns", kLargestSide);
  images.pixels = reader.read_bytes(uint64_t{1} * images.count * images.rows * images.cols);
  return images;
}

std::vector<uint8_t> read_idx_labels(const std::string& path) {
  IdxReader reader(path);
  reader.read_magic(kLabelsMagic, "labels");
  return reader.read_bytes(reader.read_size("labels", INT32_MAX));
}

}  // namespace crema
