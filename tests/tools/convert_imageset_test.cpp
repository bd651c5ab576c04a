// convert_imageset: what is stored, what is refused, and that nothing half made is left.
#include <csignal>

#include "base/file.h"
#include "convert_testing.h"

namespace crema::testing {
namespace {

/// A folder img with pictures of 4x6 called after their numbers, and their list.
class ConvertImageset : public ::testing::Test {
 protected:
  void make_pictures(int count) {
    std::string list;
    for (int i = 0; i < count; ++i) {
      write_picture_file(folder_ / str("img/", i, ".png"), ramp_picture(4, 6, 3, i));
      list += str(i, ".png ", i % 3, "\n");
    }
    write_list(list);
  }
  void write_list(const std::string& text) { write_text_file(folder_ / "list.txt", text); }
  ToolResult convert(const std::string& flags = "", const std::string& root = "img/") {
    return run_shell(
        str("cd ", folder_.path(), " && convert_imageset ", flags, " ", root, " list.txt db"));
  }
  std::vector<StoredRecord> records() { return records_of(folder_ / "db"); }

  TestFolder folder_;
};

TEST_F(ConvertImageset, StoresPlanesInListOrder) {
  write_picture_file(folder_ / "img/my cat 1.png", {1, 2, 3, {1, 2, 3, 4, 5, 6}});
  write_picture_file(folder_ / "img/b/c.png", {1, 2, 3, {7, 8, 9, 10, 11, 12}});
  write_list("\xEF\xBB\xBFmy cat 1.png 3\r\nb/c.png -1");
  const ToolResult result = convert();
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(records(), (std::vector<StoredRecord>{
                           {"00000000_my cat 1.png", "\1\4\2\5\3\6", 3, 1, 2, 3, false},
                           {"00000001_b/c.png", "\x07\x0a\x08\x0b\x09\x0c", 3, 1, 2, -1, false}}));
  EXPECT_HAS(result.output, "] A total of 2 images.");
  EXPECT_HAS(result.output, "] Processed 2 files.");
  EXPECT_HAS(result.output, "Stored 2 of 2");
  EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"db", "img", "list.txt"}));
}

TEST_F(ConvertImageset, GivesTheSameDatabaseForAnyNumberOfThreads) {
  make_pictures(200);
  std::string first;
  for (const char* threads : {"1", "2", "5"}) {
    ASSERT_EQ(convert(str("--threads=", threads)).status, 0);
    const std::string bytes = read_file(folder_ / "db/data.mdb");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << threads << " threads";
    std::filesystem::remove_all(folder_ / "db");
  }
}

TEST_F(ConvertImageset, LogsEveryThousandFiles) {
  make_pictures(1);
  std::string list;
  for (int i = 0; i < 2001; ++i) list += "0.png 0\n";
  write_list(list);
  const std::string output = convert().output;
  for (int count : {1000, 2000, 2001}) EXPECT_HAS(output, str("] Processed ", count, " files."));
}

TEST_F(ConvertImageset, ConvertsAsAsked) {
  make_pictures(1);
  const std::string png = read_file(folder_ / "img/0.png");
  const Picture picture = ramp_picture(4, 6, 3, 0);
  struct Row {
    const char* flags;
    int channels, height, width;
    bool is_encoded;
    const char* begin;  // of the data; "keep": the file's bytes
  };
  const Row rows[] = {{"--gray", 1, 4, 6, false, ""},
                      {"--resize_height=3 --resize_width=5", 3, 3, 5, false, ""},
                      {"--encoded", 3, 4, 6, true, "keep"},
                      {"--encoded --encode_type=PNG", 3, 4, 6, true, "keep"},
                      {"--encode_type=jpg", 3, 4, 6, true, "\xFF\xD8"},
                      {"--encode_type=jpeg", 3, 4, 6, true, "\xFF\xD8"},
                      {"--encoded --gray", 1, 4, 6, true, "\x89PNG"},
                      {"--encoded --resize_height=3 --resize_width=5", 3, 3, 5, true, "\x89PNG"},
                      {"--backend=lmdb", 3, 4, 6, false, ""}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.flags);
    const ToolResult result = convert(row.flags);
    ASSERT_EQ(result.status, 0) << result.output;
    const StoredRecord record = records().at(0);
    EXPECT_EQ(record.channels, row.channels);
    EXPECT_EQ(record.height, row.height);
    EXPECT_EQ(record.width, row.width);
    EXPECT_EQ(record.is_encoded, row.is_encoded);
    if (row.is_encoded) {
      EXPECT_EQ(record.data == png, row.begin == std::string("keep"));
      if (row.begin != std::string("keep")) {
        EXPECT_EQ(record.data.find(row.begin), 0u);
      }
      Picture back;
      decode(record.data, ColorMode::as_stored, back);
      EXPECT_EQ(back.channels, row.channels);
    } else {
      EXPECT_EQ(record.data.size(), static_cast<size_t>(row.channels * row.height * row.width));
    }
    std::filesystem::remove_all(folder_ / "db");
  }
}

