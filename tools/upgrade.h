// What the three upgrade tools share: arguments, and the end of a run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "tool.h"

namespace crema {

/// Runs upgrade(IN), which returns the new file's bytes, and writes them to OUT.
inline int run_upgrade(int argc, char** argv, const char* tool,
                       const std::function<std::string(const std::string&)>& upgrade) {
  return run_tool(
      argc, argv, {tool, "IN OUT: writes an old file in today's form"},
      [] { return std::pair<size_t, size_t>(2, 2); },
      [&](const std::vector<std::string>& files) {
        require_writable(files[1]);
        write_file(files[1], upgrade(files[0]));
        LOG(INFO) << "Wrote " << files[1];
      });
}

}  // namespace crema
