// LMDB: what is written is read back in key order; every unusable database is named.
#include <fstream>
#include <thread>

#include "feed/database.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

std::vector<std::string> keys_of(Database& database) {
  std::vector<std::string> keys;
  for (uint64_t i = 0; i < database.size(); ++i) keys.emplace_back(database.next().key);
  return keys;
}

TEST(Lmdb, ReadsInByteOrderOfTheKeys) {
  const TestFolder folder;
  write_database(folder / "db", {{"1", "a"}, {"2", "b"}, {"10", "c"}});
  const auto database = open_database(folder / "db");
  EXPECT_EQ(keys_of(*database), (std::vector<std::string>{"1", "10", "2"}));
}

TEST(Lmdb, IsWrittenBesideWhatAKilledProcessOfTheSameNumberLeft) {
  const TestFolder folder;
  const std::string left = str(folder / "db", ".tmp.", ::getpid());
  write_text_file(left + "/data.mdb", "half");
  write_numbers(folder / "db", 2);
  EXPECT_EQ(open_database(folder / "db")->size(), 2u);
  EXPECT_EQ(folder.files().size(), 2u);
  EXPECT_EQ(read_file(left + "/data.mdb"), "half");
}

TEST(Lmdb, SeeksWrapsAndReadsByNumber) {
  const TestFolder folder;
  write_numbers(folder / "db", 10);
  const auto database = open_database(folder / "db");
  EXPECT_EQ(database->size(), 10u);
  database->seek(8);
  EXPECT_EQ(database->next().key, record_key(8));
  EXPECT_EQ(database->next().key, record_key(9));
  EXPECT_EQ(database->next().key, record_key(0));
  database->seek(9);
  EXPECT_EQ(database->next().key, record_key(9));
  database->seek(4);  // from behind the last one
  EXPECT_EQ(database->next().key, record_key(4));
  database->seek(0);
  EXPECT_EQ(database->next().key, record_key(0));
  database->seek(1);
  EXPECT_EQ(database->next().key, record_key(1));
  EXPECT_EQ(database->at(7).key, record_key(7));
  EXPECT_EQ(database->at(3).value, ramp_datum(1, 1, 1, 3, 3));
  EXPECT_EQ(database->next().key, record_key(0));
}

TEST(Lmdb, GrowsItsMapWithoutLosingOrDoublingRecords) {
  const TestFolder folder;
  const int count = 2500;
  LmdbWriter writer(folder / "db", 64 << 10);
  for (int i = 0; i < count; ++i)
    writer.put(record_key(i), std::string(3000, static_cast<char>(i)));
  writer.finish();
  const auto database = open_database(folder / "db");
  ASSERT_EQ(database->size(), static_cast<uint64_t>(count));
  for (int i = 0; i < count; ++i) {
    const Record record = database->next();
    ASSERT_EQ(record.key, record_key(i));
    ASSERT_EQ(record.value, std::string(3000, static_cast<char>(i)));
  }
}

