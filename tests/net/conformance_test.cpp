// The conformance cases of single layers and small nets: inputs, parameters and the values that the
// reference gave in float64 lie beside each prototxt. Each runs with every blob kept, with planned
// memory, unfused, and in plain layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/hdf5.h"
#include "io/prototxt.h"
#include "net/net.h"
#include "test_device.h"

namespace crema {
namespace {

const std::string kFolder = source_folder() + "/tests/conformance/layers/";

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".prototxt") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// Largest difference, relative to the largest expected magnitude (at least 1e-3); infinite where
/// one is not finite.
double error_of(const std::vector<float>& got, const std::vector<float>& want) {
  if (got.size() != want.size()) return INFINITY;
  double difference = 0, magnitude = 1e-3;
  for (size_t i = 0; i < got.size(); ++i) {
    if (!std::isfinite(want[i])) {
      if (std::isnan(want[i]) ? !std::isnan(got[i]) : got[i] != want[i]) return INFINITY;
      continue;
    }
    if (!std::isfinite(got[i])) return INFINITY;
    difference = std::max(difference, std::abs(double{got[i]} - want[i]));
    magnitude = std::max(magnitude, std::abs(double{want[i]}));
  }
  return difference / magnitude;
}

class Case {
 public:
  Case(const std::string& name, bool keep_all, bool fuse, bool force_nchw)
      : keep_all_(keep_all), file_(open(name)) {
    NetOptions options;
    options.train = file_.has("param_grads") || file_.has("input_grads");
    options.keep_all = keep_all;
    options.fuse = fuse;
    options.force_nchw = force_nchw;
    options.log = false;
    options.file = name;
    net_ = std::make_unique<Net>(read_net(kFolder + name + ".prototxt"), options,
                                 make_ops(test_device()));
    for (const std::string& blob : file_.datasets("inputs"))
      net_->set_blob(blob, file_.read("inputs/" + blob).data);
    for_each_param("params",
                   [&](int p, const HostBlob& blob) { net_->set_param_values(p, blob.data); });
    loss_ = net_->forward();
    if (options.train) net_->backward();
  }

  void check() {
    if (file_.has("loss")) {
      EXPECT_LT(error_of({loss_}, file_.read("loss").data), 1e-4) << "loss";
    }
    for (const std::string& blob : file_.datasets("outputs")) {
      const bool is_output =
          std::any_of(net_->outputs().begin(), net_->outputs().end(),
                      [&](const NetOutput& output) { return output.name == blob; });
      if (!keep_all_ && !is_output) continue;
      EXPECT_LT(error_of(net_->blob_values(blob), file_.read("outputs/" + blob).data), 1e-4)
          << blob;
    }
    for_each_param("params_after", [&](int p, const HostBlob& blob) {
      EXPECT_LT(error_of(net_->param_values(p), blob.data), 1e-4) << "parameter " << p;
    });
    for_each_param("param_grads", [&](int p, const HostBlob& blob) {
      EXPECT_LT(error_of(net_->param_gradient(p), blob.data), 5e-4)
          << "gradient of parameter " << p;
    });
    for (const std::string& blob : file_.datasets("input_grads")) {
      const std::vector<float> want = file_.read("input_grads/" + blob).data;
      const std::vector<float> got =
          net_->blob_gradient(blob).value_or(std::vector<float>(want.size(), 0.0F));
      EXPECT_LT(error_of(got, want), 5e-4) << "gradient of " << blob;
    }
  }

 private:
  static Hdf5File open(const std::string& name) { return Hdf5File::open(kFolder + name + ".h5"); }

  template <class F>
  void for_each_param(const std::string& group, const F& use) {
    for (const std::string& path : file_.datasets(group)) {
      const size_t slash = path.rfind('/');
      const int layer = net_->layer_index(path.substr(0, slash));
      ASSERT_GE(layer, 0) << path;
      use(net_->param_of(layer, std::stoi(path.substr(slash + 1))), file_.read(group + "/" + path));
    }
  }

  bool keep_all_;
  Hdf5File file_;
  std::unique_ptr<Net> net_;
  float loss_ = 0;
};

class Conformance : public testing::TestWithParam<std::string> {};

TEST_P(Conformance, EveryBlobKept) { Case(GetParam(), true, true, false).check(); }
TEST_P(Conformance, PlannedMemory) { Case(GetParam(), false, true, false).check(); }
TEST_P(Conformance, Unfused) { Case(GetParam(), false, false, false).check(); }
TEST_P(Conformance, PlainLayout) { Case(GetParam(), false, true, true).check(); }

INSTANTIATE_TEST_SUITE_P(Layers, Conformance, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace crema
