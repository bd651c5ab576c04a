// create_label_map and convert_annoset: what is stored, what is refused.
#include "base/file.h"
#include "convert_testing.h"

namespace crema::testing {
namespace {

const char* const kVoc =
    "<annotation>\n  <size>\n    <width>8</width>\n    <height>4</height>\n    <depth>3</depth>\n"
    "  </size>\n  <object>\n    <name>cat</name>\n    <difficult>1</difficult>\n    <bndbox>\n"
    "      <xmin>2</xmin>\n      <ymin>1</ymin>\n      <xmax>6</xmax>\n      <ymax>4</ymax>\n"
    "    </bndbox>\n  </object>\n  <object><name>dog</name><bndbox><xmin>0</xmin><ymin>0</ymin>"
    "<xmax>4</xmax><ymax>2</ymax></bndbox></object>\n</annotation>\n";

class ConvertAnnoset : public ::testing::Test {
 protected:
  void SetUp() override {
    write_picture_file(folder_ / "img/a.png", ramp_picture(4, 8, 3));
    write_text_file(folder_ / "img/a.xml", kVoc);
    write_text_file(folder_ / "list.txt", "img/a.png img/a.xml\n");
    write_text_file(folder_ / "classes.txt", "cat 1 Cat\ndog 2 Dog\n");
  }
  ToolResult run(const std::string& command) {
    return run_shell(str("cd ", folder_.path(), " && ", command));
  }
  ToolResult convert(const std::string& flags) {
    return run("convert_annoset " + flags + " . list.txt db");
  }
  void make_label_map() {
    const ToolResult result = run("create_label_map classes.txt map.prototxt");
    EXPECT_EQ(result.status, 0) << result.output;
  }
  /// The batch of one record that AnnotatedData makes of the database.
  std::vector<std::vector<float>> batch(const std::string& transform = "") {
    const auto feed = make_feed(
        layer_of(str("name: 'd' type: 'AnnotatedData' top: 'data' top: 'label' data_param "
                     "{ source: '",
                     folder_ / "db", "' batch_size: 1 } transform_param { ", transform, " }")),
        {TEST, 1, "d", 0, 1});
    return next_batch(*feed);
  }

