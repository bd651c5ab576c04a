// The zip format as PKWARE's APPNOTE describes it: entries, then a central directory, then its end
// mark. Readers look at the end first.
#include "io/npz.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "io/wire.h"

namespace crema {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kEntryMark = 0x04034b50, kDirectoryMark = 0x02014b50, kEndMark = 0x06054b50;
constexpr size_t kEntrySize = 30, kDirectorySize = 46, kEndSize = 22;
constexpr uint64_t kLimit = 0xffffffff;

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T get(std::string_view bytes, size_t at) {
  require(at + sizeof(T) <= bytes.size(), "is truncated");
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view part(std::string_view bytes, uint64_t at, uint64_t size) {
  require(at <= bytes.size() && size <= bytes.size() - at, "is truncated");
  return bytes.substr(at, size);
}

/// What entry header and directory share, from "version needed" to the length of the name.
std::string entry_fields(uint32_t crc, uint32_t size, const std::string& name) {
  std::string out;
  put<uint16_t>(out, 20);      // version that is needed
  put<uint16_t>(out, 0x0800);  // names are UTF-8
  put<uint16_t>(out, 0);       // stored
  put<uint16_t>(out, 0);       // time
  put<uint16_t>(out, 0x21);    // date: 1980-01-01, so that equal arrays give equal files
  put<uint32_t>(out, crc);
  put<uint32_t>(out, size);
  put<uint32_t>(out, size);
  put<uint16_t>(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, 0);  // extra fields
  return out;
}

uint32_t crc_of(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

/// The text after 'KEY': in a .npy header, without blanks in front.
std::string_view header_value(std::string_view header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  require(at != std::string_view::npos, "is no .npy array: its header has no ", key);
  std::string_view rest = header.substr(header.find(':', at) + 1);
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

Shape shape_in(std::string_view header) {
  std::string_view text = header_value(header, "shape");
  Shape shape;
  for (size_t i = 1; i < text.size() && text[i] != ')';) {
    const size_t end = text.find_first_not_of("0123456789", i);
    if (end == i) {
      ++i;
      continue;
    }
    require(end - i < 18, "has a shape that is too large");
    shape.push_back(std::stoll(std::string(text.substr(i, end - i))));
    i = end;
  }
  return shape;
}

template <class Stored>
std::vector<float> values_of(std::string_view bytes, int64_t count) {
  require(bytes.size() == static_cast<size_t>(count) * sizeof(Stored), "holds ", bytes.size(),
          " bytes, its shape needs ", static_cast<size_t>(count) * sizeof(Stored));
  std::vector<float> out(static_cast<size_t>(count));
  for (size_t i = 0; i < out.size(); ++i) {
    Stored value;
    std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
    out[i] = static_cast<float>(value);
  }
  return out;
}

std::vector<float> values_of_type(std::string_view type, std::string_view bytes, int64_t count) {
  const std::string name(type);
  if (name == "<f4") return values_of<float>(bytes, count);
  if (name == "<f8") return values_of<double>(bytes, count);
  if (name == "<i4") return values_of<int32_t>(bytes, count);
  if (name == "<i8") return values_of<int64_t>(bytes, count);
  if (name == "<i2") return values_of<int16_t>(bytes, count);
  if (name == "|i1") return values_of<int8_t>(bytes, count);
  if (name == "|u1") return values_of<uint8_t>(bytes, count);
  if (name == "<f2") {
    BlobProto proto;  // whose reader knows half precision
    proto.mutable_shape()->add_dim(count);
    proto.set_raw_data_type(FLOAT16);
    proto.set_raw_data(bytes.data(), bytes.size());
    return from_proto(proto).data;
  }
  fail("holds values of type ", name, "; floats and whole numbers, little-endian, are read");
}

std::string inflated(std::string_view bytes, uint64_t size) {
  require(size <= 4 * static_cast<uint64_t>(kMaxBlobCount), "holds an array that is too large");
  std::string out(size, '\0');
  z_stream stream{};
  require(::inflateInit2(&stream, -MAX_WBITS) == Z_OK, "cannot be inflated");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  size_t in_left = bytes.size(), out_left = size;
  int code = Z_OK;
  while (code == Z_OK) {
    stream.avail_in = static_cast<uInt>(std::min<size_t>(in_left, 1u << 30));
    stream.avail_out = static_cast<uInt>(std::min<size_t>(out_left, 1u << 30));
    in_left -= stream.avail_in;
    out_left -= stream.avail_out;
    code = ::inflate(&stream, Z_NO_FLUSH);
    in_left += stream.avail_in;
    out_left += stream.avail_out;
  }
  ::inflateEnd(&stream);
  require(code == Z_STREAM_END && out_left == 0, "is damaged");
  return out;
}

struct Entry {
  std::string name;
  uint16_t method;
  uint32_t crc;
  uint64_t stored, size, offset;
};

/// Sizes that do not fit 32 bits lie in an extra field, in this order, those alone.
void read_large_sizes(std::string_view extra, Entry& entry) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const auto id = get<uint16_t>(extra, at), length = get<uint16_t>(extra, at + 2);
    at += 4;
    if (id == 1) {
      size_t field = at;
      for (uint64_t* value : {&entry.size, &entry.stored, &entry.offset}) {
        if (*value != kLimit) continue;
        *value = get<uint64_t>(extra, field);
        field += 8;
      }
    }
    at += length;
  }
}

std::vector<Entry> directory_of(std::string_view bytes) {
  require(bytes.size() >= kEndSize, "is no .npz archive");
  size_t end = bytes.size() - kEndSize;
  const size_t lowest = end > 65535 ? end - 65535 : 0;
  while (get<uint32_t>(bytes, end) != kEndMark) {
    require(end > lowest, "is no .npz archive, or its end is missing");
    --end;
  }
  const auto count = get<uint16_t>(bytes, end + 10);
  uint64_t at = get<uint32_t>(bytes, end + 16);
  require(at != kLimit && count != 0xffff, "has a directory beyond 4 GB, which is not read");
  std::vector<Entry> entries;
  for (int i = 0; i < count; ++i) {
    require(get<uint32_t>(bytes, at) == kDirectoryMark,
            "is damaged: its directory is not where its "
            "end says");
    const auto name = get<uint16_t>(bytes, at + 28), extra = get<uint16_t>(bytes, at + 30),
               comment = get<uint16_t>(bytes, at + 32);
    Entry entry{.name = std::string(part(bytes, at + kDirectorySize, name)),
                .method = get<uint16_t>(bytes, at + 10),
                .crc = get<uint32_t>(bytes, at + 16),
                .stored = get<uint32_t>(bytes, at + 20),
                .size = get<uint32_t>(bytes, at + 24),
                .offset = get<uint32_t>(bytes, at + 42)};
    read_large_sizes(part(bytes, at + kDirectorySize + name, extra), entry);
    entries.push_back(entry);
    at += kDirectorySize + name + extra + comment;
  }
  return entries;
}

HostBlob array_of(std::string_view bytes, const Entry& entry) {
  require(get<uint32_t>(bytes, entry.offset) == kEntryMark, "is damaged");
  const uint64_t begin = entry.offset + kEntrySize + get<uint16_t>(bytes, entry.offset + 26) +
                         get<uint16_t>(bytes, entry.offset + 28);
  const std::string_view stored = part(bytes, begin, entry.stored);
  require(entry.method == 0 || entry.method == 8, "is compressed in a way that is not read (",
          entry.method, ")");
  const std::string content = entry.method == 8 ? inflated(stored, entry.size) : "";
  const std::string_view array = entry.method == 8 ? std::string_view(content) : stored;
  require(crc_of(array) == entry.crc, "is damaged: its checksum is wrong");
  return read_npy(array);
}

}  // namespace

std::string write_npy(const Shape& shape, const std::vector<float>& values) {
  std::string sizes;
  for (const int64_t dim : shape) sizes += std::to_string(dim) + ",";
  if (shape.axes() > 1) sizes.pop_back();
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + sizes + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  put<uint16_t>(out, static_cast<uint16_t>(header.size()));
  out += header;
  out.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  return out;
}

HostBlob read_npy(std::string_view bytes) {
  require(bytes.substr(0, 6) == std::string_view("\x93NUMPY", 6), "is no .npy array");
  const bool is_long = get<uint8_t>(bytes, 6) > 1;
  const uint64_t length = is_long ? get<uint32_t>(bytes, 8) : get<uint16_t>(bytes, 8);
  const std::string_view header = part(bytes, is_long ? 12 : 10, length);
  require(header_value(header, "fortran_order").substr(0, 5) == "False",
          "is stored column by column (fortran_order); numpy.ascontiguousarray mends that");
  std::string_view type = header_value(header, "descr");
  require(!type.empty() && type[0] == '\'', "holds records; an array of numbers is needed");
  type = type.substr(1, type.find('\'', 1) - 1);
  HostBlob blob{.shape = shape_in(header), .data = {}, .diff = {}};
  blob.data = values_of_type(type, bytes.substr((is_long ? 12 : 10) + length), blob.shape.count());
  return blob;
}

void write_npz(const std::string& path, const NamedBlobs& arrays) {
  write_atomically(path, [&](const std::string& temporary) {
    std::ofstream file(temporary, std::ios::binary);
    std::string directory;
    uint64_t offset = 0;
    for (const auto& [array, blob] : arrays) {
      const std::string name = array + ".npy", content = write_npy(blob.shape, blob.data);
      require(offset + content.size() < kLimit,
              "a .npz archive ends at 4 GB; .caffemodel and .h5 do not");
      const std::string fields =
          entry_fields(crc_of(content), static_cast<uint32_t>(content.size()), name);
      std::string entry;
      put(entry, kEntryMark);
      entry += fields + name;
      file << entry << content;
      put(directory, kDirectoryMark);
      put<uint16_t>(directory, 20);
      directory += fields;
      directory.append(10, '\0');  // comment, disk, attributes
      put(directory, static_cast<uint32_t>(offset));
      directory += name;
      offset += entry.size() + content.size();
    }
    std::string end;
    put(end, kEndMark);
    put<uint32_t>(end, 0);  // disks
    put(end, static_cast<uint16_t>(arrays.size()));
    put(end, static_cast<uint16_t>(arrays.size()));
    put(end, static_cast<uint32_t>(directory.size()));
    put(end, static_cast<uint32_t>(offset));
    put<uint16_t>(end, 0);
    file << directory << end;
    file.close();
    require(file.good(), errno_text());
  });
}

NamedBlobs read_npz(const std::string& path) {
  const MappedFile file(path);
  NamedBlobs arrays;
  try {
    for (const Entry& entry : directory_of(file.bytes())) {
      std::string name = entry.name;
      if (name.size() > 4 && name.substr(name.size() - 4) == ".npy") name.resize(name.size() - 4);
      try {
        arrays.emplace_back(name, array_of(file.bytes(), entry));
      } catch (const Error& error) {
        fail("array \"", name, "\" ", error.what());
      }
    }
  } catch (const Error& error) {
    throw error.at(path);
  }
  return arrays;
}

}  // namespace crema
