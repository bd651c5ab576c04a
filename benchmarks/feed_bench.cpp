// feed_bench: how many records one core makes, of a Data layer's feed and of convert_imageset, and
// next to it what OpenCV's reading and resizing alone take for the same pictures. Processor time of
// all threads; both take turns, ratios are formed within a turn.
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <functional>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "feed/datum.h"
#include "feed/feed.h"
#include "feed/image_converter.h"
#include "feed/lmdb_writer.h"
#include "io/image.h"
#include "io/prototxt.h"

DEFINE_int32(rounds, 5, "Turns; medians are shown");
DEFINE_double(seconds, 0.5, "Of processor time that a turn takes, about");

namespace crema {
namespace {

constexpr int kPictures = 48;  // different ones of each kind

/// A new folder that goes with all in it.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "feed_bench_XXXXXX").string();
    require(::mkdtemp(pattern.data()) != nullptr, pattern, ": ", errno_text());
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// A picture with coarse and fine detail, as photographs have: a small random one made larger, and
/// noise.
Picture photograph(int height, int width, uint32_t seed) {
  std::minstd_rand random(seed);
  Picture small{height / 8, width / 8, 3, {}};
  for (int i = 0; i < small.height * small.width * 3; ++i) {
    small.pixels.push_back(static_cast<uint8_t>(random() >> 8));
  }
  Picture picture = resize(small, height, width);
  for (uint8_t& pixel : picture.pixels) {
    const int noisy = pixel + static_cast<int>((random() >> 8) % 17) - 8;
    pixel = static_cast<uint8_t>(std::clamp(noisy, 0, 255));
  }
  return picture;
}

/// Records per call, and what is measured.
struct Work {
  int records;
  std::function<void()> call;
};

/// Records per second of processor time.
double rate_of(const Work& work) {
  const double start = processor_seconds();
  double spent = 0;
  int calls = 0;
  do {
    work.call();
    ++calls;
    spent = processor_seconds() - start;
  } while (spent < FLAGS_seconds);
  return work.records * calls / spent;
}

void show(const std::string& name, const Work& ours, const Work* floor) {
  std::vector<double> own, theirs, shares;
  for (int round = 0; round < FLAGS_rounds; ++round) {
    own.push_back(rate_of(ours));
    if (!floor) continue;
    theirs.push_back(rate_of(*floor));
    shares.push_back(own.back() / theirs.back());
  }
  std::printf("| %s | %.0f |", name.c_str(), median(own));
  if (floor) {
    std::printf(" %.0f | %.2f x |\n", median(theirs), median(shares));
  } else {
    std::printf(" | |\n");
  }
  std::fflush(stdout);
}

// ---- The feed ----

std::unique_ptr<Feed> feed_of(const std::string& source, int batch, const std::string& transform) {
  LayerParameter layer;
  parse_text(str("name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: '",
                 source, "' batch_size: ", batch, " } transform_param { ", transform, " }"),
             "feed_bench", &layer);
  return make_feed(layer, {.phase = TRAIN, .seed = 1, .layer_name = "data"});
}

/// A database of raw pictures, or of JPEG files.
std::string write_database(const std::string& path, int side, int count, bool is_encoded) {
  LmdbWriter writer(path);
  for (int i = 0; i < count; ++i) {
    const Picture picture = photograph(side, side, static_cast<uint32_t>(i + 1));
    const std::string bytes = is_encoded
                                  ? encode(picture, ".jpg")
                                  : std::string(picture.pixels.begin(), picture.pixels.end());
    writer.put(record_key(static_cast<uint64_t>(i)),
               write_datum({3, side, side, i % 10, is_encoded, {}}, bytes));
  }
  writer.finish();
  return path;
}

void show_feed(const Folder& folder, const std::string& name, int side, bool is_encoded,
               const std::string& transform, bool as_bytes = false) {
  const int batch = side > 64 ? 32 : 100;
  const std::string path =
      write_database(folder / name, side, is_encoded ? kPictures : 1000, is_encoded);
  const std::unique_ptr<Feed> feed = feed_of(path, batch, transform);
  std::vector<std::vector<float>> tops;
  std::vector<float*> pointers;
  for (const Shape& shape : feed->shapes()) {
    pointers.push_back(tops.emplace_back(static_cast<size_t>(shape.count())).data());
  }
  Work ours{batch, [&] { feed->next(pointers); }};
  if (as_bytes) {
    const std::shared_ptr<Ops> host = make_ops({});
    feed->hand_over_bytes([host](size_t bytes) { return host->allocate(bytes, Memory::device); });
    ours.call = [&] { feed->next_bytes(); };
  }
  if (!is_encoded) return show(name, ours, nullptr);
  const std::string jpeg = encode(photograph(side, side, 1), ".jpg");
  Picture picture;
  const Work floor{1, [&] { decode(jpeg, ColorMode::color, picture); }};
  show(name, ours, &floor);
}

// ---- convert_imageset ----

/// Files and their list, each file several times.
std::vector<ListEntry> write_files(const Folder& folder, const std::string& name, int height,
                                   int width, int count) {
  std::filesystem::create_directory(folder / name);
  for (int i = 0; i < kPictures; ++i) {
    write_file(folder / str(name, "/", i, ".jpg"),
               encode(photograph(height, width, static_cast<uint32_t>(i + 1)), ".jpg"));
  }
  std::vector<ListEntry> entries;
  for (int i = 0; i < count; ++i)
    entries.push_back({str(name, "/", i % kPictures, ".jpg"), i % 10});
  return entries;
}

struct Size {
  int height, width;
};

void show_convert(const Folder& folder, const std::string& name, Size from, int to, bool reduced) {
  const int count = from.height > 64 ? kPictures : 2000;
  const std::vector<ListEntry> entries =
      write_files(folder, str("files ", name), from.height, from.width, count);
  ConvertOptions options;
  options.root = folder / "";
  options.resize_height = options.resize_width = to;
  options.reduced_decode = reduced;
  int made = 0;
  const Work ours{count, [&] {
                    const std::string path = folder / str(name, " database ", made++);
                    LmdbWriter writer(path);
                    convert_images(entries, options, writer);
                    writer.finish();
                    std::filesystem::remove_all(path);
                  }};
  int next = 0;
  Picture picture;
  const Work floor{1, [&] {
                     const ListEntry& entry = entries[static_cast<size_t>(next++ % count)];
                     decode(read_file(options.root + entry.path), ColorMode::color, picture);
                     if (to > 0) picture = resize(picture, to, to);
                   }};
  show(name, ours, &floor);
}

void show_all() {
  const Folder folder;
  std::printf("| what | records/s of a core | decoding alone | ratio |\n|---|---:|---:|---:|\n");
  const std::string means = "mean_value: 104 mean_value: 117 mean_value: 123 ";
  show_feed(folder, "feed, raw 3 x 32 x 32", 32, false, "mean_value: 120");
  show_feed(folder, "feed, raw 3 x 256 x 256, crop 227, mirrored", 256, false,
            means + "crop_size: 227 mirror: true");
  show_feed(folder, "feed, JPEG 256 x 256, crop 227, mirrored", 256, true,
            means + "crop_size: 227 mirror: true");
  show_feed(folder, "feed as bytes for a GPU, raw 3 x 256 x 256, crop 227", 256, false,
            means + "crop_size: 227 mirror: true", true);
  show_feed(folder, "feed as bytes for a GPU, JPEG 256 x 256, crop 227", 256, true,
            means + "crop_size: 227 mirror: true", true);
  show_convert(folder, "convert_imageset, JPEG 32 x 32", {32, 32}, 0, false);
  show_convert(folder, "convert_imageset, JPEG 375 x 500 to 256 x 256", {375, 500}, 256, false);
  show_convert(folder, "convert_imageset, JPEG 768 x 1024 to 256 x 256", {768, 1024}, 256, false);
  show_convert(folder, "convert_imageset, JPEG 768 x 1024 to 256 x 256, reduced_decode",
               {768, 1024}, 256, true);
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  gflags::SetUsageMessage("records per second of one core, of the feed and of convert_imageset");
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  FLAGS_logtostderr = true;
  FLAGS_minloglevel = google::GLOG_WARNING;
  google::InitGoogleLogging(argv[0]);
  try {
    crema::show_all();
    return 0;
  } catch (const crema::Error& error) {
    std::fprintf(stderr, "feed_bench: %s\n", error.what());
    return 1;
  }
}
