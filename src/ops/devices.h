// How many devices there are to choose from.
#pragma once

namespace crema {

/// GPUs that answer; 0 where there is no driver or no CUDA backend.
int gpu_count();

}  // namespace crema
