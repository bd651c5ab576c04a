// A line counts when it has glog's prefix and a known message; NVCaffe puts "[n.d]" between them.
#include "io/training_log.h"

#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"

namespace crema {
namespace {

constexpr const char* kOutput = "output ";

/// Days before each month, in a leap year: logs do not tell the year.
constexpr int kDays[] = {0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335};

struct Line {
  double seconds;  // since the year began
  std::string message;
};

/// False for lines without glog's prefix: "I1130 18:12:21.123456  1234 solver.cpp:10] message".
bool parse_line(const std::string& text, Line* line) {
  int month = 0, day = 0, hour = 0, minute = 0, length = 0;
  double second = 0;
  if (text.empty() || text[0] < 'A' || text[0] > 'Z') return false;
  if (std::sscanf(text.c_str() + 1, "%2d%2d %d:%d:%lf%n", &month, &day, &hour, &minute, &second,
                  &length) != 5 ||
      month < 1 || month > 12) {
    return false;
  }
  const size_t bracket = text.find("] ", static_cast<size_t>(length));
  if (bracket == std::string::npos) return false;
  line->seconds = 86400.0 * (kDays[month - 1] + day) + 3600 * hour + 60 * minute + second;
  line->message = text.substr(bracket + 2);
  const size_t device = line->message.find("] ");
  if (!line->message.empty() && line->message[0] == '[' && device != std::string::npos) {
    line->message.erase(0, device + 2);
  }
  return true;
}

/// The number behind `key` in text; false where there is none.
bool number_after(const std::string& text, const std::string& key, double* value) {
  const size_t at = text.find(key);
  if (at == std::string::npos) return false;
  const char* begin = text.c_str() + at + key.size();
  char* end = nullptr;
  *value = std::strtod(begin, &end);
  return end != begin;
}

class Parser {
 public:
  TrainingLog parse(const std::string& text) {
    for (const std::string& one : split(text, '\n')) {
      Line line;
      if (parse_line(one, &line)) take(line);
    }
    return std::move(log_);
  }

 private:
  void take(const Line& line) {
    double seconds = line.seconds + turn_of_year_;
    if (seconds < last_seconds_ - 86400) {  // a clock that is set back is not a new year
      turn_of_year_ += 366 * 86400.0;
      seconds += 366 * 86400.0;
    }
    last_seconds_ = seconds;
    const std::string& message = line.message;
    if (!has_start_ && message.rfind("Solving", 0) == 0) {
      has_start_ = true;
      start_ = seconds;
    }
    if (start_ < 0) start_ = seconds;
    seconds_ = seconds - start_;
    if (message.rfind("Optimization Done", 0) == 0 ||
        message.rfind("Optimization stopped early", 0) == 0) {
      log_.is_finished = true;
    }
    double value = 0;
    if (message.rfind("Iteration ", 0) == 0) {
      take_iteration(message);
    } else if (message.rfind("Test loss: ", 0) == 0 && row_ != nullptr) {
      if (number_after(message, "Test loss: ", &value)) row_->values["loss"] = value;
    } else {
      take_output(message);
    }
  }

  void take_iteration(const std::string& message) {
    const int iteration = std::atoi(message.c_str() + 10);
    double value = 0;
    if (number_after(message, ", Testing net (#", &value)) {
      const auto net = static_cast<size_t>(value);
      if (net > 1000) return;
      if (log_.tests.size() <= net) log_.tests.resize(net + 1);
      log_.tests[net].push_back({iteration, seconds_, {}});
      row_ = &log_.tests[net].back();
      if (has_rate_) row_->values["lr"] = rate_;
    } else if (number_after(message, ", loss = ", &value)) {
      train_row(iteration).values["loss"] = value;
    } else if (number_after(message, ", lr = ", &value)) {
      has_rate_ = true;
      rate_ = value;
      train_row(iteration).values["lr"] = value;
    }
  }

