// crema COMMAND FLAGS. Exit status: 0 for success, early stop and usage; 1 for every error, which
// is caught here only.
#include <glog/logging.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"

DECLARE_bool(help);
DECLARE_bool(helpshort);

namespace crema {
namespace {

struct Command {
  const char* name;
  const char* purpose;
  int (*run)();
  bool takes_arguments = false;
};

constexpr Command kCommands[] = {
    {"train", "train or finetune a net", train_command},
    {"test", "score a net", test_command},
    {"time", "measure a net, layer by layer", time_command},
    {"run", "run a net once, inputs and outputs in HDF5 files", run_command},
    {"device_query", "show the GPUs that --gpu names", device_query_command},
    {"summary", "show layers, shapes, parameters, multiply-adds and memory", summary_command},
    {"deploy", "derive the deploy net from a train_val net", deploy_command},
    {"classify", "show the likeliest classes of pictures: FILES and folders", classify_command,
     true},
    {"lint", "list mistakes and known traps of a solver and its nets", lint_command},
    {"draw", "draw a net: SVG, PNG or .dot", draw_command},
    {"parse_log", "tables from training logs, CSV or JSON: LOGS", parse_log_command, true},
    {"plot", "loss, accuracy and rate of training logs as a picture: LOGS", plot_command, true},
    {"convert", "weights between .caffemodel, .h5 and .npz, means to .npy: IN OUT", convert_command,
     true},
};

std::vector<std::string> given_arguments;

std::string usage_text() {
  std::string text =
      "trains neural networks that are written down\n"
      "usage: crema COMMAND FLAGS\n\n"
      "commands:";
  for (const Command& command : kCommands) {
    std::string name = command.name;
    name.resize(std::max<size_t>(14, name.size() + 1), ' ');
    text += "\n  " + name + command.purpose;
  }
  return text;
}

const Command* find_command(const std::string& name) {
  for (const Command& command : kCommands) {
    if (name == command.name) return &command;
  }
  return nullptr;
}

/// Messages go to standard error. Files are written too where a folder for them is given
/// (GLOG_log_dir, --log_dir). BVLC: files in the temporary folder always.
void start_log(const char* program) {
  FLAGS_log_year_in_prefix = false;
  if (FLAGS_log_dir.empty()) {
    FLAGS_logtostderr = true;
  } else {
    FLAGS_alsologtostderr = true;
  }
  google::InitGoogleLogging(program);
}

int report(const std::string& message) {
  for (const std::string& line : split(message, '\n')) {
    if (FLAGS_minloglevel > google::GLOG_ERROR) {
      std::fprintf(stderr, "%s\n", line.c_str());
    } else {
      LOG(ERROR) << line;
    }
  }
  google::FlushLogFiles(google::GLOG_INFO);
  return 1;
}

int usage(const char* program) {
  gflags::ShowUsageWithFlagsRestrict(program, "tools/crema");
  return 0;
}

/// The error for `crema COMMAND WORD`, where FLAG=WORD was likely meant. BVLC: shows the usage and
/// succeeds.
std::string surplus_word(const std::string& command, const std::string& word) {
  const char* flag = command == "train" ? "--solver=" : "--model=";
  const std::string meant =
      command == "device_query" ? "" : str(" (did you mean ", flag, word, "?)");
  return str("crema ", command, " takes flags only, not \"", word, "\"", meant,
             "; crema --help lists them");
}

/// The commands that a flag's description names in front of its colons; none where every command
/// takes it.
std::vector<std::string> takers(const std::string& description) {
  std::vector<std::string> names;
  for (const std::string& part : split(description, ';')) {
    const size_t colon = part.find(':');
    std::vector<std::string> words =
        split(colon == std::string::npos ? "" : part.substr(0, colon), ',');
    for (std::string& word : words) word.erase(0, word.find_first_not_of(' '));
    const bool are_commands = std::all_of(words.begin(), words.end(), find_command);
    for (const std::string& word : words) {
      const bool is_new = std::find(names.begin(), names.end(), word) == names.end();
      if (are_commands && is_new) names.push_back(word);
    }
    if (names.empty()) return {};
  }
  return names;
}

/// BVLC: says nothing of flags that the command does not read.
void warn_of_foreign_flags(const std::string& command) {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  std::vector<std::string> ignored;
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    if (flag.is_default) continue;
    const std::vector<std::string> names = takers(flag.description);
    if (names.empty() || std::find(names.begin(), names.end(), command) != names.end()) continue;
    ignored.push_back(
        str("--", flag.name, " (which ", join(names), names.size() > 1 ? " take)" : " takes)"));
  }
  LOG_IF(WARNING, !ignored.empty()) << "crema " << command << " ignores " << join(ignored);
}

/// words: the command and whatever stands behind it beside flags.
int run_named(const std::vector<std::string>& words) {
  const std::string& name = words[0];
  const Command* found = find_command(name);
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const Command& command : kCommands) names.emplace_back(command.name);
    std::sort(names.begin(), names.end());
    return report(str("there is no command \"", name, "\"", did_you_mean(name, names),
                      "; there are ", join(names)));
  }
  if (words.size() > 1 && !found->takes_arguments) return report(surplus_word(name, words[1]));
  warn_of_foreign_flags(name);
  given_arguments.assign(words.begin() + 1, words.end());
  try {
    const int status = found->run();
    const bool is_shown = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
    require(is_shown, "cannot write standard output: ", errno_text());
    return status;
  } catch (const Error& error) {
    return report(error.what());
  } catch (const std::bad_alloc&) {
    return report("there is not enough memory");
  } catch (const std::exception& error) {
    return report(str("unexpected: ", error.what()));
  }
}

}  // namespace

const std::vector<std::string>& arguments() { return given_arguments; }

}  // namespace crema

int main(int argc, char** argv) {
  gflags::SetVersionString(CREMA_VERSION);
  gflags::SetUsageMessage(crema::usage_text());
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, true);
  if (FLAGS_help || FLAGS_helpshort) return crema::usage(argv[0]);
  gflags::HandleCommandLineHelpFlags();
  if (argc < 2) return crema::usage(argv[0]);
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file that may not grow is an error of its write, as a full disk is
  crema::start_log(argv[0]);
  return crema::run_named({argv + 1, argv + argc});
}
