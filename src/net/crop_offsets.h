// Where a Crop must begin so that its result lies on its second bottom. BVLC's Crop has it written
// (crop_param { offset }); the first fork that had the layer worked it out, and FCN's and HED's
// first files rely on that.
#pragma once

#include <array>
#include <optional>

#include "crema.pb.h"

namespace crema {

/// Offsets along height and width for the Crop layer net.layer(index): places of both bottoms are
/// followed back, through convolutions, poolings and layers that keep places, to a blob that they
/// share. nullopt where there is none, where another layer lies between, or where the two have
/// different scales. May be negative: then bottom 0 begins inside bottom 1.
std::optional<std::array<int64_t, 2>> aligned_offsets(const NetParameter& net, int index);

}  // namespace crema
