// TensorBoard's event files: TFRecords of Event messages, both written by hand.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace crema {

/// CRC-32C (Castagnoli), as RFC 3720 defines it.
uint32_t crc32c(std::string_view bytes);

/// A record with its length and both masked checksums, as TensorFlow frames it.
std::string tf_record(std::string_view content);

/// Appends scalars to FOLDER/events.out.tfevents.TIME.HOST.crema; each call is flushed, so that a
/// running TensorBoard sees it.
class EventFile {
 public:
  /// Makes the folder and the file. Throws Error.
  explicit EventFile(const std::string& folder);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  const std::string& path() const { return path_; }
  /// One event: (tag, value) pairs at a step. Throws Error when the disk is full.
  void add(int64_t step, const std::vector<std::pair<std::string, double>>& values);

 private:
  void write(const std::string& event);

  std::string path_;
  std::FILE* file_;
};

}  // namespace crema
