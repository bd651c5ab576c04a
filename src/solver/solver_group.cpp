// Rank 0 is built first and alone, so that the log holds its lines once; the others follow it in
// silence.
#include "solver/solver_group.h"

#include <glog/logging.h>

#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "parallel/make_communicator.h"

namespace crema {
namespace {

/// While it lives, the log shows errors only.
class Quiet {
 public:
  Quiet() { FLAGS_minloglevel = google::GLOG_ERROR; }
  ~Quiet() { FLAGS_minloglevel = level_; }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int level_ = FLAGS_minloglevel;
};

class Group {
 public:
  Group(const SolverParameter& param, const SolverOptions& options, const GroupOptions& group)
      : param_(param), options_(options), group_(group), threads_(group.ranks) {}

  bool run() {
    std::vector<std::thread> others;
    for (int rank = 1; rank < group_.ranks; ++rank) {
      others.emplace_back([this, rank] { guarded(rank); });
    }
    guarded(0);
    for (std::thread& thread : others) thread.join();
    if (failure_) std::rethrow_exception(failure_);
    return stopped_early_;
  }

 private:
  struct Member {
    SolverOptions options;
    std::unique_ptr<Solver> solver;
  };

  /// All ranks come to the end of this together, or one of them fails and the others hear of it:
  /// before its solver goes, whose device may wait for theirs.
  void guarded(int rank) {
    Member member{.options = options_, .solver = nullptr};
    try {
      work(rank, member);
    } catch (const GroupBroken& error) {
      threads_.give_up(error.what());
    } catch (const Error& error) {
      give_up(rank, error.what(), std::make_exception_ptr(named(rank, error)));
    } catch (const std::exception& error) {
      give_up(rank, error.what(), std::current_exception());
    }
  }

  Error named(int rank, const Error& error) const {
    return rank == 0 ? error : error.at("GPU " + std::to_string(rank) + " of this run");
  }

  void give_up(int rank, const std::string& reason, std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(failure);
    threads_.give_up("rank " + std::to_string(rank) + " has failed: " + reason);
  }

  void work(int rank, Member& member) {
    SolverOptions& options = member.options;
    options.ops = group_.make_ops(rank);
    options.group = make_communicator(threads_, rank, *options.ops);
    if (rank == 0) {
      LOG(INFO) << threads_.ranks() << " devices, which add up gradients "
                << options.group->describe();
      member.solver = std::make_unique<Solver>(param_, options);
      param_.set_random_seed(static_cast<int64_t>(member.solver->seed()));  // it may be drawn
      const Quiet quiet;
      threads_.meet();
      threads_.meet();
    } else {
      threads_.meet();
      options.observe = [](const SolverEvent&) {};
      options.progress = [](const Progress&) {};
      options.trace.clear();
      member.solver = std::make_unique<Solver>(param_, options);
      threads_.meet();
    }
    group_.work(*member.solver, rank);
    threads_.meet();
    if (rank == 0) stopped_early_ = member.solver->stopped_early();
  }

  SolverParameter param_;
  const SolverOptions& options_;
  const GroupOptions& group_;
  ThreadGroup threads_;
  std::mutex mutex_;
  std::exception_ptr failure_;
  bool stopped_early_ = false;
};

}  // namespace

bool solve_together(const SolverParameter& param, const SolverOptions& options,
                    const GroupOptions& group) {
  return Group(param, options, group).run();
}

}  // namespace crema
