// The inside of Net, shared by its source files: the graph after all passes, the memory it lies in,
// and the steps.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "net/batch_norm_weights.h"
#include "net/gradient_buckets.h"
#include "net/graph.h"
#include "net/memory_plan.h"
#include "net/net.h"
#include "net/recompute.h"
#include "net/saved.h"
#include "ops/replay.h"

namespace crema {

/// Activation memory that a train net and its test nets share: only one of them runs at a time.
struct Arena {
  Buffer memory;
  size_t bytes = 0;
  int version = 0;  // counts moves: nets rebind when theirs is older
};

/// One node with every argument of its calls ready.
struct Step {
  std::vector<CTensor> bottoms, tops_read, dtops;
  std::vector<Tensor> tops;
  /// Of backward, and of a second forward: where they lie then.
  std::vector<CTensor> bottoms_late;
  std::vector<Tensor> tops_again;
  std::vector<Grad> dbottoms, dparams_first, dparams_further;
  struct Addition {  // what a layer could not add itself
    CTensor from;
    Tensor to;
  };
  std::vector<Addition> additions;
  Workspace workspace;
  int params_version = -1;  // what the layer has packed
};

/// Nodes [begin, end) that run as one where the device records; single nodes that cannot be
/// recorded stand between.
struct Stretch {
  int begin = 0, end = 0;
  bool can_record = false;
  Replay same_params, fresh_params;  // without and with packing of changed parameters
};

/// Copies a tensor to the host in nchw order, as f32.
std::vector<float> read_nchw(Ops& ops, const Tensor& tensor);

/// A part of backward, nodes from begin down to end + 1, and the gradients that are final after it.
struct BackwardPart {
  int begin = 0, end = 0;
  bool can_record = false;
  std::vector<Tensor> final;
  Replay first, further;  // into empty gradients, and added to them
};

/// Losses and the fault on their way to the host, beside the backward that follows.
struct LossReading {
  std::unique_ptr<SideQueue> side;  // nullptr: the device has none
  Buffer memory;                    // the fault, then each value with a loss weight, from 64 on
};

struct Net::Impl {
  NetOptions options;
  std::shared_ptr<Ops> ops;
  Net* parent = nullptr;
  Graph graph;
  NetParameter proto;        // filtered and upgraded
  NetParameter saved_proto;  // with Caffe's Split layers: what a snapshot holds
  MemoryPlan plan;
  RecomputeWish wish;
  DType precision = DType::f32;  // of the blobs that are not f32, else f32
  Recompute recompute;
  std::vector<Needs> needs;
  MemoryReport report;
  std::shared_ptr<Arena> arena;
  int arena_version = -1;
  std::vector<Step> steps;
  std::vector<Stretch> stretches;
  std::vector<BackwardPart> whole_backward, backward_in_buckets;
  std::vector<Buffer> owned;     // parameters, gradients, inputs, state, packed weights
  std::map<int, Tensor> inputs;  // value -> memory that stays
  std::vector<NetParam> params;
  std::vector<Group> groups;
  std::vector<Tensor> states, packed;           // per node
  std::map<std::pair<int, int>, Tensor> grown;  // (node, buffer): where other shapes need more
  std::vector<std::string> input_names;
  std::vector<NetOutput> outputs;
  std::vector<int> output_values;   // values of outputs
  std::vector<int> loss_values;     // values with a loss weight
  std::vector<float> loss_staging;  // host memory for the largest of them
  LossReading loss_reading;
  std::map<std::string, int> blobs;  // last version of each name
  std::vector<std::string> blob_order;
  std::shared_ptr<int> params_version =
      std::make_shared<int>(0);  // one for all nets that share parameters
  uint64_t forward_count = 0;
  bool gradients_empty = true;
  float loss_scale = 1;  // in the gradients that backward left

  std::vector<int> saved_nodes;  // node of each layer of saved_proto, -1: it has no parameters

  void build(const NetParameter& param, Net* shared_with);
  void find_saved_nodes(const std::vector<SavedLayer>& saved);
  void make_params();
  void fill_params();
  void plan_layers();
  void plan_arena();
  size_t fixed_bytes() const;
  void check_memory();
  int64_t largest_batch(size_t limit);
  size_t bytes_at(int64_t batch, int64_t own, const std::vector<Shape>& sources);
  void run_again(int n);
  void allocate();
  void name_blobs();
  void bind_if_moved();
  void bind();
  void make_step(int n);
  Tensor data(int value) const;
  Tensor late_data(int value) const;
  Tensor gradient(int value) const;
  Tensor buffer_tensor(int buffer, size_t bytes) const;
  Tensor workspace(int n, int buffer, size_t bytes);
  std::vector<float> read_gradient(const Tensor& tensor) const;
  float total_loss();
  void enqueue_forward();
  void make_loss_reading();
  void begin_loss_reading();
  float finish_loss_reading();
  bool check_fault() const;
  void make_stretches();
  bool is_dynamic() const;
  void run_forward(int n);
  void run_stretch(size_t index);
  void run_backward(int n);
  std::vector<BackwardPart> split_backward(const std::vector<GradientBucket>& buckets) const;
  void run_backward_parts(std::vector<BackwardPart>& parts, const GradientFinal& final);
  void walk_backward(int begin, int end);
  Needs plan_layer(int n);
  void follow_shapes(int n);
  void fill_loss_gradients();
  bool is_parents(const void* data) const;
  int node_named(const std::string& name) const;
  int scale_behind(int n, const WeightsFile& weights) const;
  void fill(int n, const BlobPointers& blobs, const std::string& where);
  void tell_filled(const std::vector<uint8_t>& is_filled, const WeightsFile& weights,
                   const std::string& file) const;
  int value_of(const std::string& blob) const;
  int own_value_of(const std::string& blob) const;
  void log_setup() const;
  std::string describe_recordings() const;
};

}  // namespace crema
