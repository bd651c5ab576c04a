// A net: a prototxt turned into a flat list of steps over planned memory. The passes (upgrade,
// filter, wire and infer, fuse, layout, memory plan) run in the constructor; forward and backward
// only walk the list.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "crema.pb.h"
#include "io/weights.h"
#include "layers/layer.h"
#include "ops/ops.h"

namespace crema {

struct NetOptions {
  Phase phase = TEST;  // the weakest wish: the net's own state.phase, where written, wins
  int level = 0;
  std::vector<std::string> stages;
  bool train = false;  // a backward will be asked for
  bool keep_all =
      false;  // every blob's data and gradient stays readable after forward and backward
  std::vector<std::string> keep;  // these blobs too (beside the net's outputs)
  bool fuse = true;
  bool force_nchw = false;         // the oracle layout
  std::optional<DType> precision;  // f32, bf16 or f16; nothing: as the net's fields say
  bool log = true;                 // Caffe's set-up lines
  uint64_t seed = 0;               // of fillers, dropout and data order
  bool recompute =
      false;  // as the net's own field: drop activations, compute them again in backward
  size_t memory_limit = 0;  // bytes that the net may take in all, with the solver's histories;
                            // 0: what the device has. Training recomputes where that helps to fit
  int histories = 0;        // tensors that the solver keeps for each gradient
  size_t bucket_bytes = size_t{8} << 20;  // of the parts in which backward(final) tells gradients
  int rank = 0, ranks = 1;
  std::string file = "net";  // named in errors where a layer has no source_location
};

/// One learnable (or statistics) parameter, stored once however many layers share it.
struct NetParam {
  std::string owner;  // layer name
  int layer = 0;      // of the owner
  int index = 0;      // among the owner's parameters
  float lr_mult = 1, decay_mult = 1;
  bool learnable = true;  // false: statistics
  bool needs_gradient = false;
  Tensor value, gradient;  // gradient empty unless the net trains
};

/// A blob that nobody reads: what training and testing display. values() gives its elements.
struct NetOutput {
  std::string name;
  float loss_weight = 0;
};

/// Told of a contiguous part of the gradients once nothing of this backward writes to it any more.
using GradientFinal = std::function<void(const Tensor& part)>;

/// Bytes of device memory by purpose, of this net alone: what it shares is counted by its owner.
struct MemoryReport {
  size_t activations = 0;  // the planned arena
  size_t unplanned = 0;    // the sum of all blobs and gradients: what a plan-free trainer takes
  size_t parameters = 0, gradients = 0, scratch = 0, saved = 0, state = 0, packed = 0;
  size_t plain = 0;    // what activations would be without recomputing
  int recomputed = 0;  // steps that backward runs again
};

/// Bytes that one step reads and writes when each of its tensors goes through memory once.
struct StepTraffic {
  double forward = 0, backward = 0;
};

class Net {
 public:
  /// Builds everything. shared_with: a net whose parameters (by layer name and index, equal shapes)
  /// are used instead of own ones, and whose arena is used too; it must outlive this net. Throws
  /// Error with every wiring and shape mistake.
  Net(const NetParameter& param, const NetOptions& options, std::shared_ptr<Ops> ops,
      Net* shared_with = nullptr);
  ~Net();
  Net(const Net&) = delete;
  Net& operator=(const Net&) = delete;

  /// One forward pass; returns the total weighted loss. Waits for the device. Throws Error for a
  /// fault in the data.
  float forward();
  /// One backward pass after forward. The first call after clear_gradients() overwrites parameter
  /// gradients, further ones add to them.
  void backward();
  /// The same; final() is called while it is under way, with every part of every group's gradient
  /// once, in an order and in parts of about NetOptions::bucket_bytes that the net alone decides.
  /// What it enqueues comes between the calls of backward, and must leave the ops able to record.
  void backward(const GradientFinal& final);
  /// forward() and a backward, which is enqueued before the loss is read, so that the device works
  /// on while the host waits for it. final: as backward(final), or empty. Where the loss is not
  /// finite, gradients may be or may not be computed.
  float forward_backward(const GradientFinal& final = {});
  /// Marks parameter gradients as not there; costs nothing.
  void clear_gradients();

  const std::string& name() const;
  Ops& ops() const;
  Phase phase() const;
  /// The filtered, upgraded net with Caffe's Split layers put in: what a caffemodel holds, without
  /// blobs.
  NetParameter to_proto() const;

