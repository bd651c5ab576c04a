// The table of functors; its names come from CMake.
#include "reference/kernel_table.h"

#include <map>

#include "base/error.h"
#include "kernel_includes.inc"
#include "ops/ops.h"

namespace crema::reference {
namespace {

using LaunchFunction = void (*)(const void*, int64_t);
using ReduceFunction = void (*)(const void*, int64_t, int64_t);

class Table {
 public:
  Table(){
#include "kernel_names.inc"
  } std::map<std::string_view, LaunchFunction> launches;
  std::map<std::string_view, ReduceFunction> reductions;

 private:
  template <class F>
  void add() {
    if constexpr (requires(const F& f) { f.done(int64_t{}, 0.0f); }) {
      reductions[kernel_name<F>()] = [](const void* functor, int64_t rows, int64_t cols) {
        const F& f = *static_cast<const F*>(functor);
        for (int64_t row = 0; row < rows; ++row) {
          double sum = 0;
          for (int64_t col = 0; col < cols; ++col) sum += f(row, col);
          f.done(row, static_cast<float>(sum));
        }
      };
    } else if constexpr (requires(const F& f) { f(int64_t{}); }) {
      launches[kernel_name<F>()] = [](const void* functor, int64_t n) {
        const F& f = *static_cast<const F*>(functor);
        for (int64_t i = 0; i < n; ++i) f(i);
      };
    }
  }
};

const Table& table() {
  static const Table table;
  return table;
}

template <class Map>
auto find(const Map& map, std::string_view name) {
  const auto it = map.find(name);
  require(it != map.end(), "no functor ", name, " in src/ops/kernels");
  return it->second;
}

}  // namespace

void launch_kernel(std::string_view name, const void* functor, int64_t n) {
  find(table().launches, name)(functor, n);
}
void reduce_kernel(std::string_view name, const void* functor, int64_t rows, int64_t cols) {
  find(table().reductions, name)(functor, rows, cols);
}

}  // namespace crema::reference
