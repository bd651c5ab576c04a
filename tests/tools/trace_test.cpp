// --trace of train, test and time, read back as JSON; the table of time; the flags about memory and
// number types.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "base/file.h"
#include "base/str.h"
#include "io/hdf5.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A net with pictures from a database; batches of 32 take a while to decode and to train on.
void write_picture_training(const TestFolder& folder) {
  std::vector<testing::TestRecord> records;
  for (int i = 0; i < 64; ++i) {
    records.push_back({record_key(i), testing::ramp_datum(3, 24, 24, i % 5, i)});
  }
  testing::write_database(folder / "pictures", records);
  folder.write("net.prototxt", R"(
    layer { name: 'data' type: 'Data' top: 'data' top: 'label'
      data_param { source: 'pictures' batch_size: 32 } transform_param { scale: 0.01 mirror: true } }
    layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv'
      convolution_param { num_output: 8 kernel_size: 3 weight_filler { type: 'xavier' } } }
    layer { name: 'relu' type: 'ReLU' bottom: 'conv' top: 'conv' }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'conv' top: 'ip'
      inner_product_param { num_output: 5 weight_filler { type: 'xavier' } } }
    layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' })");
  folder.write("solver.prototxt",
               "net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' max_iter: 6 "
               "snapshot_prefix: 's' random_seed: 1");
}

/// The trace's spans as "category: name" and the names of its rows. Fails where it is no JSON of
/// the format.
struct Spans {
  std::set<std::string> names, rows;
};

Spans read_trace(const std::string& path) {
  Spans spans;
  google::protobuf::Struct root;
  const auto status = google::protobuf::util::JsonStringToMessage(read_file(path), &root);
  EXPECT_TRUE(status.ok()) << status.ToString();
  std::set<double> rows_used, rows_named;
  for (const auto& value : root.fields().at("traceEvents").list_value().values()) {
    const auto& fields = value.struct_value().fields();
    if (fields.at("ph").string_value() == "M") {
      rows_named.insert(fields.at("tid").number_value());
      spans.rows.insert(fields.at("args").struct_value().fields().at("name").string_value());
      continue;
    }
    EXPECT_EQ(fields.at("ph").string_value(), "X");
    EXPECT_GE(fields.at("ts").number_value(), 0);
    EXPECT_GE(fields.at("dur").number_value(), 0);
    rows_used.insert(fields.at("tid").number_value());
    spans.names.insert(fields.at("cat").string_value() + ": " + fields.at("name").string_value());
  }
  EXPECT_EQ(rows_used, rows_named);
  return spans;
}

void expect_spans(const Spans& spans, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    EXPECT_TRUE(spans.names.count(name)) << name << " is not among " << join(spans.names);
  }
}

TEST(TraceFlag, ShowsStepsFeedAndUpdateOfTraining) {
  const TestFolder folder;
  write_picture_training(folder);
  RunOptions options;
  options.environment = {"OMP_NUM_THREADS=2"};
  Spans spans;
  // The feed may be ahead and rest while the third iteration runs.
  for (int attempt = 0; attempt < 20; ++attempt) {
    const Ended ended =
        run_crema(folder, {"train", "--solver=solver.prototxt", "--trace=t.json"}, options);
    ASSERT_EQ(ended.status, 0) << ended.err;
    spans = read_trace(folder / "t.json");
    if (spans.names.count("feed: decode") && spans.names.count("feed: transform")) break;
  }
  expect_spans(spans, {"forward: data", "forward: conv", "backward: conv", "backward: loss",
                       "update: update", "feed: hand over", "feed: decode", "feed: transform"});
  EXPECT_FALSE(spans.names.count("forward: relu"));  // the convolution does its work
  EXPECT_TRUE(spans.rows.count("device worker 1")) << join(spans.rows);
  EXPECT_TRUE(contains(join(spans.rows), "feed worker ")) << join(spans.rows);
}