TEST_F(ConvertImageset, ShufflesByTheSeed) {
  make_pictures(30);
  const auto keys = [&](const std::string& flags) {
    EXPECT_EQ(convert(flags).status, 0);
    const std::vector<std::string> stored = keys_of(records());
    std::filesystem::remove_all(folder_ / "db");
    return stored;
  };
  const std::vector<std::string> plain = keys(""), one = keys("--shuffle"),
                                 two = keys("--shuffle --seed=2");
  EXPECT_EQ(plain[29], "00000029_29.png");
  EXPECT_NE(one, plain);
  EXPECT_NE(one, two);
  EXPECT_EQ(one, keys("--shuffle --seed=1"));
}

// The whole kind of broken pictures: none hangs, each is named once, what is good is stored.
TEST_F(ConvertImageset, SkipsBrokenPicturesAndNamesEachOnce) {
  const std::string jpg = encode(ramp_picture(64, 64, 3), ".jpg");
  write_text_file(folder_ / "img/zero.jpg", "");
  write_text_file(folder_ / "img/text.jpg", "this is text");
  write_text_file(folder_ / "img/cut.jpg", jpg.substr(0, jpg.size() * 6 / 10));
  write_text_file(folder_ / "img/soi.jpg", "\xFF\xD8");
  write_picture_file(folder_ / "img/good.png", ramp_picture(64, 64, 3));
  std::filesystem::create_directory(folder_ / "img/folder.png");
  write_list(
      "zero.jpg 0\ntext.jpg 1\ncut.jpg 2\nsoi.jpg 3\nfolder.png 4\ngone.png 5\ngood.png 6\n");
  const ToolResult result = convert();
  EXPECT_EQ(result.status, 0);
  EXPECT_HAS(result.output, "Stored 2 of 7");
  EXPECT_HAS(result.output, "Skipped 5");
  for (const char* name :
       {"zero.jpg", "text.jpg", "cut.jpg", "soi.jpg", "folder.png", "gone.png"}) {
    const size_t at = result.output.find(name);
    EXPECT_NE(at, std::string::npos) << name;
    EXPECT_EQ(result.output.find(name, at + 1), std::string::npos) << name;
  }
  EXPECT_EQ(keys_of(records()),
            (std::vector<std::string>{"00000002_cut.jpg", "00000006_good.png"}));
}

// A JPEG that ends early is stored as far as it goes, but never as a file that a reader would
// refuse.
TEST_F(ConvertImageset, ACutJpegIsEncodedAnew) {
  const std::string jpg = encode(ramp_picture(64, 64, 3), ".jpg");
  write_text_file(folder_ / "img/cut.jpg", jpg.substr(0, jpg.size() * 6 / 10));
  write_list("cut.jpg 2\n");
  ASSERT_EQ(convert("--encoded").status, 0);
  const auto feed = make_feed(data_layer(folder_ / "db", 1), {});
  EXPECT_EQ(feed->shapes()[0], (Shape{1, 3, 64, 64}));
}

TEST_F(ConvertImageset, ShortensKeysThatAreTooLong) {
  std::string path;
  while (path.size() < 520) path += std::string(99, 'd') + "/";
  write_picture_file(folder_ / ("img/" + path + "a.png"), ramp_picture(2, 2, 3));
  write_list(path + "a.png 1\n" + path + "a.png 2\n");
  ASSERT_EQ(convert().status, 0);
  ASSERT_EQ(records().size(), 2u);
  EXPECT_EQ(records()[1].key.substr(0, 10), "00000001_d");
}

struct Failure {
  const char* name;
  std::string flags;
  std::string list;
  std::string root;
  std::vector<std::string> parts;
};

