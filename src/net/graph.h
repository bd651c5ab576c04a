// The graph that the passes work on: values (one per version of a blob) and nodes (a layer with its
// edges). Passes are plain functions over Graph; Net turns the result into steps over planned
// memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace crema {

/// One version of a blob: an in-place layer makes a new version of the same name.
struct Value {
  std::string name;
  Shape shape;
  Layout layout = Layout::nchw;
  DType dtype = DType::f32;             // of its data and its gradient
  int producer = -1, producer_top = 0;  // node, and which of its tops
  std::vector<int> users;  // nodes that read it, in order; a node that reads it twice stands twice
  float loss_weight = 0;
  bool known = true;            // false: its producer's shapes could not be inferred
  bool wants_gradient = false;  // something that learns or is forced lies before it
  bool has_gradient = false;    // a loss reaches it
  bool kept = false;            // its data and gradient stay readable after a pass
  bool last_version = true;     // the one that its name means at the end of the net
  int alias_of = -1;            // value whose memory it is (Reshape, Split), or -1
  TensorDesc desc() const { return {shape, dtype, layout}; }
};

struct Node {
  LayerParameter param;
  std::unique_ptr<Layer> layer;
  LayerTraits traits;
  std::vector<int> bottoms, tops;    // values
  std::vector<uint8_t> propagates;   // per bottom: backward writes its gradient
  std::vector<int> params;           // places in Graph::params, by the layer's own index
  std::vector<int> absorbed_params;  // of layers that this one absorbed: backward gives them too
  std::vector<std::string> absorbed_names;  // those layers, in order
  bool runs_backward = false;
  bool is_absorbed = false;  // another node does its work: no edges, it only keeps its parameters
  bool is_convert = false;   // put in by the layout or the precision pass: no layer of the file
  bool is_input = false;     // an Input layer: its values come from outside and stay
};

/// A parameter as declared: stored once, however many layers share it.
struct ParamSlot {
  std::string name, owner;
  int node = 0, index = 0;  // of the owner
  Shape shape;
  float lr_mult = 1, decay_mult = 1;
  bool has_lr_mult = false, has_decay_mult = false;
  bool learnable = true;
  bool needs_gradient = false;
};

struct Graph {
  std::string name;
  NetState state;
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ParamSlot> params;

  /// The value whose memory v lies in.
  int root(int v) const {
    while (values[static_cast<size_t>(v)].alias_of >= 0)
      v = values[static_cast<size_t>(v)].alias_of;
    return v;
  }
  /// The roots of the values whose data the backward of node n reads; none where it runs none.
  std::vector<int> read_in_backward(int n) const;
  /// Inserts a node before place `at` and renumbers.
  void insert_node(int at, Node node);
};

/// `file:line: layer "name" (Type)`: what errors about a layer begin with.
std::string place_of(const LayerParameter& layer, const std::string& file);

}  // namespace crema
