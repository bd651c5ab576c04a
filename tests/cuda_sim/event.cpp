// Events: marks in streams, with the time at which their work was done.
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>

#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

using Clock = std::chrono::steady_clock;
using Lock = std::lock_guard<std::recursive_mutex>;

struct Event {
  bool timed = true, recorded = false, captured = false;
  Mark mark;
  CapturedMark captured_mark;
  std::shared_ptr<Clock::time_point> time = std::make_shared<Clock::time_point>();
};

std::set<Event*>& events() {
  static auto* const the = new std::set<Event*>;
  return *the;
}

Event* event_of(cudaEvent_t handle) {
  auto* event = reinterpret_cast<Event*>(handle);
  return events().count(event) != 0 ? event : nullptr;
}

/// Of a card whose engines take the times that CREMA_SIM_ENGINE_MS gives, and nothing else any.
Clock::duration& played_time() {
  static Clock::duration the{};
  return the;
}

Clock::time_point card_time() {
  const bool is_played = std::getenv("CREMA_SIM_ENGINE_MS") != nullptr;
  return is_played ? Clock::time_point(played_time()) : Clock::now();
}

bool is_done(const Event& event) {
  return !event.recorded || event.mark.stream->completed >= event.mark.position;
}

cudaError_t record(cudaEvent_t handle, cudaStream_t stream_handle) {
  const Lock lock(big_lock());
  Event* event = event_of(handle);
  const StreamRef stream = stream_of(stream_handle);
  if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (stream->capture != nullptr) {
    event->captured = true;
    event->captured_mark = mark_capture(*stream);
    return cudaSuccess;
  }
  event->captured = false;
  event->recorded = true;
  event->time = std::make_shared<Clock::time_point>();
  event->mark = {stream, stream->issued + 1};
  return enqueue(stream,
                 {.name = "cudaEventRecord", .run = [time = event->time] { *time = card_time(); }});
}

cudaError_t wait_in(cudaStream_t stream_handle, cudaEvent_t handle) {
  const Lock lock(big_lock());
  const Event* event = event_of(handle);
  const StreamRef stream = stream_of(stream_handle);
  if (event == nullptr || stream == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->captured) return join_capture(stream, event->captured_mark);
  if (stream->capture != nullptr) return cudaErrorStreamCaptureIsolation;
  if (!event->recorded) return cudaSuccess;
  return enqueue(stream, {.name = "cudaStreamWaitEvent", .wait_for = event->mark});
}

cudaError_t synchronize(cudaEvent_t handle) {
  const Lock lock(big_lock());
  const Event* event = event_of(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->captured) return cudaErrorCapturedEvent;
  if (event->recorded) run_to(event->mark.stream, event->mark.position);
  return device_state();
}

cudaError_t elapsed(float* milliseconds, cudaEvent_t begin_handle, cudaEvent_t end_handle) {
  const Lock lock(big_lock());
  const Event* begin = event_of(begin_handle);
  const Event* end = event_of(end_handle);
  if (milliseconds == nullptr) return cudaErrorInvalidValue;
  if (begin == nullptr || end == nullptr) return cudaErrorInvalidResourceHandle;
  if (!begin->timed || !end->timed || !begin->recorded || !end->recorded) {
    return cudaErrorInvalidResourceHandle;
  }
  if (!is_done(*begin) || !is_done(*end)) return cudaErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(*end->time - *begin->time).count();
  return cudaSuccess;
}

}  // namespace

void play_engine(int engine) {
  const char* text = std::getenv("CREMA_SIM_ENGINE_MS");
  for (int i = 0; text != nullptr && i < engine; ++i) {
    text = std::strchr(text, ',');
    if (text != nullptr) ++text;
  }
  if (text == nullptr) return;
  const std::chrono::duration<double, std::milli> spent(std::atof(text));
  played_time() += std::chrono::duration_cast<Clock::duration>(spent);
}

}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* handle, unsigned flags) {
  const Lock lock(big_lock());
  if (handle == nullptr || (flags & ~7u) != 0) return result(cudaErrorInvalidValue);
  auto* event = new Event;
  event->timed = (flags & cudaEventDisableTiming) == 0;
  events().insert(event);
  *handle = reinterpret_cast<cudaEvent_t>(event);
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* handle) { return cudaEventCreateWithFlags(handle, 0); }

cudaError_t cudaEventDestroy(cudaEvent_t handle) {
  const Lock lock(big_lock());
  Event* event = event_of(handle);
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  events().erase(event);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return result(record(event, stream));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return result(flags == 0 ? wait_in(stream, event) : cudaErrorInvalidValue);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) { return result(synchronize(event)); }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return result(elapsed(milliseconds, begin, end));
}

cudaError_t cudaEventQuery(cudaEvent_t handle) {
  const Lock lock(big_lock());
  const Event* event = event_of(handle);
  if (event == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (event->captured) return result(cudaErrorCapturedEvent);
  if (!is_done(*event)) run_to(event->mark.stream, event->mark.stream->completed + 1);
  return is_done(*event) ? result(device_state()) : cudaErrorNotReady;
}
