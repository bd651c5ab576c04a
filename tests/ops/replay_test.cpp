// Replay: done, recorded, replayed, in this order; forgotten when told.
#include "ops/replay.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace crema {
namespace {

/// Writes down what it is asked for.
class FakeDevice {
 public:
  explicit FakeDevice(bool records) : records_(records) {}
  bool can_record() const { return records_; }
  void begin_recording() { log += "begin "; }
  Recording end_recording() {
    log += "end ";
    return std::make_shared<int>(++recordings_);
  }
  void replay(const Recording& recording) {
    log += "replay" + std::to_string(*static_cast<int*>(recording.get())) + ' ';
  }
  std::string log;

 private:
  bool records_;
  int recordings_ = 0;
};

void run(Replay& replay, FakeDevice& device, int times) {
  for (int i = 0; i < times; ++i) replay.run(device, [&] { device.log += "calls "; });
}

TEST(Replay, CallsEachTimeWhereTheDeviceCannotRecord) {
  FakeDevice device(false);
  Replay replay;
  run(replay, device, 3);
  EXPECT_EQ(device.log, "calls calls calls ");
}

TEST(Replay, RecordsTheSecondTime) {
  FakeDevice device(true);
  Replay replay;
  run(replay, device, 4);
  EXPECT_EQ(device.log, "calls begin calls end replay1 replay1 replay1 ");
}

TEST(Replay, BeginsAgainWhenItForgot) {
  FakeDevice device(true);
  Replay replay;
  run(replay, device, 2);
  replay.forget();
  device.log.clear();
  run(replay, device, 3);
  EXPECT_EQ(device.log, "calls begin calls end replay2 replay2 ");
}

TEST(Replay, EndsTheRecordingOfCallsThatFail) {
  FakeDevice device(true);
  Replay replay;
  run(replay, device, 1);
  EXPECT_THROW(replay.run(device, [] { throw std::runtime_error("no"); }), std::runtime_error);
  run(replay, device, 1);
  EXPECT_EQ(device.log, "calls begin end begin calls end replay2 ");
}

}  // namespace
}  // namespace crema
