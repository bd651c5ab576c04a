// Shape: bounds are checked where a file's numbers come in (push_back, canonical), not at each
// access.
#include "base/shape.h"

#include <algorithm>

#include "base/error.h"

namespace crema {

Shape::Shape(std::initializer_list<int64_t> dims) {
  for (int64_t dim : dims) push_back(dim);
}

Shape::Shape(const std::vector<int64_t>& dims) {
  for (int64_t dim : dims) push_back(dim);
}

void Shape::push_back(int64_t dim) {
  require(axes_ < kMaxAxes, "a blob may have at most ", kMaxAxes, " axes");
  dims_[axes_++] = dim;
}

int64_t Shape::count(int from, int to) const {
  int64_t product = 1;
  bool is_beyond = false;
  for (int i = from; i < to; ++i) {
    if (dims_[i] == 0) return 0;
    is_beyond = __builtin_mul_overflow(product, dims_[i], &product) || is_beyond;
  }
  return is_beyond ? INT64_MAX : product;
}

int Shape::canonical(int axis) const {
  require(axis >= -axes_ && axis < axes_, "axis ", axis, " is out of range for a blob with ", axes_,
          " axes (shape ", *this, ")");
  return axis < 0 ? axis + axes_ : axis;
}

Shape Shape::slice(int from, int to) const {
  Shape part;
  for (int i = from; i < to; ++i) part.push_back(dims_[i]);
  return part;
}

bool operator==(const Shape& a, const Shape& b) {
  return a.axes_ == b.axes_ && std::equal(a.begin(), a.end(), b.begin());
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) {
  if (shape.axes_ == 0) return out << "scalar";
  for (int i = 0; i < shape.axes_; ++i) out << (i ? " " : "") << shape.dims_[i];
  return out;
}

}  // namespace crema
