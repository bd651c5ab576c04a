// Counter-based random numbers (Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A draw is a function of (key, counter), never of a shared state: equal on
// every device and for any number of threads.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define CREMA_BOTH __host__ __device__
#else
#define CREMA_BOTH
#endif

namespace crema {

struct Philox4 {
  uint32_t v[4];
};

/// Four 32-bit words for (key, counter).
CREMA_BOTH constexpr Philox4 philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0) {
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0;
    const uint64_t p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0;
    const uint32_t n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

/// Uniform in [0, 1) with 24 bits.
CREMA_BOTH constexpr float uniform01(uint32_t word) {
  return static_cast<float>(word >> 8) * 0x1p-24f;
}

/// Mixes parts of an identity (seed, rank, layer, purpose, ...) into one key (splitmix64
/// finaliser).
CREMA_BOTH constexpr uint64_t mix_key(uint64_t a, uint64_t b) {
  uint64_t z = a + 0x9E3779B97F4A7C15u * (b + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// FNV-1a of a name, to be mixed into a key.
constexpr uint64_t hash_name(const char* text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *text; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return hash;
}

/// A sequence of draws for host code (fillers, shuffles): next() is word i of the stream that key
/// names.
class RandomStream {
 public:
  explicit RandomStream(uint64_t key) : key_(key) {}
  uint32_t next();
  /// Uniform in [0, bound); bound > 0.
  uint64_t below(uint64_t bound);
  double uniform();
  /// Standard normal (Box-Muller).
  double gaussian();

 private:
  uint64_t key_, counter_ = 0;
  Philox4 block_{};
  int used_ = 4;
};

}  // namespace crema
