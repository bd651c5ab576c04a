// upgrade_net_proto_binary IN OUT: an old binary net, with or without weights, as today's. All
// fields are kept, which is what tells it from `crema convert`.
#include "io/file_kind.h"
#include "io/prototxt.h"
#include "io/wire.h"
#include "net/upgrade.h"
#include "upgrade.h"

namespace {

std::string upgraded(const std::string& path) {
  const crema::MappedFile file(path);
  const std::string_view bytes = file.bytes();
  const crema::FileKind kind = crema::kind_of_bytes(bytes.substr(0, 65536));
  crema::require(kind == crema::FileKind::weights, path, ": is ", crema::describe(kind),
                 ", a binary net is needed");
  crema::require(bytes.size() < (size_t{1} << 31), path,
                 ": is larger than the 2 GB that can be upgraded as a whole; `crema convert` reads "
                 "its weights");
  crema::NetParameter net;
  crema::require(
      net.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())), path,
      ": is damaged, or of a fork that gave fields another meaning; `crema convert` reads "
      "its weights");
  crema::upgrade_net(net, path);
  crema::clear_source_locations(&net);
  return net.SerializePartialAsString();
}

}  // namespace

int main(int argc, char** argv) {
  return crema::run_upgrade(argc, argv, "upgrade_net_proto_binary", upgraded);
}
