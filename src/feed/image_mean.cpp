// Threads parse and decode; the calling thread adds in record order, so sums are the same for any
// number of threads.
#include "feed/image_mean.h"

#include <glog/logging.h>

#include "base/error.h"
#include "feed/database.h"
#include "feed/datum.h"
#include "feed/datum_pixels.h"
#include "feed/ordered_workers.h"

namespace crema {
namespace {

constexpr uint64_t kLogEvery = 10000;
constexpr uint64_t kChunk = 16;
constexpr uint64_t kChunksPerThread = 4;

struct Item {
  Record record;
  DatumView datum;
  Picture picture;
  Pixels pixels;
};

template <class T>
void add_planes(const Pixels& p, const T* values, std::vector<double>& sums) {
  const size_t area = static_cast<size_t>(p.height) * p.width, channels = p.channels;
  if (!p.is_interleaved) {
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += values[i];
    return;
  }
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < area; ++i) sums[c * area + i] += values[i * channels + c];
  }
}

class MeanSum {
 public:
  void add(const Pixels& p) {
    const Shape shape{1, p.channels, p.height, p.width};
    if (sums_.empty()) {
      shape_ = shape;
      sums_.resize(static_cast<size_t>(shape.count()));
    }
    require(shape == shape_, "the picture is ", p.channels, " x ", p.height, " x ", p.width,
            ", but the first one is ", shape_[1], " x ", shape_[2], " x ", shape_[3],
            "; a mean needs pictures of one size");
    p.bytes ? add_planes(p, p.bytes, sums_) : add_planes(p, p.floats, sums_);
    ++count_;
  }

  HostBlob mean() const {
    HostBlob blob;
    blob.shape = shape_;
    for (const double sum : sums_) {
      blob.data.push_back(static_cast<float>(sum / static_cast<double>(count_)));
    }
    return blob;
  }

 private:
  Shape shape_;
  std::vector<double> sums_;
  uint64_t count_ = 0;
};

}  // namespace

HostBlob image_mean(const std::string& database, int threads) {
  const std::unique_ptr<Database> source = open_database(database);
  const uint64_t size = source->size(), window = static_cast<uint64_t>(threads) * kChunksPerThread;
  std::vector<Item> items(window * kChunk);
  const auto item = [&](uint64_t chunk, uint64_t i) -> Item& {
    return items[chunk % window * kChunk + i];
  };
  const auto length = [&](uint64_t chunk) { return std::min(kChunk, size - chunk * kChunk); };
  const auto located = [&](const Record& record, const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      throw error.at(str(database, ": record \"", printable(record.key), "\""));
    }
  };
  OrderedWorkers::Job job;
  job.draw = [&](uint64_t chunk) {
    for (uint64_t i = 0; i < length(chunk); ++i) item(chunk, i).record = source->next();
  };
  job.work = [&](uint64_t chunk, int) {
    for (uint64_t i = 0; i < length(chunk); ++i) {
      Item& it = item(chunk, i);
      located(it.record, [&] {
        parse_datum(it.record.value, it.datum);
        it.pixels = pixels_of_datum(it.datum, ColorMode::as_stored, it.picture);
      });
    }
  };
  job.threads = threads;
  job.window = window;
  job.end = (size + kChunk - 1) / kChunk;
  OrderedWorkers workers(job);
  MeanSum sum;
  for (uint64_t chunk = 0; chunk < job.end; ++chunk) {
    workers.wait(chunk);
    for (uint64_t i = 0; i < length(chunk); ++i) {
      const Item& it = item(chunk, i);
      located(it.record, [&] { sum.add(it.pixels); });
      const uint64_t count = chunk * kChunk + i + 1;
      LOG_IF(INFO, count % kLogEvery == 0 || count == size) << "Processed " << count << " files.";
    }
    workers.release_below(chunk + 1);
  }
  return sum.mean();
}

}  // namespace crema
