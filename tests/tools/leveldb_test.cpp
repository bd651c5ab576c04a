// The tools on LevelDB databases, and training on one with many files under a low limit of open
// ones.
#include "base/philox.h"
#include "crema.pb.h"
#include "feed/leveldb_files.h"
#include "tools/convert_testing.h"

namespace crema::testing {
namespace {

class LevelDbTools : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_leveldb()) GTEST_SKIP() << "this build has no LevelDB";
  }
  ToolResult run(const std::string& command) {
    return run_shell(str("cd ", folder_.path(), " && ", command));
  }
  TestFolder folder_;
};

TEST_F(LevelDbTools, ConvertAndComputeAsWithAnLmdb) {
  std::string list;
  for (int i = 0; i < 3; ++i) {
    write_picture_file(folder_ / str("img/", i, ".png"), ramp_picture(4, 6, 3, 20 * i));
    list += str(i, ".png ", i, "\n");
  }
  folder_.write("list.txt", list);
  for (const char* kind : {"lmdb", "leveldb"}) {
    const ToolResult result = run(str("convert_imageset --backend=", kind, " img/ list.txt ", kind,
                                      " && compute_image_mean ", kind, " ", kind, ".mean"));
    ASSERT_EQ(result.status, 0) << result.output;
  }
  EXPECT_STREQ(open_database(folder_ / "leveldb")->kind(), "leveldb");
  EXPECT_EQ(records_of(folder_ / "leveldb"), records_of(folder_ / "lmdb"));
  EXPECT_EQ(read_file(folder_ / "leveldb.mean"), read_file(folder_ / "lmdb.mean"));
}

TEST_F(LevelDbTools, ADatabaseInUseIsNamed) {
  write_picture_file(folder_ / "img/0.png", ramp_picture(4, 6, 3));
  folder_.write("list.txt", "0.png 1\n");
  ASSERT_EQ(run("convert_imageset --backend=leveldb img/ list.txt db").status, 0);
  const auto database = open_database(folder_ / "db");
  const ToolResult result = run("compute_image_mean db");
  EXPECT_EQ(result.status, 1);
  EXPECT_HAS(result.output, "cannot open the LevelDB db: ");
  EXPECT_HAS(result.output, "another process has it open: one at a time can read a LevelDB");
}

/// About 48 MB that cannot be compressed, which LevelDB spreads over more than 10 files.
void write_large(const std::string& path) {
  constexpr int kRecords = 1500, kSide = 104;
  const auto writer = make_database_writer("leveldb", path);
  RandomStream random(7);
  for (int i = 0; i < kRecords; ++i) {
    std::string pixels;
    while (pixels.size() < 3 * kSide * kSide) {
      const uint32_t word = random.next();
      pixels.append(reinterpret_cast<const char*>(&word), sizeof word);
    }
    writer->put(str(10000 + i), write_datum({3, kSide, kSide, i % 2, false}, pixels));
  }
  writer->finish();
}

TEST_F(LevelDbTools, B92_ManyFilesAndALowLimitOfOpenOnes) {
  write_large(folder_ / "db");
  folder_.write(
      "solver.prototxt",
      "base_lr: 0.001 lr_policy: 'fixed' max_iter: 40 snapshot: 20 snapshot_prefix: 's' "
      "solver_mode: CPU net_param { layer { name: 'd' type: 'Data' top: 'data' top: 'label' "
      "data_param { source: 'db' batch_size: 40 shuffle: true } transform_param { crop_size: 4 } } "
      "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param { "
      "num_output: 2 } } layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' "
      "} }");
  const ToolResult result =
      run("ulimit -n 32 && OMP_NUM_THREADS=1 crema train --cpu --solver=solver.prototxt");
  EXPECT_EQ(result.status, 0) << result.output;
  int tables = 0;
  for (const std::string& name : names_in(folder_ / "db")) {
    tables += name.find(".ldb") != std::string::npos;
  }
  EXPECT_GE(tables, 10);
  EXPECT_TRUE(folder_.has("s_iter_20.caffemodel"));
  EXPECT_TRUE(folder_.has("s_iter_40.solverstate"));
  const ToolResult starved =
      run("ulimit -n 5 && OMP_NUM_THREADS=1 compute_image_mean --threads=1 db");
  EXPECT_EQ(starved.status, 1);
  EXPECT_HAS(starved.output, "a higher limit of open files is needed (ulimit -n)");
}

}  // namespace
}  // namespace crema::testing
