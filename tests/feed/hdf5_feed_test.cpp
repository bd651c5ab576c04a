// The feed of HDF5Data: rows of several files, in order or shuffled, and every file that does not
// fit named.
#include <hdf5.h>

#include "feed_testing.h"
#include "io/hdf5.h"

namespace crema::testing {
namespace {

/// rows rows: data row r is {v, v + 0.5} and label row r is v, where v = first + r.
void write_rows(const std::string& path, int first, int rows) {
  std::vector<float> data, labels;
  for (int r = 0; r < rows; ++r) {
    data.insert(data.end(), {first + r + 0.f, first + r + 0.5f});
    labels.push_back(static_cast<float>(first + r));
  }
  Hdf5File file = Hdf5File::create(path);
  file.write("data", Shape{rows, 2}, data.data());
  file.write("label", Shape{rows}, labels.data());
  file.close();
}

LayerParameter hdf5_layer(const TestFolder& folder, const std::string& more) {
  return layer_of(
      str("name: 'data' type: 'HDF5Data' top: 'data' top: 'label' hdf5_data_param { source: '",
          folder / "list.txt", "' ", more, " }"));
}

std::unique_ptr<Feed> open(const LayerParameter& layer, uint64_t seed = 1, int rank = 0,
                           int ranks = 1) {
  return make_feed(layer, {TRAIN, seed, layer.name(), rank, ranks});
}

/// Files of 3 and 4 rows with values 0 to 6.
void write_two_files(const TestFolder& folder) {
  write_rows(folder / "a.h5", 0, 3);
  write_rows(folder / "b.h5", 3, 4);
  write_text_file(folder / "list.txt", (folder / "a.h5") + "\n" + (folder / "b.h5") + "\n");
}

TEST(Hdf5Feed, ReadsRowAfterRowFileAfterFile) {
  const TestFolder folder;
  write_two_files(folder);
  const auto feed = open(hdf5_layer(folder, "batch_size: 5"));
  EXPECT_EQ(feed->shapes(), (Shapes{{5, 2}, {5}}));
  auto tops = next_batch(*feed);
  EXPECT_EQ(tops[0], (std::vector<float>{0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5}));
  EXPECT_EQ(tops[1], (std::vector<float>{0, 1, 2, 3, 4}));
  EXPECT_EQ(feed->keys()[4], (folder / "b.h5") + " row 1");
  EXPECT_EQ(next_batch(*feed)[1], (std::vector<float>{5, 6, 0, 1, 2}));
  EXPECT_EQ(feed->position(), 10u);
  feed->seek(4);
  EXPECT_EQ(next_batch(*feed)[1], (std::vector<float>{4, 5, 6, 0, 1}));
}

TEST(Hdf5Feed, SharesRowsOutAmongRanks) {
  const TestFolder folder;
  write_two_files(folder);
  EXPECT_EQ(next_batch(*open(hdf5_layer(folder, "batch_size: 4"), 1, 1, 2))[1],
            (std::vector<float>{1, 3, 5, 0}));
}

TEST(Hdf5Feed, ShufflesByTheSeed) {
  const TestFolder folder;
  write_rows(folder / "a.h5", 0, 30);
  write_rows(folder / "b.h5", 30, 30);
  write_text_file(folder / "list.txt", (folder / "a.h5") + " " + (folder / "b.h5"));
  const LayerParameter layer = hdf5_layer(folder, "batch_size: 60 shuffle: true");
  const auto feed = open(layer), again = open(layer), other = open(layer, 2);
  const std::vector<float> first = next_batch(*feed)[1], second = next_batch(*feed)[1];
  EXPECT_NE(first, second);
  for (std::vector<float> epoch : {first, second}) {
    std::sort(epoch.begin(), epoch.end());
    for (int i = 0; i < 60; ++i) EXPECT_EQ(epoch[i], i);
  }
  EXPECT_NE(next_batch(*other)[1], first);
  again->seek(60);
  EXPECT_EQ(next_batch(*again)[1], second);
}

TEST(Hdf5Feed, NamesWhatDoesNotFit) {
  struct Row {
    const char* name;
    std::function<void(Hdf5File&)> write;
    std::vector<std::string> parts;
  };
  const std::vector<float> zeros(20);
  const Row rows[] = {
      {"missing",
       [&](Hdf5File& f) {
         f.write("data", Shape{2, 2}, zeros.data());
         f.write("labels", Shape{2}, zeros.data());
       },
       {"no data set \"label\"", "did you mean labels?", "data, labels"}},
      {"rows",
       [&](Hdf5File& f) {
         f.write("data", Shape{2, 2}, zeros.data());
         f.write("label", Shape{3}, zeros.data());
       },
       {"\"label\" has 3 rows", "\"data\" has 2"}},
      {"shape",
       [&](Hdf5File& f) {
         f.write("data", Shape{2, 5}, zeros.data());
         f.write("label", Shape{2}, zeros.data());
       },
       {"\"data\"", "shape 5", "but 2"}},
      {"scalar",
       [&](Hdf5File& f) {
         f.write("data", Shape{2, 2}, zeros.data());
         f.write("label", Shape{}, zeros.data());
       },
       {"\"label\" has no rows"}},
      {"text",
       [&](Hdf5File& f) {
         f.write_string("data", "text");
         f.write("label", Shape{2}, zeros.data());
       },
       {"\"data\" does not hold numbers"}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const TestFolder folder;
    write_rows(folder / "good.h5", 0, 3);
    Hdf5File file = Hdf5File::create(folder / "bad.h5");
    row.write(file);
    file.close();
    write_text_file(folder / "list.txt", (folder / "good.h5") + "\n" + (folder / "bad.h5"));
    const std::string error = error_of([&] { open(hdf5_layer(folder, "batch_size: 1")); });
    EXPECT_HAS(error, folder / "bad.h5");
    for (const std::string& part : row.parts) EXPECT_HAS(error, part);
  }
}

TEST(Hdf5Feed, RefusesBadSources) {
  const TestFolder folder;
  const LayerParameter layer = hdf5_layer(folder, "batch_size: 1");
  EXPECT_HAS(error_of([&] { open(layer); }), folder / "list.txt");
  write_text_file(folder / "list.txt", " \n");
  EXPECT_HAS(error_of([&] { open(layer); }), "names no HDF5 file");
  write_text_file(folder / "list.txt", folder / "none.h5");
  EXPECT_HAS(error_of([&] { open(layer); }), folder / "none.h5");
  write_text_file(folder / "list.txt", folder / "list.txt");
  EXPECT_HAS(error_of([&] { open(layer); }), folder / "list.txt");
  write_two_files(folder);
  EXPECT_HAS(error_of([&] { open(hdf5_layer(folder, "batch_size: 0")); }), "batch_size");
  LayerParameter transformed = layer;
  transformed.mutable_transform_param()->set_scale(2);
  EXPECT_HAS(error_of([&] { open(transformed); }), "transform_param");
}

// More values than one blob may hold, never written, so the file stays tiny: it is read in blocks.
TEST(Hdf5Feed, ReadsADataSetBeyondTwoToThe31) {
  const TestFolder folder;
  const hsize_t dims[] = {(hsize_t{1} << 31) + 8, 1}, chunk[] = {1 << 16, 1};
  const hid_t file =
      H5Fcreate((folder / "huge.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(2, dims, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(how, 2, chunk);
  H5Dclose(H5Dcreate2(file, "data", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, how, H5P_DEFAULT));
  H5Pclose(how);
  H5Sclose(space);
  H5Fclose(file);
  write_text_file(folder / "list.txt", folder / "huge.h5");
  LayerParameter layer = hdf5_layer(folder, "batch_size: 4");
  layer.mutable_top()->RemoveLast();
  const auto feed = open(layer);
  EXPECT_EQ(feed->shapes(), (Shapes{{4, 1}}));
  feed->seek((uint64_t{1} << 31) + 4);
  EXPECT_EQ(next_batch(*feed)[0], std::vector<float>(4, 0.f));
  EXPECT_EQ(feed->keys()[3], (folder / "huge.h5") + " row 2147483655");
}

}  // namespace
}  // namespace crema::testing
