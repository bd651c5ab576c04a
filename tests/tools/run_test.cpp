// crema run: what it takes and refuses of its input file.
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

/// Runs a net of a MemoryData layer with batches of two, whose tops d and t are copied to y and z.
Ended run_memory_data(const TestFolder& folder, const std::vector<float>& labels) {
  folder.write("net.prototxt",
               "layer { name: 'm' type: 'MemoryData' top: 'd' top: 't' memory_data_param { "
               "batch_size: 2 channels: 1 height: 1 width: 2 } } "
               "layer { name: 'y' type: 'Power' bottom: 'd' top: 'y' power_param { scale: 10 } } "
               "layer { name: 'z' type: 'Power' bottom: 't' top: 'z' power_param { scale: 10 } }");
  const std::vector<float> data{1, 2, 3, 4};
  Hdf5File file = Hdf5File::create(folder / "in.h5");
  file.write("inputs/d", Shape{2, 1, 1, 2}, data.data());
  if (!labels.empty()) {
    file.write("inputs/t", Shape{static_cast<int64_t>(labels.size())}, labels.data());
  }
  file.close();
  return run_crema(folder, {"run", "--model=net.prototxt", "--input=in.h5", "--output=out.h5"});
}

TEST(RunCommand, HandsRecordsToMemoryData) {
  const TestFolder folder;
  const Ended ended = run_memory_data(folder, {5, 6});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Hdf5File out = Hdf5File::open(folder / "out.h5");
  EXPECT_EQ(out.read("outputs/y").data, (std::vector<float>{10, 20, 30, 40}));
  EXPECT_EQ(out.read("outputs/z").data, (std::vector<float>{50, 60}));
}

TEST(RunCommand, RefusesHalfOfWhatMemoryDataNeeds) {
  const TestFolder folder;
  EXPECT_NE(run_memory_data(folder, {}).err.find("needs both /inputs/d and /inputs/t"),
            std::string::npos);
  EXPECT_NE(run_memory_data(folder, {5, 6, 7}).err.find("must be a multiple of batch_size, 2"),
            std::string::npos);
}

}  // namespace
}  // namespace crema
