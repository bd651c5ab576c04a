// The stand-in for NCCL: a collective is a meeting of its ranks' streams; sums are taken in the
// order of ranks, in double.
#include <nccl.h>

#include <algorithm>
#include <map>
#include <set>

#include "cuda_sim/numbers.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

enum class Kind : uint8_t { all_reduce, broadcast, reduce };

struct Call {
  Kind kind{};
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;
  ncclDataType_t type{};
  ncclRedOp_t op = ncclSum;
  int root = 0, card = 0;
  bool operator==(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op &&
           root == other.root;
  }
};

struct Collective {
  std::shared_ptr<Meeting> meeting = std::make_shared<Meeting>();
  std::map<int, Call> calls;  // by rank
};

/// All ranks of one communicator.
struct World {
  int ranks = 0;
  std::set<int> joined;
  std::map<uint64_t, std::shared_ptr<Collective>> collectives;  // by number
};

}  // namespace
}  // namespace crema::cuda_sim

struct ncclComm {
  std::shared_ptr<crema::cuda_sim::World> world;
  int rank = 0, card = 0;
  uint64_t calls = 0;
  std::shared_ptr<bool> given_up = std::make_shared<bool>(false);
};

namespace crema::cuda_sim {
namespace {

struct Nccl {
  std::set<ncclComm_t> comms;
  std::map<uint64_t, std::shared_ptr<World>> worlds;  // by the number in the id
  uint64_t ids = 0;
};

Nccl& nccl() {
  static auto* const the = new Nccl;
  return *the;
}

thread_local int group_depth = 0;

size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    default:
      return type == ncclInt64 || type == ncclUint64 || type == ncclFloat64 ? 8 : 0;
  }
}

double value_at(ncclDataType_t type, const void* base, size_t i) {
  const auto at = static_cast<int64_t>(i);
  if (type == ncclFloat32) return load(Number::f32, base, at);
  if (type == ncclFloat16) return load(Number::f16, base, at);
  if (type == ncclBfloat16) return load(Number::bf16, base, at);
  if (type == ncclFloat64) return static_cast<const double*>(base)[i];
  return type == ncclInt32 ? static_cast<const int32_t*>(base)[i]
                           : static_cast<double>(static_cast<const int64_t*>(base)[i]);
}

void put_at(ncclDataType_t type, void* base, size_t i, double value) {
  const auto at = static_cast<int64_t>(i);
  if (type == ncclFloat32) return store(Number::f32, base, at, static_cast<float>(value));
  if (type == ncclFloat16) return store(Number::f16, base, at, static_cast<float>(value));
  if (type == ncclBfloat16) return store(Number::bf16, base, at, static_cast<float>(value));
  if (type == ncclFloat64) {
    static_cast<double*>(base)[i] = value;
  } else if (type == ncclInt32) {
    static_cast<int32_t*>(base)[i] = static_cast<int32_t>(value);
  } else {
    static_cast<int64_t*>(base)[i] = static_cast<int64_t>(value);
  }
}

bool sums_up(ncclDataType_t type) {
  return type == ncclFloat32 || type == ncclFloat16 || type == ncclBfloat16 ||
         type == ncclFloat64 || type == ncclInt32 || type == ncclInt64;
}

double combine(ncclRedOp_t op, double a, double b) {
  switch (op) {
    case ncclProd:
      return a * b;
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      return a + b;
  }
}

bool check_memory(const Collective& collective) {
  for (const auto& [rank, call] : collective.calls) {
    const size_t bytes = call.count * size_of(call.type);
    const bool sends = call.kind != Kind::broadcast || rank == call.root;
    const bool receives = call.kind != Kind::reduce || rank == call.root;
    if (sends && !check_range(call.send, bytes, Access::read, call.card, "NCCL: what is sent")) {
      return false;
    }
    if (receives && !check_range(call.receive, bytes, Access::write, call.card,
                                 "NCCL: the place received to")) {
      return false;
    }
    if (sends && receives && call.send != call.receive &&
        overlap(call.send, bytes, call.receive, bytes)) {
      violation("NCCL: what is sent and received overlap without being the same");
      return false;
    }
  }
  return true;
}

void run(const Collective& collective) {
  const Call& first = collective.calls.begin()->second;
  for (const auto& [rank, call] : collective.calls) {
    if (!(call == first)) return violation("NCCL: the ranks call different collectives");
  }
  if (!check_memory(collective)) return;
  if (first.kind == Kind::broadcast) {
    const void* from = collective.calls.at(first.root).send;
    for (const auto& [rank, call] : collective.calls) {
      if (call.receive != from) std::memcpy(call.receive, from, call.count * size_of(call.type));
    }
    return;
  }
  for (size_t i = 0; i < first.count; ++i) {
    double sum = value_at(first.type, first.send, i);
    for (auto it = std::next(collective.calls.begin()); it != collective.calls.end(); ++it) {
      sum = combine(first.op, sum, value_at(first.type, it->second.send, i));
    }
    if (first.op == ncclAvg) sum /= static_cast<double>(collective.calls.size());
    for (const auto& [rank, call] : collective.calls) {
      if (first.kind == Kind::reduce && rank != first.root) continue;
      put_at(first.type, call.receive, i, sum);
    }
  }
}

