// Guarded memory, comparison and the three tests of every row.
#include "ops/ops_harness.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/philox.h"
#include "reference/indexing.h"
#include "reference/plans.h"
#include "reference/reference.h"

namespace crema {
namespace {

constexpr size_t kGuard = 256;
constexpr uint8_t kGuardByte = 0xA5, kPoison = 0xFF;

TensorDesc bytes_desc(size_t bytes) {
  return {.shape = {static_cast<int64_t>(bytes)}, .dtype = DType::u8};
}

uint8_t* at(const Buffer& buffer, size_t offset) {
  return static_cast<uint8_t*>(buffer.get()) + offset;
}

/// values in the order and element type of a tensor's memory.
std::vector<uint8_t> laid_out(const TensorDesc& desc, const std::vector<float>& values) {
  assert(values.size() == static_cast<size_t>(desc.count()));
  std::vector<uint8_t> bytes(desc.bytes() + 1);
  if (desc.dtype == DType::f32 && desc.layout == Layout::nchw) {
    if (!values.empty()) std::memcpy(bytes.data(), values.data(), desc.bytes());
    return bytes;
  }
  const std::vector<int64_t> places = reference::offsets(desc);
  for (size_t i = 0; i < places.size(); ++i) {
    reference::store(values[i], {bytes.data(), desc}, places[i]);
  }
  return bytes;
}

bool near(float actual, float expected, float margin) {
  if (std::isnan(actual) || std::isnan(expected)) return std::isnan(actual) && std::isnan(expected);
  return actual == expected || std::abs(actual - expected) <= margin;
}

void compare_values(const std::string& name, const std::vector<float>& actual,
                    const std::vector<float>& expected, const Tolerance& tolerance) {
  ASSERT_EQ(actual.size(), expected.size()) << name;
  float largest = tolerance.floor;
  for (const float v : expected) {
    if (std::isfinite(v)) largest = std::max(largest, std::abs(v));
  }
  int wrong = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const float scale = tolerance.each ? std::max(tolerance.floor, std::abs(expected[i])) : largest;
    if (near(actual[i], expected[i], tolerance.relative * scale) || ++wrong > 3) continue;
    ADD_FAILURE() << name << ": element " << i << " of " << expected.size() << " is " << actual[i]
                  << ", expected " << expected[i] << " (magnitude " << scale << ")";
  }
  EXPECT_EQ(wrong, 0) << name << ": elements wrong, of " << expected.size();
}

}  // namespace

void Results::put(const std::string& name, const std::vector<float>& values) {
  const auto [it, first] = values_.emplace(name, values);
  if (first) return;
  ASSERT_EQ(it->second.size(), values.size()) << name;
  if (values.empty()) return;
  EXPECT_EQ(0, std::memcmp(it->second.data(), values.data(), values.size() * sizeof(float)))
      << name << ": other bits when done again";
}

void compare(const Results& actual, const Results& expected, const Tolerance& tolerance) {
  ASSERT_EQ(actual.all().size(), expected.all().size());
  for (const auto& [name, values] : expected.all()) {
    const auto it = actual.all().find(name);
    ASSERT_NE(it, actual.all().end()) << name << " was not written";
    compare_values(name, it->second, values, tolerance);
  }
}

Side::Piece& Side::add(const char* what, size_t bytes) {
  Piece piece;
  piece.what = str(what, ' ', pieces_.size());
  piece.bytes = bytes;
  const size_t whole = bytes + 2 * kGuard;
  piece.buffer = ops_->allocate(whole, Memory::device);
  const std::vector<uint8_t> guards(whole, kGuardByte);
  ops_->upload(guards.data(), {piece.buffer.get(), bytes_desc(whole)});
  pieces_.push_back(std::move(piece));
  return pieces_.back();
}

Tensor Side::tensor(Piece& piece, const TensorDesc& desc) const {
  return {at(piece.buffer, kGuard), desc};
}

CTensor Side::input(const TensorDesc& desc, const std::vector<float>& values) {
  const Tensor t = inout(desc, values);
  pieces_.back().constant = true;
  pieces_.back().content = laid_out(desc, values);
  return t;
}

Tensor Side::inout(const TensorDesc& desc, const std::vector<float>& values) {
  const Tensor t = tensor(add("tensor", desc.bytes()), desc);
  set(t, values);
  return t;
}

Tensor Side::output(const TensorDesc& desc) {
  const Tensor t = tensor(add("output", desc.bytes()), desc);
  const std::vector<uint8_t> poison(desc.bytes() + 1, kPoison);
  ops_->upload(poison.data(), t);
  return t;
}

void Side::set(CTensor t, const std::vector<float>& values) {
  const std::vector<uint8_t> bytes = laid_out(t.desc, values);
  ops_->upload(bytes.data(), {const_cast<void*>(t.data), t.desc});
  for (Piece& piece : pieces_) {
    if (piece.constant && at(piece.buffer, kGuard) == t.data) piece.content = bytes;
  }
}

std::vector<float> Side::read(CTensor t) {
  if (t.desc.dtype == DType::f32 && t.desc.layout == Layout::nchw) {
    std::vector<float> values(static_cast<size_t>(t.count()) + 1);
    ops_->download(t, values.data());
    values.pop_back();
    return values;
  }
  std::vector<uint8_t> bytes(t.desc.bytes() + 1);
  ops_->download(t, bytes.data());
  std::vector<float> values;
  for (const int64_t place : reference::offsets(t.desc)) {
    values.push_back(static_cast<float>(reference::load({bytes.data(), t.desc}, place)));
  }
  return values;
}

