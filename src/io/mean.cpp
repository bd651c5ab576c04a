// Mean files: a BlobProto alone in a file.
#include "io/mean.h"

#include "base/error.h"
#include "base/file.h"
#include "io/file_kind.h"
#include "io/wire.h"

namespace crema {

HostBlob read_mean(const std::string& path) {
  const MappedFile file(path);
  const FileKind kind = kind_of_bytes(file.bytes().substr(0, 1 << 16));
  require(kind == FileKind::blob, path, ": is ", describe(kind),
          ", a mean file (.binaryproto) is needed");
  BlobProto proto;
  const std::string_view bytes = file.bytes();
  require(bytes.size() <= static_cast<size_t>(kMaxBlobCount) &&
              proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())),
          path, ": is truncated or damaged, a mean file (.binaryproto) is needed");
  try {
    HostBlob mean = from_proto(proto);
    require(!mean.data.empty(), "holds no values");
    return mean;
  } catch (const Error& error) {
    throw error.at(path);
  }
}

void write_mean(const std::string& path, const HostBlob& mean) {
  BlobProto proto = to_proto(mean);
  proto.clear_shape();
  // Four sizes: what the reference's tool writes and the oldest readers need.
  const int missing = 4 - mean.shape.axes();
  require(missing >= 0, "a mean has at most 4 axes, not the shape ", mean.shape);
  auto size_at = [&](int axis) {
    return static_cast<int>(axis < missing ? 1 : mean.shape[axis - missing]);
  };
  proto.set_num(size_at(0));
  proto.set_channels(size_at(1));
  proto.set_height(size_at(2));
  proto.set_width(size_at(3));
  write_file(path, proto.SerializeAsString());
}

}  // namespace crema
