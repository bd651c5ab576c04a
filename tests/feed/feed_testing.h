// Helpers of the feed tests: small databases, layers from text, expected
// errors.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/test_folder.h"
#include "feed/datum.h"
#include "feed/feed.h"
#include "feed/lmdb_writer.h"
#include "io/image.h"
#include "io/prototxt.h"

namespace crema::testing {

inline void write_text_file(const std::string& path, const std::string& content) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

/// The message of the Error that call throws; "" when it throws none.
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

#define EXPECT_HAS(text, part) EXPECT_PRED_FORMAT2(::crema::testing::has, text, part)
inline ::testing::AssertionResult has(const char*, const char*, const std::string& text,
                                      const std::string& part) {
  if (text.find(part) != std::string::npos) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "\"" << text << "\" does not hold \"" << part << "\"";
}

struct TestRecord {
  std::string key, value;
};

inline void write_database(const std::string& path, const std::vector<TestRecord>& records) {
  LmdbWriter writer(path);
  for (const TestRecord& record : records) writer.put(record.key, record.value);
  writer.finish();
}

/// A raw picture whose pixel i is (start + i) % 256.
inline std::string ramp_datum(int channels, int height, int width, int label, int start = 0) {
  std::string pixels;
  for (int i = 0; i < channels * height * width; ++i) pixels += static_cast<char>(start + i);
  return write_datum({channels, height, width, label, false}, pixels);
}

/// count records of 1x1x1; the pixel and the label of record i are both i.
inline void write_numbers(const std::string& path, int count) {
  std::vector<TestRecord> records;
  records.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) records.push_back({record_key(i), ramp_datum(1, 1, 1, i, i)});
  write_database(path, records);
}

inline Picture ramp_picture(int height, int width, int channels, int start = 0) {
  Picture picture{height, width, channels, {}};
  for (int i = 0; i < height * width * channels; ++i) {
    picture.pixels.push_back(static_cast<uint8_t>(start + 3 * i));
  }
  return picture;
}

inline LayerParameter layer_of(const std::string& text) {
  LayerParameter layer;
  parse_text(text, "test", &layer);
  return layer;
}

/// A Data layer with tops data and label.
inline LayerParameter data_layer(const std::string& source, int batch, const std::string& more = "",
                                 const std::string& transform = "") {
  return layer_of(str("name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '",
                      source, "' batch_size: ", batch, " backend: LMDB ", more,
                      " } transform_param { ", transform, " }"));
}

/// The next batch, one vector for each top.
inline std::vector<std::vector<float>> next_batch(Feed& feed) {
  std::vector<std::vector<float>> tops;
  std::vector<float*> pointers;
  for (const Shape& shape : feed.shapes()) tops.emplace_back(shape.count(), -12345.f);
  pointers.reserve(tops.size());
  for (std::vector<float>& top : tops) pointers.push_back(top.data());
  feed.next(pointers);
  return tops;
}

}  // namespace crema::testing
