// A record of what each thread did when, as a Chrome trace (the Trace Event Format;
// chrome://tracing and Perfetto load it). Off until start(): a span then costs one read of a flag
// and allocates nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace crema {

/// The process's one trace.
class Trace {
 public:
  static bool is_on() { return is_on_.load(std::memory_order_relaxed); }
  /// Forgets what was recorded and begins.
  static void start();
  /// Ends the recording and returns it as JSON: {"traceEvents": [...]}, times in microseconds since
  /// start(), one row per thread that did something and one per worker of the device.
  static std::string stop();
  /// The calling thread's row from now on; threads that say nothing are "thread N".
  static void name_thread(const std::string& name);
  /// How many threads beside the calling one carry out a device step: each has a row, on which
  /// every span of a step stands too.
  static void set_device_workers(int count);

 private:
  friend class TraceSpan;
  static void add(const char* category, std::string_view name, int64_t begin, bool on_device);
  static int64_t now();  // nanoseconds of a steady clock
  static std::atomic<bool> is_on_;
};

/// From its construction to its end: one span in the row of its thread. name must outlive it.
/// on_device: the device's workers take part.
class TraceSpan {
 public:
  TraceSpan(const char* category, std::string_view name, bool on_device = false)
      : category_(category),
        name_(name),
        begin_(Trace::is_on() ? Trace::now() : -1),
        on_device_(on_device) {}
  ~TraceSpan() {
    if (begin_ >= 0) Trace::add(category_, name_, begin_, on_device_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  const char* category_;
  std::string_view name_;
  int64_t begin_;
  bool on_device_;
};

/// Records one of many iterations to a file, a steady one: the third, or the last where there are
/// fewer. Does nothing where path is empty.
class IterationTrace {
 public:
  IterationTrace() = default;
  /// Throws Error where path cannot be written.
  IterationTrace(const std::string& path, int iterations);
  /// Before and after an iteration, 0 for the first; writes the file after the recorded one. Throws
  /// Error where that fails.
  void begin(int iteration) const;
  void end(int iteration) const;

 private:
  std::string path_;
  int wanted_ = -1;
};

}  // namespace crema
