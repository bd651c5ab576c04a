// What the plans share in using oneDNN: memory descriptors of our tensors, and calls whose argument
// lists are made at set-up, so that running one only sets pointers. The library's headers appear
// in this folder only.
#pragma once

#include <cassert>
#include <cstring>
#include <dnnl.hpp>
#include <vector>

#include "ops/ops.h"

namespace crema {

/// The library's handles; one per Ops.
struct DnnlContext {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

inline bool is_reference(const char* implementation) {
  return std::strncmp(implementation, "ref", 3) == 0;
}

/// Strides of shape's axes in a layout, counted in elements.
dnnl::memory::dims strides_of(const dnnl::memory::dims& dims, Layout layout);
/// dims as the library's, a 1-D picture becoming one of height 1.
dnnl::memory::dims picture_dims(const Shape& shape);
constexpr auto kF32 = dnnl::memory::data_type::f32;
/// f32 or bf16.
inline dnnl::memory::data_type data_type_of(DType dtype) {
  return dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : kF32;
}
inline dnnl::memory::desc plain_desc(const dnnl::memory::dims& dims, Layout layout,
                                     dnnl::memory::data_type type = kF32) {
  return {dims, type, strides_of(dims, layout)};
}
inline dnnl::memory::desc any_desc(const dnnl::memory::dims& dims,
                                   dnnl::memory::data_type type = kF32) {
  return {dims, type, dnnl::memory::format_tag::any};
}

/// The attribute that every primitive here has: its scratchpad is ours.
inline dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

/// What is applied to y in the library's kernel.
inline void append_act(dnnl::post_ops& ops, const Act& act) {
  switch (act.kind) {
    case ActKind::none:
      return;
    case ActKind::relu:
      return ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_relu, act.slope, 0.0f);
    case ActKind::relu6:
      return ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_clip, 0.0f, 6.0f);
    case ActKind::elu:
      return ops.append_eltwise(1.0f, dnnl::algorithm::eltwise_elu, act.slope, 0.0f);
  }
}

/// A primitive with its arguments, run through the library's C functions: the C++ one makes a new
/// list each time.
class DnnlCall {
 public:
  DnnlCall() = default;
  DnnlCall(const DnnlContext& context, const dnnl::primitive& primitive)
      : context_(&context), primitive_(primitive) {}
  explicit operator bool() const { return context_ != nullptr; }

  /// Declares an argument; its memory comes with set().
  void declare(int argument, const dnnl::memory::desc& desc) {
    memories_.push_back({desc, context_->engine, DNNL_MEMORY_NONE});
    arguments_.push_back({argument, memories_.back().get()});
  }
  void set(int argument, const void* data) {
    assert(takes(argument));
    memories_[place_of(argument)].set_data_handle(const_cast<void*>(data));  // NOLINT
  }
  bool takes(int argument) const { return place_of(argument) < arguments_.size(); }
  void run() {
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(primitive_.get(), context_->stream.get(),
                               static_cast<int>(arguments_.size()), arguments_.data()),
        "a step of oneDNN failed");
  }

 private:
  size_t place_of(int argument) const {
    size_t i = 0;
    while (i < arguments_.size() && arguments_[i].arg != argument) ++i;
    return i;
  }

  const DnnlContext* context_ = nullptr;
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// A reorder; adds to its destination when accumulate is set.
DnnlCall make_reorder(const DnnlContext& context, const dnnl::memory::desc& from,
                      const dnnl::memory::desc& to, bool accumulate);

/// Lays out parts of a workspace one after another, each 64-byte aligned.
class Parts {
 public:
  /// The offset of a new part.
  size_t add(size_t bytes) {
    const size_t at = total_;
    total_ += (bytes + 63) / 64 * 64;
    return at;
  }
  size_t total() const { return total_; }

 private:
  size_t total_ = 0;
};

inline float* part(const Tensor& memory, size_t offset) {
  return reinterpret_cast<float*>(static_cast<char*>(memory.data) + offset);
}

}  // namespace crema
