// Streams: queues that run late. Whoever waits runs them; the dice may let one run ahead.
#include <algorithm>
#include <map>

#include "cuda_sim/sim.h"

namespace crema::cuda_sim {
namespace {

struct Streams {
  std::map<cudaStream_t, StreamRef> by_handle;
  StreamRef default_of_card[8];
};

Streams& streams() {
  static auto* const the = new Streams;
  return *the;
}

bool passed(const Mark& mark) {
  return mark.stream == nullptr || mark.stream->completed >= mark.position;
}

bool is_given_up(const Task& task) { return task.given_up != nullptr && *task.given_up; }

/// Whether the stream's first task can run now.
bool first_is_ready(const Stream& stream) {
  const Task& task = stream.tasks.front();
  if (!passed(task.wait_for)) return false;
  return task.meeting == nullptr || task.meeting->done || is_given_up(task);
}

void run_first(Stream& stream) {
  const Task task = std::move(stream.tasks.front());
  stream.tasks.pop_front();
  play(task);
  ++stream.completed;
}

void hold_now(const Task& task) {
  task.meeting->done = true;
  const DeviceCode code;
  task.meeting->run();
  check_red_zones(task.name);
}

/// A meeting takes place when everybody's earlier work is done. Waits for who has not come yet.
void hold(const Task& task) {
  const std::shared_ptr<Meeting> meeting = task.meeting;
  while (!meeting->done && !is_given_up(task)) {
    if (meeting->places.size() < meeting->wanted) {
      news().wait(big_lock());
      continue;
    }
    const std::vector<Mark> places = meeting->places;
    for (const Mark& place : places) run_to(place.stream, place.position - 1);
    if (meeting->done || is_given_up(task)) break;
    hold_now(task);
  }
}

/// A meeting to which all have come, with nothing before it, needs nobody who waits.
void hold_if_all_are_here(const Task& task) {
  const std::shared_ptr<Meeting> meeting = task.meeting;
  if (meeting == nullptr || meeting->done || meeting->places.size() < meeting->wanted) return;
  const bool are_here =
      std::all_of(meeting->places.begin(), meeting->places.end(),
                  [](const Mark& place) { return place.stream->completed + 1 == place.position; });
  if (are_here && !is_given_up(task)) hold_now(task);
}

/// Lets streams run ahead as the dice say.
void run_ahead() {
  if ((dice() & 1u) == 0) return;
  std::vector<StreamRef> waiting;
  for (const auto& [handle, stream] : streams().by_handle) {
    if (!stream->tasks.empty()) hold_if_all_are_here(Task(stream->tasks.front()));
    if (!stream->tasks.empty() && first_is_ready(*stream)) waiting.push_back(stream);
  }
  if (waiting.empty()) return;
  const StreamRef chosen = waiting[dice() % waiting.size()];
  for (uint32_t steps = dice() % 8; steps > 0 && !chosen->tasks.empty(); --steps) {
    if (!first_is_ready(*chosen)) return;
    run_first(*chosen);
  }
}

}  // namespace

void play(const Task& task) {
  if (!task.run) return;
  const DeviceCode code;
  task.run();
  check_red_zones(task.name);
}

StreamRef stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) {
    StreamRef& stream = streams().default_of_card[current_card()];
    if (stream == nullptr) {
      stream = std::make_shared<Stream>();
      stream->card = current_card();
    }
    return stream;
  }
  const auto it = streams().by_handle.find(handle);
  return it == streams().by_handle.end() ? nullptr : it->second;
}

cudaStream_t handle_of(const StreamRef& stream) {
  for (const StreamRef& of_card : streams().default_of_card) {
    if (stream == of_card) return nullptr;
  }
  return reinterpret_cast<cudaStream_t>(stream.get());
}

std::vector<StreamRef> streams_of_card(int card) {
  std::vector<StreamRef> found;
  for (const auto& [handle, stream] : streams().by_handle) {
    if (stream->card == card) found.push_back(stream);
  }
  if (streams().default_of_card[card] != nullptr) found.push_back(streams().default_of_card[card]);
  return found;
}

cudaError_t enqueue(const StreamRef& stream, Task task) {
  if (device_state() != cudaSuccess) return device_state();
  if (stream->capture != nullptr) return capture_task(*stream, std::move(task));
  const bool is_default = handle_of(stream) == nullptr;
  for (const StreamRef& other :
       streams_of_card(stream->card)) {  // the default stream's two barriers
    const bool other_is_default = handle_of(other) == nullptr;
    if (is_default != other_is_default && !stream->non_blocking && !other->non_blocking) {
      run_all(other);
    }
  }
  if (task.meeting != nullptr) task.meeting->places.push_back({stream, stream->issued + 1});
  stream->tasks.push_back(std::move(task));
  ++stream->issued;
  news().notify_all();
  run_ahead();
  return device_state();
}

void run_to(const StreamRef& stream, uint64_t position) {
  while (stream->completed < std::min(position, stream->issued)) {
    run_ahead();
    if (stream->completed >= position || stream->tasks.empty()) continue;
    const Mark wait_for = stream->tasks.front().wait_for;
    if (!passed(wait_for)) {
      run_to(wait_for.stream, wait_for.position);
      continue;
    }
    if (!first_is_ready(*stream)) {
      hold(Task(stream->tasks.front()));  // another thread may go on with this stream meanwhile
      continue;
    }
    run_first(*stream);
  }
}

void run_all(const StreamRef& stream) { run_to(stream, stream->issued); }

void run_card(int card) {
  for (const StreamRef& stream : streams_of_card(card)) run_all(stream);
}

namespace {

using Lock = std::lock_guard<std::recursive_mutex>;

cudaError_t create_stream(cudaStream_t* handle, unsigned flags) {
  const Lock lock(big_lock());
  if (handle == nullptr || flags > cudaStreamNonBlocking) return result(cudaErrorInvalidValue);
  const auto stream = std::make_shared<Stream>();
  stream->card = current_card();
  stream->non_blocking = flags == cudaStreamNonBlocking;
  *handle = reinterpret_cast<cudaStream_t>(stream.get());
  streams().by_handle[*handle] = stream;
  return cudaSuccess;
}

}  // namespace
}  // namespace crema::cuda_sim

using namespace crema::cuda_sim;

cudaError_t cudaStreamCreate(cudaStream_t* handle) { return create_stream(handle, 0); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return create_stream(handle, flags);
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int) {
  return create_stream(handle, flags);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr || handle == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (stream->capture != nullptr) return result(forbid_on_capturing(*stream));
  run_all(stream);  // a card would go on with it and free it later
  streams().by_handle.erase(handle);
  return result(device_state());
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = forbid_on_capturing(*stream)) return result(status);
  run_all(stream);
  return result(device_state());
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  const Lock lock(big_lock());
  const StreamRef stream = stream_of(handle);
  if (stream == nullptr) return result(cudaErrorInvalidResourceHandle);
  if (const cudaError_t status = forbid_on_capturing(*stream)) return result(status);
  run_to(stream, stream->completed + 1);  // who polls must get on
  if (device_state() != cudaSuccess) return device_state();
  return stream->tasks.empty() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaDeviceSynchronize() {
  const Lock lock(big_lock());
  if (const cudaError_t status = forbid_in_capture()) return result(status);
  run_card(current_card());
  check_all_red_zones("work of unknown name");
  return result(device_state());
}
