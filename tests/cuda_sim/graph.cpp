// Capture and graphs: what is enqueued on a capturing stream becomes a node that follows the
// stream's last one; a launch plays the nodes in an order that the edges allow and the dice choose.
#include <algorithm>
#include <set>
#include <thread>

#include "cuda_sim/sim.h"

namespace crema::cuda_sim {

struct Node {
  Task task;
  std::vector<int> after;
};

struct Capture {
  std::vector<Node> nodes;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::vector<std::pair<StreamRef, std::vector<int>>> tips;  // each stream's last nodes
  bool broken = false;
};

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;
using Nodes = std::shared_ptr<const std::vector<Node>>;

std::set<std::shared_ptr<Capture>>& captures() {
  static auto* const the = new std::set<std::shared_ptr<Capture>>;
  return *the;
}

struct Handles {
  std::set<Nodes*> graphs, execs;
};
Handles& handles() {
  static auto* const the = new Handles;
  return *the;
}

template <class Handle>
Nodes* known(const std::set<Nodes*>& all, Handle handle) {
  auto* nodes = reinterpret_cast<Nodes*>(handle);
  return all.count(nodes) != 0 ? nodes : nullptr;
}

/// The last nodes of a stream that takes part.
std::vector<int>& tips_of(Capture& capture, const Stream& stream) {
  return std::find_if(capture.tips.begin(), capture.tips.end(),
                      [&](const auto& tips) { return tips.first.get() == &stream; })
      ->second;
}

/// Every node that has to come before one of these, and these.
std::set<int> with_ancestors(const std::vector<Node>& nodes, const std::vector<int>& last) {
  std::set<int> found;
  std::vector<int> open = last;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    if (!found.insert(node).second) continue;
    const auto& after = nodes[static_cast<size_t>(node)].after;
    open.insert(open.end(), after.begin(), after.end());
  }
  return found;
}

/// An order that the edges allow: with dice a chance one, else one as far from the order of
/// enqueueing as can be had.
std::vector<size_t> choose_order(const std::vector<Node>& nodes) {
  constexpr size_t kWindow = 64;
  std::vector<size_t> order;
  std::vector<bool> done(nodes.size());
  for (size_t first = 0; order.size() < nodes.size();) {
    if (done[first]) {
      ++first;
      continue;
    }
    std::vector<size_t> ready;  // edges point forward, so the first one is ready
    for (size_t i = first; i < std::min(nodes.size(), first + kWindow); ++i) {
      const bool free = std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                                    [&](int node) { return done[static_cast<size_t>(node)]; });
      if (!done[i] && free) ready.push_back(i);
    }
    const size_t chosen = ready[ready.size() - 1 - dice() % ready.size()];
    order.push_back(chosen);
    done[chosen] = true;
  }
  return order;
}

void end(const std::shared_ptr<Capture>& capture) {
  for (const auto& [stream, tips] : capture->tips) stream->capture = nullptr;
  captures().erase(capture);
}

cudaError_t begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (handle == nullptr) return cudaErrorStreamCaptureImplicit;
  if (stream->capture != nullptr) return cudaErrorIllegalState;
  const auto capture = std::make_shared<Capture>();
  capture->mode = mode;
  capture->thread = std::this_thread::get_id();
  capture->origin = stream.get();
  capture->tips.emplace_back(stream, std::vector<int>{});
  stream->capture = capture;
  captures().insert(capture);
  return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t handle, cudaGraph_t* graph) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (graph == nullptr) return cudaErrorInvalidValue;
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (capture == nullptr) return cudaErrorIllegalState;
  if (capture->origin != stream.get()) return cudaErrorStreamCaptureUnmatched;
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return cudaErrorStreamCaptureWrongThread;
  }
  end(capture);
  if (capture->broken) return cudaErrorStreamCaptureInvalidated;
  const std::set<int> joined = with_ancestors(capture->nodes, capture->tips.front().second);
  if (joined.size() != capture->nodes.size()) return cudaErrorStreamCaptureUnjoined;
  auto* nodes = new Nodes(std::make_shared<std::vector<Node>>(std::move(capture->nodes)));
  handles().graphs.insert(nodes);
  *graph = reinterpret_cast<cudaGraph_t>(nodes);
  return cudaSuccess;
}

}  // namespace

