// Records uploaded as bytes: the blobs of a net on the GPU are the CPU's, bit for bit, whatever the
// next batch's copy does beside it.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/test_folder.h"
#include "feed/datum.h"
#include "feed/feed.h"
#include "feed/lmdb_writer.h"
#include "io/prototxt.h"
#include "net/net.h"
#include "ops/forwarding_ops.h"

namespace crema {
namespace {

/// 26 raw pictures of 3 x 10 x 9.
void write_pictures(const std::string& path) {
  LmdbWriter writer(path);
  for (int i = 0; i < 26; ++i) {
    std::string pixels;
    for (int k = 0; k < 3 * 10 * 9; ++k) pixels += static_cast<char>(i * 31 + k * k % 97);
    writer.put(record_key(i), write_datum({3, 10, 9, i % 4, false, {}}, pixels));
  }
  writer.finish();
}

std::string text_of(const std::string& source) {
  return str(R"(
    layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: ")",
             source, R"(" batch_size: 4 shuffle: true }
      transform_param { crop_size: 8 mirror: true scale: 0.0123 mean_value: 100.7 } }
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv" convolution_param {
      num_output: 8 kernel_size: 3 weight_filler { type: "xavier" } } }
    layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip" inner_product_param {
      num_output: 4 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })");
}

std::unique_ptr<Net> net_of(const std::string& text, const std::shared_ptr<Ops>& ops, bool train) {
  NetParameter param;
  parse_text(text, "net", &param);
  NetOptions options;
  options.phase = TRAIN;
  options.train = train;
  options.log = false;
  options.seed = 9;
  options.keep = {"data", "label"};
  return std::make_unique<Net>(param, options, ops);
}

class ByteUploads : public testing::TestWithParam<bool> {};

TEST_P(ByteUploads, GiveTheBlobsOfTheCpu) {
  const TestFolder folder;
  write_pictures(folder / "db");
  const auto gpu =
      std::make_shared<ForwardingOps>(make_ops({.gpu = true, .tf32 = GetParam()}), true);
  const std::unique_ptr<Net> cpu = net_of(text_of(folder / "db"), make_ops({}), true);
  const std::unique_ptr<Net> net = net_of(text_of(folder / "db"), gpu, true);
  // With TF32 convolutions want nhwc, and pictures are made in it.
  EXPECT_EQ(net->describe_plan().find("data to nhwc"), std::string::npos) << net->describe_plan();
  const int batches = 12;
  for (int i = 0; i < batches; ++i) {
    if (i == 7 || i == 9) {  // to where it is, and back
      for (Net* one : {cpu.get(), net.get()}) one->seek("data", i == 7 ? 28 : 12);
    }
    for (Net* one : {cpu.get(), net.get()}) one->forward();
    for (const char* blob : {"data", "label"}) {
      EXPECT_EQ(net->blob_values(blob), cpu->blob_values(blob)) << blob << " of batch " << i;
    }
    net->backward();
    EXPECT_EQ(net->cursors(), cpu->cursors());
  }
  EXPECT_EQ(gpu->starts_of("PicturesFromBytes"), batches);
}

TEST(ByteUpload, OfOneLayerAloneWaitForEachOther) {
  const TestFolder folder;
  write_pictures(folder / "db");
  const std::string text = str(R"(
    layer { name: "data" type: "Data" top: "data" data_param { source: ")",
                               folder / "db", R"(" batch_size: 2 prefetch: 1 } })");
  const std::unique_ptr<Net> cpu = net_of(text, make_ops({}), false);
  const std::unique_ptr<Net> net = net_of(text, make_ops({.gpu = true}), false);
  for (int i = 0; i < 12; ++i) {  // nothing waits for the device between them
    for (Net* one : {cpu.get(), net.get()}) one->forward_layer(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the feed fills what it may
  }
  EXPECT_EQ(net->blob_values("data"), cpu->blob_values("data"));
}

INSTANTIATE_TEST_SUITE_P(Layouts, ByteUploads, testing::Values(false, true));

}  // namespace
}  // namespace crema
