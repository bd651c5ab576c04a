// Pooling in nchw: single planes.
#include "ops/cpu/isa/loops.h"
#include "ops/cpu/isa/pool_windows.h"

namespace crema::CREMA_ISA {
namespace {

/// Scatters one plane's gradients.
void scatter_plane(const PoolArgs& a, const float* dy, int64_t first, float* dx) {
  const PoolShape& s = a.shape;
  Place o;
  int64_t i = 0;
  for (o.v[0] = 0; o.v[0] < s.out[0]; ++o.v[0]) {
    for (o.v[1] = 0; o.v[1] < s.out[1]; ++o.v[1]) {
      for (o.v[2] = 0; o.v[2] < s.out[2]; ++o.v[2], ++i) {
        if (a.kind == PoolKind::average) {
          const float share = dy[i] / divisor_of(s, o);
          over_window(s, o, [&](int64_t at, int32_t) { dx[at] += share; });
          continue;
        }
        const int32_t t = winner_at(a, first + i);
        if (t >= 0 && (a.has_wide_winner || t != 255)) dx[position_of(s, o, t)] += dy[i];
      }
    }
  }
}

}  // namespace

void pool_forward_nchw(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t in = s.size[0] * s.size[1] * s.size[2];
  int64_t to = begin * s.out[0] * s.out[1] * s.out[2];
  for (int64_t p = begin; p < end; ++p) {
    Place o;
    for (o.v[0] = 0; o.v[0] < s.out[0]; ++o.v[0]) {
      for (o.v[1] = 0; o.v[1] < s.out[1]; ++o.v[1]) {
        for (o.v[2] = 0; o.v[2] < s.out[2]; ++o.v[2], ++to) {
          forward_element(a, o, a.x + p * in, 1, to, static_cast<uint64_t>(to));
        }
      }
    }
  }
}

void pool_backward_nchw(const PoolArgs& a, int64_t begin, int64_t end) {
  const PoolShape& s = a.shape;
  const int64_t plane = s.out[0] * s.out[1] * s.out[2], in = s.size[0] * s.size[1] * s.size[2];
  for (int64_t p = begin; p < end; ++p) {
    float* dx = a.dx + p * in;
    for (int64_t i = 0; !a.accumulate && i < in; ++i) dx[i] = 0;
    scatter_plane(a, a.dy + p * plane, p * plane, dx);
  }
}

}  // namespace crema::CREMA_ISA
