// The house's rules that a compiler does not check: who may include whom, calls that end the
// program, opening comments.
#pragma once

#include <string>
#include <vector>

namespace crema {

/// Reads every .h, .cpp, .cu and .cuh under src, tools, tests and benchmarks of the tree at root.
/// One line "FILE:LINE: what is wrong" for each breach, in the order of paths:
///   - an include of a floor above the file's own (base < proto < ops < io < feed < layers < net <
///   parallel < solver
///     < tools), of a backend outside ops/make_ops.cpp, of a library outside the folder that owns
///     it, of tests;
///   - LOG(FATAL), CHECK and its kin, abort and exit in src;
///   - a file that does not open with a comment.
std::vector<std::string> check_floors(const std::string& root);

}  // namespace crema
