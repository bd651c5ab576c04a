// The stand-in for NCCL: collectives of simulated cards, ranks that disagree, and giving up.
#include <nccl.h>

#include <cstdlib>
#include <thread>

#include "cuda_sim/selftest/sim_testing.h"

namespace crema::cuda_sim {
namespace {

// Before anything asks for the number of cards.
const int kCards = [] {
  setenv("CREMA_SIM_CARDS", "4", 1);
  return 4;
}();

class NcclTest : public testing::Test {
 protected:
  struct Card {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    float* memory = nullptr;
  };
  void SetUp() override {
    keep_violations(true);
    take_violations();
    set_seed(0);
  }
  void TearDown() override {
    for (size_t i = 0; i < cards_.size(); ++i) {
      cudaSetDevice(static_cast<int>(i));
      cudaStreamDestroy(cards_[i].stream);
      cudaFree(cards_[i].memory);
      ncclCommDestroy(cards_[i].comm);
    }
    cudaSetDevice(0);
    for (const std::string& text : take_violations()) ADD_FAILURE() << "left over: " << text;
    keep_violations(false);
  }
  void make_cards(int count) {
    std::vector<ncclComm_t> comms(static_cast<size_t>(count));
    ASSERT_EQ(ncclSuccess, ncclCommInitAll(comms.data(), count, nullptr));
    for (int i = 0; i < count; ++i) {
      Card card{comms[static_cast<size_t>(i)]};
      cudaSetDevice(i);
      cudaStreamCreateWithFlags(&card.stream, cudaStreamNonBlocking);
      cudaMalloc(reinterpret_cast<void**>(&card.memory), 2 * sizeof(float));
      const float values[] = {static_cast<float>(i + 1), 1};
      cudaMemcpyAsync(card.memory, values, sizeof(values), cudaMemcpyDefault, card.stream);
      cards_.push_back(card);
    }
  }
  ncclResult_t sum(size_t i, size_t count = 2) {
    cudaSetDevice(static_cast<int>(i));
    const Card& card = cards_[i];
    return ncclAllReduce(card.memory, card.memory, count, ncclFloat32, ncclSum, card.comm,
                         card.stream);
  }
  std::vector<float> values(size_t i) {
    cudaSetDevice(static_cast<int>(i));
    std::vector<float> seen(2);
    EXPECT_EQ(cudaSuccess, cudaMemcpyAsync(seen.data(), cards_[i].memory, 8, cudaMemcpyDefault,
                                           cards_[i].stream));
    return seen;
  }
  std::vector<Card> cards_;
};

TEST_F(NcclTest, SumsOverAllCards) {
  ASSERT_EQ(kCards, 4);
  make_cards(4);
  ncclGroupStart();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(ncclSuccess, sum(i));
  ncclGroupEnd();
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(values(i), (std::vector<float>{10, 4})) << i;
}

TEST_F(NcclTest, BroadcastsFromTheRoot) {
  make_cards(2);
  for (size_t i = 0; i < 2; ++i) {
    cudaSetDevice(static_cast<int>(i));
    EXPECT_EQ(ncclSuccess, ncclBroadcast(cards_[i].memory, cards_[i].memory, 2, ncclFloat32, 1,
                                         cards_[i].comm, cards_[i].stream));
  }
  EXPECT_EQ(values(0), (std::vector<float>{2, 1}));
}

TEST_F(NcclTest, ThreadsMeet) {
  make_cards(2);
  std::vector<std::vector<float>> seen(2);
  const auto work = [&](size_t i) {
    for (int step = 0; step < 3; ++step) EXPECT_EQ(ncclSuccess, sum(i));
    seen[i] = values(i);
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(seen[0], (std::vector<float>{12, 8}));
  EXPECT_EQ(seen[1], seen[0]);
}

TEST_F(NcclTest, ACollectiveInAGraphMeetsEveryTime) {
  make_cards(2);
  cudaGraphExec_t execs[2];
  for (size_t i = 0; i < 2; ++i) {
    cudaSetDevice(static_cast<int>(i));
    cudaStreamSynchronize(cards_[i].stream);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaSuccess, cudaStreamBeginCapture(cards_[i].stream, cudaStreamCaptureModeRelaxed));
    EXPECT_EQ(ncclSuccess, sum(i));
    ASSERT_EQ(cudaSuccess, cudaStreamEndCapture(cards_[i].stream, &graph));
    ASSERT_EQ(cudaSuccess, cudaGraphInstantiate(&execs[i], graph, 0));
    cudaGraphDestroy(graph);
  }
  for (int step = 0; step < 2; ++step) {
    for (size_t i = 0; i < 2; ++i) cudaGraphLaunch(execs[i], cards_[i].stream);
  }
  EXPECT_EQ(values(0), (std::vector<float>{6, 4}));
  EXPECT_EQ(values(1), (std::vector<float>{6, 4}));
  for (cudaGraphExec_t exec : execs) cudaGraphExecDestroy(exec);
}

TEST_F(NcclTest, RanksThatDisagreeAreShown) {
  make_cards(2);
  EXPECT_EQ(ncclSuccess, sum(0, 2));
  EXPECT_EQ(ncclSuccess, sum(1, 1));
  EXPECT_EQ(cudaErrorLaunchFailure, cudaStreamSynchronize(cards_[0].stream));
  const std::vector<std::string> taken = take_violations();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_NE(taken[0].find("different collectives"), std::string::npos);
}

TEST_F(NcclTest, RefusesWrongCalls) {
  make_cards(2);
  cudaSetDevice(0);
  EXPECT_EQ(ncclInvalidUsage, ncclAllReduce(cards_[1].memory, cards_[1].memory, 1, ncclFloat32,
                                            ncclSum, cards_[1].comm, cards_[1].stream))
      << "another card is current";
  EXPECT_EQ(ncclInvalidArgument, ncclAllReduce(nullptr, cards_[0].memory, 1, ncclFloat32, ncclSum,
                                               cards_[0].comm, cards_[0].stream));
  EXPECT_EQ(ncclInvalidArgument, ncclBroadcast(cards_[0].memory, cards_[0].memory, 1, ncclFloat32,
                                               2, cards_[0].comm, cards_[0].stream));
  EXPECT_EQ(ncclInvalidUsage, ncclGroupEnd());
  const int twice[] = {0, 0};
  ncclComm_t comms[2];
  EXPECT_EQ(ncclInvalidUsage, ncclCommInitAll(comms, 2, twice));
}

TEST_F(NcclTest, WhoGivesUpWaitsNoLonger) {
  make_cards(2);
  ncclComm_t comms[2];
  ncclUniqueId id;
  ncclGetUniqueId(&id);
  ncclGroupStart();
  for (int i = 0; i < 2; ++i) {
    cudaSetDevice(i);
    ASSERT_EQ(ncclSuccess, ncclCommInitRank(&comms[i], 2, id, i));
  }
  ncclGroupEnd();
  cudaSetDevice(0);
  EXPECT_EQ(ncclSuccess, ncclAllReduce(cards_[0].memory, cards_[0].memory, 1, ncclFloat32, ncclSum,
                                       comms[0], cards_[0].stream));
  std::thread waiting([&] {
    cudaSetDevice(0);
    cudaStreamSynchronize(cards_[0].stream);  // the other rank never comes
  });
  EXPECT_EQ(ncclSuccess, ncclCommAbort(comms[0]));
  waiting.join();
  EXPECT_EQ(ncclInvalidArgument, ncclCommAbort(comms[0]));
  ncclCommDestroy(comms[1]);
}

}  // namespace
}  // namespace crema::cuda_sim
