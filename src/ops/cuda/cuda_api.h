// The CUDA runtime, thinly: every status is checked and becomes an Error, every handle has an
// owner.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "ops/ops.h"

namespace crema::cuda {

/// Throws Error with what was tried and the runtime's name and text of the status.
void check(cudaError_t status, const char* what);

/// How many cards answer. Throws Error with both versions where the driver is missing or too old,
/// or with the reason.
int device_count();
/// "NVIDIA H200 (sm_90, 139.8 GiB, driver 13.0, CUDA 13.0)".
std::string describe_device(int index);

/// A card's architecture: 90 for sm_90.
int architecture_of(int index);

/// The current card's memory, in all.
size_t device_bytes();

/// A version as CUDA counts it, 13020, as 13.2.
std::string version_text(int version);

/// An in-order queue of one card.
class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }
  void synchronize() const;

 private:
  cudaStream_t stream_ = nullptr;
};

/// A mark in a Stream, for others to wait for.
class Mark {
 public:
  Mark();
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;
  /// What `after` is given from now on comes after all that `before` has been given.
  void order(const Stream& before, const Stream& after) const;

 private:
  cudaEvent_t event_ = nullptr;
};

/// The time that a stretch of a Stream takes on the card.
class Stopwatch {
 public:
  Stopwatch();
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void start(const Stream& stream) const;
  /// Waits; milliseconds since start().
  float stop(const Stream& stream) const;

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

/// What a stretch of a Stream was recorded into.
class Graph {
 public:
  /// Ends the recording that the stream is in.
  explicit Graph(const Stream& stream);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  void launch(const Stream& stream) const;

 private:
  cudaGraphExec_t exec_ = nullptr;
};

void begin_recording(const Stream& stream);
/// True between begin_recording and the Graph that ends it.
bool is_recording(const Stream& stream);

/// Zero-filled memory of the current card or of the host, pinned. Throws Error that says how much
/// is free.
Buffer allocate(size_t bytes, Memory kind, const Stream& stream);

/// Between any two memories; the driver tells which is whose.
void copy(const void* from, void* to, size_t bytes, const Stream& stream);
void clear(void* memory, size_t bytes, const Stream& stream);

}  // namespace crema::cuda
