// convert_mnist_data: MNIST's idx files, plain or gzip, into an LMDB, or into a folder of PNGs for
// each digit.
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "feed/datum.h"
#include "feed/idx_file.h"
#include "feed/lmdb_writer.h"
#include "feed/new_folder.h"
#include "io/image.h"
#include "tool.h"

DEFINE_string(backend, "lmdb", "The kind of database: lmdb or leveldb");
DEFINE_string(to_images, "", "Write PNGs LABEL/NUMBER.png below this new folder, and no database");
DEFINE_uint64(count, 0, "Only the first so many; 0: all");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Converts MNIST's files (idx, plain or gzip).\n"
    "    convert_mnist_data [FLAGS] IMAGES LABELS DB\n"
    "    convert_mnist_data --to_images=FOLDER [--count=N] IMAGES LABELS";
constexpr int kLogEvery = 1000;

struct Digits {
  IdxImages images;
  std::vector<uint8_t> labels;
  int count = 0;  // how many of them are wanted

  size_t size() const { return static_cast<size_t>(images.rows) * images.cols; }
  const uint8_t* pixels(int i) const { return images.pixels.data() + i * size(); }
};

Digits read_digits(const std::string& images, const std::string& labels) {
  Digits digits{read_idx_images(images), read_idx_labels(labels), 0};
  require(static_cast<size_t>(digits.images.count) == digits.labels.size(), labels, ": holds ",
          digits.labels.size(), " labels, but ", images, " holds ", digits.images.count, " images");
  digits.count = digits.images.count;
  if (FLAGS_count > 0 && FLAGS_count < static_cast<uint64_t>(digits.count)) {
    digits.count = static_cast<int>(FLAGS_count);
  }
  LOG(INFO) << "A total of " << digits.count << " items.";
  LOG(INFO) << "Rows: " << digits.images.rows << " Cols: " << digits.images.cols;
  return digits;
}

/// Calls store(i) for each item unless a signal comes; logs as it goes.
template <class Store>
void for_each_item(int count, const Store& store) {
  catch_signals();
  ProgressLine line(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    require(stop_signal == 0, "stopped; nothing was stored");
    store(i);
    line.show(static_cast<size_t>(i) + 1);
    if ((i + 1) % kLogEvery == 0 || i + 1 == count) LOG(INFO) << "Processed " << i + 1 << " files.";
  }
}

void write_database(const Digits& digits, const std::string& path) {
  const auto writer = make_database_writer(FLAGS_backend, path);
  for_each_item(digits.count, [&](int i) {
    const DatumFields fields{1, digits.images.rows, digits.images.cols, digits.labels[i], false};
    const auto* pixels = reinterpret_cast<const char*>(digits.pixels(i));
    writer->put(record_key(static_cast<uint64_t>(i)), write_datum(fields, {pixels, digits.size()}));
  });
  writer->finish();
}

void write_pictures(const Digits& digits, const std::string& target) {
  NewFolder folder(target);
  for_each_item(digits.count, [&](int i) {
    Picture picture{digits.images.rows, digits.images.cols, 1, {}};
    picture.pixels.assign(digits.pixels(i), digits.pixels(i) + digits.size());
    const std::filesystem::path place =
        std::filesystem::path(folder.temporary()) / std::to_string(digits.labels[i]);
    std::filesystem::create_directories(place);
    char name[16];
    std::snprintf(name, sizeof name, "%05d.png", i);
    std::ofstream file(place / name, std::ios::binary);
    if (!(file << encode(picture, ".png")) || !file.flush()) {
      fail("cannot write ", target, "/", int{digits.labels[i]}, "/", name, ": ", errno_text());
    }
  });
  folder.keep();
}

void convert(const std::vector<std::string>& arguments) {
  const bool to_images = !FLAGS_to_images.empty();
  check_database_kind(FLAGS_backend);
  const std::string& target = to_images ? FLAGS_to_images : arguments[2];
  require(!exists(target), target, ": is there already; remove it or name another place");
  const Digits digits = read_digits(arguments[0], arguments[1]);
  if (to_images) {
    write_pictures(digits, target);
  } else {
    write_database(digits, target);
  }
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  const auto counts = [] {
    return FLAGS_to_images.empty() ? std::pair<size_t, size_t>(3, 3)
                                   : std::pair<size_t, size_t>(2, 2);
  };
  return crema::run_tool(argc, argv, {"convert_mnist_data", crema::kUsage}, counts, crema::convert);
}
