// The simulated device's inside: violations, memory, streams, cards. One lock guards everything,
// and whoever holds it may play device code. "Late" is the rule: enqueued work runs when somebody
// waits for it, or earlier when the seeded dice say so.
#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cuda_sim/control.h"

namespace crema::cuda_sim {

// ---- Violations: what a card would do silently wrong -------------------------------------------

/// Says what was done wrong: on stderr, and then the program ends; or, after
/// keep_violations(true), into the list, and the device is out of order until take_violations().
void violation(const std::string& text);
/// cudaSuccess, or the error that a broken device answers everything with.
cudaError_t device_state();

// ---- The lock and settings ---------------------------------------------------------------------

std::recursive_mutex& big_lock();
/// Signalled whenever something was enqueued or given up.
std::condition_variable_any& news();
/// The next word of the dice; they depend on the seed alone.
uint32_t dice();
/// Cards that the environment asked for (CREMA_SIM_CARDS, default 1, at most 8).
int card_count();
/// The card of the calling thread.
int& current_card();
/// Remembers status as the calling thread's last error and returns it.
cudaError_t result(cudaError_t status);

// ---- Memory (memory.cpp) -----------------------------------------------------------------------

enum class Where : uint8_t { device, freed, pinned, outside, host };
struct Found {
  Where where = Where::host;
  int card = 0;
  size_t before = 0;  // bytes between the allocation's begin and the address
  size_t after = 0;   // bytes from the address to the allocation's end
};
/// What an address belongs to; outside: the device's range, but no allocation.
Found find(const void* address);
/// True where the host has something mapped at the address.
bool is_mapped(uintptr_t address);

/// While it lives, the calling thread may touch device memory.
class DeviceCode {
 public:
  DeviceCode();
  ~DeviceCode();
  DeviceCode(const DeviceCode&) = delete;
  DeviceCode& operator=(const DeviceCode&) = delete;
};
/// Looks at the red zones of what was touched since the outermost DeviceCode began; what names the
/// work that did it.
void check_red_zones(const std::string& what);
/// The same over all memory of all cards.
void check_all_red_zones(const std::string& what);

enum class Access : uint8_t { read, write };
/// A violation unless [address, address + bytes) lies in one live allocation of that card (or in
/// pinned memory) and, for a read, holds no word that was never written. Returns whether all is
/// well.
bool check_range(const void* address, size_t bytes, Access access, int card,
                 const std::string& what);
bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes);
/// Fills with the pattern that means "never written".
void poison(void* address, size_t bytes);

// ---- Streams (stream.cpp, engine.cpp) ----------------------------------------------------------

struct Stream;
struct Capture;
using StreamRef = std::shared_ptr<Stream>;

/// A place in a stream that is passed when all work before it is done.
struct Mark {
  StreamRef stream;
  uint64_t position = 0;
};

/// Work that several streams do together (a collective): runs when the last one has come to it.
struct Meeting {
  std::vector<Mark> places;  // one for each that has come
  size_t wanted = 0;
  std::function<void()> run;
  bool done = false;
};

/// One piece of enqueued work: runs `run`, waits for a mark, or meets others.
struct Task {
  std::string name;
  std::function<void()> run{};
  Mark wait_for{};
  std::shared_ptr<Meeting> meeting{};
  std::shared_ptr<const bool> given_up{};                   // nobody waits for the meeting any more
  std::function<std::shared_ptr<Meeting>()> new_meeting{};  // for each launch of a graph
};

struct Stream {
  int card = 0;
  bool non_blocking = false, destroyed = false;
  std::deque<Task> tasks;
  uint64_t issued = 0, completed = 0;
  std::shared_ptr<Capture> capture;
};

/// The stream of a handle, or null for one that is none (or was destroyed). Handle 0 is the card's
/// default stream.
StreamRef stream_of(cudaStream_t handle);
cudaStream_t handle_of(const StreamRef& stream);
std::vector<StreamRef> streams_of_card(int card);

/// Appends work to the stream, or to the graph that it is captured into.
cudaError_t enqueue(const StreamRef& stream, Task task);
/// Runs the stream, and what it waits for, up to position.
void run_to(const StreamRef& stream, uint64_t position);
void run_all(const StreamRef& stream);
/// Runs everything of one card.
void run_card(int card);
/// Runs one task as device code and looks at the red zones after it.
void play(const Task& task);

/// Lets the card's clock go on by what CREMA_SIM_ENGINE_MS="5,1,2" says of an engine of cuDNN.
void play_engine(int engine);

// ---- Capture (graph.cpp) -----------------------------------------------------------------------

/// Adds a node to the capture that the stream is in.
cudaError_t capture_task(Stream& stream, Task task);
/// cudaErrorStreamCaptureUnsupported, and the captures broken, where a call that must not happen
/// during capture happens; else cudaSuccess.
cudaError_t forbid_in_capture();
/// The same for a call about one stream.
cudaError_t forbid_on_capturing(Stream& stream);
/// The event's part in capture: where it stands, and waiting for it.
struct CapturedMark {
  std::weak_ptr<Capture> capture;
  std::vector<int> nodes;
};
CapturedMark mark_capture(const Stream& stream);
cudaError_t join_capture(const StreamRef& stream, const CapturedMark& mark);

}  // namespace crema::cuda_sim