TEST_F(ConvertImageset, FailsWithOneLineAndLeavesNothing) {
  make_pictures(3);
  write_picture_file(folder_ / "img/large.png", ramp_picture(9, 6, 3));
  const std::string good = "0.png 0\n1.png 1\n2.png 2\n", bad = "0.png 0\nnone.png 1\n2.png 2\n";
  const Failure rows[] = {
      {"wrong_root", "", good, "img", {"stored 0 of 3", "img/"}},
      {"no_root", "", good, "none/", {"stored 0 of 3"}},
      {"strict", "--strict", bad, "img/", {"img/none.png: No such file"}},
      {"check_size",
       "--check_size",
       "0.png 0\nlarge.png 1\n",
       "img/",
       {"img/large.png", "9 x 6", "4 x 6"}},
      {"bad_label", "", "0.png cat\n", "img/", {"list.txt:1: ", "cat"}},
      {"empty_list", "", "", "img/", {"list.txt: ", "empty"}},
      {"backend", "--backend=rocksdb", good, "img/", {"an lmdb or a leveldb, not \"rocksdb\""}},
      {"one_size", "--resize_width=5", good, "img/", {"both or neither"}},
      {"size_below_0",
       "--resize_width=-5 --resize_height=-5",
       good,
       "img/",
       {"must not be negative"}},
      {"encode_type", "--encode_type=nonsense", good, "img/", {"nonsense"}},
  };
  for (const Failure& row : rows) {
    SCOPED_TRACE(row.name);
    write_list(row.list);
    const ToolResult result = convert(row.flags, row.root);
    EXPECT_EQ(result.status, 1) << result.output;
    for (const std::string& part : row.parts) EXPECT_HAS(result.output, part);
    EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"img", "list.txt"}));
  }
}

TEST_F(ConvertImageset, RefusesADatabaseThatIsThere) {
  make_pictures(1);
  ASSERT_EQ(convert().status, 0);
  const std::string before = read_file(folder_ / "db/data.mdb");
  const ToolResult again = convert("--gray");
  EXPECT_EQ(again.status, 1);
  EXPECT_HAS(again.output, "db: is there already");
  EXPECT_EQ(read_file(folder_ / "db/data.mdb"), before);
}

/// BVLC: keeps the file, which no Data layer reads back.
TEST_F(ConvertImageset, EncodesPicturesOf16BitsAnewUnderGray) {
  make_pictures(1);
  const std::string deep = read_file(CREMA_SOURCE_DIR "/tests/conformance/images/img/deep16.png");
  write_file(folder_ / "img/deep.png", deep);
  write_list("deep.png 3\n");
  ASSERT_EQ(convert("--encoded").status, 0);
  EXPECT_TRUE(records().at(0).data == deep);
  std::filesystem::remove_all(folder_ / "db");
  const ToolResult result = convert("--encoded --gray");
  ASSERT_EQ(result.status, 0) << result.output;
  Picture back;
  decode(records().at(0).data, ColorMode::as_stored, back);
  EXPECT_EQ(back.channels, 1);
}

TEST_F(ConvertImageset, ShowsUsageWithoutArguments) {
  for (const char* arguments : {"", "img/", "img/ list.txt", "--labels_from_folders img"}) {
    const ToolResult result = run_shell(str("convert_imageset ", arguments));
    EXPECT_EQ(result.status, 1);
    EXPECT_HAS(result.output, "ROOT/ LIST DB");
    EXPECT_HAS(result.output, "-resize_height");
    const size_t count = split(arguments, ' ').size() - (*arguments == '-');
    EXPECT_HAS(result.output, str(" arguments beside its flags, not ", count));
  }
}

TEST_F(ConvertImageset, HelpShowsItsOwnFlagsAndSucceeds) {
  for (const char* tool : {"convert_imageset", "convert_mnist_data", "compute_image_mean"}) {
    const ToolResult result = run_shell(str(tool, " --help"));
    EXPECT_EQ(result.status, 0);
    EXPECT_HAS(result.output, "-backend");
    EXPECT_EQ(result.output.find("-logtostderr"), std::string::npos) << result.output;
  }
}

TEST_F(ConvertImageset, StoppedBySignalsLeavesNothing) {
  make_pictures(1);
  std::string list;
  for (int i = 0; i < 400000; ++i) list += "0.png 0\n";
  write_list(list);
  for (const char* signal : {"INT", "TERM"}) {
    // Waits until the conversion is under way, then stops it.
    const ToolResult result = run_shell(
        str("cd ", folder_.path(), " && convert_imageset img/ list.txt db & pid=$!; while ! ls ",
            folder_.path(), "/db.tmp.* > /dev/null 2>&1; do sleep 0.01; done; sleep 0.1; kill -",
            signal, " $pid; wait $pid"));
    EXPECT_EQ(result.status, 1) << result.output;
    EXPECT_HAS(result.output, "stopped; nothing was stored");
    EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"img", "list.txt"}));
  }
}

TEST_F(ConvertImageset, ADatabaseThatMayNotGrowIsAnErrorAndLeavesNothing) {
  make_pictures(3);
  for (const char* limit :
       {"1", "16", "50"}) {  // of 512 bytes: within a write, between two, and within
    const ToolResult result = run_shell(
        str("ulimit -f ", limit, "; cd ", folder_.path(),
            " && convert_imageset --resize_height=300 --resize_width=300 img/ list.txt db"));
    EXPECT_EQ(result.status, 1) << result.output;
    EXPECT_HAS(result.output, "cannot write db: ");
    EXPECT_EQ(names_in(folder_.path()), (std::vector<std::string>{"img", "list.txt"}));
  }
}

