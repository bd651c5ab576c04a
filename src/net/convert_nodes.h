// Convert nodes: steps of ours that hold a blob in another order or number type. One serves all
// readers that need the same.
#pragma once

#include <map>
#include <tuple>

#include "net/graph.h"

namespace crema {

class ConvertNodes {
 public:
  explicit ConvertNodes(Graph& graph) : graph_(graph) {}

  /// Gives node `n` its bottom `b` in that order and type; returns how many nodes were put in
  /// before it (0 or 1).
  int adapt(int n, size_t b, Layout layout, DType dtype);

 private:
  void insert(int at, int from, Layout layout, DType dtype);
  void move_user(int n, size_t b, int from, int to);

  Graph& graph_;
  std::map<std::tuple<int, Layout, DType>, int> made_;
};

}  // namespace crema
