// crema parse_log LOG...: training logs as CSV or JSON tables.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "io/training_log.h"

DECLARE_string(output);
DEFINE_string(format, "csv", "parse_log: csv or json");

namespace crema {
namespace {

void write_tables(const std::string& path) {
  const TrainingLog log = read_training_log(path);
  const std::string folder = FLAGS_output.empty() ? "." : FLAGS_output;
  const std::string stem = folder + "/" + std::filesystem::path(path).filename().string();
  const auto write = [](const std::string& file, const std::string& content) {
    write_file(file, content);
    LOG(INFO) << "Wrote " << file;
  };
  if (FLAGS_format == "json") {
    write(stem + ".json", to_json(log));
    return;
  }
  write(stem + ".train", to_csv(log.train, "SmoothedLoss"));
  for (size_t i = 0; i < log.tests.size(); ++i) {
    write(i == 0 ? stem + ".test" : str(stem, ".test", i), to_csv(log.tests[i], "TestLoss"));
  }
}

}  // namespace

int parse_log_command() {
  require(!arguments().empty(), "crema parse_log needs log files");
  require(FLAGS_format == "csv" || FLAGS_format == "json", "--format is csv or json, not \"",
          FLAGS_format, "\"");
  require(FLAGS_output.empty() || is_directory(FLAGS_output), "--output=", FLAGS_output,
          ": a folder is needed, a log gives several files");
  for (const std::string& path : arguments()) write_tables(path);
  return 0;
}

}  // namespace crema
