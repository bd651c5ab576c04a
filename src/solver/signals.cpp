// Counts of signals are atomics that need no lock; everything else happens outside the handler.
#include "solver/signals.h"

#include <atomic>
#include <cassert>
#include <csignal>

#include "base/error.h"

namespace crema {
namespace {

std::atomic<int> interrupts{0};
std::atomic<bool> interrupted{false};
std::atomic<bool> hung_up{false};
std::atomic<bool> interrupt_stops{false};
std::atomic<bool> installed{false};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);
struct sigaction old_interrupt, old_hangup;

void on_signal(int number) {
  if (number == SIGHUP) {
    hung_up = true;
    return;
  }
  interrupted = true;
  if (++interrupts > 1 && interrupt_stops) {
    ::signal(SIGINT, SIG_DFL);
    ::raise(SIGINT);
  }
}

void install(int number, struct sigaction* old) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigfillset(&action.sa_mask);
  ::sigaction(number, &action, old);
}

}  // namespace

SolverAction parse_action(const std::string& name) {
  if (name == "stop") return SolverAction::stop;
  if (name == "snapshot") return SolverAction::snapshot;
  if (name == "none") return SolverAction::none;
  fail("there is no signal effect \"", name, "\"", did_you_mean(name, {"stop", "snapshot", "none"}),
       "; there are stop, snapshot and none");
}

SignalHandler::SignalHandler(SolverAction on_interrupt, SolverAction on_hangup)
    : on_interrupt_(on_interrupt), on_hangup_(on_hangup) {
  assert(!installed);
  installed = true;
  interrupts = 0;
  interrupted = hung_up = false;
  interrupt_stops = on_interrupt == SolverAction::stop;
  install(SIGINT, &old_interrupt);
  install(SIGHUP, &old_hangup);
}

SignalHandler::~SignalHandler() {
  ::sigaction(SIGINT, &old_interrupt, nullptr);
  ::sigaction(SIGHUP, &old_hangup, nullptr);
  installed = false;
}

SolverRequest SignalHandler::take() {
  SolverRequest request;
  const auto ask = [&](SolverAction action) {
    request.stop |= action == SolverAction::stop;
    request.snapshot |= action == SolverAction::snapshot;
  };
  if (interrupted.exchange(false)) ask(on_interrupt_);
  if (hung_up.exchange(false)) ask(on_hangup_);
  return request;
}

}  // namespace crema
