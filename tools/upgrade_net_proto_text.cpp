// upgrade_net_proto_text IN OUT: an old net's prototxt (V0, V1, input fields, ...) as today's.
#include "io/prototxt.h"
#include "net/upgrade.h"
#include "upgrade.h"

int main(int argc, char** argv) {
  return crema::run_upgrade(argc, argv, "upgrade_net_proto_text", [](const std::string& path) {
    crema::NetParameter net = crema::read_net(path);
    crema::upgrade_net(net, path);
    return crema::write_text(net);
  });
}
