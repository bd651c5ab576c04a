// Protobuf's wire format, field by field: for files beyond the 2 GB that protobuf reads whole, and
// for files of forks whose field numbers collide with ours.
#pragma once

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

#include "io/blob.h"

namespace crema {

enum class WireType { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct WireField {
  int number;
  WireType type;
  uint64_t value;          // of a varint
  std::string_view bytes;  // content; of a varint and fixed types their encoding
  std::string_view whole;  // with tag and length
};

/// Reads the fields of one message in order. The message must outlive it.
class WireReader {
 public:
  explicit WireReader(std::string_view message) : message_(message) {}

  /// Whether nothing but zero bytes, which are no fields, is left; some writers fill files up.
  bool is_padding() const;
  /// The next field; nothing at the end. Throws Error ("is truncated: ...", "is damaged: ...").
  std::optional<WireField> next();
  /// Number and type of the next field alone, whether or not its content is there.
  std::optional<WireField> peek() const;

 private:
  WireField tag();
  uint64_t varint();
  void require_bytes(uint64_t count) const;

  std::string_view message_;
  size_t at_ = 0;
};

/// Writes fields to a file. Throws Error with the system's reason when it cannot.
class WireWriter {
 public:
  explicit WireWriter(const std::string& path);
  ~WireWriter();
  WireWriter(const WireWriter&) = delete;
  WireWriter& operator=(const WireWriter&) = delete;

  void raw(const void* bytes, size_t size);
  /// Tag and length of a field of bytes; its content follows by further calls.
  void begin(int number, uint64_t length);
  /// Flushes and closes. Must be called at the end: the destructor drops errors.
  void close();

 private:
  std::FILE* file_;
};

/// Bytes that a blob of this shape, with as many values and gradient values (0: none), takes as the
/// content of a field. Throws Error beyond the 2 GB that readers take.
uint64_t blob_size(const Shape& shape, uint64_t values, uint64_t gradients);
uint64_t blob_size(const HostBlob& blob, bool with_diff);
/// Writes a blob as field number.
void write_blob(WireWriter& out, int number, const HostBlob& blob, bool with_diff);
/// Bytes of tag and length in front of a field of bytes.
uint64_t header_size(int number, uint64_t length);

/// A file in memory, read on demand by the system.
class MappedFile {
 public:
  /// Throws Error "PATH: reason".
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace crema
