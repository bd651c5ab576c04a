// convert_cifar_data: CIFAR-10's binary batches into two databases. Pixels stay as they are in the
// files: planes of red, green and blue (not the blue, green, red of convert_imageset).
#include <array>
#include <cstdio>
#include <filesystem>

#include "base/file.h"
#include "feed/database_writer.h"
#include "feed/datum.h"
#include "tool.h"

namespace crema {
namespace {

constexpr const char* kUsage =
    "Converts CIFAR-10's binary batches (data_batch_1.bin to data_batch_5.bin, test_batch.bin).\n"
    "    convert_cifar_data IN_FOLDER OUT_FOLDER lmdb|leveldb\n"
    "Writes OUT_FOLDER/cifar10_train_lmdb and OUT_FOLDER/cifar10_test_lmdb (or _leveldb).";
constexpr int kSize = 32, kPixels = 3 * kSize * kSize, kRecord = 1 + kPixels;

void store(const std::string& file, DatabaseWriter& writer, int& number) {
  const std::string bytes = read_file(file);
  require(!bytes.empty() && bytes.size() % kRecord == 0, file, ": holds ", bytes.size(),
          " bytes, no multiple of the ", kRecord, " of a picture with its label");
  for (size_t at = 0; at < bytes.size(); at += kRecord) {
    require(stop_signal == 0, "stopped; nothing was stored");
    const auto label = static_cast<unsigned char>(bytes[at]);
    require(label < 10, file, ": picture ", at / kRecord, " has the label ", int{label},
            ", there are 10 classes");
    char key[16];
    std::snprintf(key, sizeof key, "%05d", number++);
    writer.put(key, write_datum({3, kSize, kSize, label, false},
                                std::string_view(bytes).substr(at + 1, kPixels)));
  }
}

void convert(const std::vector<std::string>& arguments) {
  const std::string &in = arguments[0], &out = arguments[1], &type = arguments[2];
  check_database_kind(type);
  require(is_directory(in), in, ": is no folder");
  std::error_code code;
  std::filesystem::create_directories(out, code);
  require(!code, out, ": ", code.message());
  catch_signals();
  const auto train = make_database_writer(type, out + "/cifar10_train_" + type);
  const auto test = make_database_writer(type, out + "/cifar10_test_" + type);
  int trained = 0, tested = 0;
  for (int i = 1; i <= 5; ++i) store(str(in, "/data_batch_", i, ".bin"), *train, trained);
  store(in + "/test_batch.bin", *test, tested);
  train->finish();
  test->finish();
  LOG(INFO) << "Stored " << trained << " pictures for training and " << tested << " for testing.";
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  return crema::run_tool(
      argc, argv, {"convert_cifar_data", crema::kUsage},
      [] { return std::pair<size_t, size_t>(3, 3); }, crema::convert);
}
