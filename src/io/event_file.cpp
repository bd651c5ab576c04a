// Event: wall_time = 1 (double), step = 2, file_version = 3, summary = 5 { value = 1 { tag = 1,
// simple_value = 2 (float) } }.
#include "io/event_file.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

const std::array<uint32_t, 256>& crc_table() {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> out{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t crc = i;
      for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? kPolynomial : 0);
      out[i] = crc;
    }
    return out;
  }();
  return table;
}

template <class T>
std::string bytes_of(T value) {
  std::string out(sizeof value, '\0');
  std::memcpy(out.data(), &value, sizeof value);
  return out;
}

std::string varint(uint64_t value) {
  std::string out;
  for (; value > 127; value >>= 7) out += static_cast<char>(value | 128);
  return out + static_cast<char>(value);
}

/// Tag, length and content of a field of bytes.
std::string field(int number, const std::string& content) {
  return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(content.size()) + content;
}

std::string masked_crc(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return bytes_of(((crc >> 15) | (crc << 17)) + 0xa282ead8u);
}

/// The fields that every event begins with.
std::string stamped() {
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  return "\x09" + bytes_of(now.count());
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char c : bytes) {
    crc = crc_table()[(crc ^ static_cast<unsigned char>(c)) & 255] ^ (crc >> 8);
  }
  return ~crc;
}

std::string tf_record(std::string_view content) {
  const std::string length = bytes_of(static_cast<uint64_t>(content.size()));
  return length + masked_crc(length) + std::string(content) + masked_crc(content);
}

EventFile::EventFile(const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  require(!code, folder, ": ", code.message());
  char host[256] = "host";
  ::gethostname(host, sizeof host - 1);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  path_ = str(folder, "/events.out.tfevents.",
              std::chrono::duration_cast<std::chrono::seconds>(now).count(), ".", host, ".",
              ::getpid(), ".crema");
  file_ = std::fopen(path_.c_str(), "wb");
  require(file_ != nullptr, path_, ": ", errno_text());
  write(stamped() + field(3, "brain.Event:2"));
}

EventFile::~EventFile() { std::fclose(file_); }

void EventFile::add(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [tag, value] : values) {
    summary += field(1, field(1, tag) + "\x15" + bytes_of(static_cast<float>(value)));
  }
  write(stamped() + "\x10" + varint(static_cast<uint64_t>(step)) + field(5, summary));
}

void EventFile::write(const std::string& event) {
  const std::string record = tf_record(event);
  const bool is_written = std::fwrite(record.data(), 1, record.size(), file_) == record.size() &&
                          std::fflush(file_) == 0;
  require(is_written, path_, ": ", errno_text());  // apart: errno must be this call's
}

}  // namespace crema
