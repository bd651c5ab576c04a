// --autotune on the simulated card, whose engines take the times that a test gives: the choice
// follows them, is kept, and bad files are told and written anew. Engine 0 of the stand-in rounds
// to TF32, engine 1 does not, so a result tells which one ran.
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/file.h"
#include "base/test_folder.h"
#include "ops/ops.h"

namespace crema {
namespace {

class LogText : public google::LogSink {
 public:
  LogText() { google::AddLogSink(this); }
  ~LogText() override { google::RemoveLogSink(this); }
  LogText(const LogText&) = delete;
  LogText& operator=(const LogText&) = delete;
  using google::LogSink::send;
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*,
            const char* message, size_t length) override {
    text_ += std::string(message, length) + "\n";
  }
  bool has(const std::string& part) const { return text_.find(part) != std::string::npos; }

 private:
  std::string text_;
};

/// Engines' milliseconds as long as it lives.
class EngineTimes {
 public:
  explicit EngineTimes(const char* times) { setenv("CREMA_SIM_ENGINE_MS", times, 1); }
  ~EngineTimes() { unsetenv("CREMA_SIM_ENGINE_MS"); }
  EngineTimes(const EngineTimes&) = delete;
  EngineTimes& operator=(const EngineTimes&) = delete;
};

constexpr float kBelowTf32 = 1 + 0x1p-15F;  // TF32 has 10 bits of mantissa

/// One product of a convolution of one pixel: kBelowTf32 * 1, by whatever engine was chosen.
float product(const std::string& file) {
  const std::shared_ptr<Ops> ops = make_ops({.gpu = true, .tf32 = true, .autotune = file});
  ConvDesc desc;
  desc.x = {Shape{1, 8, 4, 4}, DType::f32, Layout::nhwc};
  desc.w = {Shape{8, 8, 1, 1}, DType::f32, Layout::nchw};
  desc.y = desc.x;
  desc.pad = {2, {0, 0}};
  desc.stride = desc.dilation = {2, {1, 1}};
  desc.train = false;
  const std::unique_ptr<ConvPlan> plan = ops->plan(desc);
  std::vector<Buffer> buffers;
  const auto tensor = [&](const TensorDesc& of) {
    buffers.push_back(ops->allocate(of.bytes() + 64, Memory::device));
    return Tensor{buffers.back().get(), of};
  };
  const auto bytes = [&](size_t count) {
    return tensor({Shape{static_cast<int64_t>(count)}, DType::u8, Layout::nchw});
  };
  plan->bind({.scratch = bytes(plan->needs().scratch),
              .saved = {},
              .state = {},
              .packed = bytes(plan->needs().packed)});
  const Tensor x = tensor(desc.x), w = tensor(desc.w), y = tensor(desc.y);
  std::vector<float> values(128, 0.0F), weights(64, 0.0F);
  values[0] = kBelowTf32;
  weights[0] = 1;
  ops->upload(values.data(), x);
  ops->upload(weights.data(), w);
  plan->weights_changed(w);
  plan->forward(x, w, {}, {}, y);
  ops->download(y, values.data());
  return values[0];
}

TEST(Autotune, TakesTheFastestEngine) {
  const TestFolder folder;
  const LogText log;
  {
    const EngineTimes times("5,1,9");
    EXPECT_EQ(product(folder / "slow_tensor_cores"), kBelowTf32);
  }
  const EngineTimes times("1,5,9");
  EXPECT_EQ(product(folder / "fast_tensor_cores"), 1);
  EXPECT_EQ(product(""), 1) << "by heuristics";
  EXPECT_TRUE(log.has("engine 1 takes 1 ms, the heuristics' 5 ms"));
}

TEST(Autotune, MeasuresOnceAndKeepsTheChoice) {
  const TestFolder folder;
  const std::string file = folder / "choices";
  {
    const EngineTimes times("5,1,9");
    product(file);
  }
  const std::string kept = read_file(file);
  const LogText log;
  const EngineTimes times("1,5,9");
  EXPECT_EQ(product(file), kBelowTf32);
  EXPECT_FALSE(log.has("Measured"));
  EXPECT_EQ(read_file(file), kept);
}

TEST(Autotune, KnowsTheCardAndItsVersions) {
  const TestFolder folder;
  const std::string file = folder / "choices";
  const EngineTimes times("5,1,9");
  product(file);
  std::string other = read_file(file);
  EXPECT_NE(other.find(make_ops({.gpu = true})->describe()), std::string::npos) << other;
  const size_t at = other.find("cuDNN ");
  ASSERT_NE(at, std::string::npos);
  other[at + 6] = '1';
  folder.write("other", other);
  const LogText log;
  product(folder / "other");
  EXPECT_TRUE(log.has("Measured"));
  const std::string both = read_file(folder / "other");
  EXPECT_NE(both.find("\nend 2\n"), std::string::npos) << "the other card's choice stays\n" << both;
}

TEST(Autotune, MeasuresAgainWhereTheEnginesAreOthers) {
  const TestFolder folder;
  const std::string file = folder / "choices";
  const EngineTimes times("5,1,9");
  product(file);
  std::string text = read_file(file);
  const size_t at = text.find("\t1\t1\t");
  ASSERT_NE(at, std::string::npos) << text;
  text[at + 3] = '7';
  folder.write("choices", text);
  const LogText log;
  EXPECT_EQ(product(file), kBelowTf32);
  EXPECT_TRUE(log.has("Measured"));
}

TEST(Autotune, TellsOfADamagedOrForeignFileAndWritesItAnew) {
  const TestFolder folder;
  const EngineTimes times("5,1,9");
  product(folder / "whole");
  const std::string whole = read_file(folder / "whole");
  const std::vector<std::string> damaged = {"",
                                            "a picture",
                                            "crema autotune 1\n",
                                            whole.substr(0, whole.size() - 1),
                                            whole.substr(0, whole.rfind("end")),
                                            whole.substr(0, whole.size() / 2),
                                            "crema autotune 1\nkey\t1\tx\t2\nend 1\n"};
  for (size_t i = 0; i < damaged.size(); ++i) {
    const std::string name = "damaged" + std::to_string(i);
    folder.write(name, damaged[i]);
    const LogText log;
    EXPECT_EQ(product(folder / name), kBelowTf32);
    EXPECT_TRUE(log.has("no whole file of --autotune")) << i;
    EXPECT_EQ(read_file(folder / name), whole) << i;
  }
}

}  // namespace
}  // namespace crema
