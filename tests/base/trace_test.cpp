// What a trace records: nothing while off, spans of every thread while on, steps on the device's
// rows.
#include "base/trace.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/test_folder.h"

namespace crema {
namespace {

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++count;
  return count;
}

TEST(Trace, RecordsBetweenStartAndStopOnly) {
  { const TraceSpan before("test", "before"); }
  Trace::start();
  { const TraceSpan inside("test", "in\"side"); }
  const std::string text = Trace::stop();
  { const TraceSpan after("test", "after"); }
  EXPECT_EQ(count_of(text, "before"), 0U);
  EXPECT_EQ(count_of(text, R"("name": "in\"side", "cat": "test")"), 1U) << text;
  Trace::start();
  EXPECT_EQ(count_of(Trace::stop(), "\"ph\": \"X\""), 0U);
}

TEST(Trace, ASpanThatBeganBeforeIsLeftOut) {
  auto early = std::make_unique<TraceSpan>("test", "early");
  Trace::start();
  early = std::make_unique<TraceSpan>("test", "open");
  Trace::start();
  early.reset();
  EXPECT_EQ(count_of(Trace::stop(), "open"), 0U);
}

TEST(Trace, GivesEachThreadItsRow) {
  Trace::set_device_workers(2);
  Trace::start();
  { const TraceSpan step("forward", "conv1", true); }
  std::thread([] {
    Trace::name_thread("feed worker 1");
    const TraceSpan span("feed", "decode");
  }).join();
  const std::string text = Trace::stop();
  Trace::set_device_workers(0);
  EXPECT_EQ(count_of(text, "\"conv1\""), 3U) << text;
  EXPECT_EQ(count_of(text, "\"decode\""), 1U) << text;
  for (const char* row : {"feed worker 1", "device worker 1", "device worker 2"}) {
    EXPECT_EQ(count_of(text, row), 1U) << row << "\n" << text;
  }
}

TEST(Trace, WritesTheThirdIterationOrTheLast) {
  const TestFolder folder;
  const std::string path = folder / "trace.json";
  for (const auto& [iterations, recorded] : {std::pair{5, 2}, std::pair{2, 1}, std::pair{1, 0}}) {
    const IterationTrace trace(path, iterations);
    for (int i = 0; i < iterations; ++i) {
      trace.begin(i);
      const std::string name = "iteration " + std::to_string(i);
      { const TraceSpan span("test", name); }
      trace.end(i);
    }
    const std::string text = read_file(path);
    EXPECT_EQ(count_of(text, "\"iteration "), 1U);
    EXPECT_EQ(count_of(text, "\"iteration " + std::to_string(recorded)), 1U) << text;
  }
  EXPECT_THROW(IterationTrace("/nowhere/trace.json", 3), Error);
}

}  // namespace
}  // namespace crema