  LogRow& train_row(int iteration) {
    if (log_.train.empty() || log_.train.back().iteration != iteration) {
      log_.train.push_back({iteration, seconds_, {}});
    }
    row_ = &log_.train.back();
    return *row_;
  }

  /// "    Train net output #3: NAME = 0.5 (* 1 = 0.5 loss)".
  void take_output(const std::string& message) {
    const size_t begin = message.find_first_not_of(' ');
    if (row_ == nullptr || begin == std::string::npos) return;
    const bool is_output = message.compare(begin, 18, "Train net output #") == 0 ||
                           message.compare(begin, 17, "Test net output #") == 0;
    const size_t colon = message.find(": ", begin), equals = message.find(" = ", begin);
    if (!is_output || colon == std::string::npos || equals == std::string::npos || equals < colon) {
      return;
    }
    const std::string name = kOutput + message.substr(colon + 2, equals - colon - 2);
    double value = 0;
    if (!number_after(message.substr(equals), " = ", &value)) return;
    std::string place = name;
    for (int i = 1; row_->values.count(place) > 0; ++i) place = str(name, "[", i, "]");
    row_->values[place] = value;
  }

  TrainingLog log_;
  LogRow* row_ = nullptr;  // what outputs belong to
  bool has_start_ = false, has_rate_ = false;
  double start_ = -1, seconds_ = 0, last_seconds_ = 0, turn_of_year_ = 0, rate_ = 0;
};

bool is_output(const std::string& key) { return key.rfind(kOutput, 0) == 0; }

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return json_number(value);
}

std::string row_json(const LogRow& row) {
  std::string out = str("{\"iter\": ", row.iteration, ", \"seconds\": ", json_number(row.seconds));
  std::string outputs;
  for (const auto& [key, value] : row.values) {
    if (!is_output(key)) {
      out += ", " + json_text(key) + ": " + json_number(value);
    } else {
      outputs +=
          (outputs.empty() ? "" : ", ") + json_text(key.substr(7)) + ": " + json_number(value);
    }
  }
  return out + ", \"outputs\": {" + outputs + "}}";
}

std::string rows_json(const std::vector<LogRow>& rows) {
  std::vector<std::string> parts;
  for (const LogRow& row : rows) parts.push_back(row_json(row));
  return "[" + join(parts, ",\n  ") + "]";
}

}  // namespace

TrainingLog parse_training_log(const std::string& text) { return Parser().parse(text); }

TrainingLog read_training_log(const std::string& path) {
  TrainingLog log = parse_training_log(read_file(path));
  require(!log.train.empty() || !log.tests.empty(), path,
          ": shows no iteration; a log of crema train (its standard error) is needed");
  return log;
}

std::string to_csv(const std::vector<LogRow>& rows, const char* loss_name) {
  std::set<std::string> outputs;
  bool has_loss = false;
  for (const LogRow& row : rows) {
    for (const auto& [key, value] : row.values) {
      if (is_output(key)) outputs.insert(key);
      has_loss |= key == "loss";
    }
  }
  std::vector<std::string> keys = {"lr"};
  keys.insert(keys.end(), outputs.begin(), outputs.end());
  std::string out = "NumIters,Seconds,LearningRate";
  for (const std::string& key : outputs) out += "," + key.substr(7);
  if (has_loss) {
    out += std::string(",") + loss_name;
    keys.emplace_back("loss");
  }
  out += "\n";
  for (const LogRow& row : rows) {
    out += str(row.iteration, ",", number(row.seconds));
    for (const std::string& key : keys) {
      const auto found = row.values.find(key);
      out += "," + (found == row.values.end() ? "" : number(found->second));
    }
    out += "\n";
  }
  return out;
}

std::string to_json(const TrainingLog& log) {
  std::vector<std::string> tests;
  for (const std::vector<LogRow>& rows : log.tests) tests.push_back(rows_json(rows));
  return "{\"train\": " + rows_json(log.train) + ",\n \"test\": [" + join(tests, ",\n ") + "]}\n";
}

}  // namespace crema