/// The program with a library folder whose picture library is none.
TEST_F(ConvertImageset, ABuildWithoutPicturesSaysSoOnce) {
  make_pictures(3);
  const std::string program = folder_ / "build/bin/convert_imageset";
  std::filesystem::create_directories(folder_ / "build/bin");
  std::filesystem::copy_file(std::string(CREMA_BIN_DIR) + "/convert_imageset", program);
  std::filesystem::copy(std::string(CREMA_BIN_DIR) + "/../lib", folder_ / "build/lib");
  write_text_file(folder_ / "build/lib/libcrema_image.so", "none");
  const ToolResult result =
      run_shell(str("cd ", folder_.path(), " && ", program, " img/ list.txt db"));
  EXPECT_EQ(result.status, 1);
  EXPECT_HAS(result.output, "\nthis build cannot read or write pictures: build it with OpenCV (");
  EXPECT_EQ(result.output.find("Could not open"), std::string::npos) << result.output;
  EXPECT_FALSE(exists(folder_ / "db"));
}

TEST_F(ConvertImageset, TrainingReadsItInLittleAddressSpace) {
  make_pictures(10);
  ASSERT_EQ(convert().status, 0);
  write_text_file(folder_ / "solver.prototxt",
                  "base_lr: 0.001 lr_policy: 'fixed' max_iter: 3 snapshot_after_train: false "
                  "net_param { layer { name: 'd' type: 'Data' top: 'x' top: 'y' data_param { "
                  "source: 'db' batch_size: 4 } } layer { name: 'ip' type: 'InnerProduct' bottom: "
                  "'x' top: 'ip' inner_product_param { num_output: 3 } } layer { name: 'loss' "
                  "type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'y' top: 'loss' } }");
  const ToolResult result =
      run_shell(str("ulimit -v 3000000; cd ", folder_.path(),
                    " && OMP_NUM_THREADS=2 crema train --cpu --solver=solver.prototxt"));
  EXPECT_EQ(result.status, 0) << result.output;
}

TEST_F(ConvertImageset, NeedsLittleAddressSpace) {
  make_pictures(1);
  std::string list;
  for (int i = 0; i < 5000; ++i) list += "0.png 0\n";
  write_list(list);
  ASSERT_EQ(
      run_shell(str("ulimit -v 2000000; cd ", folder_.path(),
                    " && convert_imageset --threads=1 --resize_height=100 --resize_width=100 img/ "
                    "list.txt db && compute_image_mean --threads=1 db"))
          .status,
      0);
  EXPECT_EQ(records().size(), 5000u);
}

TEST_F(ConvertImageset, TakesLabelsFromFolders) {
  for (const char* path : {"zebra/1.png", "ant/b.png", "ant/a.PNG", "ant/deep/er/c.png",
                           "cat/x.png", "ant/.hidden.png"}) {
    write_text_file(folder_ / (std::string("img/") + path), encode(ramp_picture(2, 2, 3), ".png"));
  }
  write_text_file(folder_ / "img/ant/notes.txt", "text");
  std::filesystem::create_directory(folder_ / "img/empty");
  const std::string command =
      str("cd ", folder_.path(), " && convert_imageset --labels_from_folders img db");
  const ToolResult result = run_shell(command);
  ASSERT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(read_file(folder_ / "db/labels.txt"), "ant\ncat\nempty\nzebra\n");
  std::vector<std::pair<std::string, int>> got;
  for (const StoredRecord& r : records()) got.emplace_back(r.key, r.label);
  EXPECT_EQ(got, (std::vector<std::pair<std::string, int>>{{"00000000_ant/a.PNG", 0},
                                                           {"00000001_ant/b.png", 0},
                                                           {"00000002_ant/deep/er/c.png", 0},
                                                           {"00000003_cat/x.png", 1},
                                                           {"00000004_zebra/1.png", 3}}));
  EXPECT_HAS(result.output, "1 files are no pictures");
  EXPECT_HAS(run_shell(str("convert_imageset --labels_from_folders ", folder_ / "img/cat", " ",
                           folder_ / "x"))
                 .output,
             "holds no folders");
  EXPECT_HAS(run_shell(str("convert_imageset --labels_from_folders ", folder_ / "none", " ",
                           folder_ / "x"))
                 .output,
             "none: No such file");
}

}  // namespace
}  // namespace crema::testing
