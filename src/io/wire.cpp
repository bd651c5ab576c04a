// Wire format: little-endian, as every machine that Crema runs on.
#include "io/wire.h"

#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

static_assert(std::endian::native == std::endian::little);

// Errors name the file and come once; protobuf's own lines on stderr would be a second voice.
google::protobuf::LogHandler* const former_handler = google::protobuf::SetLogHandler(nullptr);

constexpr uint64_t kMaxField = 2147483647;  // protobuf readers refuse longer fields
constexpr int kShape = 7, kData = 5, kDiff = 6;

std::string varint_bytes(uint64_t value) {
  std::string bytes;
  for (; value >= 128; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes += static_cast<char>(value);
}

std::string header(int number, uint64_t length) {
  const int tag = number * 8 + static_cast<int>(WireType::bytes);
  return varint_bytes(static_cast<uint64_t>(tag)) + varint_bytes(length);
}

std::string shape_bytes(const Shape& shape) {
  BlobShape proto;
  for (int64_t dim : shape) proto.add_dim(dim);
  return proto.SerializeAsString();
}

}  // namespace

void WireReader::require_bytes(uint64_t count) const {
  const uint64_t left = message_.size() - at_;
  require(count <= left, "is truncated: ", count - left, " bytes are missing at its end");
}

uint64_t WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    require_bytes(1);
    const auto byte = static_cast<unsigned char>(message_[at_++]);
    value |= uint64_t{byte & 127u} << shift;
    if (byte < 128) return value;
  }
  fail("is damaged: no number at byte ", at_);
}

WireField WireReader::tag() {
  const size_t from = at_;
  const uint64_t tag = varint();
  const uint64_t type = tag & 7;
  require(tag >> 3 != 0 && tag >> 3 < (1u << 29) && type != 3 && type != 4 && type < 6,
          "is damaged: no field at byte ", from);
  return {static_cast<int>(tag >> 3), static_cast<WireType>(type), 0, {}, {}};
}

bool WireReader::is_padding() const {
  if (at_ == message_.size() || message_[at_] != 0) return false;
  return message_.find_first_not_of('\0', at_) == std::string_view::npos;
}

std::optional<WireField> WireReader::peek() const {
  if (at_ == message_.size()) return std::nullopt;
  return WireReader(message_.substr(at_)).tag();
}

std::optional<WireField> WireReader::next() {
  if (at_ == message_.size()) return std::nullopt;
  const size_t from = at_;
  WireField field = tag();
  size_t begin = at_;
  switch (field.type) {
    case WireType::varint:
      field.value = varint();
      break;
    case WireType::fixed64:
      require_bytes(8), at_ += 8;
      break;
    case WireType::fixed32:
      require_bytes(4), at_ += 4;
      break;
    case WireType::bytes: {
      const uint64_t length = varint();
      require_bytes(length);
      begin = at_;
      at_ += length;
      break;
    }
    default:
      fail("is damaged: no field at byte ", from);
  }
  field.bytes = message_.substr(begin, at_ - begin);
  field.whole = message_.substr(from, at_ - from);
  return field;
}

WireWriter::WireWriter(const std::string& path) : file_(std::fopen(path.c_str(), "wb")) {
  if (!file_) fail(errno_text());
}

WireWriter::~WireWriter() {
  if (file_) std::fclose(file_);
}

void WireWriter::raw(const void* bytes, size_t size) {
  if (std::fwrite(bytes, 1, size, file_) != size) fail(errno_text());
}

void WireWriter::begin(int number, uint64_t length) {
  const std::string bytes = header(number, length);
  raw(bytes.data(), bytes.size());
}

void WireWriter::close() {
  std::FILE* file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) fail(errno_text());
}

uint64_t header_size(int number, uint64_t length) { return header(number, length).size(); }

uint64_t blob_size(const Shape& shape, uint64_t values, uint64_t gradients) {
  const uint64_t head = shape_bytes(shape).size(), data = values * sizeof(float);
  const uint64_t diff = gradients * sizeof(float);
  uint64_t size = header_size(kShape, head) + head + header_size(kData, data) + data;
  if (diff) size += header_size(kDiff, diff) + diff;
  require(size <= kMaxField, "a blob of shape ", shape,
          " exceeds the 2 GB that the binary format can hold: use snapshot_format: HDF5");
  return size;
}

uint64_t blob_size(const HostBlob& blob, bool with_diff) {
  return blob_size(blob.shape, blob.data.size(), with_diff ? blob.diff.size() : 0);
}

void write_blob(WireWriter& out, int number, const HostBlob& blob, bool with_diff) {
  out.begin(number, blob_size(blob, with_diff));
  out.begin(kData, blob.data.size() * sizeof(float));
  out.raw(blob.data.data(), blob.data.size() * sizeof(float));
  if (with_diff && !blob.diff.empty()) {
    out.begin(kDiff, blob.diff.size() * sizeof(float));
    out.raw(blob.diff.data(), blob.diff.size() * sizeof(float));
  }
  const std::string shape = shape_bytes(blob.shape);
  out.begin(kShape, shape.size());
  out.raw(shape.data(), shape.size());
}

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, ": ", errno_text());
  struct stat info {};
  const bool has_info = ::fstat(fd, &info) == 0;
  size_ = has_info && S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) : 0;
  if (size_) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd, 0);
  const std::string reason = errno_text();
  ::close(fd);
  require(!S_ISDIR(info.st_mode), path, ": is a directory, a file is needed");
  require(has_info && data_ != MAP_FAILED, path, ": ", reason);
}

MappedFile::~MappedFile() {
  if (size_ && data_ != MAP_FAILED) ::munmap(data_, size_);
}

}  // namespace crema
