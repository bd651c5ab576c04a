// The filter pass: layers whose include / exclude rules do not match the net's state are taken out.
#pragma once

#include "base/error.h"
#include "crema.pb.h"

namespace crema {

/// True when the state satisfies every condition of the rule.
bool matches(const NetState& state, const NetStateRule& rule);

/// Removes the layers that state leaves out. A layer with both include and exclude rules is an
/// error (collected).
void filter_net(NetParameter& net, const NetState& state, const std::string& file,
                ErrorList& errors);

}  // namespace crema
