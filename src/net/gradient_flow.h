// Where gradients flow: which layers run backward, and which blobs and parameters get a gradient.
#pragma once

#include "net/graph.h"

namespace crema {

/// Sets Node::runs_backward, Node::propagates, Value::wants_gradient, Value::has_gradient and
/// ParamSlot::needs_gradient by Caffe's rules (lr_mult 0, propagate_down, force_backward, no path
/// to a loss). Nothing is set when train is false.
void flow_gradients(Graph& graph, bool force_backward, bool train);

}  // namespace crema
