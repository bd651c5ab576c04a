// Sums between GPUs by NCCL, on the queue of each card or one beside it, so that no host waits for
// them. The one
// file that calls NCCL: every status is checked.
#include <nccl.h>

#include <atomic>

#include "ops/cuda/cuda_ops.h"
#include "parallel/make_communicator.h"

namespace crema {
namespace {

void check(ncclResult_t status, const char* what) {
  require(status == ncclSuccess, what, ": ", ncclGetErrorString(status));
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(ThreadGroup& group, int rank) : Communicator(group, rank) {
    ncclUniqueId id{};
    if (rank == 0) check(ncclGetUniqueId(&id), "ncclGetUniqueId");
    id = *static_cast<const ncclUniqueId*>(group.exchange(rank, &id)[0]);
    group.meet();  // rank 0's id has been read by all
    ncclComm_t comm = nullptr;
    check(ncclCommInitRank(&comm, ranks(), id, rank), "ncclCommInitRank");
    *comm_ = comm;
    // A card whose partner has failed waits in its kernel, and its host for the card.
    group.when_broken([comm = comm_] { end(*comm, ncclCommAbort); });
  }
  ~NcclCommunicator() override { end(*comm_, ncclCommDestroy); }

  std::string describe() const override {
    int version = 0;
    check(ncclGetVersion(&version), "ncclGetVersion");
    return str("by NCCL ", version / 10000, ".", version / 100 % 100, ".", version % 100);
  }

  void sum(Ops& ops, const Tensor& x) override {
    finish_sums(ops);  // the library wants one stream at a time, in the order of its calls
    reduce(x, static_cast<cuda::CudaOps&>(ops).stream());
  }

  void begin_sum(Ops& ops, const Tensor& x) override {
    if (side_ == nullptr) side_ = ops.side_queue();
    side_->follow();
    reduce(x, static_cast<cuda::CudaSideQueue&>(*side_).stream());
    is_summing_ = true;
  }

  void finish_sums(Ops&) override {
    if (is_summing_) side_->join();
    is_summing_ = false;
  }

 private:
  using Handle = std::atomic<ncclComm_t>;

  void reduce(const Tensor& x, cudaStream_t stream) {
    const ncclComm_t comm = *comm_;
    if (comm == nullptr) throw GroupBroken("another GPU has failed");
    check(ncclAllReduce(x.data, x.data, static_cast<size_t>(x.count()), ncclFloat, ncclSum, comm,
                        stream),
          "ncclAllReduce");
  }

  /// Once, whoever comes first.
  static void end(Handle& handle, ncclResult_t (*how)(ncclComm_t)) {
    if (const ncclComm_t comm = handle.exchange(nullptr)) how(comm);
  }

  std::shared_ptr<Handle> comm_ = std::make_shared<Handle>(nullptr);
  std::unique_ptr<SideQueue> side_;  // of sums that run beside the card's own queue
  bool is_summing_ = false;
};

}  // namespace
}  // namespace crema

extern "C" crema::Communicator* crema_nccl_communicator(crema::ThreadGroup& group, int rank,
                                                        crema::Ops& ops);
crema::Communicator* crema_nccl_communicator(crema::ThreadGroup& group, int rank, crema::Ops&) {
  return new crema::NcclCommunicator(group, rank);
}
