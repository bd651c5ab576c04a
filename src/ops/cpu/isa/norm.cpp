// Batch normalisation (Ioffe and Szegedy 2015). Statistics are taken block by block about each
// block's own mean and merged in double (Chan, Golub and LeVeque 1979), so that they are exact in
// one reading, wherever the mean lies.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/micro_tile.h"
#include "ops/small_floats.h"

namespace crema::CREMA_ISA {
namespace {

constexpr int64_t kLanes = 16, kChannels = 64, kBlockOfRows = 128, kRowsAhead = 16, kRun = 2048;

template <class T>
const T* at(const void* from, int64_t place) {
  return static_cast<const T*>(from) + place;
}
template <class T>
T* at(void* from, int64_t place) {
  return static_cast<T*>(from) + place;
}

/// Sum of f(i) over n elements in 16 lanes, then in double.
template <class F>
__attribute__((always_inline)) inline double lane_sum(int64_t n, const F& f) {
  alignas(64) float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
#pragma omp simd
    for (int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += f(i + lane);
  }
  for (; i < n; ++i) lanes[i % kLanes] += f(i);
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

/// The gradient before the activation: relu with that slope, 1 where there is none.
__attribute__((always_inline)) inline float masked(float dy, float y, float slope) {
  return y > 0 ? dy : slope * dy;
}

/// Adds a block whose values x have sum(x - near) = rest and sum((x - near)^2) = m2.
void merge(NormMoments& into, float near, double rest, double m2, int64_t elements) {
  const auto count = static_cast<double>(elements);
  const double mean = static_cast<double>(near) + rest / count;
  const double total = into.count + count, delta = mean - into.mean;
  into.mean += delta * count / total;
  into.m2 += m2 - rest * rest / count + delta * delta * into.count * count / total;
  into.count = total;
}

/// Sums of a block of rows about their mean, by channel.
struct BlockSums {
  alignas(64) float mean[kChannels], rest[kChannels], m2[kChannels];
};

/// Moments of some channels, all of as many elements.
struct ChannelMoments {
  alignas(64) double mean[kChannels], m2[kChannels];
  double count;
};

/// merge() for n channels side by side.
void merge(ChannelMoments& into, const BlockSums& block, int64_t n, int64_t elements) {
  const auto count = static_cast<double>(elements);
  const double before = into.count, total = before + count;
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const auto rest = static_cast<double>(block.rest[i]);
    const double mean = static_cast<double>(block.mean[i]) + rest / count;
    const double delta = mean - into.mean[i];
    into.mean[i] += delta * count / total;
    into.m2[i] += static_cast<double>(block.m2[i]) - rest * rest / count +
                  delta * delta * before * count / total;
  }
  into.count = total;
}

/// Of kCount vectors of channels, the sums of each kept in registers.
template <int kCount>
void sum_vectors(const float* x, int64_t rows, int64_t stride, BlockSums& sums) {
  Vector mean[kCount], rest[kCount], m2[kCount];
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) mean[v] = rest[v] = m2[v] = Vector{};
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * stride;
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      __builtin_prefetch(from + kRowsAhead * stride + v * kWidth);
      mean[v] += load(from + v * kWidth);
    }
  }
  const float share = 1.0f / static_cast<float>(rows);
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) mean[v] *= share;
  for (int64_t r = 0; r < rows; ++r) {
    const float* from = x + r * stride;
#pragma GCC unroll 4
    for (int v = 0; v < kCount; ++v) {
      const Vector d = load(from + v * kWidth) - mean[v];
      rest[v] += d;
      m2[v] += d * d;
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kCount; ++v) {
    store(sums.mean + v * kWidth, mean[v]);
    store(sums.rest + v * kWidth, rest[v]);
    store(sums.m2 + v * kWidth, m2[v]);
  }
}

/// Of whole vectors of channels in f32; false: there are none.
bool sum_whole_vectors(const float* x, int64_t rows, int64_t stride, int64_t n, BlockSums& sums) {
  switch (n % kWidth == 0 ? n / kWidth : 0) {
    case 4:
      sum_vectors<4>(x, rows, stride, sums);
      return true;
    case 3:
      sum_vectors<3>(x, rows, stride, sums);
      return true;
    case 2:
      sum_vectors<2>(x, rows, stride, sums);
      return true;
    case 1:
      sum_vectors<1>(x, rows, stride, sums);
      return true;
    default:
      return false;
  }
}
bool sum_whole_vectors(const Bf16*, int64_t, int64_t, int64_t, BlockSums&) { return false; }

