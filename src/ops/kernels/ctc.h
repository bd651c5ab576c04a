// CTC (Graves et al., "Connectionist temporal classification", 2006): loss and gradient of one
// sequence per index, in logarithms.
#pragma once

#include <cmath>

#include "ops/kernels/label.h"

namespace crema::CREMA_ISA {

constexpr float kCtcZero = -1e30f;  // the logarithm of 0

CREMA_BOTH inline float log_add(float a, float b) {
  const float high = a > b ? a : b, low = a > b ? b : a;
  if (low <= kCtcZero) return high;
  return high + std::log1p(std::exp(low - high));
}

/// How long sequence n is: up to the first step after 0 whose indicator is 0.
CREMA_BOTH inline int64_t sequence_length(const float* indicators, int64_t steps, int64_t batch,
                                          int64_t n) {
  int64_t t = 1;
  while (t < steps && indicators[t * batch + n] != 0) ++t;
  return steps < t ? steps : t;
}

/// Sequence n of y [T, N, C] (probabilities): loss[n] = -log p(labels | y), gradient [T, N, C] with
/// respect to the scores that the softmax took. alpha and beta: [N, T, 2 L + 1].
struct CtcSequence {
  const float* y;
  const float* indicators;
  const float* labels;  // [L, N], a negative one ends
  float* alpha;
  float* beta;
  float* loss;
  float* gradient;
  Fault* fault;
  int64_t steps, batch, classes, most_labels;
  int32_t blank, layer;
  bool collapses;  // equal neighbours among the labels count once

  CREMA_BOTH void operator()(int64_t n) const {
    const int64_t length = sequence_length(indicators, steps, batch, n);
    const int64_t count = label_count(n), places = 2 * count + 1;
    clear(n);
    loss[n] = 0;
    if (count < 0 || length < 1) return;
    if (shortest(n, count) > length) {
      report_fault(fault, layer, n, static_cast<float>(shortest(n, count)));
      return;
    }
    forward(n, length, places);
    backward(n, length, places);
    const float* last = row(alpha, n, length - 1);
    const float total = places > 1 ? log_add(last[places - 1], last[places - 2]) : last[0];
    loss[n] = -total;
    for (int64_t t = 0; t < length; ++t) put_gradient(n, t, places, total);
  }

