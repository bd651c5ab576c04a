// One harness for every operation: a row runs once on the oracle and once on each Ops that was
// built, and all that it wrote is compared. A Side guards the memory: outputs hold NaN beforehand,
// bytes beside every tensor must stay as they were, and so must inputs.
//
// A family's file has a struct of fields (its rows), a function that plays a row on a Side, and
//   INSTANTIATE_TEST_SUITE_P(Conv, OpsRows, testing::ValuesIn(rows()), row_name);
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/str.h"
#include "ops/ops.h"

namespace crema {

/// What a row wrote, by name, in N,C,H,W order.
class Results {
 public:
  /// Putting a name again requires the same bits as the first time.
  void put(const std::string& name, const std::vector<float>& values);
  const std::map<std::string, std::vector<float>>& all() const { return values_; }

 private:
  std::map<std::string, std::vector<float>> values_;
};

/// How near two results must be: within relative * the largest magnitude of the expected values, or
/// (each) * every value's own; a magnitude below floor counts as floor.
struct Tolerance {
  float relative = 2e-5f;
  float floor = 1e-4f;
  bool each = false;
};

/// Fails unless both have the same names and values as near as that; NaN and infinities must stand
/// at the same places.
void compare(const Results& actual, const Results& expected, const Tolerance& tolerance);

/// One Ops and the tensors of one row on it.
class Side {
 public:
  explicit Side(std::shared_ptr<Ops> ops) : ops_(std::move(ops)) {}
  Ops& ops() { return *ops_; }

  /// A tensor that holds values (given in N,C,H,W order); must not be written to.
  CTensor input(const TensorDesc& desc, const std::vector<float>& values);
  /// One that holds values and may be written to.
  Tensor inout(const TensorDesc& desc, const std::vector<float>& values);
  /// One full of NaN (integers: of 0xFF bytes).
  Tensor output(const TensorDesc& desc);
  /// New values for a tensor.
  void set(CTensor tensor, const std::vector<float>& values);
  /// What a tensor holds, in N,C,H,W order. Waits for the queue.
  std::vector<float> read(CTensor tensor);
  /// Workspaces full of 0xFF bytes; the former one is filled with them too, as if the arena had
  /// moved.
  Workspace workspace(const Needs& needs);
  /// Fails where a guard byte or an input has changed.
  void check_memory();

 private:
  struct Piece {
    std::string what;
    Buffer buffer;
    size_t bytes = 0;
    bool constant = false;
    std::vector<uint8_t> content{};  // of a constant one
  };
  Piece& add(const char* what, size_t bytes);
  Tensor tensor(Piece& piece, const TensorDesc& desc) const;
  Tensor scratch(const char* what, size_t bytes);
  void check_guard(const Piece& piece, size_t offset, size_t bytes);

  std::shared_ptr<Ops> ops_;
  std::vector<Piece> pieces_;
  std::vector<Tensor> workspaces_;
};

/// A problem with a name, and how it is played.
struct Row {
  std::string name;
  std::function<void(Side&, Layout, Results&)> play;
  Tolerance tolerance{};
  bool both_layouts = true;
  DType needs = DType::f32;  // on devices that have it only
};

/// The type of a row's tensors on one side: the oracle knows no 16-bit ones.
DType type_on(Side& side, DType wanted);
/// Values that a 16-bit type holds exactly, so that both sides begin with the same.
std::vector<float> rounded_values(std::vector<float> values, DType type);
inline std::string row_name(const testing::TestParamInfo<Row>& info) { return info.param.name; }
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

/// Plays the row on ops, in nchw and nhwc, against the oracle in nchw. No ops: the oracle against
/// itself.
void check_row(const Row& row, const std::shared_ptr<Ops>& ops);

/// The fixture of every row: OpsRows.Reference (nhwc against nchw), OpsRows.Cpu, OpsRows.Gpu
/// (skipped without one).
class OpsRows : public testing::TestWithParam<Row> {};

/// The CPU's Ops, made once.
std::shared_ptr<Ops> cpu_ops();

// ---- Values ----

/// Uniform in [low, high), a function of key.
std::vector<float> random_values(int64_t count, uint64_t key, float low = -1, float high = 1);
/// All different: a shuffled grid over [-1, 1).
std::vector<float> distinct_values(int64_t count, uint64_t key);
/// Mixes special values into values at random places.
std::vector<float> sprinkle(std::vector<float> values, const std::vector<float>& special,
                            uint64_t key);

/// Calls f with a gradient of that desc: once to be overwritten (result name), once to be added to
/// (name + " added").
void both_writes(Side& side, Results& results, const std::string& name, const TensorDesc& desc,
                 const std::function<void(const Grad&)>& f);

/// A gradient to be overwritten, or (with what it holds before) to be added to.
Grad make_grad(Side& side, const TensorDesc& desc, Write how);

/// A, B or {}: one value for all axes, one per axis, or the default.
SpatialDims dims_of(const std::vector<int64_t>& values, int axes, int64_t otherwise);

}  // namespace crema