/// Of any n channels.
template <class T>
void sum_channels(const T* x, int64_t rows, int64_t stride, int64_t n, BlockSums& sums) {
  float *mean = sums.mean, *rest = sums.rest, *m2 = sums.m2;
  for (int64_t i = 0; i < n; ++i) mean[i] = rest[i] = m2[i] = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * stride;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) mean[i] += widen(from[i]);
  }
  const float share = 1.0f / static_cast<float>(rows);
  for (int64_t i = 0; i < n; ++i) mean[i] *= share;
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = x + r * stride;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      const float d = widen(from[i]) - mean[i];
      rest[i] += d;
      m2[i] += d * d;
    }
  }
}

/// Moments of n channels over rows [begin, end).
template <class T>
void moments_of_rows(const NormArgs& a, int64_t begin, int64_t end, int64_t c, int64_t n,
                     NormMoments* moments) {
  ChannelMoments all{};
  BlockSums sums;
  for (int64_t row = begin; row < end; row += kBlockOfRows) {
    const int64_t count = lesser(kBlockOfRows, end - row);
    const T* x = at<T>(a.x, row * a.channels + c);
    if (!sum_whole_vectors(x, count, a.channels, n, sums)) {
      sum_channels(x, count, a.channels, n, sums);
    }
    merge(all, sums, n, count);
  }
  for (int64_t i = 0; i < n; ++i) moments[i] = {all.mean[i], all.m2[i], all.count};
}

template <bool kAccumulate, class T>
void dx_row(const NormArgs& a, int64_t place) {
  const T *x = at<T>(a.x, place), *y = at<T>(a.y_read, place), *dy = at<T>(a.dy, place);
  T* dx = at<T>(a.dx, place);
  const float *mean = a.mean, *scale = a.scale, *shift = a.shift, *slant = a.slant;
  const float slope = a.slope;
#pragma omp simd
  for (int64_t c = 0; c < a.channels; ++c) {
    const float g = masked(widen(dy[c]), widen(y[c]), slope);
    const float v = scale[c] * g + (slant[c] * (widen(x[c]) - mean[c]) + shift[c]);
    narrow_to(kAccumulate ? widen(dx[c]) + v : v, dx[c]);
  }
}

template <bool kAccumulate, class T>
void dx_plane(const NormArgs& a, int64_t c, int64_t place) {
  const float scale = a.scale[c], slant = a.slant[c], shift = a.shift[c], mean = a.mean[c];
  const T *x = at<T>(a.x, place), *y = at<T>(a.y_read, place), *dy = at<T>(a.dy, place);
  const float slope = a.slope;
  T* dx = at<T>(a.dx, place);
#pragma omp simd
  for (int64_t i = 0; i < a.plane; ++i) {
    const float g = masked(widen(dy[i]), widen(y[i]), slope);
    const float v = scale * g + (slant * (widen(x[i]) - mean) + shift);
    narrow_to(kAccumulate ? widen(dx[i]) + v : v, dx[i]);
  }
}

template <class T>
void moments_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) {
    const int64_t first = part * a.part_rows, last = lesser(first + a.part_rows, a.rows);
    for (int64_t c = 0, n = 0; c < a.channels; c += n) {
      n = lesser(4 * kWidth, a.channels - c);
      moments_of_rows<T>(a, first, last, c, n, a.moments + part * a.channels + c);
    }
  }
}

template <class T>
void moments_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) {
    NormMoments moments{0, 0, 0};
    for (int64_t n = 0; n < a.batch; ++n) {
      for (int64_t i = 0; i < a.plane; i += kRun) {
        const int64_t count = lesser(kRun, a.plane - i);
        const T* x = at<T>(a.x, (n * a.channels + c) * a.plane + i);
        const auto near = static_cast<float>(
            lane_sum(count, [=](int64_t k) { return widen(x[k]); }) / static_cast<double>(count));
        const double rest = lane_sum(count, [=](int64_t k) { return widen(x[k]) - near; });
        const double m2 = lane_sum(count, [=](int64_t k) {
          const float d = widen(x[k]) - near;
          return d * d;
        });
        merge(moments, near, rest, m2, count);
      }
    }
    a.moments[c] = moments;
  }
}

template <class T>
void apply_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const T* x = at<T>(a.x, row * a.channels);
    const float *mean = a.mean, *scale = a.scale, *shift = a.shift;
    T* y = at<T>(a.y, row * a.channels);
    const float slope = a.slope;
#pragma omp simd
    for (int64_t c = 0; c < a.channels; ++c) {
      const float v = (widen(x[c]) - mean[c]) * scale[c] + shift[c];
      narrow_to(v < 0 ? slope * v : v, y[c]);
    }
  }
}

