// Counts what malloc and its kin are asked for while something runs, and by whom.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace crema {

/// Whether this build counts: not with another C library or under a sanitizer.
bool counts_allocations();

/// Memory that was asked for while counting.
struct Allocation {
  size_t bytes;
  bool is_ours;  // the nearest caller outside of the C and C++ libraries is code of this project
  std::string owner;  // the file of that caller
  std::string stack;  // file and offset of each caller, a line each
};

/// Every allocation of every thread while call runs, the first 256 of them.
std::vector<Allocation> allocations_of(const std::function<void()>& call);

}  // namespace crema