  // ---- Layers and blobs ----
  int layer_count() const;
  Layer& layer(int index) const;
  const std::string& layer_name(int index) const;
  /// Of layers with one name, the one with parameters, else the first; -1 when there is none.
  int layer_index(const std::string& name) const;
  /// nullptr when there is no such layer.
  Layer* find_layer(const std::string& name) const;
  std::vector<std::string> blob_names() const;  // last version of each name, in order of production
  bool has_blob(const std::string& name) const;
  Shape blob_shape(const std::string& name) const;  // throws Error where there is no such blob
  /// Copies a blob's data in N,C,H,W order. Throws Error when it was not kept (see NetOptions) or
  /// there is none.
  std::vector<float> blob_values(const std::string& name) const;
  /// The gradient of a blob in N,C,H,W order; nothing when it has none (nothing that learns or is
  /// forced depends on it). Of an input that a layer works on in place: of what came from outside.
  /// Throws Error where there is no such blob.
  std::optional<std::vector<float>> blob_gradient(const std::string& name) const;
  /// Whether something that learns or is forced lies before a blob, whether or not a loss reaches
  /// it.
  bool wants_gradient(const std::string& name) const;
  /// Sets the data of a blob that an Input layer makes, N,C,H,W order. Throws Error for another
  /// blob and where values are not as many as the shape has.
  void set_blob(const std::string& name, const std::vector<float>& values);
  const std::vector<std::string>& inputs() const;  // blobs of Input layers
  const std::vector<NetOutput>& outputs() const;   // alphabetical, as Caffe lists them
  /// All output values of the last forward, in the order of outputs(), element by element.
  std::vector<std::vector<float>> output_values() const;

  // ---- Parameters ----
  /// Each parameter once, in Caffe's order: owners by layer, then index.
  const std::vector<NetParam>& params() const;
  /// Groups of learnable parameters whose values (and gradients) are one contiguous tensor.
  struct Group {
    float lr_mult, decay_mult;
    Tensor value, gradient;
    std::vector<int> members;  // indices into params(), in memory order
  };
  const std::vector<Group>& groups() const;
  std::vector<float> param_values(int index) const;    // by place in params()
  std::vector<float> param_gradient(int index) const;  // zeros where none is computed
  void set_param_values(int index, const std::vector<float>& values);
  /// The place in params() of parameter `index` of layer `layer` (shared ones give the owner's);
  /// -1: none.
  int param_of(int layer, int index) const;
  /// Must follow any change of parameter values: layers repack and refold. Also reaches nets that
  /// share them.
  void params_changed();

  /// Copies weights by layer name, as Caffe does: unknown source layers are logged ("Ignoring
  /// source layer X"), a blob count or shape that differs is an Error with both. Returns how many
  /// layers were filled.
  int load_weights(const WeightsFile& weights, const std::string& file);
  /// The parameters of to_proto().layer(index), for write_weights_*; with gradients as diff where
  /// wanted. owned_only: shared parameters of another owner are left missing (HDF5 files).
  std::vector<HostBlob> saved_blobs(int index, bool with_gradients, bool owned_only) const;

  // ---- Data, randomness, diagnosis ----
  uint64_t forward_count() const;
  void set_forward_count(uint64_t count);
  /// (layer name, records handed out) of each data layer; seek() of one.
  std::vector<std::pair<std::string, uint64_t>> cursors() const;
  void seek(const std::string& layer, uint64_t records);
  /// Runs the layers of the last forward again, data layers left out, and names the first blob that
  /// is not finite: "layer "fc1" (InnerProduct), top "fc1"". Empty when all are finite.
  std::string find_not_finite();
  /// Runs one layer forward or backward alone: for `crema time`.
  void forward_layer(int index);
  void backward_layer(int index);
  bool layer_needs_backward(int index) const;
  /// The layers whose work step `index` does: its own and those fused into it; none where another
  /// step does its work.
  std::vector<std::string> layers_of_step(int index) const;
  StepTraffic traffic_of_step(int index) const;
  const MemoryReport& memory() const;
  /// The type of the blobs that are 16-bit floats; f32 where none is.
  DType precision() const;
  /// The plan as a table: steps, layouts, where each blob lies.
  std::string describe_plan() const;
  /// Mean absolute values of data (and gradients), Caffe's debug_info lines, to the log.
  void log_debug_forward() const;
  void log_debug_backward() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace crema
