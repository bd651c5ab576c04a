// List files: what counts as a line, a path and a label.
#include "feed/list_file.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

struct GoodList {
  const char* name;
  std::string content;
  std::vector<std::pair<std::string, int>> entries;
};

const GoodList kGoodLists[] = {
    {"plain", "a.png 0\nb.png 1\n", {{"a.png", 0}, {"b.png", 1}}},
    {"blanks_in_path", "my cat 1.png 3\n", {{"my cat 1.png", 3}}},
    {"crlf", "a.png 0\r\nb.png 1\r\n", {{"a.png", 0}, {"b.png", 1}}},
    {"byte_order_mark",
     "\xEF\xBB\xBF"
     "a.png 0\nb.png 1\n",
     {{"a.png", 0}, {"b.png", 1}}},
    {"no_last_newline", "a.png 0\nb.png 1", {{"a.png", 0}, {"b.png", 1}}},
    {"all_three",
     "\xEF\xBB\xBF"
     "a.png 0\r\nb.png 1",
     {{"a.png", 0}, {"b.png", 1}}},
    {"empty_lines", "\na.png 0\n\n  \nb.png 1\n\n", {{"a.png", 0}, {"b.png", 1}}},
    {"tab", "a.png\t7\n", {{"a.png", 7}}},
    {"several_blanks", "a.png   7  \n", {{"a.png", 7}}},
    {"signs", "a.png -1\nb.png +2\n", {{"a.png", -1}, {"b.png", 2}}},
    {"no_digits_lost", "a.png 2147483647\n", {{"a.png", 2147483647}}},
};

TEST(ListFile, ReadsLines) {
  const TestFolder folder;
  for (const GoodList& row : kGoodLists) {
    SCOPED_TRACE(row.name);
    write_text_file(folder / "list.txt", row.content);
    std::vector<std::pair<std::string, int>> got;
    for (const ListEntry& e : read_list(folder / "list.txt")) got.emplace_back(e.path, e.label);
    EXPECT_EQ(got, row.entries);
  }
}

struct BadList {
  std::string content;
  std::vector<std::string> parts;  // of the message
};

const BadList kBadLists[] = {
    {"a.png cat\n", {"list.txt:1: ", "\"cat\"", "\"a.png cat\"", "whole number"}},
    {"a.png 0\nb.png 1x\n", {"list.txt:2: ", "\"1x\""}},
    {"a.png 0\n\nc.png\n", {"list.txt:3: ", "no label", "\"c.png\""}},
    {"c.png\r\n", {"no label", "\"c.png\""}},
    {"a.png 1.5\n", {"\"1.5\""}},
    {"a.png 2147483648\n", {"2147483648"}},
    {" 3\n", {"no path"}},
    {"a.png cat\nb.png dog\n", {"list.txt:1: ", "list.txt:2: "}},
    {"", {"list.txt: ", "empty"}},
    {"\n\n", {"list.txt: ", "empty"}},
    {std::string(5000, 'f'), {"no label after the path in \"" + std::string(80, 'f') + "...\""}},
    {std::string(5000, 'w') + " " + std::string(5000, 'l'),
     {std::string(80, 'l') + "...\" is not", "in \"" + std::string(80, 'w') + "...\""}},
};

TEST(ListFile, RefusesWhatHasNoWholeNumberAsLabel) {
  const TestFolder folder;
  for (const BadList& row : kBadLists) {
    SCOPED_TRACE(row.content);
    write_text_file(folder / "list.txt", row.content);
    const std::string error = error_of([&] { read_list(folder / "list.txt"); });
    for (const std::string& part : row.parts) EXPECT_HAS(error, part);
  }
}

TEST(ListFile, NamesAMissingFile) {
  EXPECT_HAS(error_of([] { read_list("/no/such/list"); }), "/no/such/list: No such file");
}

}  // namespace
}  // namespace crema::testing
