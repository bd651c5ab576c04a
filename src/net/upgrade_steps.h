// The steps of upgrade_net that have files of their own.
#pragma once

#include <string>

#include "crema.pb.h"

namespace crema {

/// `layers { layer { ... } }` to `layers { ... }`; padding layers go into their readers. Throws
/// Error for an unknown type.
void upgrade_v0(NetParameter& net, const std::string& file);

/// Fields of forks that another field of ours stands for. Throws Error where that one is given too.
void upgrade_forks(NetParameter& net, const std::string& file);

/// Gives every Crop without crop_param the offsets that the first fork with that layer worked out
/// (net/crop_offsets.h). For nets in V1 syntax, which BVLC never had this layer in. Throws Error
/// where they cannot be worked out.
void align_crops(NetParameter& net, const std::string& file);

/// `layers` to `layer`.
void upgrade_v1(NetParameter& net, const std::string& file);

}  // namespace crema
