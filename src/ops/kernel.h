// Functors: what is computed element by element is a plain struct whose members are pointers and
// numbers.
//   operator()(int64_t i) const                        element i, no cooperation between indices:
//   run() float operator()(int64_t row, int64_t col) const void done(int64_t row, float sum) const
//   sums over each row in a fixed order: run_rows()
// The structs in ops/kernels/*.h are found by CMake ("struct Name {" at column 0, in namespace
// crema::CREMA_ISA) and compiled per device and per instruction set, each in a namespace of its
// own, so that the linker never mixes them.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/philox.h"

#ifndef CREMA_ISA
#define CREMA_ISA isa_baseline
#endif

namespace crema {
inline namespace CREMA_ISA {}

/// What a kernel found wrong with its data (a label out of range). The first one stays until it is
/// taken.
struct Fault {
  int32_t set = 0;
  int32_t layer = 0;  // index of the layer in its net
  int64_t index = 0;  // which sample or element
  float value = 0;    // what was found there
};

/// The functor's bare name, the key by which a backend finds its compiled form.
template <class F>
constexpr std::string_view kernel_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text.remove_prefix(text.find("F = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

namespace CREMA_ISA {

/// Quotient and remainder by a number fixed at set-up, without a division; for 0 <= i < 2^31 and 1
/// <= divisor < 2^31 (Granlund and Montgomery, "Division by invariant integers using
/// multiplication", PLDI 1994). 0 is taken as 1: an empty blob has no index to divide.
class Divider {
 public:
  Divider() = default;
  explicit Divider(int64_t divisor) : divisor_(divisor > 0 ? static_cast<uint32_t>(divisor) : 1) {
    while ((uint64_t{1} << shift_) < divisor_) ++shift_;
    multiplier_ = static_cast<uint32_t>(
        ((uint64_t{1} << 32) * ((uint64_t{1} << shift_) - divisor_)) / divisor_ + 1);
  }
  CREMA_BOTH uint32_t quotient(uint32_t i) const {
    const uint32_t high = static_cast<uint32_t>((uint64_t{i} * multiplier_) >> 32);
    return static_cast<uint32_t>((uint64_t{high} + i) >> shift_);
  }
  CREMA_BOTH uint32_t remainder(uint32_t i) const { return i - quotient(i) * divisor_; }
  CREMA_BOTH uint32_t divisor() const { return divisor_; }

 private:
  uint32_t divisor_ = 1, multiplier_ = 1, shift_ = 0;
};

}  // namespace CREMA_ISA
}  // namespace crema
