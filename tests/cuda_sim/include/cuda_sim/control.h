// What a test may tell the simulated device and ask of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace crema::cuda_sim {

/// Off (the default): a violation is one line on stderr and the end of the program. On: it goes
/// into a list, and the device answers cudaErrorLaunchFailure until the list is taken.
void keep_violations(bool keep);
std::vector<std::string> take_violations();

/// 0 (the default, or CREMA_SIM_SEED): everything runs as late as it may. Any other number: dice
/// decide, each call anew, which streams run ahead.
void set_seed(uint64_t seed);

/// Bytes of memory that each card has from now on (default CREMA_SIM_MEMORY MiB, or 4 GiB).
void set_card_memory(size_t bytes);

}  // namespace crema::cuda_sim
