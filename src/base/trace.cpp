// Spans are put down when they end, under one lock: only while somebody records.
#include "base/trace.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <vector>

#include "base/file.h"
#include "base/str.h"

namespace crema {
namespace {

struct Event {
  std::string name;
  const char* category;
  int64_t begin, end;
  int thread;
  bool on_device;
};

struct Recording {
  std::mutex mutex;
  std::vector<Event> events;
  std::map<int, std::string> names;
  int64_t start = 0;
  int workers = 0;
};

Recording& recording() {
  static Recording one;
  return one;
}

int this_thread() {
  static std::atomic<int> next{1};
  thread_local const int number = next++;
  return number;
}

constexpr int kFirstWorker = 1000000;  // rows of device workers

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string microseconds(int64_t nanoseconds) {
  const std::string rest = std::to_string(nanoseconds % 1000);
  return str(nanoseconds / 1000, '.', std::string(3 - rest.size(), '0'), rest);
}

std::string row_name(int thread, const std::string& name) {
  return str(R"({"ph": "M", "name": "thread_name", "pid": 1, "tid": )", thread,
             R"(, "args": {"name": )", quoted(name), "}}");
}

std::string span(const Event& event, int thread, int64_t start) {
  return str(R"({"ph": "X", "name": )", quoted(event.name), R"(, "cat": ")", event.category,
             R"(", "pid": 1, "tid": )", thread, R"(, "ts": )", microseconds(event.begin - start),
             R"(, "dur": )", microseconds(event.end - event.begin), "}");
}

}  // namespace

std::atomic<bool> Trace::is_on_{false};

int64_t Trace::now() {
  using namespace std::chrono;
  return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

void Trace::start() {
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  to.events.clear();
  to.start = now();
  is_on_ = true;
}

void Trace::name_thread(const std::string& name) {
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  to.names[this_thread()] = name;
}

void Trace::set_device_workers(int count) {
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  to.workers = count;
}

void Trace::add(const char* category, std::string_view name, int64_t begin, bool on_device) {
  Recording& to = recording();
  const std::lock_guard lock(to.mutex);
  if (!is_on_ || begin < to.start) return;
  to.events.push_back({std::string(name), category, begin, now(), this_thread(), on_device});
}

std::string Trace::stop() {
  Recording& from = recording();
  const std::lock_guard lock(from.mutex);
  is_on_ = false;
  std::vector<std::string> lines;
  std::map<int, std::string> rows;
  for (const Event& event : from.events) {
    const auto named = from.names.find(event.thread);
    rows[event.thread] = named == from.names.end() ? str("thread ", event.thread) : named->second;
    lines.push_back(span(event, event.thread, from.start));
    for (int worker = 1; event.on_device && worker <= from.workers; ++worker) {
      rows[kFirstWorker + worker] = str("device worker ", worker);
      lines.push_back(span(event, kFirstWorker + worker, from.start));
    }
  }
  for (const auto& [thread, name] : rows) lines.push_back(row_name(thread, name));
  from.events.clear();
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n" + join(lines, ",\n") + "\n]}\n";
}

IterationTrace::IterationTrace(const std::string& path, int iterations)
    : path_(path), wanted_(std::min(2, iterations - 1)) {
  if (!path_.empty()) require_writable(path_);
}

void IterationTrace::begin(int iteration) const {
  if (!path_.empty() && iteration == wanted_) Trace::start();
}

void IterationTrace::end(int iteration) const {
  if (!path_.empty() && iteration == wanted_) write_file(path_, Trace::stop());
}

}  // namespace crema
