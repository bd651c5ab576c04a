// Parameters and their sharing: layers whose ParamSpecs carry the same name use one stored
// parameter.
#pragma once

#include "base/error.h"
#include "net/graph.h"

namespace crema {

/// Fills Graph::params and Node::params from the layers' declarations and ParamSpecs. STRICT
/// sharing needs equal shapes, PERMISSIVE equal counts; multipliers written in several places must
/// agree, unwritten ones follow the written one.
void share_params(Graph& graph, const std::string& file, ErrorList& errors);

}  // namespace crema
