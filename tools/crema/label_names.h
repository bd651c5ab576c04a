// Names of classes, a line each, as convert_imageset --labels_from_folders writes them.
#pragma once

#include <string>
#include <vector>

namespace crema {

/// The lines of --labels; where the flag is not given, of labels.txt in the folder `source` where
/// there is one, else none. Throws Error for a file that cannot be read.
std::vector<std::string> label_names(const std::string& source);

}  // namespace crema
