// crema plot LOG...: loss, accuracy and learning rate over the iterations, of one or several logs
// in one picture; with --follow again and again while they grow.
#include <gflags/gflags.h>
#include <glog/logging.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "io/svg_plot.h"
#include "io/training_log.h"
#include "program.h"

DECLARE_string(output);
DEFINE_bool(follow, false, "plot: draw again while the logs grow, until their runs have ended");
DEFINE_bool(log_scale, false, "plot: loss on a logarithmic scale");

namespace crema {
namespace {

volatile std::sig_atomic_t is_stopped = 0;

using Rows = std::vector<LogRow>;

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_accuracy(const std::string& key) {
  const std::string name = lower(key);
  return name.rfind("output ", 0) == 0 &&
         (name.find("acc") != std::string::npos || name.find("top") != std::string::npos ||
          name.find("map") != std::string::npos || name.find("eval") != std::string::npos);
}

bool is_loss(const std::string& key) {
  return key == "loss" ||
         (key.rfind("output ", 0) == 0 && lower(key).find("loss") != std::string::npos);
}

/// One line for each key of rows that `wanted` takes. Values that a log shows once are elements
/// of a vector's first; others are left out, they would crowd the picture.
void add_lines(const Rows& rows, const std::string& name, size_t colour, bool is_dashed,
               bool (*wanted)(const std::string&), PlotPanel* panel) {
  std::vector<std::string> keys;
  for (const LogRow& row : rows) {
    for (const auto& [key, value] : row.values) {
      const bool is_new = std::find(keys.begin(), keys.end(), key) == keys.end();
      if (is_new && wanted(key) && key.find('[') == std::string::npos) keys.push_back(key);
    }
  }
  for (const std::string& key : keys) {
    PlotLine line{.name = name, .points = {}, .colour = colour, .is_dashed = is_dashed};
    if (key.rfind("output ", 0) == 0) line.name += " " + key.substr(7);
    for (const LogRow& row : rows) {
      const auto found = row.values.find(key);
      if (found != row.values.end()) line.points.emplace_back(row.iteration, found->second);
    }
    panel->lines.push_back(std::move(line));
  }
}

std::string picture_of(const std::vector<std::string>& paths,
                       const std::vector<TrainingLog>& logs) {
  PlotPanel loss{.title = "loss", .lines = {}, .is_logarithmic = FLAGS_log_scale};
  PlotPanel accuracy{.title = "accuracy", .lines = {}};
  PlotPanel rate{.title = "learning rate", .lines = {}, .is_logarithmic = true};
  for (size_t i = 0; i < logs.size(); ++i) {
    const std::string stem = std::filesystem::path(paths[i]).stem();
    const std::string prefix = logs.size() > 1 ? stem + " " : "";
    const auto only_smoothed = [](const std::string& key) { return key == "loss"; };
    const auto only_rate = [](const std::string& key) { return key == "lr"; };
    add_lines(logs[i].train, prefix + "train", i, false, only_smoothed, &loss);
    add_lines(logs[i].train, prefix + "train", i, false, is_accuracy, &accuracy);
    add_lines(logs[i].train, prefix + "rate", i, false, only_rate, &rate);
    for (size_t k = 0; k < logs[i].tests.size(); ++k) {
      const std::string name = prefix + "test" + (k > 0 ? std::to_string(k) : "");
      add_lines(logs[i].tests[k], name, i + k, true, is_loss, &loss);
      add_lines(logs[i].tests[k], name, i + k, true, is_accuracy, &accuracy);
    }
  }
  return draw_svg(join(paths), "iteration", {loss, accuracy, rate});
}

void write_picture(const std::string& svg, bool is_live) {
  const std::string extension = std::filesystem::path(FLAGS_output).extension();
  if (extension == ".html") {
    const char* refresh = is_live ? "<meta http-equiv=\"refresh\" content=\"2\">" : "";
    write_file(FLAGS_output, str("<!DOCTYPE html><meta charset=\"utf-8\">", refresh, "\n", svg));
  } else if (extension == ".png") {
    write_atomically(FLAGS_output, [&](const std::string& path) {
      write_file(path + ".svg", svg);
      run_program({"rsvg-convert", "-o", path, path + ".svg"});
      std::filesystem::remove(path + ".svg");
    });
  } else {
    write_file(FLAGS_output, svg);
  }
}

/// The log of a run that has only begun may show nothing yet.
TrainingLog read_log(const std::string& path) {
  return FLAGS_follow ? parse_training_log(read_file(path)) : read_training_log(path);
}

void follow(const std::vector<std::string>& paths) {
  std::signal(SIGINT, [](int) { is_stopped = 1; });
  std::string last;
  for (bool is_live = true; is_live && is_stopped == 0;) {
    std::vector<TrainingLog> logs;
    is_live = false;
    for (const std::string& path : paths) {
      logs.push_back(read_log(path));
      is_live |= !logs.back().is_finished;
    }
    const std::string svg = picture_of(paths, logs);
    if (svg != last || !is_live) write_picture(svg, is_live);
    last = svg;
    if (is_live) std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

}  // namespace

int plot_command() {
  require(!arguments().empty(), "crema plot needs log files");
  require_flag(FLAGS_output, "plot", "output", "the picture to write (.svg, .png or .html)");
  const std::string extension = std::filesystem::path(FLAGS_output).extension();
  require(extension == ".svg" || extension == ".html" || extension == ".png",
          "--output=", FLAGS_output, ": the name must end in .svg, .png or .html");
  require(
      extension != ".png" || is_installed("rsvg-convert"), "--output=", FLAGS_output,
      ": .png needs the program rsvg-convert (package librsvg2-bin); .svg and .html need nothing");
  require_writable(FLAGS_output);
  if (FLAGS_follow) {
    follow(arguments());
  } else {
    std::vector<TrainingLog> logs;
    for (const std::string& path : arguments()) logs.push_back(read_log(path));
    write_picture(picture_of(arguments(), logs), false);
  }
  LOG(INFO) << "Wrote " << FLAGS_output;
  return 0;
}

}  // namespace crema
