// Matrix products through cuBLASLt: the one file that calls it is gemm.cpp. Problems are planned
// once and kept.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "ops/cuda/cuda_api.h"
#include "ops/ops.h"

namespace crema::cuda {

/// c [m,n] (+)= alpha * op(a) * op(b), row-major, then + bias[column] and relu where asked for.
struct GemmCall {
  const void *a, *b;
  void* c;
  int64_t m, n, k;
  bool ta = false, tb = false;
  DType input = DType::f32, output = DType::f32;
  float alpha = 1;
  Write how = Write::overwrite;
  const float* bias = nullptr;
  bool relu = false;
};

class Gemm {
 public:
  /// allow_tf32: products of f32 round their inputs to 10 bits of mantissa and use tensor cores.
  Gemm(const Stream& stream, bool allow_tf32);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// Enqueues the product. Throws Error where the library refuses the problem.
  void run(const GemmCall& call);

 private:
  struct Problem;
  struct Handle;
  Problem& problem_of(const GemmCall& call);

  const Stream& stream_;
  bool allow_tf32_;
  Buffer workspace_;
  std::unique_ptr<Handle> handle_;
  std::unordered_map<std::string, std::unique_ptr<Problem>> problems_;
};

}  // namespace crema::cuda
