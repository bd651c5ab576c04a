// crema device_query: what the GPUs of --gpu are. Without the flag there is nothing to show.
#include <glog/logging.h>

#include "commands.h"

namespace crema {

int device_query_command() {
  if (FLAGS_gpu.empty()) return 0;
  LOG(INFO) << "Querying GPUs " << FLAGS_gpu;
  for (int index : gpu_list()) {
    LOG(INFO) << "GPU " << index << ": " << make_ops({.gpu = true, .index = index})->describe();
  }
  return 0;
}

}  // namespace crema
