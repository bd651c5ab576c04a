// Weights files made by hand, for tests of the tools that read them.
#pragma once

#include <string>
#include <vector>

#include "io/weights.h"

namespace crema::testing {

struct TestWeights {
  std::string layer;
  std::vector<HostBlob> blobs;
};

inline void write_weights(const std::string& path, const std::vector<TestWeights>& layers) {
  NetParameter net;
  net.set_name("made");
  for (const TestWeights& layer : layers) net.add_layer()->set_name(layer.layer);
  if (layers.empty()) net.add_layer()->set_name("nothing");
  write_weights_binary(path, net, [&](int i) {
    return layers.empty() ? std::vector<HostBlob>{} : layers[static_cast<size_t>(i)].blobs;
  });
}

}  // namespace crema::testing