/// The rank's next collective, which the first rank to come makes.
std::shared_ptr<Meeting> join(ncclComm_t comm, const Call& call) {
  auto& open = comm->world->collectives;
  const uint64_t number = comm->calls++;
  const auto [it, is_new] = open.try_emplace(number);
  if (is_new) {
    it->second = std::make_shared<Collective>();
    it->second->meeting->wanted = static_cast<size_t>(comm->world->ranks);
    it->second->meeting->run = [held = it->second.get()] { run(*held); };
  }
  const std::shared_ptr<Collective> collective = it->second;
  collective->calls[comm->rank] = call;
  if (collective->calls.size() == collective->meeting->wanted) open.erase(it);
  return {collective, collective->meeting.get()};
}

ncclResult_t enqueue_call(Call call, ncclComm_t comm, cudaStream_t handle) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (nccl().comms.count(comm) == 0 || stream == nullptr || call.receive == nullptr ||
      call.send == nullptr || size_of(call.type) == 0) {
    return ncclInvalidArgument;
  }
  if (*comm->given_up) return ncclInvalidUsage;
  if (stream->card != comm->card || current_card() != comm->card) return ncclInvalidUsage;
  if (call.kind != Kind::broadcast && !sums_up(call.type)) return ncclInvalidArgument;
  if (call.root < 0 || call.root >= comm->world->ranks) return ncclInvalidArgument;
  call.card = comm->card;
  Task task{.name = "an NCCL collective", .given_up = comm->given_up};
  if (stream->capture != nullptr) {
    task.new_meeting = [comm, call] { return join(comm, call); };
  } else {
    task.meeting = join(comm, call);
  }
  return enqueue(stream, std::move(task)) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

ncclComm_t make_comm(const std::shared_ptr<World>& world, int rank, int card) {
  auto* comm = new ncclComm{world, rank, card};
  world->joined.insert(rank);
  nccl().comms.insert(comm);
  news().notify_all();
  return comm;
}

uint64_t number_of(const ncclUniqueId& id) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof(number));
  return number;
}

}  // namespace
}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

ncclResult_t ncclGetVersion(int* version) {
  if (version == nullptr) return ncclInvalidArgument;
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Lock lock(big_lock());
  if (id == nullptr) return ncclInvalidArgument;
  std::memset(id, 0, sizeof(*id));
  const uint64_t number = ++nccl().ids;
  std::memcpy(id->internal, &number, sizeof(number));
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  const Lock lock(big_lock());
  if (comm == nullptr || rank < 0 || rank >= ranks || number_of(id) == 0)
    return ncclInvalidArgument;
  if (forbid_in_capture() != cudaSuccess) return ncclUnhandledCudaError;
  std::shared_ptr<World>& world = nccl().worlds[number_of(id)];
  if (world == nullptr) world = std::make_shared<World>(World{ranks, {}, {}});
  if (world->ranks != ranks || world->joined.count(rank) != 0) return ncclInvalidUsage;
  *comm = make_comm(world, rank, current_card());
  const std::shared_ptr<World> held = world;
  while (group_depth == 0 && held->joined.size() < static_cast<size_t>(ranks)) {
    news().wait(big_lock());
  }
  return ncclSuccess;
}

ncclResult_t ncclCommInitAll(ncclComm_t* comms, int count, const int* cards) {
  const Lock lock(big_lock());
  if (comms == nullptr || count < 1) return ncclInvalidArgument;
  std::set<int> seen;
  for (int i = 0; i < count; ++i) {
    const int card = cards == nullptr ? i : cards[i];
    if (card < 0 || card >= card_count()) return ncclUnhandledCudaError;
    if (!seen.insert(card).second) return ncclInvalidUsage;
  }
  const auto world = std::make_shared<World>(World{count, {}, {}});
  for (int i = 0; i < count; ++i) comms[i] = make_comm(world, i, cards == nullptr ? i : cards[i]);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const Lock lock(big_lock());
  if (nccl().comms.erase(comm) == 0) return ncclInvalidArgument;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  const Lock lock(big_lock());
  if (nccl().comms.count(comm) == 0) return ncclInvalidArgument;
  *comm->given_up = true;
  news().notify_all();
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  const Lock lock(big_lock());
  if (nccl().comms.count(comm) == 0 || error == nullptr) return ncclInvalidArgument;
  *error = device_state() == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) {
  *count = comm->world->ranks;
  return ncclSuccess;
}
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) {
  *rank = comm->rank;
  return ncclSuccess;
}
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* card) {
  *card = comm->card;
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclInvalidArgument:
      return "an argument is not allowed";
    case ncclInvalidUsage:
      return "the call does not fit what went before";
    case ncclUnhandledCudaError:
      return "a CUDA call failed";
    default:
      return "another error";
  }
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}
ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  --group_depth;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return enqueue_call({Kind::all_reduce, send, receive, count, type, op}, comm, stream);
}
ncclResult_t ncclBroadcast(const void* send, void* receive, size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  const void* source = send == nullptr ? receive : send;  // read on the root alone
  return enqueue_call({Kind::broadcast, source, receive, count, type, ncclSum, root}, comm, stream);
}
ncclResult_t ncclReduce(const void* send, void* receive, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  void* target = receive == nullptr ? const_cast<void*>(send) : receive;  // written on the root
  return enqueue_call({Kind::reduce, send, target, count, type, op, root}, comm, stream);
}
