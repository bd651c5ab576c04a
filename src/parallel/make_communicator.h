// The best way that there is for devices of one kind to add up.
#pragma once

#include <memory>

#include "parallel/communicator.h"

namespace crema {

/// Called by all ranks of the group together, each with its own device. NCCL between GPUs where
/// libcrema_nccl.so loads, else host memory (with a line of the log that says why).
std::shared_ptr<Communicator> make_communicator(ThreadGroup& group, int rank, Ops& ops);

/// What libcrema_nccl.so exports under this name.
constexpr const char* kNcclLibraryEntry = "crema_nccl_communicator";
using NcclLibraryEntry = Communicator* (*)(ThreadGroup& group, int rank, Ops& ops);

}  // namespace crema
