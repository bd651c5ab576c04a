// HDF5Output: what stands in the file after one and several forwards.
#include <filesystem>

#include "base/test_folder.h"
#include "io/hdf5.h"
#include "io/prototxt.h"
#include "layers/layer_harness.h"
#include "reference/reference.h"

namespace crema {
namespace {

std::string layer(const std::string& file) {
  return "layer { name: \"out\" type: \"HDF5Output\" bottom: \"x\" bottom: \"t\" hdf5_output_param "
         "{ "
         "file_name: \"" +
         file + "\" } }";
}

/// Runs batches 0, 1, ...: x holds 2 x 3 times the number of the batch, t counts samples.
void run_batches(const std::string& file, int batches) {
  NetParameter param;
  parse_text(
      "layer { name: \"in\" type: \"Input\" top: \"x\" top: \"t\" input_param { shape { dim: 2 "
      "dim: 3 } "
      "shape { dim: 2 } } }" +
          layer(file),
      "net", &param);
  NetOptions options;
  options.log = false;
  Net net(param, options, make_reference_ops());
  for (int i = 0; i < batches; ++i) {
    net.set_blob("x", std::vector<float>(6, static_cast<float>(i)));
    net.set_blob("t", {static_cast<float>(2 * i), static_cast<float>(2 * i + 1)});
    net.forward();
  }
}

TEST(Reports, B28_Hdf5OutputAppendsEachForward) {
  const TestFolder folder;
  const std::string path = folder / "output.h5";
  for (const int batches : {1, 2, 3}) {
    run_batches(path, batches);
    const Hdf5File file = Hdf5File::open(path);
    EXPECT_EQ(file.shape("data"), (Shape{2 * batches, 3}));
    EXPECT_EQ(file.shape("label"), (Shape{2 * batches}));
    const HostBlob data = file.read("data"), label = file.read("label");
    for (size_t i = 0; i < label.data.size(); ++i) {
      EXPECT_EQ(label.data[i], static_cast<float>(i));
      EXPECT_EQ(data.data[3 * i], static_cast<float>(i / 2));
    }
  }
}

TEST(HDF5Output, Refusals) {
  const std::vector<LayerInput> inputs = {{"x", {2, 3}}, {"t", {2}}};
  expect_error({.layer = layer(""), .inputs = inputs, .backward = false}, "needs a file_name");
  expect_error({.layer = layer("/no/such/folder/x.h5"), .inputs = inputs, .backward = false},
               "No such file or directory");
  expect_error({.layer = layer("x.h5"), .inputs = {{"x", {2, 3}}, {"t", {3}}}, .backward = false},
               "data and label must have as many samples: shapes 2 3 and 3");
}

}  // namespace
}  // namespace crema
