// Shape: up to 32 sizes, outermost first; always N,C,H,W for pictures, whatever the order in
// memory. All arithmetic is 64-bit. No allocation, so shapes and tensors may be copied inside an
// iteration.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <ostream>
#include <string>
#include <vector>

namespace crema {

constexpr int kMaxAxes = 32;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims);
  explicit Shape(const std::vector<int64_t>& dims);

  int axes() const { return axes_; }
  int64_t operator[](int axis) const { return dims_[axis]; }
  int64_t& operator[](int axis) { return dims_[axis]; }
  /// Appends one axis. Throws Error beyond kMaxAxes.
  void push_back(int64_t dim);
  /// Product of all sizes; 1 for a scalar (no axes).
  int64_t count() const { return count(0, axes_); }
  /// Product of the sizes of axes [from, to).
  int64_t count(int from, int to) const;
  int64_t count(int from) const { return count(from, axes_); }
  /// axis counted from the end when negative. Throws Error when there is no such axis.
  int canonical(int axis) const;
  /// Axes [from, to) as a shape of their own.
  Shape slice(int from, int to) const;
  std::vector<int64_t> to_vector() const { return {begin(), end()}; }
  const int64_t* begin() const { return dims_.data(); }
  const int64_t* end() const { return dims_.data() + axes_; }
  /// Size of an axis, 1 for axes beyond the last: the reading of Caffe's num/channels/height/width.
  int64_t dim_or_one(int axis) const { return axis < axes_ ? dims_[axis] : 1; }

  friend bool operator==(const Shape& a, const Shape& b);
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }
  /// "2 3 4 5"; "scalar" where there are no axes.
  friend std::ostream& operator<<(std::ostream& out, const Shape& shape);

 private:
  int axes_ = 0;
  std::array<int64_t, kMaxAxes> dims_{};
};

using Shapes = std::vector<Shape>;

}  // namespace crema
