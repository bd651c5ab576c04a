// crema run: what it refuses of its input file.
#include <gtest/gtest.h>

#include "io/hdf5.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

/// Runs a net of one inner product, ip, on input x with `path` = 1 in the input file.
Ended run_with(const std::string& path) {
  const TestFolder folder;
  folder.write("net.prototxt",
               "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 1 dim: 1 } } } "
               "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { "
               "num_output: 1 bias_term: false } }");
  const float one = 1;
  Hdf5File file = Hdf5File::create(folder / "in.h5");
  file.write(path, Shape{1, 1}, &one);
  file.close();
  return run_crema(folder, {"run", "--model=net.prototxt", "--input=in.h5", "--output=out.h5"});
}

TEST(RunCommand, RefusesWhatTheNetDoesNotHave) {
  EXPECT_EQ(run_with("inputs/x").status, 0);
  EXPECT_EQ(run_with("params/ip/0").status, 0);
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"inputs/X", "in.h5: /inputs/X: the net has no such blob (did you mean x?)"},
      {"inputs/y", "blob \"y\" is made by a layer"},
      {"params/ip/1", "in.h5: /params/ip/1: layer \"ip\" has no such parameter"},
      {"params/ip/-1", "in.h5: /params/ip/-1: layer \"ip\" has no such parameter"},
      {"params/ip/weight", "in.h5: /params/ip/weight: layer \"ip\" has no such parameter"},
      {"params/op/0", "the net has no layer \"op\""}};
  for (const auto& [path, text] : rows) {
    const Ended ended = run_with(path);
    EXPECT_EQ(ended.status, 1) << path;
    EXPECT_NE(ended.err.find(text), std::string::npos) << path << "\n" << ended.err;
  }
}

}  // namespace
}  // namespace crema
