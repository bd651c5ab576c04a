// Which record when, and work that stays in order.
#include <atomic>
#include <chrono>
#include <numeric>

#include "feed/ordered_workers.h"
#include "feed/record_order.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

std::vector<uint64_t> read(RecordOrder& order, uint64_t from, int count) {
  std::vector<uint64_t> records;
  for (int i = 0; i < count; ++i) records.push_back(order.at(from + i));
  return records;
}

TEST(RecordOrder, IsListOrderAndWrapsWithoutShuffle) {
  RecordOrder order({.size = 3});
  EXPECT_EQ(read(order, 0, 7), (std::vector<uint64_t>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(RecordOrder, SkipsAtTheStart) {
  RecordOrder order({.size = 3, .skip = 2});
  EXPECT_EQ(read(order, 0, 4), (std::vector<uint64_t>{2, 0, 1, 2}));
}

TEST(RecordOrder, SharesRecordsOutAmongRanks) {
  RecordOrder first({.size = 5, .rank = 0, .ranks = 2}), second({.size = 5, .rank = 1, .ranks = 2});
  EXPECT_EQ(read(first, 0, 5), (std::vector<uint64_t>{0, 2, 4, 1, 3}));
  EXPECT_EQ(read(second, 0, 5), (std::vector<uint64_t>{1, 3, 0, 2, 4}));
}

TEST(RecordOrder, ShufflesEachEpochAnewAndKeepsEveryRecord) {
  RecordOrder order({.size = 50, .shuffle = true, .key = 1});
  std::vector<std::vector<uint64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<uint64_t> records = read(order, 50 * epoch, 50);
    epochs.push_back(records);
    std::sort(records.begin(), records.end());
    for (uint64_t i = 0; i < 50; ++i) EXPECT_EQ(records[i], i);
  }
  EXPECT_NE(epochs[0], epochs[1]);
  EXPECT_NE(epochs[1], epochs[2]);
  RecordOrder later({.size = 50, .shuffle = true, .key = 1}),
      other({.size = 50, .shuffle = true, .key = 2});
  EXPECT_EQ(read(later, 100, 50), epochs[2]);
  EXPECT_NE(read(other, 100, 50), epochs[2]);
}

TEST(OrderedWorkers, GiveItemsInOrderAndStayInsideTheWindow) {
  constexpr uint64_t kWindow = 8, kItems = 500;
  std::vector<uint64_t> slots(kWindow);
  std::atomic<uint64_t> released{0}, drawn{0};
  std::atomic<bool> is_ordered{true}, is_inside{true};
  OrderedWorkers workers(
      {.draw = [&](uint64_t item) { is_ordered = is_ordered && item == drawn++; },
       .work =
           [&](uint64_t item, int) {
             is_inside = is_inside && item < released + kWindow;
             slots[item % kWindow] = item * item;
           },
       .threads = 4,
       .window = kWindow,
       .end = kItems});
  for (uint64_t i = 0; i < kItems; ++i) {
    workers.wait(i);
    ASSERT_EQ(slots[i % kWindow], i * i);
    released = i + 1;
    workers.release_below(i + 1);
  }
  EXPECT_TRUE(is_ordered);
  EXPECT_TRUE(is_inside);
  EXPECT_EQ(drawn, kItems);
}

TEST(OrderedWorkers, TheFirstFailingItemIsReportedWhereItStands) {
  for (const bool in_draw : {false, true}) {
    const auto fail_at_5 = [](uint64_t item) { require(item < 5, "item ", item); };
    OrderedWorkers workers({.draw =
                                [&](uint64_t item) {
                                  if (in_draw) fail_at_5(item);
                                },
                            .work =
                                [&](uint64_t item, int) {
                                  if (!in_draw) fail_at_5(item);
                                },
                            .threads = 3,
                            .window = 16});
    for (uint64_t i = 0; i < 5; ++i) workers.wait(i);
    EXPECT_EQ(error_of([&] { workers.wait(5); }), "item 5");
    EXPECT_EQ(error_of([&] { workers.wait(5); }), "item 5");
  }
}

TEST(OrderedWorkers, EndAtOnceWhileTheRingIsFull) {
  const auto begin = std::chrono::steady_clock::now();
  for (int run = 0; run < 20; ++run) {
    OrderedWorkers workers({.draw = {}, .work = [](uint64_t, int) {}, .threads = 4, .window = 2});
    workers.wait(1);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

}  // namespace
}  // namespace crema::testing
