// Training logs of Crema, Caffe and NVCaffe as tables.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace crema {

/// What a log says about one iteration.
struct LogRow {
  int iteration = 0;
  double seconds = 0;  // since the solver started
  std::map<std::string, double> values;
};

/// Rows in the order of the log. Values of train rows: "lr", "loss" (as displayed, the mean of
/// average_loss iterations) and "output NAME"; of test rows "lr" (where known), "loss" (only with
/// test_compute_loss) and "output NAME". Elements of an output behind the first are NAME[1], ...
struct TrainingLog {
  std::vector<LogRow> train;
  std::vector<std::vector<LogRow>> tests;  // for each test net
  bool is_finished = false;                // the log says that optimization is done
};

/// Reads the lines that are there; others are passed over, values that are nan or inf are kept.
TrainingLog parse_training_log(const std::string& text);

/// The log of a file. Throws Error for a file that cannot be read or in which no iteration is
/// shown.
TrainingLog read_training_log(const std::string& path);

/// Columns NumIters, Seconds, LearningRate, each output by name, then SmoothedLoss (train) or
/// TestLoss where there is one; what a row lacks is empty.
std::string to_csv(const std::vector<LogRow>& rows, const char* loss_name);

/// {"train": [{"iter": .., "seconds": .., "lr": .., "loss": .., "outputs": {..}}, ..],
///  "test": [[..], ..]}; numbers that are not finite are null.
std::string to_json(const TrainingLog& log);

}  // namespace crema