 private:
  CREMA_BOTH float* row(float* memory, int64_t n, int64_t t) const {
    return memory + (n * steps + t) * (2 * most_labels + 1);
  }
  CREMA_BOTH const float* probabilities(int64_t n, int64_t t) const {
    return y + (t * batch + n) * classes;
  }
  CREMA_BOTH float log_probability(int64_t n, int64_t t, int64_t place) const {
    const float p = probabilities(n, t)[symbol(n, place)];
    return p > 0 ? std::log(p) : kCtcZero;
  }
  /// Labels of a sequence; -1 after the report of one that is none.
  CREMA_BOTH int64_t label_count(int64_t n) const {
    int64_t count = 0;
    for (int64_t l = 0; l < most_labels; ++l) {
      const float v = labels[l * batch + n];
      const int label = label_of(v);
      if (label < 0 && label != kNoLabel) break;
      if (label >= classes || label == blank || label == kNoLabel) {
        report_fault(fault, layer, batch + l * batch + n, v);
        return -1;
      }
      if (!is_repeat(n, l)) ++count;
    }
    return count;
  }
  CREMA_BOTH bool is_repeat(int64_t n, int64_t l) const {
    return collapses && l > 0 &&
           label_of(labels[l * batch + n]) == label_of(labels[(l - 1) * batch + n]);
  }
  /// The l-th label, repeats left out where they collapse.
  CREMA_BOTH int label_at(int64_t n, int64_t l) const {
    if (!collapses) return label_of(labels[l * batch + n]);
    int64_t at = 0;
    for (int64_t seen = 0;; ++at) {
      if (is_repeat(n, at)) continue;
      if (seen++ == l) return label_of(labels[at * batch + n]);
    }
  }
  /// Blanks at even places, labels at odd ones.
  CREMA_BOTH int symbol(int64_t n, int64_t place) const {
    return place % 2 == 0 ? blank : label_at(n, place / 2);
  }
  /// Whether a path may jump over the blank before this place.
  CREMA_BOTH bool can_skip(int64_t n, int64_t place) const {
    return place % 2 == 1 && place >= 3 && symbol(n, place) != symbol(n, place - 2);
  }
  /// Steps that the labels need: one each, and a blank between equal neighbours.
  CREMA_BOTH int64_t shortest(int64_t n, int64_t count) const {
    int64_t needed = count;
    for (int64_t l = 1; l < count; ++l) needed += label_at(n, l) == label_at(n, l - 1);
    return needed;
  }
  CREMA_BOTH void clear(int64_t n) const {
    for (int64_t t = 0; t < steps; ++t) {
      for (int64_t c = 0; c < classes; ++c) gradient[(t * batch + n) * classes + c] = 0;
    }
  }
  CREMA_BOTH void forward(int64_t n, int64_t length, int64_t places) const {
    for (int64_t t = 0; t < length; ++t) {
      float* now = row(alpha, n, t);
      const float* before = t > 0 ? row(alpha, n, t - 1) : nullptr;
      for (int64_t s = 0; s < places; ++s) {
        float sum = kCtcZero;
        if (!before) {
          sum = s < 2 ? 0 : kCtcZero;
        } else {
          sum = before[s];
          if (s > 0) sum = log_add(sum, before[s - 1]);
          if (can_skip(n, s)) sum = log_add(sum, before[s - 2]);
        }
        now[s] = sum <= kCtcZero ? kCtcZero : sum + log_probability(n, t, s);
      }
    }
  }
  /// beta without the probability of its own step.
  CREMA_BOTH void backward(int64_t n, int64_t length, int64_t places) const {
    for (int64_t t = length - 1; t >= 0; --t) {
      float* now = row(beta, n, t);
      const float* after = t + 1 < length ? row(beta, n, t + 1) : nullptr;
      for (int64_t s = 0; s < places; ++s) {
        if (!after) {
          now[s] = s >= places - 2 ? 0 : kCtcZero;
          continue;
        }
        float sum = kCtcZero;
        for (int64_t next = s; next < places && next <= s + 2; ++next) {
          if (next == s + 2 && !can_skip(n, next)) continue;
          if (after[next] <= kCtcZero) continue;
          sum = log_add(sum, after[next] + log_probability(n, t + 1, next));
        }
        now[s] = sum;
      }
    }
  }
  CREMA_BOTH void put_gradient(int64_t n, int64_t t, int64_t places, float total) const {
    const float* p = probabilities(n, t);
    float* g = gradient + (t * batch + n) * classes;
    for (int64_t c = 0; c < classes; ++c) g[c] = p[c];
    const float* a = row(alpha, n, t);
    const float* b = row(beta, n, t);
    for (int64_t s = 0; s < places; ++s) {
      if (a[s] <= kCtcZero || b[s] <= kCtcZero) continue;
      g[symbol(n, s)] -= std::exp(a[s] + b[s] - total);
    }
  }
};

/// One row: the mean of the sequences' losses.
struct CtcMean {
  const float* losses;
  float* loss;
  float scale;
  CREMA_BOTH float operator()(int64_t, int64_t i) const { return losses[i]; }
  CREMA_BOTH void done(int64_t, float sum) const { *loss = scale * sum; }
};

/// dx (+)= scale * dloss * gradient.
struct CtcGradient {
  const float* gradient;
  const float* dloss;
  float* dx;
  float scale;
  bool accumulate;
  CREMA_BOTH void operator()(int64_t i) const {
    const float g = scale * *dloss * gradient[i];
    dx[i] = accumulate ? dx[i] + g : g;
  }
};

/// y[n] = the best class of each step of sequence n, blanks left out, equal neighbours once where
/// they merge; -1 behind the last.
struct CtcGreedy {
  const float* x;
  const float* indicators;
  float* y;
  int64_t steps, batch, classes;
  int32_t blank;
  bool merges;
  CREMA_BOTH void operator()(int64_t n) const {
    const int64_t length = sequence_length(indicators, steps, batch, n);
    int64_t count = 0;
    int before = -1;
    for (int64_t t = 0; t < length; ++t) {
      const float* scores = x + (t * batch + n) * classes;
      int best = 0;
      for (int c = 1; c < classes; ++c) best = scores[c] > scores[best] ? c : best;
      if (best != blank && !(merges && best == before)) {
        y[n * steps + count++] = static_cast<float>(best);
      }
      before = best;
    }
    while (count < steps) y[n * steps + count++] = -1;
  }
};

}  // namespace crema::CREMA_ISA
