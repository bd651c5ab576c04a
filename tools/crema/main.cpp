// crema COMMAND FLAGS. Exit status: 0 for success, early stop and usage; 1 for every error, which
// is caught here only.
#include <glog/logging.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>

#include "base/error.h"
#include "commands.h"

DECLARE_bool(help);
DECLARE_bool(helpshort);

namespace crema {
namespace {

constexpr const char* kUsage =
    "trains neural networks that are written down\n"
    "usage: crema COMMAND FLAGS\n\n"
    "commands:\n"
    "  train         train or finetune a net\n"
    "  test          score a net\n"
    "  time          measure a net, layer by layer\n"
    "  run           run a net once, inputs and outputs in HDF5 files\n"
    "  device_query  show the GPUs that --gpu names";

const std::map<std::string, int (*)()>& commands() {
  static const std::map<std::string, int (*)()> table = {{"train", train_command},
                                                         {"test", test_command},
                                                         {"time", time_command},
                                                         {"run", run_command},
                                                         {"device_query", device_query_command}};
  return table;
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

/// words: the command and whatever stands behind it beside flags.
int run_named(const std::vector<std::string>& words) {
  const std::string& name = words[0];
  std::vector<std::string> names;
  for (const auto& [known, command] : commands()) names.push_back(known);
  const auto found = commands().find(name);
  if (found == commands().end()) {
    return report(str("there is no command \"", name, "\"", did_you_mean(name, names),
                      "; there are ", join(names)));
  }
  if (words.size() > 1) return report(surplus_word(name, words[1]));
  try {
    return found->second();
  } catch (const Error& error) {
    return report(error.what());
  } catch (const std::bad_alloc&) {
    return report("there is not enough memory");
  } catch (const std::exception& error) {
    return report(str("unexpected: ", error.what()));
  }
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  gflags::SetVersionString(CREMA_VERSION);
  gflags::SetUsageMessage(crema::kUsage);
  gflags::ParseCommandLineNonHelpFlags(&argc, &argv, true);
  if (FLAGS_help || FLAGS_helpshort) return crema::usage(argv[0]);
  gflags::HandleCommandLineHelpFlags();
  if (argc < 2) return crema::usage(argv[0]);
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file that may not grow is an error of its write, as a full disk is
  crema::start_log(argv[0]);
  return crema::run_named({argv + 1, argv + argc});
}
