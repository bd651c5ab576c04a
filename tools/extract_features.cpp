// extract_features: blobs of a net over some batches into databases or HDF5 files, a record for
// each item of the batch.
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "crema.pb.h"
#include "feed/database_writer.h"
#include "io/hdf5.h"
#include "io/prototxt.h"
#include "io/weights.h"
#include "net/net.h"
#include "tool.h"

namespace crema {
namespace {

constexpr const char* kUsage =
    "Stores what blobs of a net hold, batch by batch.\n"
    "    extract_features WEIGHTS NET BLOB[,BLOB2,...] OUT[,OUT2,...] BATCHES lmdb|leveldb|hdf5 "
    "[CPU|GPU] "
    "[DEVICE]\n"
    "lmdb, leveldb: Datums with float_data, keys 0000000000 and up. hdf5: one data set named as "
    "the blob.";

/// Where the values of one blob go.
class Output {
 public:
  virtual ~Output() = default;
  /// One item of the batch.
  virtual void add(const Shape& item, const float* values) = 0;
  virtual void finish() = 0;
};

class DatabaseOutput final : public Output {
 public:
  DatabaseOutput(const std::string& kind, const std::string& path)
      : writer_(make_database_writer(kind, path)) {}

  void add(const Shape& item, const float* values) override {
    Datum datum;
    datum.set_channels(static_cast<int>(item.dim_or_one(0)));
    datum.set_height(static_cast<int>(item.dim_or_one(1)));
    datum.set_width(static_cast<int>(item.axes() > 2 ? item.count(2) : 1));
    datum.mutable_float_data()->Add(values, values + item.count());
    char key[16];
    std::snprintf(key, sizeof key, "%010d", number_++);
    writer_->put(key, datum.SerializeAsString());
  }
  void finish() override { writer_->finish(); }

 private:
  std::unique_ptr<DatabaseWriter> writer_;
  int number_ = 0;
};

class Hdf5Output final : public Output {
 public:
  Hdf5Output(std::string path, std::string blob) : path_(std::move(path)), blob_(std::move(blob)) {
    require_writable(path_);
  }

  void add(const Shape& item, const float* values) override {
    require(rows_ == 0 || item == item_, "blob \"", blob_, "\" changes its shape from ", item_,
            " to ", item);
    item_ = item;
    values_.insert(values_.end(), values, values + item.count());
    ++rows_;
  }
  void finish() override {
    write_atomically(path_, [&](const std::string& path) {
      Shape shape{rows_};
      for (const int64_t dim : item_) shape.push_back(dim);
      Hdf5File file = Hdf5File::create(path);
      file.write(blob_, shape, values_.data());
      file.close();
    });
  }

 private:
  std::string path_, blob_;
  int64_t rows_ = 0;
  Shape item_;
  std::vector<float> values_;
};

std::vector<std::unique_ptr<Output>> open_outputs(const std::vector<std::string>& blobs,
                                                  const std::vector<std::string>& paths,
                                                  const std::string& type) {
  const bool is_database = type == "lmdb" || type == "leveldb";
  require(is_database || type == "hdf5", "the kind of output is lmdb, leveldb or hdf5, not \"",
          type, "\"");
  if (is_database) check_database_kind(type);
  require(blobs.size() == paths.size(), "there are ", blobs.size(), " blobs and ", paths.size(),
          " outputs; each blob needs one");
  std::vector<std::unique_ptr<Output>> outputs;
  for (size_t i = 0; i < blobs.size(); ++i) {
    if (is_database) {
      outputs.push_back(std::make_unique<DatabaseOutput>(type, paths[i]));
    } else {
      outputs.push_back(std::make_unique<Hdf5Output>(paths[i], blobs[i]));
    }
  }
  return outputs;
}

int number_in(const std::string& text, const char* what) {
  const bool is_number = !text.empty() && text.size() < 10 &&
                         text.find_first_not_of("0123456789") == std::string::npos;
  require(is_number, what, " must be a number, not \"", text, "\"");
  return std::stoi(text);
}

Device device_of(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.size() > 6 ? arguments[6] : "CPU";
  require(kind == "CPU" || kind == "GPU", "the device is CPU or GPU, not \"", kind, "\"");
  const int index = arguments.size() > 7 ? number_in(arguments[7], "the device's number") : 0;
  return {.gpu = kind == "GPU", .index = index};
}

void extract(const std::vector<std::string>& arguments) {
  const std::vector<std::string> blobs = split(arguments[2], ',');
  const int batches = number_in(arguments[4], "the number of batches");
  require(batches > 0, "the number of batches must be above 0");
  NetOptions options;
  options.file = arguments[1];
  options.log = false;
  options.keep = blobs;
  Net net(read_net(arguments[1]), options, make_ops(device_of(arguments)));
  net.load_weights(read_weights(arguments[0]), arguments[0]);
  net.params_changed();
  for (const std::string& blob : blobs) {
    require(net.has_blob(blob), arguments[1], ": has no blob \"", blob, "\"",
            did_you_mean(blob, net.blob_names()));
  }
  const auto outputs = open_outputs(blobs, split(arguments[3], ','), arguments[5]);
  catch_signals();
  for (int batch = 0; batch < batches; ++batch) {
    require(stop_signal == 0, "stopped; nothing was stored");
    net.forward();
    for (size_t i = 0; i < blobs.size(); ++i) {
      const Shape shape = net.blob_shape(blobs[i]);
      require(shape.axes() > 0, arguments[1], ": blob \"", blobs[i],
              "\" has no axes, so no items to store");
      const std::vector<float> values = net.blob_values(blobs[i]);
      const Shape item = shape.slice(1, shape.axes());
      for (int64_t n = 0; n < shape[0]; ++n) {
        outputs[i]->add(item, values.data() + n * item.count());
      }
    }
  }
  for (const auto& output : outputs) output->finish();
  LOG(INFO) << "Stored " << batches << " batches of " << join(blobs);
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  return crema::run_tool(
      argc, argv, {"extract_features", crema::kUsage},
      [] { return std::pair<size_t, size_t>(6, 8); }, crema::extract);
}
