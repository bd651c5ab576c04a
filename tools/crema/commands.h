// The commands of `crema` and the flags that several of them take. Each command is a file; main.cpp
// chooses, and catches Error.
#pragma once

#include <gflags/gflags.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "crema.pb.h"
#include "io/prototxt.h"
#include "net/net.h"
#include "ops/ops.h"

DECLARE_string(solver);
DECLARE_string(model);
DECLARE_string(weights);
DECLARE_string(snapshot);
DECLARE_string(gpu);
DECLARE_bool(cpu);
DECLARE_string(iterations);
DECLARE_string(phase);
DECLARE_int32(level);
DECLARE_string(stage);
DECLARE_string(fuse);
DECLARE_string(layout);
DECLARE_string(precision);
DECLARE_string(trace);
DECLARE_bool(strict);
DECLARE_int64(seed);

namespace crema {

// Each returns the exit status and throws Error for what the user can mend.
int train_command();
int test_command();
int time_command();
int run_command();
int device_query_command();
int summary_command();
int deploy_command();
int classify_command();
int convert_command();
int lint_command();
int draw_command();
int parse_log_command();
int plot_command();

/// What stood on the command line after the command: files, for those commands that take some.
const std::vector<std::string>& arguments();

/// The device that --gpu, --cpu and, in train, the solver's fields ask for: a GPU where none of
/// them says and one is there. Logs "Use CPU." or "Using GPUs 0" and the card. Throws Error when a
/// GPU is asked for and there is none.
Device chosen_device(const SolverParameter* solver = nullptr);

/// The devices to train on: as chosen_device(), but all that --gpu names.
std::vector<Device> chosen_devices(const SolverParameter& solver);

/// The numbers of --gpu, or those of all GPUs for "all". Throws Error for anything else, and where
/// a number stands twice.
std::vector<int> gpu_list();

/// --stage as a list; empty when the flag is not given.
std::vector<std::string> stages();

/// --phase; nothing when it is not given. Throws Error for anything but TRAIN and TEST.
std::optional<Phase> phase_flag();

/// The net of --model; its state has the phase, where given, and --level and --stage, whatever the
/// file says.
NetParameter read_model(std::optional<Phase> phase = phase_flag());

/// --model, --fuse, --layout, --precision and --memory_limit as options. Throws Error for other
/// values.
NetOptions net_options();

/// --iterations as a number. Throws Error unless it is one above 0.
int iterations();

/// --strict.
ReadOptions read_options();

/// Throws Error "COMMAND needs --flag" when the flag's value is empty.
void require_flag(const std::string& value, const char* command, const char* flag,
                  const char* what);

}  // namespace crema
