// The formulas of Unary, Act and UpdateRule in float64, and element types.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "reference/plans.h"

namespace crema::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double sign(double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; }

/// A float format by its numbers of exponent and mantissa bits, with the usual bias, subnormals,
/// infinity and NaN.
struct Format {
  int exponent_bits, mantissa_bits;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};

double decode(Format format, uint32_t bits) {
  const uint32_t mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const int exponent =
      static_cast<int>(bits >> format.mantissa_bits) & ((1 << format.exponent_bits) - 1);
  const bool negative = (bits >> (format.exponent_bits + format.mantissa_bits)) != 0;
  double value = 0;
  if (exponent == (1 << format.exponent_bits) - 1) {
    value = mantissa ? NAN : INFINITY;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - format.bias() - format.mantissa_bits);
  } else {
    value = std::ldexp(mantissa + std::ldexp(1.0, format.mantissa_bits),
                       exponent - format.bias() - format.mantissa_bits);
  }
  return negative ? -value : value;
}

/// Rounded to nearest, ties to even (the default rounding of nearbyint).
uint32_t encode(Format format, double value) {
  const uint32_t sign_bit =
      std::signbit(value) ? 1u << (format.exponent_bits + format.mantissa_bits) : 0;
  const uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  if (std::isnan(value)) return sign_bit | infinity | (1u << (format.mantissa_bits - 1));
  const double size = std::abs(value);
  if (std::isinf(size)) return sign_bit | infinity;
  if (size == 0) return sign_bit;
  const int lowest = 1 - format.bias();
  const int exponent = std::max(std::ilogb(size), lowest);
  const double steps = std::nearbyint(std::ldexp(size, format.mantissa_bits - exponent));
  const double back = std::ldexp(steps, exponent - format.mantissa_bits);
  if (back >= std::ldexp(1.0, format.bias() + 1)) return sign_bit | infinity;
  const auto whole = static_cast<uint32_t>(steps);
  const auto field = static_cast<uint32_t>(exponent - lowest);
  return sign_bit | ((field << format.mantissa_bits) + whole);
}

constexpr Format kHalf{5, 10}, kBfloat{8, 7};

template <class T>
T read_as(const void* data, int64_t offset) {
  T value;
  std::memcpy(&value, static_cast<const T*>(data) + offset, sizeof value);
  return value;
}

template <class T>
void write_as(void* data, int64_t offset, T value) {
  std::memcpy(static_cast<T*>(data) + offset, &value, sizeof value);
}

/// What to subtract from w. h and h2 are the histories, updated in place.
double step_of(const UpdateRule& rule, const StepScalars& step, double g, double& h, double& h2) {
  const double rate = static_cast<double>(step.rate) * rule.lr_mult;
  const double mu = rule.momentum, mu2 = rule.momentum2, rho = rule.rms_decay, delta = rule.delta;
  switch (rule.rule) {
    case Rule::sgd:
      h = mu * h + rate * g;
      return h;
    case Rule::nesterov: {
      const double before = h;
      h = mu * h + rate * g;
      return (1 + mu) * h - mu * before;
    }
    case Rule::adagrad:
      h += g * g;
      return rate * g / (std::sqrt(h) + delta);
    case Rule::rmsprop:
      h = rho * h + (1 - rho) * g * g;
      return rate * g / (std::sqrt(h) + delta);
    case Rule::adadelta: {
      h = mu * h + (1 - mu) * g * g;
      const double d = g * std::sqrt((h2 + delta) / (h + delta));
      h2 = mu * h2 + (1 - mu) * d * d;
      return rate * d;
    }
    case Rule::adam:
      h = mu * h + (1 - mu) * g;
      h2 = mu2 * h2 + (1 - mu2) * g * g;
      return rate * step.adam_correction * h / (std::sqrt(h2) + delta);
  }
  return 0;
}

}  // namespace

double unary_value(Unary kind, const UnaryArgs& p, double x) {
  const double a = p.a, b = p.b, c = p.c;
  if (std::isnan(x)) return kind == Unary::threshold ? 0.0 : x;
  switch (kind) {
    case Unary::relu:
      return x > 0 ? x : a * x;
    case Unary::relu6:
      return x < 0 ? 0.0 : x > 6 ? 6.0 : x;
    case Unary::elu:
      return x > 0 ? x : a * std::expm1(x);
    case Unary::sigmoid:
      return sigmoid(x);
    case Unary::tanh:
      return std::tanh(x);
    case Unary::swish:
      return x * sigmoid(a * x);
    case Unary::bnll:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
    case Unary::absval:
      return std::abs(x);
    case Unary::power:
      return std::pow(b + a * x, c);
    case Unary::exp:
      return std::exp(b + a * x);
    case Unary::log:
      return c * std::log(b + a * x);
    case Unary::clip:
      return x < a ? a : x > b ? b : x;
    case Unary::threshold:
      return x > a ? 1.0 : 0.0;
  }
  return NAN;
}