TEST(TraceFlag, WorksForTestAndTime) {
  const TestFolder folder;
  write_picture_training(folder);
  ASSERT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  Ended ended = run_crema(folder, {"test", "--model=net.prototxt", "--weights=s_iter_6.caffemodel",
                                   "--iterations=4", "--trace=test.json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const Spans test = read_trace(folder / "test.json");
  expect_spans(test, {"forward: conv", "forward: loss"});
  EXPECT_FALSE(test.names.count("backward: conv"));
  ended =
      run_crema(folder, {"time", "--model=net.prototxt", "--iterations=2", "--trace=time.json"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  expect_spans(read_trace(folder / "time.json"), {"forward: conv", "backward: conv"});
}

TEST(TraceFlag, RefusesAFolderThatIsNotThere) {
  const TestFolder folder;
  write_picture_training(folder);
  const Ended ended =
      run_crema(folder, {"train", "--solver=solver.prototxt", "--trace=nowhere/t.json"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_TRUE(contains(ended.err, "nowhere/t.json")) << ended.err;
}

/// Columns of the table's line that begins with `name`.
std::vector<std::string> table_line(const std::string& out, const std::string& name) {
  for (const std::string& line : split(out, '\n')) {
    if (line.compare(0, name.size(), name) != 0) continue;
    std::vector<std::string> cells;
    for (const std::string& cell : split(line.substr(name.size()), ' ')) {
      if (!cell.empty()) cells.push_back(cell);
    }
    return cells;
  }
  return {};
}

TEST(TimeTable, CountsEachFusedGroup) {
  const TestFolder folder;
  write_picture_training(folder);
  const Ended ended = run_crema(folder, {"time", "--model=net.prototxt", "--iterations=2"});
  ASSERT_EQ(ended.status, 0) << ended.err;
  const std::vector<std::string> conv = table_line(ended.out, "conv + relu");
  // forward: ms, GFLOP, share, %, GB/s; bar; backward likewise
  ASSERT_EQ(conv.size(), 11U) << ended.out;
  // 32 x 8 x 22 x 22 results of 27 products each; backward has no data gradient.
  EXPECT_NEAR(std::stod(conv[1]), 2e-9 * 32 * 8 * 22 * 22 * 27, 6e-4) << ended.out;
  EXPECT_NEAR(std::stod(conv[7]), 2e-9 * 32 * 8 * 22 * 22 * 27, 6e-4) << ended.out;
  EXPECT_GT(std::stod(conv[0]), 0);
  EXPECT_EQ(conv[3], "%");
  EXPECT_TRUE(contains(ended.out, "GEMM rate: ")) << ended.out;
  EXPECT_TRUE(contains(ended.out, "activations and gradients ")) << ended.out;
  EXPECT_TRUE(table_line(ended.out, "relu ").empty()) << ended.out;
  const Ended apart =
      run_crema(folder, {"time", "--model=net.prototxt", "--iterations=1", "--fuse=off"});
  EXPECT_FALSE(table_line(apart.out, "relu ").empty()) << apart.out;
}

TEST(MemoryLimit, IsASizeAndMakesBackwardRecompute) {
  const TestFolder folder;
  write_picture_training(folder);
  const auto time = [&](const std::string& limit) {
    return run_crema(folder,
                     {"time", "--model=net.prototxt", "--iterations=1", "--memory_limit=" + limit});
  };
  for (const char* bad : {"2X", "G", "-1", "0"}) {
    const Ended ended = time(bad);
    EXPECT_EQ(ended.status, 1);
    EXPECT_TRUE(
        contains(ended.err, str("--memory_limit is a size such as 512M or 2G, not \"", bad, "\"")))
        << ended.err;
  }
  EXPECT_EQ(time("1.5G").status, 0);
  const Ended small = time("100K");
  EXPECT_EQ(small.status, 1);
  EXPECT_TRUE(contains(small.err, "net.prototxt: the net does not fit: it needs ")) << small.err;
}

bool has_bf16() {
  const std::string processor = read_file("/proc/cpuinfo");
  return contains(processor, "avx512_bf16") || contains(processor, "amx_bf16");
}

TEST(Precision, NamesWhatTheProcessorLacks) {
  const TestFolder folder;
  write_training(folder, "max_iter: 1");
  const Ended ended = run_crema(folder, {"time", "--model=net.prototxt", "--precision=bf16"});
  const std::string lack = "--precision=bf16: this processor has neither AVX512-BF16 nor AMX";
  EXPECT_EQ(ended.status, has_bf16() ? 0 : 1) << ended.err;
  EXPECT_EQ(lines_with(ended.err, lack).size(), has_bf16() ? 0U : 1U) << ended.err;
  const Ended f16 = run_crema(folder, {"time", "--model=net.prototxt", "--precision=f16"});
  EXPECT_EQ(f16.status, 1);
  EXPECT_EQ(lines_with(f16.err, "--precision=f16: a CPU has f32 and bf16 only").size(), 1U);
  EXPECT_TRUE(contains(run_crema(folder, {"time", "--model=net.prototxt", "--precision=f8"}).err,
                       "--precision is f32 or tf32 or bf16 or f16, not \"f8\""));
}

TEST(Precision, EveryCommandTakesIt) {
  if (!has_bf16()) GTEST_SKIP() << "this processor has neither AVX512-BF16 nor AMX";
  const TestFolder folder;
  write_training(folder, "max_iter: 3");
  const std::vector<std::vector<std::string>> commands = {
      {"train", "--solver=solver.prototxt"},
      {"test", "--model=net.prototxt", "--weights=s_iter_3.caffemodel", "--iterations=2"},
      {"time", "--model=net.prototxt", "--iterations=2"},
      {"run", "--model=net.prototxt", "--output=low.h5", "--backward", "--outputs=all"},
      {"summary", "--model=net.prototxt"}};
  for (std::vector<std::string> command : commands) {
    command.emplace_back("--precision=bf16");
    const Ended ended = run_crema(folder, command);
    EXPECT_EQ(ended.status, 0) << command[0] << "\n" << ended.err;
  }
  EXPECT_EQ(run_crema(folder, {"train", "--solver=solver.prototxt"}).status, 0);
  const auto score = [&](const char* precision) {
    const Ended ended = run_crema(folder, {"run", "--model=net.prototxt", "--output=out.h5",
                                           "--weights=s_iter_3.caffemodel", precision});
    EXPECT_EQ(ended.status, 0) << ended.err;
    return Hdf5File::open(folder / "out.h5").read("loss").data.at(0);
  };
  const float exact = score("--precision=f32"), low = score("--precision=bf16");
  EXPECT_NEAR(low, exact, 0.02F * exact);
  EXPECT_NE(low, exact);
}

}  // namespace
}  // namespace crema
