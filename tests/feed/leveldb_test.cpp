// LevelDB databases: the same records in the same order as an LMDB, errors of one line.
#include "feed/leveldb_files.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

class LevelDb : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_leveldb()) GTEST_SKIP() << "this build has no LevelDB";
  }

  std::string write(const std::string& name, const std::vector<TestRecord>& records) {
    const auto writer = make_database_writer("leveldb", folder_ / name);
    for (const TestRecord& record : records) writer->put(record.key, record.value);
    writer->finish();
    return folder_ / name;
  }

  std::string write_counted(const std::string& name, int count) {
    std::vector<TestRecord> records;
    for (int i = 0; i < count; ++i) records.push_back({record_key(i), ramp_datum(1, 1, 1, i, i)});
    return write(name, records);
  }

  TestFolder folder_;
};

TEST_F(LevelDb, GivesRecordsInTheOrderOfTheirKeys) {
  const std::string path =
      write("db", {{"b", "2"}, {"a", "1"}, {"d", std::string("\0x", 2)}, {"c", ""}});
  const auto database = open_database(path);
  EXPECT_STREQ(database->kind(), "leveldb");
  ASSERT_EQ(database->size(), 4u);
  std::string keys, values;
  for (int i = 0; i < 5; ++i) {
    const Record record = database->next();
    keys += record.key;
    values += str("[", std::string(record.value), "]");
  }
  EXPECT_EQ(keys, "abcda");
  EXPECT_EQ(values, std::string("[1][2][][\0x][1]", 15));
}

TEST_F(LevelDb, SeeksAndReadsByNumber) {
  const auto database = open_database(write_counted("db", 10));
  database->seek(8);
  EXPECT_EQ(database->next().key, record_key(8));
  EXPECT_EQ(database->next().key, record_key(9));
  EXPECT_EQ(database->next().key, record_key(0));
  database->seek(1);
  EXPECT_EQ(database->next().key, record_key(1));
  database->seek(5);
  EXPECT_EQ(database->at(7).key, record_key(7));
  EXPECT_EQ(database->at(3).value, ramp_datum(1, 1, 1, 3, 3));
  EXPECT_EQ(database->next().key, record_key(5)) << "at() does not move next()";
}

TEST_F(LevelDb, RecordsOutliveTheNextOnes) {
  const auto database = open_database(write_counted("db", 50));
  std::vector<Record> records;
  for (int i = 0; i < 50; ++i) records.push_back(database->next());
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(records[static_cast<size_t>(i)].value, ramp_datum(1, 1, 1, i, i));
    EXPECT_EQ(records[static_cast<size_t>(i)].key, record_key(i));
  }
}

TEST_F(LevelDb, FeedsAsAnLmdbDoes) {
  const std::string level = write_counted("level", 7);
  write_numbers(folder_ / "lmdb", 7);
  for (const char* order : {"", "shuffle: true"}) {
    const auto one = make_feed(data_layer(level, 3, order), {TRAIN, 4, "data"});
    const auto other = make_feed(data_layer(folder_ / "lmdb", 3, order), {TRAIN, 4, "data"});
    const auto again = make_feed(data_layer(level, 3, order), {TEST, 4, "data"});
    for (int i = 0; i < 6; ++i) {
      const auto batch = next_batch(*one);
      EXPECT_EQ(batch, next_batch(*other));
      EXPECT_EQ(batch, next_batch(*again)) << "two layers read one database";
      EXPECT_EQ(one->keys(), other->keys());
    }
  }
}

TEST_F(LevelDb, LeavesNothingBehindUnlessFinished) {
  {
    const auto writer = make_database_writer("leveldb", folder_ / "db");
    writer->put("a", "1");
    EXPECT_EQ(folder_.files().size(), 1u);
  }
  EXPECT_TRUE(folder_.files().empty());
  write_counted("db", 1);
  EXPECT_EQ(folder_.files(), std::vector<std::string>{"db"});
  EXPECT_HAS(error_of([&] { make_database_writer("leveldb", folder_ / "db"); }),
             "is there already");
}

TEST_F(LevelDb, NamesWhatIsWrong) {
  EXPECT_HAS(error_of([&] { open_database(write("none", {})); }), "holds no records");
  const std::string damaged = write_counted("damaged", 200);
  for (const auto& entry : std::filesystem::directory_iterator(damaged)) {
    if (entry.path().extension() != ".log") continue;
    std::filesystem::resize_file(entry.path(), 0);
  }
  EXPECT_HAS(error_of([&] { open_database(damaged); }), damaged + ": ");
  write_text_file(damaged + "/CURRENT", "MANIFEST-000099\n");
  EXPECT_HAS(error_of([&] { open_database(damaged); }),
             "cannot open the LevelDB " + damaged + ": ");
  EXPECT_HAS(error_of([&] { make_database_writer("rocksdb", folder_ / "x"); }),
             "a database is an lmdb or a leveldb, not \"rocksdb\"");
}

}  // namespace
}  // namespace crema::testing
