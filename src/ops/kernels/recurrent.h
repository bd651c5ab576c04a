// One time step of LSTM and RNN (Hochreiter and Schmidhuber, "Long short-term memory", 1997), and
// the sums along time around them. Gates lie as [rows, 4 * hidden] in the order i, f, o, g.
#pragma once

#include <cmath>

#include "ops/kernel.h"

namespace crema {
namespace CREMA_ISA {

CREMA_BOTH inline float logistic(float x) { return 0.5f * std::tanh(0.5f * x) + 0.5f; }

/// y[row, j] = bias[j] (where given) + each_time[row % period, j] (where given); rows of `cols`
/// values.
struct GateOffsets {
  const float* bias;
  const float* each_time;
  float* y;
  Divider cols, period;
  CREMA_BOTH void operator()(int64_t i) const {
    const uint32_t row = cols.quotient(static_cast<uint32_t>(i));
    const uint32_t j = static_cast<uint32_t>(i) - row * cols.divisor();
    float v = bias ? bias[j] : 0.0f;
    if (each_time) v += each_time[int64_t{period.remainder(row)} * cols.divisor() + j];
    y[i] = v;
  }
};

/// y[row, j] = cont[row] * x[row, j]; y may be x. Where nothing is kept, not even NaN is.
struct ContinueRows {
  const float* x;
  const float* cont;
  float* y;
  Divider cols;
  CREMA_BOTH void operator()(int64_t i) const {
    const float keep = cont[cols.quotient(static_cast<uint32_t>(i))];
    y[i] = keep == 0 ? 0.0f : keep * x[i];
  }
};

/// y[i] = the sum over t of x[t * stride + i], in the order of time.
struct SumOverTime {
  static constexpr int64_t kCost = 16;
  const float* x;
  float* y;
  int64_t stride;
  int steps;
  CREMA_BOTH void operator()(int64_t i) const {
    float sum = 0;
    for (int t = 0; t < steps; ++t) sum += x[t * stride + i];
    y[i] = sum;
  }
};

/// c = cont * sigmoid(f) * c_prev + sigmoid(i) * tanh(g), h = sigmoid(o) * tanh(c).
struct LstmStep {
  static constexpr int64_t kCost = 64;
  const float* c_prev;
  const float* gates;
  const float* cont;
  float* c;
  float* h;
  Divider hidden;
  CREMA_BOTH void operator()(int64_t k) const {
    const uint32_t row = hidden.quotient(static_cast<uint32_t>(k));
    const int64_t d = hidden.divisor();
    const float* x = gates + row * d * 4 + (k - row * d);
    const float forget = cont[row] == 0 ? 0.0f : cont[row] * logistic(x[d]);
    const float kept = forget == 0 ? 0.0f : forget * c_prev[k];
    c[k] = kept + logistic(x[0]) * std::tanh(x[3 * d]);
    h[k] = logistic(x[2 * d]) * std::tanh(c[k]);
  }
};

/// From dh = dh_top + dh_later and dc_later (each where given) to the gradients of gates and
/// c_prev.
struct LstmStepGradient {
  static constexpr int64_t kCost = 96;
  const float* c_prev;
  const float* gates;
  const float* cont;
  const float* c;
  const float* dh_top;
  const float* dh_later;
  const float* dc_later;
  float* dgates;
  float* dc_prev;
  Divider hidden;
  CREMA_BOTH void operator()(int64_t k) const {
    const uint32_t row = hidden.quotient(static_cast<uint32_t>(k));
    const int64_t d = hidden.divisor();
    const int64_t at = row * d * 4 + (k - row * d);
    const float* x = gates + at;
    float* dx = dgates + at;
    const float in = logistic(x[0]), out = logistic(x[2 * d]), update = std::tanh(x[3 * d]);
    const float sigmoid = logistic(x[d]), forget = cont[row] * sigmoid;
    const float squashed = std::tanh(c[k]);
    const float dh = (dh_top ? dh_top[k] : 0.0f) + (dh_later ? dh_later[k] : 0.0f);
    const float dc = (dc_later ? dc_later[k] : 0.0f) + dh * out * (1 - squashed * squashed);
    dx[0] = dc * update * in * (1 - in);
    dx[d] = forget == 0 ? 0.0f : dc * c_prev[k] * forget * (1 - sigmoid);
    dx[2 * d] = dh * squashed * out * (1 - out);
    dx[3 * d] = dc * in * (1 - update * update);
    dc_prev[k] = dc * forget;  // last: it may lie in dc_later
  }
};

/// y = tanh(x); y may be x.
struct TanhStep {
  static constexpr int64_t kCost = 16;
  const float* x;
  float* y;
  CREMA_BOTH void operator()(int64_t i) const { y[i] = std::tanh(x[i]); }
};

/// dx = (dy + dy_later, each where given) * (1 - y^2).
struct TanhStepGradient {
  const float* y;
  const float* dy;
  const float* dy_later;
  float* dx;
  CREMA_BOTH void operator()(int64_t i) const {
    const float sum = (dy ? dy[i] : 0.0f) + (dy_later ? dy_later[i] : 0.0f);
    dx[i] = sum * (1 - y[i] * y[i]);
  }
};

}  // namespace CREMA_ISA
}  // namespace crema
