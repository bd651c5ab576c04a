// Datums of a database, in key order or in a new order each epoch.
#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "base/trace.h"
#include "feed/augmentation.h"
#include "feed/datum_pixels.h"
#include "feed/loaders.h"

namespace crema {
namespace {

class DatabaseLoader final : public RecordLoader {
 public:
  DatabaseLoader(const DataParameter& param, const LoaderOptions& options)
      : param_(param),
        database_(open_database(param.source())),
        augmentation_(options.transform, transform_key(options, "transform")),
        transformer_(transform_of(param, options), options.phase,
                     transform_key(options, "transform")),
        order_({.size = database_->size(),
                .shuffle = param.shuffle(),
                .key = mix_key(options.key, hash_name("order")),
                .rank = options.rank,
                .ranks = options.ranks}),
        is_logging_(options.rank == 0) {
    require(database_->size() < UINT32_MAX, param.source(), ": holds too many records");
    if (is_logging_) LOG(INFO) << "Opened " << database_->kind() << " " << param.source();
    if (param.rand_skip() > 0) LOG(WARNING) << "Data: rand_skip is not used";
    Scratch scratch;
    const Record first = database_->next();
    const bool is_plain = !changes_pictures(options.transform);
    const Shape picture = shape_of(first, is_plain, scratch);
    label_count_ = scratch.datum.labels.size();
    shapes_ = crema::record_shapes(picture, options.tops, label_count_);
  }

  const Shapes& record_shapes() const override { return shapes_; }

  uint64_t size() const override { return database_->size(); }

  void draw(Ticket& ticket) override {
    ticket.index = order_.at(ticket.position);
    const uint64_t epoch = order_.epoch(ticket.position);
    const bool is_next = ticket.position == next_position_;
    LOG_IF(INFO, is_logging_ && is_next && epoch > epoch_)
        << "Restarting data prefetching from start.";
    epoch_ = epoch;
    next_position_ = ticket.position + 1;
    if (param_.shuffle()) {
      ticket.record = database_->at(ticket.index);
    } else {
      database_->seek(ticket.index);
      ticket.record = database_->next();
    }
  }

  void load(const Ticket& ticket, Scratch& scratch, float* const* values) const override {
    located(ticket.record, [&] {
      const uint64_t global = order_.global(ticket.position);
      const Pixels pixels = parse_alike(ticket.record, global, scratch);
      transformer_.apply(pixels, global, values[0]);
      if (shapes_.size() > 1) copy_labels(scratch.datum, values[1]);
    });
  }

  std::optional<ByteFormat> byte_format() const override { return byte_format_; }

  bool load_bytes(const Ticket& ticket, Scratch& scratch, const BytePlace& place) const override {
    bool has_bytes = false;
    located(ticket.record, [&] {
      const uint64_t global = order_.global(ticket.position);
      const Pixels pixels = parse_alike(ticket.record, global, scratch);
      has_bytes = pixels.bytes != nullptr;
      if (has_bytes) transformer_.crop_bytes(pixels, global, *byte_format_, place);
      if (shapes_.size() > 1) copy_labels(scratch.datum, place.labels);
    });
    return has_bytes;
  }

 private:
  // BVLC: ignores force_encoded_color.
  static TransformationParameter transform_of(const DataParameter& param,
                                              const LoaderOptions& options) {
    TransformationParameter transform = options.transform;
    if (param.force_encoded_color() && !transform.force_gray()) transform.set_force_color(true);
    return transform;
  }

  void copy_labels(const DatumView& datum, float* out) const {
    require(datum.labels.size() == label_count_, "holds ", datum.labels.size(),
            " labels of its own, the first record ", label_count_);
    if (label_count_ == 0) {
      *out = static_cast<float>(datum.label);
    } else {
      std::copy(datum.labels.begin(), datum.labels.end(), out);
    }
  }

  Pixels parse(const Record& record, uint64_t global, Scratch& scratch) const {
    const TraceSpan span("feed", "decode");
    parse_datum(record.value, scratch.datum);
    const Pixels pixels =
        pixels_of_datum(scratch.datum, transformer_.color_mode(), scratch.picture);
    return augmentation_.changed(pixels, global, scratch.picture);
  }

  /// A picture whose transformed shape is the first one's.
  Pixels parse_alike(const Record& record, uint64_t global, Scratch& scratch) const {
    const Pixels pixels = parse(record, global, scratch);
    require_same_shape(transformer_.output_shape(pixels), shapes_[0], pixels);
    return pixels;
  }

  /// is_plain: nothing but the transformer changes pictures.
  Shape shape_of(const Record& record, bool is_plain, Scratch& scratch) {
    Shape shape;
    located(record, [&] {
      const Pixels pixels = parse(record, order_.global(0), scratch);
      shape = transformer_.output_shape(pixels);
      if (is_plain && pixels.bytes) byte_format_ = transformer_.byte_format(pixels);
    });
    return shape;
  }

  /// Runs call; its errors name database and key.
  template <class Call>
  void located(const Record& record, const Call& call) const {
    try {
      call();
    } catch (const Error& error) {
      throw error.at(str(param_.source(), ": record \"", printable(record.key), "\""));
    }
  }

  DataParameter param_;
  std::unique_ptr<Database> database_;
  Augmentation augmentation_;
  Transformer transformer_;
  RecordOrder order_;
  Shapes shapes_;
  std::optional<ByteFormat> byte_format_;
  size_t label_count_ = 0;  // 0: the label is Caffe's whole number
  bool is_logging_;
  uint64_t epoch_ = 0, next_position_ = UINT64_MAX;
};

}  // namespace

std::unique_ptr<RecordLoader> make_database_loader(const DataParameter& param,
                                                   const LoaderOptions& options) {
  return std::make_unique<DatabaseLoader>(param, options);
}

uint64_t transform_key(const LoaderOptions& options, const char* purpose) {
  const int64_t seed = options.transform.random_seed();
  return mix_key(seed < 0 ? options.key : mix_key(static_cast<uint64_t>(seed), 0),
                 hash_name(purpose));
}

Shapes record_shapes(const Shape& picture, int tops, size_t labels) {
  Shapes shapes{picture};
  if (tops > 1) shapes.push_back(labels > 1 ? Shape{static_cast<int64_t>(labels)} : Shape{});
  return shapes;
}

void require_same_shape(const Shape& shape, const Shape& first, const Pixels& pixels) {
  require(shape == first, "the picture is ", pixels.channels, " x ", pixels.height, " x ",
          pixels.width, ", which gives a blob of ", shape, ", but the first record gave ", first,
          "; all pictures of a batch must have one size: resize them or set crop_size");
}

}  // namespace crema