Tensor Side::scratch(const char* what, size_t bytes) {
  if (bytes == 0) return {};
  const Tensor t = tensor(add(what, bytes), bytes_desc(bytes));
  workspaces_.push_back(t);
  const std::vector<uint8_t> poison(bytes, kPoison);
  ops_->upload(poison.data(), t);
  return t;
}

Workspace Side::workspace(const Needs& needs) {
  for (const Tensor& former : workspaces_) {
    const std::vector<uint8_t> poison(former.desc.bytes(), kPoison);
    ops_->upload(poison.data(), former);
  }
  return {scratch("scratch", needs.scratch), scratch("saved", needs.saved),
          scratch("state", needs.state), scratch("packed", needs.packed)};
}

void Side::check_guard(const Piece& piece, size_t offset, size_t bytes) {
  std::vector<uint8_t> seen(bytes);
  ops_->download({at(piece.buffer, offset), bytes_desc(bytes)}, seen.data());
  const auto bad =
      std::find_if(seen.begin(), seen.end(), [](uint8_t b) { return b != kGuardByte; });
  EXPECT_EQ(bad, seen.end()) << piece.what << ": written outside, "
                             << (offset == 0 ? "before its begin" : "behind its end");
}

void Side::check_memory() {
  ops_->synchronize();
  for (const Piece& piece : pieces_) {
    check_guard(piece, 0, kGuard);
    check_guard(piece, kGuard + piece.bytes, kGuard);
    if (!piece.constant) continue;
    std::vector<uint8_t> seen(piece.bytes + 1);
    ops_->download({at(piece.buffer, kGuard), bytes_desc(piece.bytes)}, seen.data());
    EXPECT_EQ(0, std::memcmp(seen.data(), piece.content.data(), piece.bytes))
        << piece.what << ": an input was written to";
  }
}

void check_row(const Row& row, const std::shared_ptr<Ops>& ops) {
  Results expected;
  Side oracle(make_reference_ops());
  row.play(oracle, Layout::nchw, expected);
  oracle.check_memory();
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    if (layout == Layout::nchw ? ops == nullptr : !row.both_layouts) continue;
    SCOPED_TRACE(layout == Layout::nchw ? "nchw" : "nhwc");
    try {
      Results actual;
      Side side(ops ? ops : make_reference_ops());
      row.play(side, layout, actual);
      side.check_memory();
      compare(actual, expected, row.tolerance);
    } catch (const std::exception& error) {
      ADD_FAILURE() << "thrown: " << error.what();
    }
  }
}

std::shared_ptr<Ops> cpu_ops() {
  static const std::shared_ptr<Ops> ops = make_ops({});
  return ops;
}

std::vector<float> random_values(int64_t count, uint64_t key, float low, float high) {
  RandomStream random(key);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = low + (high - low) * static_cast<float>(random.uniform());
  return values;
}

std::vector<float> distinct_values(int64_t count, uint64_t key) {
  RandomStream random(key);
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 2 * static_cast<float>(i) / static_cast<float>(count) - 1;
    std::swap(values[i], values[random.below(i + 1)]);
  }
  return values;
}

std::vector<float> sprinkle(std::vector<float> values, const std::vector<float>& special,
                            uint64_t key) {
  RandomStream random(key);
  for (const float v : special) values[random.below(values.size())] = v;
  return values;
}

Grad make_grad(Side& side, const TensorDesc& desc, Write how) {
  if (how == Write::overwrite) return {side.output(desc), how};
  return {side.inout(desc, random_values(desc.count(), 4711)), how};
}

void both_writes(Side& side, Results& results, const std::string& name, const TensorDesc& desc,
                 const std::function<void(const Grad&)>& f) {
  for (const Write how : {Write::overwrite, Write::accumulate}) {
    const Grad grad = make_grad(side, desc, how);
    f(grad);
    results.put(how == Write::overwrite ? name : name + " added", side.read(grad.t));
  }
}

DType type_on(Side& side, DType wanted) {
  return side.ops().why_not_precision(wanted) ? DType::f32 : wanted;
}

std::vector<float> rounded_values(std::vector<float> values, DType type) {
  const TensorDesc desc{.shape = {static_cast<int64_t>(values.size())}, .dtype = type};
  std::vector<uint8_t> bytes(desc.bytes() + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    reference::store(values[i], {bytes.data(), desc}, place);
    values[i] = static_cast<float>(reference::load({bytes.data(), desc}, place));
  }
  return values;
}

SpatialDims dims_of(const std::vector<int64_t>& values, int axes, int64_t otherwise) {
  SpatialDims dims{.axes = axes};
  for (int axis = 0; axis < axes; ++axis) {
    const auto a = static_cast<size_t>(axis);
    dims[axis] = values.empty() ? otherwise : values.size() == 1 ? values[0] : values[a];
  }
  return dims;
}

TEST_P(OpsRows, Reference) { check_row(GetParam(), nullptr); }

TEST_P(OpsRows, Cpu) {
  if (const auto reason = cpu_ops()->why_not_precision(GetParam().needs)) GTEST_SKIP() << *reason;
  check_row(GetParam(), cpu_ops());
}

TEST_P(OpsRows, Gpu) {
  if (!gpu_present()) GTEST_SKIP() << "no GPU here";
  static const std::shared_ptr<Ops> ops = make_ops({.gpu = true});
  check_row(GetParam(), ops);
}

}  // namespace crema
