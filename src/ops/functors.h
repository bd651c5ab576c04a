// Elementwise formulas, written once for every device and instruction set: branch-free, so that
// compilers vectorise them. A functor is called as f(x) for the value and f.gradient(x, y) for
// dy/dx. NaN stays NaN.
#pragma once

#include <cstdint>

#include "ops/kernel.h"

namespace crema::CREMA_ISA {

CREMA_BOTH inline float float_of_bits(uint32_t bits) { return __builtin_bit_cast(float, bits); }
CREMA_BOTH inline uint32_t bits_of_float(float x) { return __builtin_bit_cast(uint32_t, x); }
CREMA_BOTH inline float absolute(float x) { return x < 0 ? -x : x + 0.0f; }

/// e^x, relative error below 1.2e-7, denormal results included; 0 and infinity beyond the range.
/// Range reduction by Cody and Waite, polynomial from Cephes (S. Moshier, expf.c).
CREMA_BOTH inline float exp_of(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -105.0f ? -105.0f : x;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits.
  const float shifted = x * 1.44269504088896341f + 12582912.0f;
  const uint32_t n = bits_of_float(shifted) - 0x4B400000u;
  const float whole = shifted - 12582912.0f;
  const float r = (x - whole * 0.693359375f) - whole * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  // 2^n in two factors, since n may lie outside the exponents of normal numbers.
  const uint32_t half = static_cast<uint32_t>(static_cast<int32_t>(n) >> 1);
  const float scale1 = float_of_bits((half + 127u) << 23),
              scale2 = float_of_bits((n - half + 127u) << 23);
  return p * scale1 * scale2;
}

/// Natural logarithm, relative error below 2e-7; -infinity at 0, NaN below. Polynomial from Cephes
/// (logf.c).
CREMA_BOTH inline float log_of(float x) {
  const bool denormal = x < 1.17549435e-38f;
  const uint32_t bits = bits_of_float(denormal ? x * 8388608.0f : x);
  // The mantissa is taken to [sqrt(1/2), sqrt(2)).
  const uint32_t biased = bits - 0x3F3504F3u;
  const float mantissa = float_of_bits((biased & 0x007FFFFFu) + 0x3F3504F3u);
  const float exponent =
      static_cast<float>(static_cast<int32_t>(biased) >> 23) - (denormal ? 23.0f : 0.0f);
  const float r = mantissa - 1.0f, r2 = r * r;
  float p = 7.0376836292e-2f;
  p = p * r - 1.1514610310e-1f;
  p = p * r + 1.1676998740e-1f;
  p = p * r - 1.2420140846e-1f;
  p = p * r + 1.4249322787e-1f;
  p = p * r - 1.6668057665e-1f;
  p = p * r + 2.0000714765e-1f;
  p = p * r - 2.4999993993e-1f;
  p = p * r + 3.3333331174e-1f;
  p = p * r * r2 - 2.12194440e-4f * exponent - 0.5f * r2;
  float y = (r + p) + 0.693359375f * exponent;
  y = x == __builtin_inff() ? x : y;
  y = x == 0.0f ? -__builtin_inff() : y;
  return x >= 0.0f ? y : __builtin_nanf("");
}

/// ln(1 + t) for t >= 0, relative error below 3e-7 (W. Kahan's correction of the rounded sum).
CREMA_BOTH inline float log1p_of(float t) {
  const float u = 1.0f + t;
  return u == 1.0f ? t : log_of(u) * (t / (u - 1.0f));
}

/// Relative error below 2e-7. Polynomial near 0 from Cephes (tanhf.c).
CREMA_BOTH inline float tanh_of(float x) {
  const float a = absolute(x), s = x * x;
  float p = -5.70498872745e-3f;
  p = p * s + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const float near_zero = p * s * x + x;
  const float far = 1.0f - 2.0f / (exp_of(2.0f * a) + 1.0f);
  return a < 0.625f ? near_zero : (x < 0 ? -far : far);
}

CREMA_BOTH inline float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

/// Any base and exponent as std::pow has it.
CREMA_BOTH inline float power_of(float base, float exponent) {
  return __builtin_powf(base, exponent);
}
CREMA_BOTH inline float root_of(float x) { return __builtin_sqrtf(x); }

// gradient() may use x or y, whichever the functor's kReads says; see Ops::unary_backward.

/// max(x, 0) + slope * min(x, 0). The gradient at 0 is slope. From y alone where slope >= 0: signs
/// agree.
struct ReluOf {
  float slope;
  CREMA_BOTH float operator()(float x) const { return x < 0 ? slope * x : x; }
  CREMA_BOTH float gradient(float x, float) const { return x > 0 ? 1.0f : (x <= 0 ? slope : 0.0f); }
};
/// ReluOf with slope 0, which also keeps -infinity from becoming NaN.
struct PlainReluOf {
  CREMA_BOTH float operator()(float x) const { return x < 0 ? 0.0f : x; }
  CREMA_BOTH float gradient(float x, float) const { return x > 0 ? 1.0f : 0.0f; }
};
struct Relu6Of {
  CREMA_BOTH float operator()(float x) const { return x < 0 ? 0.0f : (x > 6 ? 6.0f : x); }
  CREMA_BOTH float gradient(float x, float) const { return x > 0 && x < 6 ? 1.0f : 0.0f; }
};
struct EluOf {
  float alpha;
  /// Near 0 e^x - 1 loses digits: a short series there (relative error below 3e-7).
  CREMA_BOTH float operator()(float x) const {
    const float series =
        x * (1.0f + x * (0.5f + x * (1.66666667e-1f + x * (4.16666667e-2f + x * 8.3333333e-3f))));
    const float below = x > -0.125f ? series : exp_of(x) - 1.0f;
    return x > 0 ? x : alpha * below;
  }
  CREMA_BOTH float gradient(float x, float y) const { return x > 0 ? 1.0f : y + alpha; }
};
struct SigmoidOf {
  CREMA_BOTH float operator()(float x) const { return sigmoid_of(x); }
  CREMA_BOTH float gradient(float, float y) const { return y * (1.0f - y); }
};
struct TanhOf {
  CREMA_BOTH float operator()(float x) const { return tanh_of(x); }
  CREMA_BOTH float gradient(float, float y) const { return (1.0f - y) * (1.0f + y); }
};
struct SwishOf {
  float beta;
  CREMA_BOTH float operator()(float x) const { return x * sigmoid_of(beta * x); }
  CREMA_BOTH float gradient(float x, float) const {
    const float s = sigmoid_of(beta * x);
    return s + beta * x * s * (1.0f - s);
  }
};
struct BnllOf {
  CREMA_BOTH float operator()(float x) const {
    return (x < 0 ? 0.0f : x) + log1p_of(exp_of(-absolute(x)));
  }
  CREMA_BOTH float gradient(float x, float) const { return sigmoid_of(x); }
};
struct AbsOf {
  CREMA_BOTH float operator()(float x) const { return absolute(x); }
  CREMA_BOTH float gradient(float x, float) const { return x > 0 ? 1.0f : (x < 0 ? -1.0f : 0.0f); }
};

/// (b + a*x)^c in the cases with a short way, then in general. c = 0 gives 1 and no gradient.
struct PowerZeroOf {
  CREMA_BOTH float operator()(float) const { return 1.0f; }
  CREMA_BOTH float gradient(float, float) const { return 0.0f; }
};
struct LinearOf {
  float a, b;
  CREMA_BOTH float operator()(float x) const { return b + a * x; }
  CREMA_BOTH float gradient(float, float) const { return a; }
};
struct SquareOf {
  float a, b;
  CREMA_BOTH float operator()(float x) const { return (b + a * x) * (b + a * x); }
  CREMA_BOTH float gradient(float x, float) const { return 2.0f * a * (b + a * x); }
};
struct RootOf {
  float a, b;
  CREMA_BOTH float operator()(float x) const { return root_of(b + a * x); }
  CREMA_BOTH float gradient(float x, float) const { return 0.5f * a / root_of(b + a * x); }
};
struct ReciprocalOf {
  float a, b;
  CREMA_BOTH float operator()(float x) const { return 1.0f / (b + a * x); }
  CREMA_BOTH float gradient(float x, float) const { return -a / ((b + a * x) * (b + a * x)); }
};
struct PowerOf {
  float a, b, c;
  CREMA_BOTH float operator()(float x) const { return power_of(b + a * x, c); }
  CREMA_BOTH float gradient(float x, float) const { return a * c * power_of(b + a * x, c - 1.0f); }
};

struct ExpOf {
  float a, b;
  CREMA_BOTH float operator()(float x) const { return exp_of(b + a * x); }
  CREMA_BOTH float gradient(float, float y) const { return a * y; }
};
struct LogOf {
  float a, b, c;
  CREMA_BOTH float operator()(float x) const { return c * log_of(b + a * x); }
  CREMA_BOTH float gradient(float x, float) const { return c * a / (b + a * x); }
};
struct ClipOf {
  float low, high;
  CREMA_BOTH float operator()(float x) const { return x < low ? low : (x > high ? high : x); }
  CREMA_BOTH float gradient(float x, float) const { return low <= x && x <= high ? 1.0f : 0.0f; }
};
struct ThresholdOf {
  float limit;
  CREMA_BOTH float operator()(float x) const { return x > limit ? 1.0f : 0.0f; }
  CREMA_BOTH float gradient(float, float) const { return 0.0f; }
};

}  // namespace crema::CREMA_ISA
