// Signals: their effects, once each, and what a second interrupt does.
#include "solver/signals.h"

#include <gtest/gtest.h>

#include <csignal>

#include "base/error.h"

namespace crema {
namespace {

TEST(Signals, GiveTheirEffectOnce) {
  SignalHandler handler(SolverAction::stop, SolverAction::snapshot);
  EXPECT_FALSE(handler.take().stop);
  ::raise(SIGHUP);
  ::raise(SIGINT);
  const SolverRequest request = handler.take();
  EXPECT_TRUE(request.stop);
  EXPECT_TRUE(request.snapshot);
  EXPECT_FALSE(handler.take().stop);
}

TEST(Signals, OfNoEffectAskForNothing) {
  SignalHandler handler(SolverAction::none, SolverAction::none);
  ::raise(SIGINT);
  ::raise(SIGINT);
  ::raise(SIGHUP);
  const SolverRequest request = handler.take();
  EXPECT_FALSE(request.stop || request.snapshot);
}

TEST(Signals, ASecondInterruptEndsTheProcess) {
  EXPECT_EXIT(
      {
        SignalHandler handler(SolverAction::stop, SolverAction::snapshot);
        ::raise(SIGINT);
        handler.take();
        ::raise(SIGINT);
        ::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Signals, DoWhatTheyDidBeforeOnceTheHandlerIsGone) {
  EXPECT_EXIT(
      {
        ::signal(SIGINT, SIG_DFL);  // a shell's background jobs begin with it ignored
        { SignalHandler handler(SolverAction::none, SolverAction::none); }
        ::raise(SIGINT);
        ::exit(0);
      },
      testing::KilledBySignal(SIGINT), "");
}

TEST(Signals, EffectsAreNamed) {
  EXPECT_EQ(parse_action("snapshot"), SolverAction::snapshot);
  EXPECT_EQ(parse_action("stop"), SolverAction::stop);
  EXPECT_EQ(parse_action("none"), SolverAction::none);
  try {
    parse_action("snapshots");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean snapshot?"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace crema