TEST(Lmdb, KeysOutOfOrderAreStoredToo) {
  const TestFolder folder;
  write_database(folder / "db", {{"b", "1"}, {"a", "2"}, {"c", "3"}, {"a", "4"}});
  const auto database = open_database(folder / "db");
  EXPECT_EQ(keys_of(*database), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(database->at(0).value, "4");
}

TEST(Lmdb, LongKeysAreShortenedAndStayUnique) {
  const std::string path(520, 'x');
  EXPECT_EQ(record_key(3, "sub/a.png"), "00000003_sub/a.png");
  EXPECT_EQ(record_key(3, path).size(), kMaxKeyBytes);
  EXPECT_NE(record_key(3, path), record_key(4, path));
  const TestFolder folder;
  write_database(folder / "db", {{record_key(0, path), "a"}, {record_key(1, path), "b"}});
  EXPECT_EQ(open_database(folder / "db")->size(), 2u);
}

TEST(Lmdb, UnfinishedWritingLeavesNothing) {
  const TestFolder folder;
  { LmdbWriter(folder / "db").put("a", "b"); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Lmdb, RefusesToWriteOverSomething) {
  const TestFolder folder;
  write_numbers(folder / "db", 1);
  EXPECT_HAS(error_of([&] { LmdbWriter(folder / "db"); }), (folder / "db") + ": is there already");
  EXPECT_HAS(error_of([&] { LmdbWriter(folder / "db/"); }), (folder / "db") + ": is there already");
  EXPECT_HAS(error_of([&] { LmdbWriter("/no/such/db"); }), "cannot make /no/such/db: No such file");
}

TEST(Lmdb, NeedsNoLockFileAndNoWritableFolder) {
  const TestFolder folder;
  write_numbers(folder / "db", 3);
  EXPECT_FALSE(std::filesystem::exists(folder / "db/lock.mdb"));
  std::filesystem::permissions(folder / "db", std::filesystem::perms(0555));
  const auto first = open_database(folder / "db"), second = open_database(folder / "db");
  EXPECT_EQ(first->next().key, second->next().key);
  EXPECT_FALSE(std::filesystem::exists(folder / "db/lock.mdb"));
  std::filesystem::permissions(folder / "db", std::filesystem::perms(0755));
}

void write_without_records(const std::string& path) {
  LmdbWriter writer(path);
  writer.finish();
}

void cut(const std::string& path) {
  std::filesystem::resize_file(path, std::filesystem::file_size(path) * 6 / 10);
}

TEST(Lmdb, NamesEveryUnusableDatabase) {
  const TestFolder folder;
  struct Row {
    const char* name;
    std::function<void(const std::string&)> make;
    const char* message;
  };
  const Row rows[] = {
      {"missing", [](const std::string&) {}, "there is no such database"},
      {"file", [](const std::string& p) { write_text_file(p, "x"); }, "is a file"},
      {"empty_folder", [](const std::string& p) { std::filesystem::create_directory(p); },
       "no data.mdb (LMDB) and no CURRENT (LevelDB)"},
      {"leveldb",
       [](const std::string& p) { write_text_file(p + "/CURRENT", "MANIFEST-000002\n"); },
       "LevelDB"},
      {"empty_file", [](const std::string& p) { write_text_file(p + "/data.mdb", ""); },
       "data.mdb is empty"},
      {"text",
       [](const std::string& p) { write_text_file(p + "/data.mdb", std::string(9000, 'x')); },
       "not a readable LMDB"},
      {"no_records", write_without_records, "holds no records"},
      {"cut_short",
       [](const std::string& p) {
         write_numbers(p, 3000);
         cut(p + "/data.mdb");
       },
       "cut short"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const std::string path = folder / row.name;
    row.make(path);
    const std::string error = error_of([&] { open_database(path); });
    EXPECT_HAS(error, path + ": ");
    EXPECT_HAS(error, row.message);
  }
  EXPECT_HAS(error_of([] { open_database(""); }), "source");
}

/// Says of every big value that it has no pages.
void take_pages_of_values(const std::string& file) {
  std::fstream bytes(file, std::ios::binary | std::ios::in | std::ios::out);
  ASSERT_TRUE(bytes);
  int count = 0;
  char page[16];
  for (std::streamoff at = 2 * 4096; bytes.seekg(at).read(page, sizeof page); at += 4096) {
    if (page[10] != 4) continue;
    bytes.seekp(at + 12).write("\0\0\0\0", 4);
    ++count;
  }
  ASSERT_GE(count, 3);
}

TEST(Lmdb, BigValuesAreReadWhenTheyAreAskedFor) {
  const TestFolder folder;
  const std::string big(10000, 'x');
  write_database(folder / "db", {{"a", big}, {"b", big}, {"c", big}, {"d", "small"}});
  take_pages_of_values(folder / "db/data.mdb");
  const auto database = open_database(folder / "db");
  database->seek(3);  // without a look at the values before
  EXPECT_EQ(database->next().value, "small");
  EXPECT_EQ(database->at(3).value, "small");
  for (const bool by_number : {false, true}) {
    try {
      by_number ? database->at(1) : database->next();
      ADD_FAILURE() << "a value without pages was read";
    } catch (const Error& error) {
      EXPECT_TRUE(std::string(error.what()).find("data.mdb is damaged: page ") != std::string::npos)
          << error.what();
    }
  }
}

TEST(Lmdb, PrintsKeys) {
  EXPECT_EQ(printable(std::string_view("a b\n\0\xc3\xa4", 7)), "a b\\x0a\\x00\xc3\xa4");
}

}  // namespace
}  // namespace crema::testing
