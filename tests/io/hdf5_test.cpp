// The HDF5 wrapper: types, shapes, parts of a data set, and files that are none.
#include "io/hdf5.h"

#include <gtest/gtest.h>
#include <hdf5.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "io/scratch.h"

namespace crema {
namespace {

Hdf5File file_with(const std::string& path, const std::function<void(Hdf5File&)>& fill) {
  Hdf5File file = Hdf5File::create(path);
  fill(file);
  file.close();
  return Hdf5File::open(path);
}

TEST(Hdf5, NumbersOfEveryTypeAreReadAsFloat) {
  const TestFolder dir;
  const float floats[] = {1, 2};
  const double doubles[] = {0.5, 1e-3};
  const int32_t ints[] = {-3, 4};
  const int64_t longs[] = {-1, int64_t{1} << 40};
  const Hdf5File file = file_with(dir / "f.h5", [&](Hdf5File& out) {
    out.write("f", {2}, floats);
    out.write("/deep/er/d", {1, 2}, doubles);
    out.write("i", {2, 1}, ints);
    out.write("l", {2}, longs);
    out.write("scalar", {}, floats);
    out.write("none", {0, 3}, floats);
    out.write_string("text", "hello");
    out.make_group("empty/group");
    out.make_group("empty");
  });
  EXPECT_EQ(file.read("f").data, (std::vector<float>{1, 2}));
  EXPECT_EQ(file.read("deep/er/d").data, (std::vector<float>{0.5f, 1e-3f}));
  EXPECT_EQ(file.read("/deep/er/d").shape, (Shape{1, 2}));
  EXPECT_EQ(file.read("i").data, (std::vector<float>{-3, 4}));
  EXPECT_EQ(file.read_integers("l"), (std::vector<int64_t>{-1, int64_t{1} << 40}));
  EXPECT_EQ(file.read("scalar").shape, Shape());
  EXPECT_EQ(file.read("scalar").data, (std::vector<float>{1}));
  EXPECT_EQ(file.read("none").shape, (Shape{0, 3}));
  EXPECT_EQ(file.read_string("text"), "hello");
  EXPECT_FALSE(file.is_numeric("text"));
  EXPECT_TRUE(file.is_numeric("i"));
  EXPECT_EQ(file.datasets(),
            (std::vector<std::string>{"deep/er/d", "f", "i", "l", "none", "scalar", "text"}));
  EXPECT_EQ(file.datasets("deep"), (std::vector<std::string>{"er/d"}));
  EXPECT_EQ(file.groups(), (std::vector<std::string>{"deep", "deep/er", "empty", "empty/group"}));
  EXPECT_TRUE(file.datasets("nowhere/at/all").empty());
  EXPECT_TRUE(file.has("deep/er") && file.has("/f") && !file.has("deep/no") && !file.has("f/x"));
}

TEST(Hdf5, PartsOfADataSet) {
  const TestFolder dir;
  std::vector<float> values(12);
  std::iota(values.begin(), values.end(), 0.f);
  const Hdf5File file = file_with(dir / "f.h5", [&](Hdf5File& out) {
    out.write("x", {4, 3}, values.data());
  });
  std::vector<float> rows(6);
  file.read_rows("x", 1, 2, rows.data());
  EXPECT_EQ(rows, (std::vector<float>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(error_of([&] { file.read_rows("x", 3, 2, rows.data()); }),
            dir / "f.h5" + ": data set \"x\": has no entries 3 to 4 (shape 4 3)");
}

TEST(Hdf5, MistakesNameFileAndDataSet) {
  const TestFolder dir;
  const std::string path = dir / "f.h5";
  const float one = 1;
  const Hdf5File file = file_with(path, [&](Hdf5File& out) {
    out.write_string("text", "hello");
    out.write("x", {1}, &one);
  });
  EXPECT_EQ(error_of([&] { file.read("y"); }), path + ": has no data set \"y\"");
  EXPECT_EQ(error_of([&] { file.read("text"); }), path + ": data set \"text\": holds no numbers");
  EXPECT_EQ(error_of([&] { file.read_string("x"); }), path + ": data set \"x\": holds no text");
  Hdf5File out = Hdf5File::create(dir / "g.h5");
  out.write("x", {1}, &one);
  EXPECT_EQ(error_of([&] { out.write("x", {1}, &one); }).rfind(dir / "g.h5: data set \"x\": ", 0),
            0u);
}

TEST(Hdf5, FilesThatAreNone) {
  const TestFolder dir;
  auto refusal = [&](const std::string& name) {
    return error_of([&] { Hdf5File::open(dir / name); });
  };
  EXPECT_EQ(refusal("none"), dir / "none" + ": No such file or directory");
  EXPECT_EQ(refusal("."), dir / "." + ": is a directory, an HDF5 file is needed");
  write_file(dir / "empty", "");
  EXPECT_EQ(refusal("empty"), dir / "empty" + ": is empty, an HDF5 file is needed");
  write_file(dir / "text", "hello");
  EXPECT_EQ(refusal("text"), dir / "text" + ": is a text file, an HDF5 file is needed");
  EXPECT_FALSE(is_hdf5(dir / "text"));
  EXPECT_EQ(error_of([&] { Hdf5File::create(dir / "no/f").close(); }), "No such file or directory");
}

// A data set that was never written takes no room in its file, whatever its shape.
void write_hollow(const std::string& path, hsize_t rows) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hsize_t dims[] = {rows, 1}, chunk[] = {1 << 16, 1};
  const hid_t space = H5Screate_simple(2, dims, nullptr), plist = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(plist, 2, chunk);
  H5Dclose(H5Dcreate2(file, "x", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, plist, H5P_DEFAULT));
  H5Pclose(plist);
  H5Sclose(space);
  H5Fclose(file);
}

TEST(Hdf5, ADataSetBeyondTheLimitIsRefusedWhole) {
  const TestFolder dir;
  write_hollow(dir / "f.h5", (hsize_t{1} << 31) + 8);
  const Hdf5File file = Hdf5File::open(dir / "f.h5");
  EXPECT_EQ(file.shape("x"), (Shape{2147483656, 1}));
  EXPECT_EQ(error_of([&] { file.read("x"); }),
            dir / "f.h5" +
                ": data set \"x\": has the shape 2147483656 1, more than 2147483647 "
                "values");
  float last = 1;
  file.read_rows("x", 2147483655, 1, &last);
  EXPECT_EQ(last, 0);
}

TEST(Hdf5, ManyThreadsMayRead) {
  const TestFolder dir;
  const std::vector<float> values(1000, 2.5f);
  file_with(dir / "f.h5", [&](Hdf5File& out) { out.write("x", {1000}, values.data()); });
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 20; ++k) right += Hdf5File::open(dir / "f.h5").read("x").data == values;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

}  // namespace
}  // namespace crema
