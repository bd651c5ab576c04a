// crema lint: one net for each trap, and nets that must not be complained about.
#include "base/file.h"
#include "io/mean.h"
#include "tools/convert_testing.h"
#include "tools/crema_nets.h"

namespace crema {
namespace {

constexpr const char* kData =
    "layer { name: 'd' type: 'Data' top: 'data' top: 'label' transform_param { scale: 0.5 } "
    "data_param { source: 'db' batch_size: 4 backend: LMDB } }\n";
constexpr const char* kRest =
    "layer { name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' "
    "inner_product_param { num_output: 9 weight_filler { type: 'xavier' } } }\n"
    "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }\n";

/// Records in a mixed order of labels below 3; pixels 1 x 1 of three channels.
void write_mixed(const std::string& path) {
  std::vector<testing::TestRecord> records;
  for (int i = 0; i < 40; ++i) {
    std::string pixels = {char(100), char(60), char(20)};
    records.push_back({record_key(i), write_datum({3, 1, 1, i * 7 % 5 % 3, false}, pixels)});
  }
  testing::write_database(path, records);
}

struct Trap {
  const char* name;
  std::string net;
  const char* finding;  // "" for none
};

std::ostream& operator<<(std::ostream& out, const Trap& row) { return out << row.name; }

class Traps : public ::testing::TestWithParam<Trap> {};

TEST_P(Traps, AreFound) {
  const TestFolder folder;
  write_mixed(folder / "db");
  std::vector<testing::TestRecord> sorted;
  for (int i = 0; i < 40; ++i) {
    sorted.push_back({record_key(i), testing::ramp_datum(3, 1, 1, i / 20)});
  }
  testing::write_database(folder / "sorted", sorted);
  sorted[2].value = "no datum";
  testing::write_database(folder / "broken", sorted);
  write_mean(folder / "rgb.binaryproto",
             {.shape = {1, 3, 1, 1}, .data = {20, 60, 100}, .diff = {}});
  folder.write("net.prototxt", GetParam().net);
  const Ended ended = run_crema(folder, {"lint", "--model=net.prototxt"});
  const std::string finding = GetParam().finding;
  if (finding.empty()) {
    EXPECT_EQ(ended.out, "0 errors, 0 warnings\n");
  } else {
    EXPECT_HAS(ended.out, finding);
  }
  const bool has_error =
      ended.out.find("\n0 errors") == std::string::npos && ended.out.rfind("0 errors", 0) != 0;
  EXPECT_EQ(ended.status, has_error) << ended.out;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  return text.replace(text.find(what), what.size(), with);
}

INSTANTIATE_TEST_SUITE_P(
    Lint, Traps,
    ::testing::ValuesIn(std::vector<Trap>{
        {"nothing", str(kData, kRest), ""},
        {"batch_norm_without_scale",
         str(kData, "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' }\n",
             replaced(kRest, "bottom: 'data'", "bottom: 'bn'")),
         "net.prototxt:2: layer \"bn\" (BatchNorm): no Scale layer follows"},
        {"batch_norm_with_scale",
         str(kData, "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' }\n",
             "layer { name: 's' type: 'Scale' bottom: 'bn' top: 'bn' }\n",
             replaced(kRest, "bottom: 'data'", "bottom: 'bn'")),
         ""},
        {"frozen_statistics",
         str(kData,
             "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' "
             "batch_norm_param { use_global_stats: true } }\n",
             "layer { name: 's' type: 'Scale' bottom: 'bn' top: 'bn' }\n",
             replaced(kRest, "bottom: 'data'", "bottom: 'bn'")),
         "[frozen_statistics]"},
        {"batch_statistics_in_test",
         str(kData,
             "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'bn' "
             "batch_norm_param { use_global_stats: false } }\n",
             "layer { name: 's' type: 'Scale' bottom: 'bn' top: 'bn' }\n",
             replaced(kRest, "bottom: 'data'", "bottom: 'bn'")),
         "[batch_statistics_in_test]"},
        {"no_weight_filler", str(kData, replaced(kRest, "weight_filler { type: 'xavier' }", "")),
         "layer \"ip\" (InnerProduct): has no weight_filler"},
        {"fixed_layer_without_filler",
         str(kData, replaced(replaced(kRest, "weight_filler { type: 'xavier' }", ""), "top: 'ip'",
                             "top: 'ip' param { lr_mult: 0 } param { lr_mult: 0 }")),
         ""},
        {"mean_channel_order",
         str(replaced(kData, "scale: 0.5", "mean_file: 'rgb.binaryproto'"), kRest),
         "[mean_channel_order]"},
        {"mean_values_channel_order",
         str(replaced(kData, "scale: 0.5", "mean_value: 20 mean_value: 60 mean_value: 100"), kRest),
         "[mean_channel_order]"},
        {"mean_values_right",
         str(replaced(kData, "scale: 0.5", "mean_value: 100 mean_value: 60 mean_value: 20"), kRest),
         ""},
        {"unused_blob",
         str(kData,
             "layer { name: 'x' type: 'InnerProduct' bottom: 'data' top: 'x' inner_product_param { "
             "num_output: 2 weight_filler { type: 'xavier' } } }\n",
             kRest),
         "layer \"x\" (InnerProduct): nobody reads top \"x\", so what leads there alone"},
        {"decoded_digits_are_a_result",
         str(kData,
             "layer { name: 'steps' type: 'Input' top: 'steps' top: 'cont' include { phase: TEST } "
             "input_param { shape { dim: 3 dim: 1 dim: 4 } shape { dim: 3 dim: 1 } } } "
             "layer { name: 'read' type: 'CTCGreedyDecoder' bottom: 'steps' bottom: 'cont' top: "
             "'read' include { phase: TEST } }\n",
             kRest),
         ""},
        {"sorted", str(replaced(kData, "'db'", "'sorted'"), kRest), "[sorted_without_shuffle]"},
        {"sorted_but_shuffled", str(replaced(kData, "'db'", "'sorted' shuffle: true"), kRest), ""},
        {"unreadable_record", str(replaced(kData, "'db'", "'broken'"), kRest),
         "record 2, counted from 0"},
        {"label_beyond_classes", str(kData, replaced(kRest, "num_output: 9", "num_output: 2")),
         "holds the label 2, the net has 2 classes: num_output must be at least 3"},
        {"crop_without_offset",
         R"(layer { name: 'd' type: 'Input' top: 'd' input_param { shape { dim: [1, 1, 9, 9] } } }
            layer { name: 'c' type: 'Convolution' bottom: 'd' top: 'c' convolution_param {
                    num_output: 1 kernel_size: 3 pad: 5 weight_filler { type: 'xavier' } } }
            layer { name: 'k' type: 'Crop' bottom: 'c' bottom: 'd' top: 'k' }
            layer { name: 'l' type: 'EuclideanLoss' bottom: 'k' bottom: 'd' top: 'l' })",
         "layer \"k\" (Crop): begins at 0, for no offset is written; crop_param { offset: 4 "
         "offset: 4 } lays it on \"d\" [crop_without_offset]"},
        {"softmax_twice",
         str(kData, replaced(replaced(kRest, "bottom: 'ip' bottom", "bottom: 'p' bottom"),
                             "layer { name: 'loss'",
                             "layer { name: 'p' type: 'Softmax' bottom: 'ip' top: 'p' }\n"
                             "layer { name: 'loss'")),
         "takes the softmax of \"p\", which is one already"},
        {"augmented_in_test", str(replaced(kData, "scale: 0.5", "max_rotation: 3"), kRest),
         "[augmented_in_test]"},
        {"scale_bias_needs_no_scale",
         str(kData,
             "layer { name: 'bn' type: 'BatchNorm' bottom: 'data' top: 'data' batch_norm_param { "
             "scale_bias: true } } ",
             kRest),
         ""},
        {"mirror_in_test", str(replaced(kData, "scale: 0.5", "mirror: true"), kRest),
         "[mirror_in_test]"},
        {"bilinear_without_groups",
         str(kData,
             "layer { name: 'up' type: 'Deconvolution' bottom: 'data' top: 'up' convolution_param "
             "{ "
             "num_output: 3 kernel_size: 2 weight_filler { type: 'bilinear' } } }\n",
             replaced(kRest, "bottom: 'data'", "bottom: 'up'")),
         "group: 3 enlarges each by itself"},
        {"phases_differ",
         str(replaced(kData, "top: 'label'", "top: 'label' include { phase: TRAIN }"),
             replaced(replaced(kData, "top: 'label'", "top: 'label' include { phase: TEST }"),
                      "scale: 0.5", "scale: 0.25"),
             kRest),
         "scale is 0.25 here and 0.5 in TRAIN"},
        {"all_errors_of_the_wiring",
         str(kData, replaced(replaced(kRest, "bottom: 'data'", "bottom: 'dta'"), "bottom: 'label'",
                             "bottom: 'lable'")),
         "2 errors"},
        {"missing_source", str(replaced(kData, "'db'", "'none'"), kRest), "none: there is no such"},
        {"syntax", "layer { name: 'a' typ: 'ReLU' }", "did you mean type"}}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(LintSolver, FindsWhatItsNumbersMiss) {
  const TestFolder folder;
  write_mixed(folder / "db");
  folder.write("net.prototxt", str(kData, kRest));
  const auto lint = [&](const std::string& fields, std::vector<std::string> flags = {}) {
    folder.write("solver.prototxt", "net: 'net.prototxt' base_lr: 0.1 " + fields);
    flags.insert(flags.begin(), {"lint", "--solver=solver.prototxt"});
    return run_crema(folder, flags);
  };
  Ended ended = lint("lr_policy: 'fixed' test_iter: 10 test_interval: 5");
  EXPECT_EQ(ended.out, "0 errors, 0 warnings\n");
  EXPECT_EQ(ended.status, 0);
  ended = lint("lr_policy: 'fixed' test_iter: 9 test_interval: 5");
  EXPECT_HAS(ended.out,
             "solver.prototxt: test_iter 9 times batch_size 4 is 36 records, layer \"d\" "
             "has 40: test_iter: 10 covers each once [test_iter_coverage]\n"
             "0 errors, 1 warnings\n");
  EXPECT_EQ(ended.status, 0);
  EXPECT_EQ(lint("lr_policy: 'fixed' test_iter: 9 test_interval: 5", {"--strict"}).status, 1);
  ended = lint("lr_policy: 'fxed' test_iter: 10 test_interval: 5 type: 'Adm' iter_size: 0");
  EXPECT_HAS(ended.out, "there is no policy \"fxed\" (did you mean fixed?)");
  EXPECT_HAS(ended.out, "there is no solver \"Adm\" (did you mean Adam?)");
  EXPECT_HAS(ended.out, "iter_size must be at least 1, not 0");
  EXPECT_HAS(ended.out, "3 errors, 0 warnings");
  EXPECT_EQ(ended.status, 1);
}

TEST(LintSolver, NeedsAFile) {
  const TestFolder folder;
  EXPECT_HAS(run_crema(folder, {"lint"}).err, "crema lint needs --solver=FILE or --model=FILE");
  const Ended ended = run_crema(folder, {"lint", "--model=none.prototxt"});
  EXPECT_EQ(ended.status, 1);
  EXPECT_HAS(ended.out, "none.prototxt: No such file");
}

}  // namespace
}  // namespace crema