cudaError_t capture_task(Stream& stream, Task task) {
  Capture& capture = *stream.capture;
  if (capture.broken) return cudaErrorStreamCaptureInvalidated;
  std::vector<int>& tips = tips_of(capture, stream);
  capture.nodes.push_back({std::move(task), tips});
  tips = {static_cast<int>(capture.nodes.size()) - 1};
  return cudaSuccess;
}

cudaError_t forbid_in_capture() {
  cudaError_t status = cudaSuccess;
  for (const auto& capture : captures()) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (capture->mode == cudaStreamCaptureModeGlobal ||
        (capture->mode == cudaStreamCaptureModeThreadLocal && own)) {
      capture->broken = true;
      status = cudaErrorStreamCaptureUnsupported;
    }
  }
  return status;
}

cudaError_t forbid_on_capturing(Stream& stream) {
  if (stream.capture == nullptr) return cudaSuccess;
  stream.capture->broken = true;
  return cudaErrorStreamCaptureUnsupported;
}

CapturedMark mark_capture(const Stream& stream) {
  return {stream.capture, tips_of(*stream.capture, stream)};
}

cudaError_t join_capture(const StreamRef& stream, const CapturedMark& mark) {
  const std::shared_ptr<Capture> capture = mark.capture.lock();
  if (capture == nullptr || captures().count(capture) == 0) return cudaErrorCapturedEvent;
  if (stream->capture != nullptr && stream->capture != capture) return cudaErrorStreamCaptureMerge;
  if (stream->capture == nullptr) {
    stream->capture = capture;
    capture->tips.emplace_back(stream, std::vector<int>{});
  }
  std::vector<int>& tips = tips_of(*capture, *stream);
  for (const int node : mark.nodes) {
    if (std::find(tips.begin(), tips.end(), node) == tips.end()) tips.push_back(node);
  }
  return cudaSuccess;
}

}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return result(begin_capture(stream, mode));
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return result(end_capture(stream, graph));
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus* status) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (status == nullptr) return result(cudaErrorInvalidValue);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  *status = stream->capture == nullptr ? cudaStreamCaptureStatusNone
            : stream->capture->broken  ? cudaStreamCaptureStatusInvalidated
                                       : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  const Lock lock(big_lock());
  const Nodes* nodes = known(handles().graphs, graph);
  if (nodes == nullptr || exec == nullptr) return result(cudaErrorInvalidValue);
  auto* copy = new Nodes(*nodes);
  handles().execs.insert(copy);
  *exec = reinterpret_cast<cudaGraphExec_t>(copy);
  return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t handle) {
  const Lock lock(big_lock());
  const Nodes* nodes = known(handles().execs, exec);
  const StreamRef stream = stream_of(handle);
  if (nodes == nullptr) return result(cudaErrorInvalidValue);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  const Nodes held = *nodes;
  for (const size_t i : choose_order(*held)) {
    Task task = (*held)[i].task;
    if (task.new_meeting) task.meeting = task.new_meeting();
    if (const cudaError_t status = enqueue(stream, std::move(task))) return result(status);
  }
  return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes_out, size_t* count) {
  const Lock lock(big_lock());
  const Nodes* nodes = known(handles().graphs, graph);
  if (nodes == nullptr || count == nullptr) return result(cudaErrorInvalidValue);
  const size_t all = (*nodes)->size();
  for (size_t i = 0; nodes_out != nullptr && i < *count; ++i) {
    nodes_out[i] = i < all ? reinterpret_cast<cudaGraphNode_t>(i + 1) : nullptr;
  }
  *count = nodes_out == nullptr ? all : std::min(*count, all);
  return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  const Lock lock(big_lock());
  Nodes* nodes = known(handles().graphs, graph);
  if (nodes == nullptr) return result(cudaErrorInvalidValue);
  handles().graphs.erase(nodes);
  delete nodes;
  return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  const Lock lock(big_lock());
  Nodes* nodes = known(handles().execs, exec);
  if (nodes == nullptr) return result(cudaErrorInvalidValue);
  handles().execs.erase(nodes);
  delete nodes;
  return cudaSuccess;
}
