// Files that tests of the crema command train on: a net of constant data and its solver.
#pragma once

#include <string>

#include "tools/process.h"

namespace crema {

/// A net that learns y = 1 from constant x; `outputs` of the inner product, under `name`.
std::string constant_net(const std::string& name = "ip", int inputs = 4, int outputs = 3);

/// Writes net.prototxt (constant_net) and solver.prototxt with prefix "s" and these fields beside
/// it.
void write_training(const TestFolder& folder, const std::string& fields);

/// crema with these arguments, --cpu added, in the folder.
Ended run_crema(const TestFolder& folder, const std::vector<std::string>& arguments,
                RunOptions options = {});

/// Lines of text that contain `part`.
std::vector<std::string> lines_with(const std::string& text, const std::string& part);

}  // namespace crema
