// Error places, shapes, random numbers, atomic files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "base/queue.h"
#include "base/shape.h"
#include "base/test_folder.h"

namespace crema {
namespace {

TEST(Error, PlaceGoesInFrontOfEachLine) {
  EXPECT_STREQ(Error("a\nb").at("f:1").what(), "f:1: a\nf:1: b");
}

TEST(ErrorList, ThrowsAllLinesOnce) {
  ErrorList list;
  list.throw_if_any();
  list.add(Error("one"));
  list.add(Error("two"));
  try {
    list.throw_if_any();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "one\ntwo");
  }
}

TEST(Str, NearestName) {
  EXPECT_EQ(nearest("Convolutoin", {"Convolution", "Pooling"}), "Convolution");
  EXPECT_EQ(nearest("zzzzzz", {"Convolution", "Pooling"}), "");
  EXPECT_EQ(did_you_mean("relu", {"ReLU"}), " (did you mean ReLU?)");
}

TEST(Str, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_TRUE(split("", ',').empty());
}

TEST(Shape, CountsAndAxes) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.count(), 24);
  EXPECT_EQ(shape.count(1), 12);
  EXPECT_EQ(shape.canonical(-1), 2);
  EXPECT_EQ(Shape().count(), 1);
  EXPECT_THROW(shape.canonical(3), Error);
  EXPECT_THROW(Shape(std::vector<int64_t>(33, 1)), Error);
  EXPECT_EQ(str(shape), "2 3 4");
}

TEST(Shape, ACountBeyondTheRangeIsTheLargestNumber) {
  const int64_t big = int64_t{1} << 32;
  EXPECT_EQ((Shape{big, big}).count(), INT64_MAX);
  EXPECT_EQ((Shape{big, big, 3}).count(1), big * 3);
  EXPECT_EQ((Shape{big, big, big, 0}).count(), 0);
  EXPECT_EQ((Shape{(int64_t{1} << 62) + 60, 4}).count(), INT64_MAX);
}

TEST(Philox, KnownAnswers) {  // kat_vectors of the Random123 distribution, philox4x32-10
  const Philox4 zero = philox(0, 0, 0);
  EXPECT_EQ(zero.v[0], 0x6627e8d5u);
  EXPECT_EQ(zero.v[1], 0xe169c58du);
  EXPECT_EQ(zero.v[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.v[3], 0x9b00dbd8u);
  const Philox4 ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.v[0], 0x408f276du);
}

TEST(Philox, GaussianMoments) {
  RandomStream random(7);
  double sum = 0, squares = 0;
  const int n = 100000;
  for (int i = 0; i < n; ++i) {
    const double x = random.gaussian();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / n, 0, 0.02);
  EXPECT_NEAR(squares / n, 1, 0.02);
}

TEST(File, FailedWriteKeepsTheOldContent) {
  const TestFolder folder;
  const std::string path = folder / "file_test";
  write_file(path, "old");
  EXPECT_THROW(write_atomically(path, [](const std::string&) { fail("disk is full"); }), Error);
  EXPECT_EQ(read_file(path), "old");
}

TEST(File, ARenameThatFailsGivesItsOwnReason) {
  const TestFolder parent;
  const std::string folder = parent / "folder";
  ::mkdir(folder.c_str(), 0755);
  errno = ENOENT;
  try {
    write_file(folder, "content");
    FAIL() << "a file took the place of a folder";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("Is a directory"), std::string::npos) << error.what();
  }
}

TEST(File, NothingIsRenamedOntoAPipeOrADevice) {
  const TestFolder folder;
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(write_file(pipe, "content"), Error);
  EXPECT_THROW(require_writable(pipe), Error);
  struct stat info {};
  EXPECT_EQ(::stat(pipe.c_str(), &info), 0);
  EXPECT_TRUE(S_ISFIFO(info.st_mode));
}

TEST(File, MissingFolderIsNamed) {
  EXPECT_THROW(require_writable(testing::TempDir()), Error);
  EXPECT_THROW(require_writable("/nonexistent/x"), Error);
  EXPECT_THROW(read_file(testing::TempDir()), Error);
}

TEST(Queue, DrainsAfterClose) {
  Queue<int> queue(2);
  queue.push(1);
  queue.close();
  EXPECT_FALSE(queue.push(2));
  EXPECT_EQ(queue.pop(), 1);
  EXPECT_EQ(queue.pop(), std::nullopt);
}

}  // namespace
}  // namespace crema
