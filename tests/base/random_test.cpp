// Random numbers: the words that Random123 publishes, ranges, and independence of streams.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/philox.h"

namespace crema {
namespace {

TEST(PhiloxWords, AreThoseOfRandom123) {  // kat_vectors, philox4x32 10
  const Philox4 ones = philox(~0ull, ~0ull, ~0ull);
  EXPECT_EQ(ones.v[0], 0x408f276du);
  EXPECT_EQ(ones.v[1], 0x41c83b0eu);
  EXPECT_EQ(ones.v[2], 0xa20bc7c6u);
  EXPECT_EQ(ones.v[3], 0x6d5451fdu);
  const Philox4 pi = philox(0x299f31d0a4093822ull, 0x85a308d3243f6a88ull, 0x0370734413198a2eull);
  EXPECT_EQ(pi.v[0], 0xd16cfe09u);
  EXPECT_EQ(pi.v[1], 0x94fdccebu);
  EXPECT_EQ(pi.v[2], 0x5001e420u);
  EXPECT_EQ(pi.v[3], 0x24126ea1u);
}

TEST(Uniform01, StaysBelowOne) {
  EXPECT_EQ(uniform01(0), 0.0f);
  EXPECT_LT(uniform01(0xFFFFFFFFu), 1.0f);
  EXPECT_EQ(uniform01(0x80000000u), 0.5f);
}

TEST(MixKey, DependsOnBothPartsAndTheirOrder) {
  std::set<uint64_t> seen;
  for (uint64_t a = 0; a < 40; ++a) {
    for (uint64_t b = 0; b < 40; ++b) seen.insert(mix_key(a, b));
  }
  EXPECT_EQ(seen.size(), 1600u);
}

TEST(HashName, IsFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_NE(hash_name("ab"), hash_name("ba"));
}

TEST(RandomStream, IsAFunctionOfItsKey) {
  RandomStream a(1), b(1), c(2);
  std::vector<uint32_t> of_a, of_b, of_c;
  for (int i = 0; i < 9; ++i) {
    of_a.push_back(a.next());
    of_b.push_back(b.next());
    of_c.push_back(c.next());
  }
  EXPECT_EQ(of_a, of_b);
  EXPECT_NE(of_a, of_c);
  EXPECT_EQ(of_a[0], philox(1, 0).v[0]);
  EXPECT_EQ(of_a[5], philox(1, 1).v[1]);
}

TEST(RandomStream, BelowReachesEveryNumberAndNoOther) {
  RandomStream random(3);
  std::vector<int> seen(7, 0);
  for (int i = 0; i < 7000; ++i) {
    const uint64_t draw = random.below(7);
    ASSERT_LT(draw, 7u);
    ++seen[draw];
  }
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 850);
  EXPECT_EQ(random.below(1), 0u);
  EXPECT_LT(random.below(~0ull), ~0ull);
}

TEST(RandomStream, UniformFillsItsRange) {
  RandomStream random(4);
  double low = 1, high = 0, sum = 0;
  for (int i = 0; i < 20000; ++i) {
    const double u = random.uniform();
    low = std::min(low, u);
    high = std::max(high, u);
    sum += u;
  }
  EXPECT_GE(low, 0);
  EXPECT_LT(high, 1);
  EXPECT_LT(low, 0.001);
  EXPECT_GT(high, 0.999);
  EXPECT_NEAR(sum / 20000, 0.5, 0.01);
}

}  // namespace
}  // namespace crema
