// The device's address range, inside: what memory.cpp keeps and runtime_memory.cpp changes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "cuda_sim/sim.h"

namespace crema::cuda_sim {

/// Memory for an allocation on a card, ended by inaccessible pages and full of poison; null where
/// the card has no more.
void* allocate_device(size_t bytes, int card);
/// False where address is not the begin of a live allocation. Looks at its red zones.
bool free_device(void* address);
void* allocate_pinned(size_t bytes);
bool free_pinned(void* address);
size_t card_memory();
size_t card_memory_used(int card);

}  // namespace crema::cuda_sim