double unary_slope(Unary kind, const UnaryArgs& p, double x) {
  const double a = p.a, b = p.b, c = p.c;
  switch (kind) {
    case Unary::relu:
      return x > 0 ? 1.0 : a;
    case Unary::relu6:
      return x > 0 && x < 6 ? 1.0 : 0.0;
    case Unary::elu:
      return x > 0 ? 1.0 : a * std::exp(x);
    case Unary::sigmoid:
      return sigmoid(x) * sigmoid(-x);
    case Unary::tanh:
      return 1 / (std::cosh(x) * std::cosh(x));
    case Unary::swish:
      return sigmoid(a * x) * (1 + a * x * sigmoid(-a * x));
    case Unary::bnll:
      return sigmoid(x);
    case Unary::absval:
      return sign(x);
    case Unary::power:
      return c == 0 ? 0.0 : a * c * std::pow(b + a * x, c - 1);
    case Unary::exp:
      return a * std::exp(b + a * x);
    case Unary::log:
      return a * c / (b + a * x);
    case Unary::clip:
      return x >= a && x <= b ? 1.0 : 0.0;
    case Unary::threshold:
      return 0.0;
  }
  return NAN;
}

double unary_slope_from_y(Unary kind, const UnaryArgs& p, double y) {
  switch (kind) {
    case Unary::relu:
      return y > 0 ? 1.0 : p.a;
    case Unary::relu6:
      return y > 0 && y < 6 ? 1.0 : 0.0;
    case Unary::elu:
      return y > 0 ? 1.0 : y + p.a;
    case Unary::sigmoid:
      return y * (1 - y);
    case Unary::tanh:
      return 1 - y * y;
    case Unary::exp:
      return p.a * y;
    default:
      fail("this formula's gradient needs x");
  }
}

double activate(const Act& act, double x) {
  return act.kind == ActKind::none ? x : unary_value(unary_of(act), unary_args_of(act), x);
}

double activation_slope(const Act& act, double y) {
  return act.kind == ActKind::none ? 1.0 : unary_slope_from_y(unary_of(act), unary_args_of(act), y);
}

void update(const UpdateRule& rule, const StepScalars& step, CTensor grad, Tensors state,
            Tensor master, Tensor weight) {
  for (int64_t i = 0; i < grad.count(); ++i) {
    const double w = load(master, i);
    const double regular = rule.l1 ? sign(w) : w;
    const double g = load(grad, i) * step.grad_scale + rule.decay * regular;
    double h = load(state[0], i);
    double h2 = history_count(rule.rule) == 2 ? load(state[1], i) : 0.0;
    const double after = w - step_of(rule, step, g, h, h2);
    store(h, state[0], i);
    if (history_count(rule.rule) == 2) store(h2, state[1], i);
    store(after, master, i);
    if (weight) store(after, weight, i);
  }
}

double load(CTensor t, int64_t offset) {
  switch (t.desc.dtype) {
    case DType::f64:
      return read_as<double>(t.data, offset);
    case DType::f32:
      return read_as<float>(t.data, offset);
    case DType::f16:
      return decode(kHalf, read_as<uint16_t>(t.data, offset));
    case DType::bf16:
      return decode(kBfloat, read_as<uint16_t>(t.data, offset));
    case DType::i32:
      return read_as<int32_t>(t.data, offset);
    case DType::u8:
      return read_as<uint8_t>(t.data, offset);
  }
  return NAN;
}

void store(double value, Tensor t, int64_t offset) {
  const auto whole = [&](double low, double high) {
    return std::isnan(value) ? 0.0 : std::min(std::max(std::nearbyint(value), low), high);
  };
  switch (t.desc.dtype) {
    case DType::f64:
      return write_as<double>(t.data, offset, value);
    case DType::f32:
      return write_as<float>(t.data, offset, static_cast<float>(value));
    case DType::f16:
      return write_as<uint16_t>(t.data, offset, static_cast<uint16_t>(encode(kHalf, value)));
    case DType::bf16:
      return write_as<uint16_t>(t.data, offset, static_cast<uint16_t>(encode(kBfloat, value)));
    case DType::i32:
      return write_as<int32_t>(t.data, offset,
                               static_cast<int32_t>(whole(-2147483648.0, 2147483647.0)));
    case DType::u8:
      return write_as<uint8_t>(t.data, offset, static_cast<uint8_t>(whole(0, 255)));
  }
}

}  // namespace crema::reference