template <class T>
void apply_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t p = begin; p < end; ++p) {
    const int64_t c = p % a.channels;
    const float mean = a.mean[c], scale = a.scale[c], shift = a.shift[c], slope = a.slope;
    const T* x = at<T>(a.x, p * a.plane);
    T* y = at<T>(a.y, p * a.plane);
#pragma omp simd
    for (int64_t i = 0; i < a.plane; ++i) {
      const float v = (widen(x[i]) - mean) * scale + shift;
      narrow_to(v < 0 ? slope * v : v, y[i]);
    }
  }
}

template <class T>
void sums_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t part = begin; part < end; ++part) {
    const int64_t first = part * a.part_rows, last = lesser(first + a.part_rows, a.rows);
    for (int64_t c = 0; c < a.channels; c += kChannels) {
      const int64_t n = lesser(kChannels, a.channels - c);
      alignas(64) double total[kChannels] = {}, product[kChannels] = {};
      for (int64_t row = first; row < last; row += kBlockOfRows) {
        alignas(64) float sum[kChannels] = {}, dot[kChannels] = {};
        for (int64_t r = row; r < lesser(row + kBlockOfRows, last); ++r) {
          const int64_t place = r * a.channels + c;
          const T *x = at<T>(a.x, place), *y = at<T>(a.y_read, place), *dy = at<T>(a.dy, place);
          const float* mean = a.mean + c;
          const float slope = a.slope;
#pragma omp simd
          for (int64_t i = 0; i < n; ++i) {
            const float g = masked(widen(dy[i]), widen(y[i]), slope);
            sum[i] += g;
            dot[i] += g * (widen(x[i]) - mean[i]);
          }
        }
        for (int64_t i = 0; i < n; ++i) total[i] += static_cast<double>(sum[i]);
        for (int64_t i = 0; i < n; ++i) product[i] += static_cast<double>(dot[i]);
      }
      for (int64_t i = 0; i < n; ++i) {
        a.moments[part * a.channels + c + i] = {total[i], product[i], 0};
      }
    }
  }
}

template <class T>
void sums_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t c = begin; c < end; ++c) {
    double total = 0, product = 0;
    const float mean = a.mean[c], slope = a.slope;
    for (int64_t n = 0; n < a.batch; ++n) {
      for (int64_t i = 0; i < a.plane; i += kRun) {
        const int64_t count = lesser(kRun, a.plane - i);
        const int64_t place = (n * a.channels + c) * a.plane + i;
        const T *x = at<T>(a.x, place), *y = at<T>(a.y_read, place), *dy = at<T>(a.dy, place);
        const auto g = [=](int64_t k) { return masked(widen(dy[k]), widen(y[k]), slope); };
        total += lane_sum(count, g);
        product += lane_sum(count, [=](int64_t k) { return g(k) * (widen(x[k]) - mean); });
      }
    }
    a.moments[c] = {total, product, 0};
  }
}

template <class T>
void dx_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) {
    const int64_t place = row * a.channels;
    a.accumulate ? dx_row<true, T>(a, place) : dx_row<false, T>(a, place);
  }
}

template <class T>
void dx_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  for (int64_t p = begin; p < end; ++p) {
    a.accumulate ? dx_plane<true, T>(a, p % a.channels, p * a.plane)
                 : dx_plane<false, T>(a, p % a.channels, p * a.plane);
  }
}

}  // namespace

void norm_moments_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? moments_nhwc<Bf16>(a, begin, end) : moments_nhwc<float>(a, begin, end);
}

void norm_moments_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? moments_nchw<Bf16>(a, begin, end) : moments_nchw<float>(a, begin, end);
}

void norm_apply_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? apply_nhwc<Bf16>(a, begin, end) : apply_nhwc<float>(a, begin, end);
}

void norm_apply_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? apply_nchw<Bf16>(a, begin, end) : apply_nchw<float>(a, begin, end);
}

void norm_sums_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? sums_nhwc<Bf16>(a, begin, end) : sums_nhwc<float>(a, begin, end);
}

void norm_sums_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? sums_nchw<Bf16>(a, begin, end) : sums_nchw<float>(a, begin, end);
}

void norm_dx_nhwc(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? dx_nhwc<Bf16>(a, begin, end) : dx_nhwc<float>(a, begin, end);
}

void norm_dx_nchw(const NormArgs& a, int64_t begin, int64_t end) {
  a.is_low ? dx_nchw<Bf16>(a, begin, end) : dx_nchw<float>(a, begin, end);
}

}  // namespace crema::CREMA_ISA
