// Other programs that a command may use where they are installed.
#pragma once

#include <string>
#include <vector>

namespace crema {

/// Whether PATH leads to such a program.
bool is_installed(const std::string& program);

/// Runs words[0] with the rest as its arguments, no shell between. Throws Error unless it ends with
/// status 0.
void run_program(std::vector<std::string> words);

}  // namespace crema
