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

/// Upgrades a net as it was read, and filters it by its own state, or by phase TEST where that has
/// none. Throws Error with all that is wrong.
void upgrade_and_filter(NetParameter& net, const std::string& file);

}  // namespace crema
