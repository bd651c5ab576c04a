// The runtime's memory calls: allocation, copies and fills, with what they refuse.
#include <cstring>

#include "cuda_sim/memory.h"
#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t allocate(void** address, size_t bytes) {
  const Lock lock(big_lock());
  if (address == nullptr) return cudaErrorInvalidValue;
  *address = nullptr;
  if (const cudaError_t status = forbid_in_capture()) return status;
  if (device_state() != cudaSuccess) return device_state();
  if (bytes == 0) return cudaSuccess;
  *address = allocate_device(bytes, current_card());
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t release(void* address) {
  const Lock lock(big_lock());
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t status = forbid_in_capture()) return status;
  const Found found = find(address);
  if (found.where != Where::device || found.before != 0) {
    if (found.where == Where::freed) violation("cudaFree: the memory was freed before");
    return cudaErrorInvalidValue;
  }
  run_card(found.card);  // cudaFree waits for the card
  free_device(address);
  return device_state();
}

cudaError_t allocate_host(void** address, size_t bytes) {
  const Lock lock(big_lock());
  if (address == nullptr) return cudaErrorInvalidValue;
  *address = nullptr;
  if (const cudaError_t status = forbid_in_capture()) return status;
  if (bytes == 0) return cudaSuccess;
  *address = allocate_pinned(bytes);
  return *address == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}

cudaError_t release_host(void* address) {
  const Lock lock(big_lock());
  if (address == nullptr) return cudaSuccess;
  if (const cudaError_t status = forbid_in_capture()) return status;
  for (int card = 0; card < card_count(); ++card) run_card(card);
  return free_pinned(address) ? device_state() : cudaErrorInvalidValue;
}

bool on_device(const Found& found) {
  return found.where != Where::host && found.where != Where::pinned;
}

bool kind_fits(cudaMemcpyKind kind, bool from_device, bool to_device) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return !from_device && !to_device;
    case cudaMemcpyHostToDevice:
      return !from_device && to_device;
    case cudaMemcpyDeviceToHost:
      return from_device && !to_device;
    case cudaMemcpyDeviceToDevice:
      return from_device && to_device;
    default:
      return kind == cudaMemcpyDefault;
  }
}

struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  size_t bytes = 0;
  int card = 0;
  bool checked_to = false, checked_from = false;  // device or pinned memory
};

void run_copy(const Copy& copy) {
  if (overlap(copy.to, copy.bytes, copy.from, copy.bytes)) {
    return violation("a copy's source and destination overlap");
  }
  if (copy.checked_from &&
      !check_range(copy.from, copy.bytes, Access::read, copy.card, "a copy's source")) {
    return;
  }
  if (copy.checked_to &&
      !check_range(copy.to, copy.bytes, Access::write, copy.card, "a copy's destination")) {
    return;
  }
  std::memcpy(copy.to, copy.from, copy.bytes);
}

cudaError_t enqueue_copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                         cudaStream_t handle) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  const Found source = find(from), target = find(to);
  if (to == nullptr || from == nullptr || !kind_fits(kind, on_device(source), on_device(target))) {
    return cudaErrorInvalidValue;
  }
  Copy copy{
      to, from, bytes, stream->card, target.where != Where::host, source.where != Where::host};
  const bool pageable = !copy.checked_to || !copy.checked_from;
  // Pageable memory is copied through a buffer of the driver's before the call returns, or (towards
  // the host) the call waits.
  if (pageable) {
    if (const cudaError_t status = forbid_on_capturing(*stream)) return status;
  }
  if (!copy.checked_from) {
    auto staged = std::make_shared<std::vector<uint8_t>>(bytes);
    std::memcpy(staged->data(), from, bytes);
    copy.from = staged->data();
    return enqueue(stream, {.name = "a copy", .run = [copy, staged] { run_copy(copy); }});
  }
  const cudaError_t status = enqueue(stream, {.name = "a copy", .run = [copy] { run_copy(copy); }});
  if (status == cudaSuccess && pageable) run_all(stream);
  return status == cudaSuccess ? device_state() : status;
}

cudaError_t enqueue_fill(void* to, int value, size_t bytes, cudaStream_t handle) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || find(to).where == Where::host) return cudaErrorInvalidValue;
  const int card = stream->card;
  return enqueue(stream,
                 {.name = "a fill", .run = [to, value, bytes, card] {
                    if (check_range(to, bytes, Access::write, card, "a fill's destination")) {
                      std::memset(to, value, bytes);
                    }
                  }});
}

cudaError_t finish(cudaError_t status, cudaStream_t handle) {
  const Lock lock(big_lock());
  if (status == cudaSuccess) run_all(stream_of(handle));
  return status == cudaSuccess ? device_state() : status;
}

}  // namespace
}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudaError_t cudaMalloc(void** address, size_t bytes) { return result(allocate(address, bytes)); }
cudaError_t cudaFree(void* address) { return result(release(address)); }
cudaError_t cudaMallocHost(void** address, size_t bytes) {
  return result(allocate_host(address, bytes));
}
cudaError_t cudaHostAlloc(void** address, size_t bytes, unsigned flags) {
  return result(flags > 7 ? cudaErrorInvalidValue : allocate_host(address, bytes));
}
cudaError_t cudaFreeHost(void* address) { return result(release_host(address)); }

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return result(enqueue_copy(to, from, bytes, kind, stream));
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return result(finish(enqueue_copy(to, from, bytes, kind, nullptr), nullptr));
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return result(enqueue_fill(to, value, bytes, stream));
}
cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return result(finish(enqueue_fill(to, value, bytes, nullptr), nullptr));
}

cudaError_t cudaMemGetInfo(size_t* available, size_t* total) {
  const Lock lock(big_lock());
  if (available == nullptr || total == nullptr) return result(cudaErrorInvalidValue);
  *total = card_memory();
  *available = card_memory() - card_memory_used(current_card());
  return cudaSuccess;
}
