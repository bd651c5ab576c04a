// Work along channels: sums over all elements of each channel, in an order that the shape alone
// decides, and loops that know an element's channel.
#pragma once

#include "ops/cuda/sums.h"
#include "ops/cuda/vector_loop.h"
#include "ops/kernel.h"
#include "ops/ops.h"

namespace crema::cuda {

/// A tensor as batch x channels x plane.
struct ChannelShape {
  int64_t batch = 1, channels = 1, plane = 1;
  bool is_nhwc = false;
  CREMA_BOTH int64_t rows() const { return batch * plane; }
};

inline ChannelShape channel_shape(const TensorDesc& desc) {
  const Shape& s = desc.shape;
  ChannelShape shape{s[0], s[1], s.count(2), false};
  shape.is_nhwc = shape.plane == 1 || desc.layout == Layout::nhwc;
  return shape;
}

/// The channel of element i; for fewer than 2^31 elements.
struct ChannelOf {
  Divider channels, plane;
  bool is_nhwc = false;
  ChannelOf() = default;
  explicit ChannelOf(const ChannelShape& s)
      : channels(s.channels), plane(s.plane), is_nhwc(s.is_nhwc) {}
  __device__ uint32_t of(int64_t i) const {
    const auto at = static_cast<uint32_t>(i);
    return channels.remainder(is_nhwc ? at : plane.quotient(at));
  }
  /// Whether element i + k, of four that begin at a multiple of 4, has channel of(i) + k (nhwc) or
  /// of(i) (nchw).
  static bool suits_four(const ChannelShape& s) {
    return (s.is_nhwc ? s.channels : s.plane) % 4 == 0;
  }
};

// ---- Sums of two values per element: Value has `float2 operator()(int64_t at, int64_t c) const`.

constexpr int kChannelLanes = 32, kRowLanes = 8, kSumThreads = 256;

struct Double2 {
  double a, b;
};

/// Adds up floats, 64 at a time before they go into double.
class LongSum {
 public:
  __device__ void add(float2 v) {
    run_.x += v.x;
    run_.y += v.y;
    if (++count_ % 64 == 0) flush();
  }
  __device__ Double2 total() {
    flush();
    return total_;
  }

 private:
  __device__ void flush() {
    total_.a += static_cast<double>(run_.x);
    total_.b += static_cast<double>(run_.y);
    run_ = make_float2(0, 0);
  }
  float2 run_ = make_float2(0, 0);
  Double2 total_{0, 0};
  int count_ = 0;
};

struct SumParts {
  ChannelShape shape;
  Divider plane;
  int parts;
  int64_t part_rows;
  Double2* partial;  // [parts, channels]
};

template <class Value>
__global__ void __launch_bounds__(kSumThreads) channel_sums_nhwc(Value value, SumParts p) {
  __shared__ Double2 lanes[kRowLanes][kChannelLanes];
  const int64_t channels = p.shape.channels;
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t c = int64_t{blockIdx.x} / p.parts * kChannelLanes + x;
  const int64_t part = int64_t{blockIdx.x} % p.parts;
  const int64_t begin = part * p.part_rows, rows = p.shape.rows();
  const int64_t end = begin + p.part_rows < rows ? begin + p.part_rows : rows;
  LongSum sum;
  if (c < channels) {
    for (int64_t r = begin + y; r < end; r += kRowLanes) sum.add(value(r * channels + c, c));
  }
  lanes[y][x] = sum.total();
  __syncthreads();
  if (y != 0 || c >= channels) return;
  Double2 total{0, 0};
  for (int k = 0; k < kRowLanes; ++k) {
    total.a += lanes[k][x].a;
    total.b += lanes[k][x].b;
  }
  p.partial[part * channels + c] = total;
}

template <class Value>
__global__ void __launch_bounds__(kSumThreads) channel_sums_nchw(Value value, SumParts p) {
  const int64_t channels = p.shape.channels, plane = p.shape.plane;
  const int64_t c = int64_t{blockIdx.x} / p.parts, part = int64_t{blockIdx.x} % p.parts;
  const int64_t begin = part * p.part_rows, rows = p.shape.rows();
  const int64_t end = begin + p.part_rows < rows ? begin + p.part_rows : rows;
  LongSum sum;
  for (int64_t r = begin + threadIdx.x; r < end; r += kSumThreads) {
    const int64_t n = p.plane.quotient(static_cast<uint32_t>(r));
    sum.add(value((n * channels + c) * plane + (r - n * plane), c));
  }
  Double2 total = sum.total();
  total.a = block_sum<kSumThreads>(total.a);
  total.b = block_sum<kSumThreads>(total.b);
  if (threadIdx.x == 0) p.partial[part * channels + c] = total;
}

/// done(c, a, b) with each channel's two sums.
template <class Done>
__global__ void channel_done(Done done, SumParts p) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c >= p.shape.channels) return;
  double a = 0, b = 0;
  for (int64_t part = 0; part < p.parts; ++part) {
    const Double2 v = p.partial[part * p.shape.channels + c];
    a += v.a;
    b += v.b;
  }
  done(c, a, b);
}

/// done(c) for every channel.
template <class Done>
__global__ void each_channel(Done done, int64_t channels) {
  const int64_t c = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (c < channels) done(c);
}

/// How many parts a channel's rows are cut into.
inline int channel_parts(const ChannelShape& s) {
  constexpr int64_t kBlocks = 1056, kMost = 256;
  const int64_t units = s.is_nhwc ? (s.channels + kChannelLanes - 1) / kChannelLanes : s.channels;
  const int64_t worth = s.rows() / (s.is_nhwc ? 256 : 2048);
  int64_t parts = units > 0 ? kBlocks / units : 1;
  parts = parts < worth ? parts : worth;
  parts = parts < kMost ? parts : kMost;
  return static_cast<int>(parts > 1 ? parts : 1);
}

/// Bytes of partial sums that channel_sums() wants.
inline size_t channel_sum_bytes(const ChannelShape& s) {
  return sizeof(Double2) * static_cast<size_t>(channel_parts(s) * s.channels);
}

template <class Value, class Done>
void channel_sums(const ChannelShape& s, const Value& value, const Done& done, Double2* partial,
                  cudaStream_t stream) {
  SumParts p{s, Divider(s.plane), channel_parts(s), 0, partial};
  p.part_rows = (s.rows() + p.parts - 1) / p.parts;
  if (s.is_nhwc) {
    const int64_t tiles = (s.channels + kChannelLanes - 1) / kChannelLanes;
    launch(channel_sums_nhwc<Value>, static_cast<unsigned>(tiles * p.parts),
           dim3(kChannelLanes, kRowLanes), 0, stream, value, p);
  } else {
    launch(channel_sums_nchw<Value>, static_cast<unsigned>(s.channels * p.parts), kSumThreads, 0,
           stream, value, p);
  }
  launch(channel_done<Done>, static_cast<unsigned>((s.channels + 127) / 128), 128, 0, stream, done,
         p);
}

template <class Done>
void for_channels(int64_t channels, const Done& done, cudaStream_t stream) {
  launch(each_channel<Done>, static_cast<unsigned>((channels + 127) / 128), 128, 0, stream, done,
         channels);
}

}  // namespace crema::cuda
