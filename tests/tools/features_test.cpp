// extract_features, convert_cifar_data and lists with several labels: what lands in the databases.
#include "base/file.h"
#include "crema.pb.h"
#include "io/hdf5.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"
#include "tools/weights_testing.h"

namespace crema {
namespace {

using Floats = std::vector<float>;

/// scores = 2 * pixel, over the records 0, 1, 2 in batches of 2.
void write_doubling(const TestFolder& folder) {
  testing::write_numbers(folder / "db", 3);
  folder.write("net.prototxt",
               "layer { name: 'd' type: 'Data' top: 'data' top: 'label' data_param { source: 'db' "
               "batch_size: 2 backend: LMDB } }\n"
               "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'scores' "
               "inner_product_param { num_output: 2 bias_term: false } }\n"
               "layer { name: 'relu' type: 'ReLU' bottom: 'scores' top: 'scores' }");
  testing::write_weights(folder / "w.caffemodel",
                         {{"ip", {{.shape = {2, 1}, .data = {2, -1}, .diff = {}}}}});
}

Ended extract(const TestFolder& folder, const std::vector<std::string>& arguments) {
  return run_program("extract_features", arguments, {.folder = folder.path()});
}

TEST(ExtractFeatures, StoresARecordForEachItem) {
  const TestFolder folder;
  write_doubling(folder);
  const Ended ended = extract(
      folder, {"w.caffemodel", "net.prototxt", "scores,data", "f_db,d_db", "2", "lmdb", "CPU"});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const auto database = open_database(folder / "f_db");
  ASSERT_EQ(database->size(), 4u);
  Datum datum;
  Record record = database->at(1);
  EXPECT_EQ(record.key, "0000000001");
  ASSERT_TRUE(datum.ParseFromString(std::string(record.value)));
  EXPECT_EQ(datum.channels(), 2);
  EXPECT_EQ(datum.height(), 1);
  EXPECT_EQ(datum.float_data(0), 2);
  EXPECT_EQ(datum.float_data(1), 0);
  ASSERT_TRUE(datum.ParseFromString(std::string(database->at(2).value)));
  EXPECT_EQ(datum.float_data(0), 4);
  EXPECT_EQ(open_database(folder / "d_db")->size(), 4u);
}

TEST(ExtractFeatures, StoresADataSet) {
  const TestFolder folder;
  write_doubling(folder);
  EXPECT_EQ(extract(folder, {"w.caffemodel", "net.prototxt", "scores", "f.h5", "1", "hdf5"}).status,
            0);
  const HostBlob blob = Hdf5File::open(folder / "f.h5").read("scores");
  EXPECT_EQ(blob.shape, Shape({2, 2}));
  EXPECT_EQ(blob.data, Floats({0, 0, 2, 0}));
}

TEST(ExtractFeatures, RefusesWhatCannotBe) {
  const TestFolder folder;
  write_doubling(folder);
  struct Row {
    std::vector<std::string> arguments;
    const char* error;
  };
  for (const Row& row : std::vector<Row>{
           {{"w.caffemodel", "net.prototxt", "score", "o", "1", "lmdb"},
            "has no blob \"score\" (did you mean scores?)"},
           {{"w.caffemodel", "net.prototxt", "scores,data", "o", "1", "lmdb"}, "2 blobs and 1 out"},
           {{"w.caffemodel", "net.prototxt", "scores", "o", "x", "lmdb"}, "not \"x\""},
           {{"w.caffemodel", "net.prototxt", "scores", "o", "0", "lmdb"}, "must be above 0"},
           {{"w.caffemodel", "net.prototxt", "scores", "o", "1", "rocksdb"},
            "lmdb, leveldb or hdf5"},
           {{"w.caffemodel", "net.prototxt", "scores", "o", "1", "lmdb", "TPU"}, "CPU or GPU"},
           {{"none", "net.prototxt", "scores", "o", "1", "lmdb"}, "none: No such file"},
           {{"w.caffemodel", "net.prototxt"}, "takes 6"}}) {
    const Ended ended = extract(folder, row.arguments);
    EXPECT_EQ(ended.status, 1);
    EXPECT_HAS(ended.err, row.error);
    EXPECT_FALSE(folder.has("o"));
  }
}

std::string cifar_picture(int label, int start) {
  std::string bytes(1, static_cast<char>(label));
  for (int i = 0; i < 3072; ++i) bytes += static_cast<char>(start + i);
  return bytes;
}

TEST(ConvertCifar, StoresBothSets) {
  const TestFolder folder;
  for (int i = 1; i <= 5; ++i) {
    testing::write_text_file(folder / str("in/data_batch_", i, ".bin"),
                             cifar_picture(i, i) + cifar_picture(0, 7));
  }
  testing::write_text_file(folder / "in/test_batch.bin", cifar_picture(9, 3));
  const Ended ended =
      run_program("convert_cifar_data", {"in", "out", "lmdb"}, {.folder = folder.path()});
  EXPECT_EQ(ended.status, 0) << ended.err;
  const auto train = testing::records_of(folder / "out/cifar10_train_lmdb");
  ASSERT_EQ(train.size(), 10u);
  EXPECT_EQ(train[2].key, "00002");
  EXPECT_EQ(train[2].label, 2);
  EXPECT_EQ(train[2].data, cifar_picture(2, 2).substr(1));
  EXPECT_EQ(train[2].channels, 3);
  EXPECT_EQ(train[2].width, 32);
  EXPECT_EQ(testing::records_of(folder / "out/cifar10_test_lmdb")[0].label, 9);
}

TEST(ConvertCifar, LeavesNothingOfBrokenFiles) {
  const TestFolder folder;
  const auto convert = [&] {
    return run_program("convert_cifar_data", {"in", "out", "lmdb"}, {.folder = folder.path()});
  };
  EXPECT_HAS(convert().err, "in: is no folder");
  for (int i = 1; i <= 5; ++i) {
    testing::write_text_file(folder / str("in/data_batch_", i, ".bin"), cifar_picture(1, 1));
  }
  EXPECT_HAS(convert().err, "in/test_batch.bin: No such file");
  testing::write_text_file(folder / "in/test_batch.bin", cifar_picture(9, 3) + "x");
  EXPECT_HAS(convert().err, "no multiple of the 3073");
  testing::write_text_file(folder / "in/test_batch.bin", cifar_picture(10, 3));
  const Ended ended = convert();
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.err, "picture 0 has the label 10, there are 10 classes");
  EXPECT_TRUE(testing::names_in(folder / "out").empty());
}

TEST(ConvertLabels, SeveralOfALineAreStored) {
  const TestFolder folder;
  testing::write_picture_file(folder / "a b.png", testing::ramp_picture(2, 2, 3));
  folder.write("list.txt", "a b.png 1.5 2\n");
  const auto convert = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {folder.path() + "/", "list.txt", "db"});
    return run_program("convert_imageset", flags, {.folder = folder.path()});
  };
  EXPECT_EQ(convert({}).status, 1);  // one label: the path would be "a b.png 1.5"
  EXPECT_EQ(convert({"--label_count=2"}).status, 0);
  Datum datum;
  ASSERT_TRUE(datum.ParseFromString(std::string(open_database(folder / "db")->next().value)));
  EXPECT_EQ(Floats(datum.labels().begin(), datum.labels().end()), Floats({1.5F, 2}));
  EXPECT_EQ(datum.label(), 1);
  EXPECT_HAS(convert({"--label_count=3"}).err, "db: is there already");
}

}  // namespace
}  // namespace crema
