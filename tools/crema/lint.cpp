// crema lint: all mistakes and known traps of a solver and its nets, or of one net, in one list.
// Exit status: 1 where there is an error, or with --strict any finding.
#include "net/lint.h"

#include <gflags/gflags.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "commands.h"
#include "net/upgrade.h"
#include "solver/learning_rate.h"
#include "solver/solver_nets.h"
#include "solver/updater.h"

namespace crema {
namespace {

class Linter {
 public:
  void lint_model() {
    collect([&] {
      const NetParameter net = read_model();
      const LintContext context{.file = FLAGS_model, .is_finetuned = !FLAGS_weights.empty()};
      const NetParameter train = net_in_phase(net, TRAIN, FLAGS_model);
      const NetParameter test = net_in_phase(net, TEST, FLAGS_model);
      // A net without losses is there to be used: what training needs is not asked of it.
      const bool is_trained =
          std::any_of(train.layer().begin(), train.layer().end(), [](const LayerParameter& layer) {
            return layer.type().find("Loss") != std::string::npos || layer.loss_weight_size() > 0;
          });
      if (is_trained && train.state().phase() == TRAIN) {
        add(lint_net(train, context));
        add(lint_phases(train, test, context));
      }
      add(lint_net(test, context));
    });
  }

  void lint_solver() {
    SolverParameter solver;
    const auto read = [&] {
      solver = read_solver(FLAGS_solver, read_options());
      upgrade_solver(solver, FLAGS_solver);
    };
    if (!collect(read)) return;
    collect([&] { at_file([&] { check_update_fields(solver); }); });
    collect([&] { at_file([&] { LearningRate rate(solver); }); });
    NetParameter train;
    LintContext context{.file = FLAGS_solver,
                        .is_finetuned = solver.weights_size() > 0 || !FLAGS_weights.empty()};
    collect([&] {
      const NetSource source = train_net_source(solver, FLAGS_solver, read_options());
      context.file = source.file;
      train = net_in_phase(source.net, TRAIN, source.file);
      add(lint_net(train, context));
    });
    collect([&] {
      for (const NetSource& source : test_net_sources(solver, FLAGS_solver, read_options())) {
        const NetParameter test = net_in_phase(source.net, TEST, source.file);
        add(lint_net(test, {.file = source.file}));
        add(lint_phases(train, test, {.file = source.file}));
        lint_coverage(test, source);
      }
    });
    if (solver.test_iter_size() == 0) {
      warn("no_test", "nothing is tested while training: test_iter and test_interval would");
    }
    if (solver.snapshot() == 0 && !solver.snapshot_after_train()) {
      warn("no_snapshot", "nothing is kept: snapshot is 0 and snapshot_after_train is false");
    }
  }

  int report() const {
    size_t errors = 0;
    for (const Finding& finding : findings_) {
      errors += finding.is_error;
      std::printf("%s [%s]\n", finding.text.c_str(), finding.rule.c_str());
    }
    std::printf("%zu errors, %zu warnings\n", errors, findings_.size() - errors);
    return errors > 0 || (FLAGS_strict && !findings_.empty()) ? 1 : 0;
  }

 private:
  void add(const std::vector<Finding>& findings) {
    for (const Finding& finding : findings) {
      const bool is_known =
          std::any_of(findings_.begin(), findings_.end(), [&](const Finding& known) {
            return known.rule == finding.rule && known.text == finding.text;
          });
      if (!is_known) findings_.push_back(finding);
    }
  }

  void warn(const char* rule, const std::string& text) {
    add({{rule, FLAGS_solver + ": " + text, false}});
  }

  /// Runs call; an Error becomes a finding for each of its lines. Returns whether there was none.
  template <class Call>
  bool collect(const Call& call) {
    try {
      call();
      return true;
    } catch (const Error& error) {
      for (const std::string& line : split(error.what(), '\n')) add({{"error", line, true}});
      return false;
    }
  }

  template <class Call>
  static void at_file(const Call& call) {
    try {
      call();
    } catch (const Error& error) {
      throw error.at(FLAGS_solver);
    }
  }

  void lint_coverage(const NetParameter& test, const NetSource& source) {
    const SetSize set = set_size(test);
    if (set.records == 0) return;
    const uint64_t covered = static_cast<uint64_t>(source.test_iter) * set.batch_size;
    if (covered == set.records) return;
    const uint64_t needed = (set.records + set.batch_size - 1) / set.batch_size;
    warn("test_iter_coverage",
         str("test_iter ", source.test_iter, " times batch_size ", set.batch_size, " is ", covered,
             " records, layer \"", set.layer, "\" has ", set.records, ": ",
             set.records % set.batch_size == 0
                 ? str("test_iter: ", needed, " covers each once")
                 : str("no test_iter covers each once with this batch_size (", needed,
                       " covers them all; crema test --iterations=all counts each once)")));
  }

  std::vector<Finding> findings_;
};

}  // namespace

int lint_command() {
  require(FLAGS_solver.empty() != FLAGS_model.empty(),
          "crema lint needs --solver=FILE or --model=FILE");
  Linter linter;
  FLAGS_solver.empty() ? linter.lint_model() : linter.lint_solver();
  return linter.report();
}

}  // namespace crema
