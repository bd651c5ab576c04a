// The two steps of upgrade_net that have files of their own.
#pragma once

#include <string>

#include "crema.pb.h"

namespace crema {

/// `layers { layer { ... } }` to `layers { ... }`; padding layers go into their readers. Throws
/// Error for an unknown type.
void upgrade_v0(NetParameter& net, const std::string& file);

/// `layers` to `layer`.
void upgrade_v1(NetParameter& net, const std::string& file);

}  // namespace crema
