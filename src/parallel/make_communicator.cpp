// Whether NCCL is there is a matter of the machine, so all ranks decide alike.
#include "parallel/make_communicator.h"

#include <glog/logging.h>

#include "base/shared_library.h"

namespace crema {

std::shared_ptr<Communicator> make_communicator(ThreadGroup& group, int rank, Ops& ops) {
  if (ops.shares_host_memory()) return std::make_shared<Communicator>(group, rank);
  std::string reason;
  void* entry = load_function("libcrema_nccl.so", kNcclLibraryEntry, &reason);
  if (entry == nullptr) {
    LOG_IF(WARNING, rank == 0) << "NCCL is not there (" << reason
                               << "): gradients go through host memory, which is slower";
    return std::make_shared<Communicator>(group, rank);
  }
  return std::shared_ptr<Communicator>(reinterpret_cast<NcclLibraryEntry>(entry)(group, rank, ops));
}

}  // namespace crema
