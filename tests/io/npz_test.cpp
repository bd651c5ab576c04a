// NumPy's files: what numpy wrote is read, what is written is read back, broken ones are refused.
#include "io/npz.h"

#include <gtest/gtest.h>

#include "io/scratch.h"

namespace crema {
namespace {

using Values = std::vector<float>;

std::string data_file(const std::string& name) {
  return std::string(CREMA_SOURCE_DIR) + "/tests/io/data/" + name;
}

TEST(Npy, WritesTheHeaderThatNumpyDefines) {
  const std::string bytes = write_npy({2, 1}, {1, -2});
  EXPECT_EQ(bytes.size(), 128u + 8u);
  EXPECT_EQ(bytes.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(bytes.substr(10, 59), "{'descr': '<f4', 'fortran_order': False, 'shape': (2,1), } ");
  EXPECT_EQ(bytes[127], '\n');
  EXPECT_EQ(read_npy(bytes).data, Values({1, -2}));
  EXPECT_EQ(read_npy(bytes).shape, Shape({2, 1}));
  EXPECT_EQ(read_npy(write_npy({3}, {1, 2, 3})).shape, Shape{3});
  EXPECT_EQ(read_npy(write_npy({}, {7})).shape.axes(), 0);
}

TEST(Npz, ReadsWhatNumpyCompressed) {
  const NamedBlobs arrays = read_npz(data_file("numpy.npz"));
  ASSERT_EQ(arrays.size(), 3u);
  EXPECT_EQ(arrays[0].first, "a/b/0");
  EXPECT_EQ(arrays[0].second.shape, Shape({2, 2}));
  EXPECT_EQ(arrays[0].second.data, Values({1.5F, -2, 3, 4e10F}));
  EXPECT_EQ(arrays[1].second.data, Values({1, 0.5F, -2}));
  EXPECT_EQ(arrays[2].second.data, Values({0, 1, 2}));
}

TEST(Npz, ReadsWhatItWrote) {
  const TestFolder folder;
  const NamedBlobs arrays = {{"conv/1x1/0", {.shape = {1, 2}, .data = {3, 4}, .diff = {}}},
                             {"b", {.shape = {0}, .data = {}, .diff = {}}}};
  write_npz(folder / "w.npz", arrays);
  const NamedBlobs read = read_npz(folder / "w.npz");
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].first, "conv/1x1/0");
  EXPECT_EQ(read[0].second.shape, Shape({1, 2}));
  EXPECT_EQ(read[0].second.data, Values({3, 4}));
  EXPECT_EQ(read[1].second.shape, Shape{0});
}

TEST(Npz, RefusesBrokenArchives) {
  const TestFolder folder;
  const std::string path = folder / "w.npz";
  write_npz(path, {{"x", {.shape = {2}, .data = {3, 4}, .diff = {}}}});
  const std::string whole = read_file(path);
  const auto error = [&](const std::string& content) {
    write_file(path, content);
    return error_of([&] { read_npz(path); });
  };
  EXPECT_EQ(error("no zip"), path + ": is no .npz archive");
  EXPECT_EQ(error(whole.substr(0, whole.size() - 30)),
            path + ": is no .npz archive, or its end is missing");
  std::string changed = whole;
  changed[whole.find("NUMPY") + 127] ^= 1;
  EXPECT_EQ(error(changed), path + ": array \"x\" is damaged: its checksum is wrong");
  EXPECT_EQ(error_of([] { read_npz(data_file("numpy_fortran.npz")); }),
            data_file("numpy_fortran.npz") +
                ": array \"f\" is stored column by column (fortran_order); "
                "numpy.ascontiguousarray mends that");
}

TEST(Npy, RefusesOtherNumbersAndSizes) {
  std::string bytes = write_npy({2}, {1, 2});
  EXPECT_EQ(error_of([&] { read_npy(bytes.substr(0, bytes.size() - 1)); }),
            "holds 7 bytes, its shape needs 8");
  EXPECT_EQ(error_of([&] { read_npy("text"); }), "is no .npy array");
  bytes.replace(bytes.find("<f4"), 3, ">f4");
  EXPECT_EQ(error_of([&] { read_npy(bytes); }),
            "holds values of type >f4; floats and whole numbers, little-endian, are read");
}

}  // namespace
}  // namespace crema
