// What solver tests share: a folder of their own to work in, the log as a list of lines, small nets
// over stored or constant data.
#pragma once

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/test_folder.h"
#include "solver/solver.h"

namespace crema {

/// A fresh folder that is the working folder as long as it lives.
class WorkFolder {
 public:
  WorkFolder() { std::filesystem::current_path(folder_.path()); }
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::current_path(before_, ignored);
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  const std::string& path() const { return folder_.path(); }

 private:
  TestFolder folder_;
  std::filesystem::path before_ = std::filesystem::current_path();
};

/// The messages logged while it lives.
class LogLines : public google::LogSink {
 public:
  LogLines() { google::AddLogSink(this); }
  ~LogLines() override { google::RemoveLogSink(this); }
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  using google::LogSink::send;
  void send(google::LogSeverity, const char*, const char*, int, const struct ::tm*,
            const char* message, size_t length) override {
    lines_.emplace_back(message, length);
  }
  /// Lines that contain text.
  std::vector<std::string> with(const std::string& text) const;
  const std::vector<std::string>& all() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

/// Writes FILE.h5 with data [rows, width] and label [rows, 1], and FILE.txt that lists it. Values
/// are a fixed function of their place, in [-1, 1].
void write_rows(const std::string& file, int rows, int width);

/// A HDF5Data layer over rows.txt with tops data and label, and these include or exclude rules.
std::string data_layer(const char* name, const char* rules, int batch);

/// Layers from data to ip, and from ip and label to loss; fields of a solver.
constexpr const char* kPredict =
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
    "num_output: 1 "
    "weight_filler { type: 'xavier' } } } ";
constexpr const char* kLoss =
    "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'label' top: 'loss' } ";
constexpr const char* kFixed =
    "base_lr: 0.05 lr_policy: 'fixed' random_seed: 3 snapshot_after_train: false ";

/// A solver of those layers; `more` may replace its fields.
std::string regression(int batch, const std::string& more = "");

/// A SolverParameter from text; '|' stands between parts, of which a later one's values win.
SolverParameter parse_solver(const std::string& text);

/// A solver on the CPU, of parse_solver(text), net and all.
std::unique_ptr<Solver> make_solver(const std::string& text, const std::string& resume = "");

/// make_solver throws an Error; its text.
std::string solver_error(const std::string& text, const std::string& resume = "");

/// All parameters' values, one after another.
std::vector<float> all_params(const Solver& solver);
/// All history values, one after another.
std::vector<float> all_history(const Solver& solver);

}  // namespace crema
