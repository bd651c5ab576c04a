// Which fork of Caffe a layer type comes from that is not built in.
#pragma once

#include <string>
#include <string_view>

namespace crema {

/// "DeepLab" for "ImageSegData" and for its V1 word IMAGE_SEG_DATA; "" where no fork is known.
std::string fork_of_layer(std::string_view type);

}  // namespace crema