  TestFolder folder_;
};

TEST_F(ConvertAnnoset, LabelMapOfAList) {
  make_label_map();
  const std::string map = read_file(folder_ / "map.prototxt");
  EXPECT_HAS(map, "name: \"none_of_the_above\"\n  label: 0\n  display_name: \"background\"");
  EXPECT_HAS(map, "name: \"dog\"\n  label: 2\n  display_name: \"Dog\"");
}

TEST_F(ConvertAnnoset, LabelMapRefusals) {
  write_text_file(folder_ / "classes.txt", "cat 1 Cat\ndog 1 Dog\n");
  ToolResult result = run("create_label_map classes.txt map.prototxt");
  EXPECT_EQ(result.status, 1);
  EXPECT_HAS(result.output, "classes.txt:2: name or label stands twice: dog, 1");
  write_text_file(folder_ / "classes.txt", "cat one Cat\n");
  result = run("create_label_map classes.txt map.prototxt");
  EXPECT_EQ(result.status, 1);
  EXPECT_HAS(result.output, "classes.txt:1: label \"one\" is no whole number");
  for (const char* text : {"", "\n\r\n"}) {
    write_text_file(folder_ / "classes.txt", text);
    result = run("create_label_map classes.txt map.prototxt");
    EXPECT_EQ(result.status, 1);
    EXPECT_HAS(result.output, "classes.txt: names no class");
  }
  EXPECT_FALSE(exists(folder_ / "map.prototxt"));
}

/// As SSD's scripts split COCO: categories by number, boxes by corner and size.
TEST_F(ConvertAnnoset, CocoFilesGiveBoxes) {
  write_text_file(folder_ / "classes.txt", "1 1 person\n18 2 dog\n");
  make_label_map();
  const auto stored = [&](const std::string& annotations) {
    write_text_file(
        folder_ / "img/a.xml",
        "{ \"image\": { \"file_name\": \"a\\u002epng\", \"width\": 8, \"height\": 4 },\n"
        "  \"annotation\": [ " +
            annotations + " ] }");
    return convert("--label_type=json --label_map_file=map.prototxt");
  };
  const ToolResult result = stored(
      "{ \"category_id\": 18, \"bbox\": [2, 1, 4.0, 3e0], \"iscrowd\": 1, \"area\": null },\n"
      "{ \"bbox\": [0, 0, 4, 2], \"category_id\": 1, \"segmentation\": [[1, 2], []] }");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(batch()[1], (std::vector<float>{0, 2, 0, 0.25f, 0.25f, 0.75f, 1, 1,  //
                                            0, 1, 0, 0, 0, 0.5f, 0.5f, 0}));
  run("rm -r db");
  EXPECT_HAS(stored("{ \"category_id\": 7, \"bbox\": [0, 0, 4, 2] }").output,
             "./img/a.xml: class \"7\" is not in the label map");
  EXPECT_HAS(stored("{ \"category_id\": 1, \"bbox\": [0, 0, 4] }").output,
             "./img/a.xml: bbox must be left, top, width and height");
  EXPECT_HAS(stored("{ \"category_id\": 1, \"bbox\": [0, 0, 0, 2] }").output,
             "./img/a.xml: a box of class \"1\" is empty or inside out");
  EXPECT_HAS(stored("{ \"category_id\": 1 }").output, "./img/a.xml: has no \"bbox\"");
  EXPECT_HAS(stored("{ \"category_id\": 1, \n").output, "./img/a.xml: line 3: a name in quotation");
}

TEST_F(ConvertAnnoset, VocFilesGiveBoxes) {
  make_label_map();
  for (const char* flags : {"", "--encoded "}) {
    const ToolResult result = convert(str(flags, "--label_map_file=map.prototxt"));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_HAS(result.output, "Stored 1 pictures with 2 boxes in db");
    const auto tops = batch();
    EXPECT_EQ(tops[1], (std::vector<float>{0, 1, 0, 0.25f, 0.25f, 0.75f, 1, 1,  //
                                           0, 2, 0, 0, 0, 0.5f, 0.5f, 0}));
    EXPECT_EQ(tops[0].size(), 96U);
    EXPECT_EQ(tops[0][1], ramp_picture(4, 8, 3).pixels[3]) << "planes of " << flags;
    std::filesystem::remove_all(folder_ / "db");
  }
}

TEST_F(ConvertAnnoset, TextFilesGiveBoxes) {
  write_text_file(folder_ / "img/a.txt", "3 0 1 8 4\n\n3 4 0 8 2\n");
  write_text_file(folder_ / "list.txt", "img/a.png img/a.txt\n");
  const ToolResult result = convert("--label_type=txt --gray --resize_height=2 --resize_width=4");
  EXPECT_EQ(result.status, 0) << result.output;
  const auto tops = batch();
  EXPECT_EQ(tops[0].size(), 8U);
  EXPECT_EQ(tops[1], (std::vector<float>{0, 3, 0, 0, 0.25f, 1, 1, 0,  //
                                         0, 3, 1, 0.5f, 0, 1, 0.5f, 0}));
}

/// The flags that SSD's create_annoset.py gives.
TEST_F(ConvertAnnoset, TakesTheFlagsOfSsdsScript) {
  make_label_map();
  const ToolResult result = convert(
      "--anno_type=detection --label_type=xml --label_map_file=map.prototxt --check_label=True "
      "--min_dim=0 --max_dim=0 --resize_height=0 --resize_width=0 --backend=lmdb --shuffle=False "
      "--check_size=False --encode_type=png --encoded=True --gray=False");
  EXPECT_EQ(result.status, 0) << result.output;
  const auto database = open_database(folder_ / "db");
  const Record record = database->next();
  EXPECT_NE(record.value.find(read_file(folder_ / "img/a.png")), std::string::npos)
      << "the file's bytes are not kept";
}

TEST_F(ConvertAnnoset, SidesInTheirRatio) {
  make_label_map();
  const std::pair<const char*, size_t> rows[] = {{"--min_dim=6", 6 * 12 * 3},
                                                 {"--min_dim=3", 4 * 8 * 3},
                                                 {"--max_dim=6", 3 * 6 * 3},
                                                 {"--min_dim=6 --max_dim=10", 5 * 10 * 3},
                                                 {"--encode_type=jpg --max_dim=2", 1 * 2 * 3}};
  for (const auto& [flags, values] : rows) {
    const ToolResult result = convert(str(flags, " --label_map_file=map.prototxt"));
    EXPECT_EQ(result.status, 0) << result.output;
    EXPECT_EQ(batch()[0].size(), values) << flags;
    std::filesystem::remove_all(folder_ / "db");
  }
}

TEST_F(ConvertAnnoset, SizesOfPictures) {
  write_picture_file(folder_ / "img/b.c.png", ramp_picture(5, 3, 1));
  write_text_file(folder_ / "list.txt", "img/a.png img/a.xml\r\nimg/b.c.png x\n");
  ToolResult result = run("get_image_size . list.txt sizes.txt");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(read_file(folder_ / "sizes.txt"), "a 4 8\nb.c 5 3\n");
  write_text_file(folder_ / "ids.txt", "b.c 17\na 3\n");
  result = run("get_image_size --name_id_file=ids.txt . list.txt sizes.txt");
  EXPECT_EQ(result.status, 0) << result.output;
  EXPECT_EQ(read_file(folder_ / "sizes.txt"), "3 4 8\n17 5 3\n");
  write_text_file(folder_ / "ids.txt", "a 3\n");
  result = run("get_image_size --name_id_file=ids.txt . list.txt other.txt");
  EXPECT_EQ(result.status, 1);
  EXPECT_HAS(result.output, "ids.txt: has no number for \"b.c\"");
  EXPECT_FALSE(exists(folder_ / "other.txt"));
}

TEST_F(ConvertAnnoset, Refusals) {
  const auto bad = [&](const std::string& flags, const std::string& text) {
    const ToolResult result = convert(flags);
    EXPECT_EQ(result.status, 1);
    EXPECT_HAS(result.output, text);
    EXPECT_FALSE(exists(folder_ / "db"));
  };
  bad("", "label_map_file: is needed for xml");
  bad("--anno_type=classification", "must be detection");
  bad("--label_type=yaml", "must be xml, json or txt");
  bad("--label_type=txt --max_dim=-1", "min_dim and max_dim must not be negative: 0 and -1");
  write_text_file(folder_ / "map.prototxt",
                  "item { name: 'cat' label: 1 } item { name: 'dot' label: 2 }");
  bad("--label_map_file=map.prototxt",
      "a.xml: class \"dog\" is not in the label map (did you mean dot?)");
  write_text_file(folder_ / "img/a.txt", "3 0 1 8\n");
  write_text_file(folder_ / "list.txt", "img/a.png img/a.txt\n");
  bad("--label_type=txt", "a.txt:1: must be: label xmin ymin xmax ymax");
  write_text_file(folder_ / "list.txt", "img/a.png\n");
  bad("--label_type=txt", "list.txt:1: must be a picture and its file of boxes");
}

}  // namespace
}  // namespace crema::testing
