// A kernel's arguments, looked through for pointers before the kernel runs. Included by
// cuda_runtime.h.
#pragma once

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda_runtime.h"

namespace crema::cuda_sim {

/// Eight bytes of an argument that may be an address; surely one where the parameter is a pointer.
struct ArgumentWord {
  uintptr_t value = 0;
  bool is_pointer = false;
  int argument = 0;
  size_t offset = 0;
};

cudaError_t launch_checked(dim3 grid, dim3 block, size_t dynamic_shared_bytes, cudaStream_t stream,
                           std::function<void()> body, std::vector<ArgumentWord> words,
                           const void* kernel);

template <class T>
void add_words(T value, int argument, std::vector<ArgumentWord>& words) {
  if constexpr (std::is_pointer_v<T>) {
    words.push_back({reinterpret_cast<uintptr_t>(value), true, argument, 0});
  } else if constexpr (std::is_class_v<T> && std::is_trivially_copyable_v<T>) {
#if defined(__GNUC__) && !defined(__clang__)
    __builtin_clear_padding(&value);  // padding may hold a part of an old address
#endif
    for (size_t offset = 0; offset + sizeof(uintptr_t) <= sizeof(T); offset += sizeof(uintptr_t)) {
      uintptr_t word = 0;
      std::memcpy(&word, reinterpret_cast<const char*>(&value) + offset, sizeof(word));
      words.push_back({word, false, argument, offset});
    }
  }
}

template <class... Params, class... Args>
cudaError_t launch_kernel(void (*kernel)(Params...), dim3 grid, dim3 block,
                          size_t dynamic_shared_bytes, cudaStream_t stream, const Args&... args) {
  std::vector<ArgumentWord> words;
  int argument = 0;
  (add_words<std::remove_cv_t<Params>>(static_cast<Params>(args), argument++, words), ...);
  std::tuple<std::remove_cv_t<Params>...> held{static_cast<Params>(args)...};
  return launch_checked(
      grid, block, dynamic_shared_bytes, stream,
      [kernel, held = std::move(held)] { std::apply(kernel, held); }, std::move(words),
      reinterpret_cast<const void*>(kernel));
}

}  // namespace crema::cuda_sim
