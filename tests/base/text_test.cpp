// Text, shapes, element types, the registry, files and the queue: what base_test.cpp leaves.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "base/dtype.h"
#include "base/error.h"
#include "base/file.h"
#include "base/queue.h"
#include "base/registry.h"
#include "base/shape.h"
#include "base/test_folder.h"

namespace crema {
namespace {

TEST(EditDistance, CountsSingleCharacters) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("ab", "ba"), 2);
}

TEST(Nearest, IgnoresCaseAndNeedsCandidates) {
  EXPECT_EQ(nearest("SOFTMAXWITHLOSS", {"Softmax", "SoftmaxWithLoss"}), "SoftmaxWithLoss");
  EXPECT_EQ(nearest("x", {}), "");
  EXPECT_EQ(did_you_mean("Quuxification", {"ReLU"}), "");
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join(std::vector<int>{1, 2, 3}), "1, 2, 3");
  EXPECT_EQ(join(std::vector<int>{}), "");
  EXPECT_EQ(join(std::vector<int>{7}, "-"), "7");
}

TEST(Require, ThrowsOnlyWhereTheRuleIsBroken) {
  EXPECT_NO_THROW(require(true, "x"));
  try {
    require(false, "group: ", 3, " must divide ", 20);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "group: 3 must divide 20");
  }
}

TEST(ShapeParts, SlicesAndComparisons) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(shape.slice(1, 3), (Shape{3, 4}));
  EXPECT_EQ(shape.slice(2, 2), Shape());
  EXPECT_EQ(shape.count(1, 3), 12);
  EXPECT_EQ(shape.count(4), 1);
  EXPECT_NE(shape, (Shape{2, 3, 4}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_EQ(shape.dim_or_one(3), 5);
  EXPECT_EQ(shape.dim_or_one(4), 1);
  EXPECT_EQ(shape.canonical(0), 0);
  EXPECT_THROW(shape.canonical(-5), Error);
  EXPECT_EQ(str(Shape()), "scalar");
  EXPECT_EQ(shape.to_vector(), (std::vector<int64_t>{2, 3, 4, 5}));
}

TEST(ShapeParts, CountsBeyond32Bits) {
  EXPECT_EQ((Shape{1, 1600, 1080, 1920}).count(), 3317760000);
  EXPECT_EQ((Shape{5, 0, 3}).count(), 0);
}

TEST(ShapeParts, ABlobHasAtMost32Axes) {
  Shape shape(std::vector<int64_t>(32, 1));
  EXPECT_THROW(shape.push_back(1), Error);
  EXPECT_EQ(shape.axes(), 32);
}

TEST(DType, SizesInBytes) {
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::u8), 1u);
}

TEST(Registry, FindsByNameInOrder) {
  Registry<int> registry;
  registry.add("b", 1);
  registry.add("a", 2);
  registry.add("b", 3);
  EXPECT_EQ(*registry.find("b"), 3);
  EXPECT_EQ(registry.find("c"), nullptr);
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"a", "b"}));
}

TEST(FileWriting, LeavesNothingBeside) {
  const TestFolder folder;
  const std::string path = folder / "content";
  write_file(path, std::string("a\0b", 3));
  EXPECT_EQ(read_file(path), std::string("a\0b", 3));
  EXPECT_THROW(write_atomically(path,
                                [](const std::string& temporary) {
                                  write_file(temporary, "half");
                                  fail("disk is full");
                                }),
               Error);
  EXPECT_EQ(folder.files(), std::vector<std::string>{"content"});
  EXPECT_EQ(read_file(path), std::string("a\0b", 3));
}

TEST(FileWriting, PlacesAreChecked) {
  EXPECT_THROW(write_file("/nonexistent/x", "y"), Error);
  const TestFolder folder;
  EXPECT_NO_THROW(require_writable(folder / "new"));
  EXPECT_FALSE(folder.has("new")) << "asking must not make it";
  EXPECT_TRUE(is_directory(testing::TempDir()));
  EXPECT_FALSE(is_directory("/nonexistent"));
  EXPECT_TRUE(exists(testing::TempDir()));
  EXPECT_EQ(looked_for_from("/no/such"), "");
  EXPECT_EQ(looked_for_from("no/such").find(" (looked for from /"), 0u);
}

TEST(QueueThreads, KeepOrderThroughASmallQueue) {
  Queue<int> queue(3);
  std::thread writer([&] {
    for (int i = 0; i < 1000; ++i) queue.push(i);
    queue.close();
  });
  int expected = 0;
  while (const auto item = queue.pop()) EXPECT_EQ(*item, expected++);
  writer.join();
  EXPECT_EQ(expected, 1000);
  EXPECT_TRUE(queue.is_empty());
}

TEST(QueueThreads, CloseWakesWhoWaits) {
  Queue<int> full(1), empty(1);
  full.push(0);
  std::thread writer([&] { EXPECT_FALSE(full.push(1)); });
  std::thread reader([&] { EXPECT_FALSE(empty.pop()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  full.close();
  empty.close();
  writer.join();
  reader.join();
}

}  // namespace
}  // namespace crema
