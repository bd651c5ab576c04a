// Pictures with boxes from a database, changed as SSD does (Liu et al., "SSD", 2016, section 2.2):
// colours, canvas, crop, resize, mirror; the boxes follow.
#include "feed/annotated_loader.h"

#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"
#include "feed/augmentation.h"
#include "feed/box_sampling.h"
#include "feed/datum_pixels.h"
#include "feed/picture_changes.h"
#include "feed/picture_noise.h"
#include "feed/picture_resizing.h"
#include "io/wire.h"

namespace crema {
namespace {

constexpr int kDatumField = 1, kTypeField = 2, kGroupField = 3;

/// The boxes of a record; datum gets its picture's bytes. Throws Error for a record of another
/// kind.
std::vector<LabeledBox> parse_annotated(std::string_view record, std::string_view* datum) {
  std::vector<LabeledBox> boxes;
  WireReader reader(record);
  bool has_datum = false;
  while (const auto field = reader.next()) {
    if (field->number == kTypeField && field->type == WireType::varint) {
      require(field->value == AnnotatedDatum::BBOX, "annotation type ", field->value,
              " is unknown, only BBOX (0) is known");
    }
    if (field->type != WireType::bytes) continue;
    if (field->number == kDatumField) {
      has_datum = true;
      if (datum) *datum = field->bytes;
    }
    if (field->number != kGroupField) continue;
    AnnotationGroup group;
    require(group.ParseFromArray(field->bytes.data(), static_cast<int>(field->bytes.size())),
            "a group of annotations is damaged");
    for (const Annotation& a : group.annotation()) {
      const NormalizedBBox& b = a.bbox();
      boxes.push_back({group.group_label(),
                       a.instance_id(),
                       {b.xmin(), b.ymin(), b.xmax(), b.ymax()},
                       b.difficult()});
    }
  }
  require(has_datum, "the record is no AnnotatedDatum (type Data reads Datums)");
  return boxes;
}

class AnnotatedLoader final : public RecordLoader {
 public:
  AnnotatedLoader(const LayerParameter& layer, const LoaderOptions& options)
      : param_(layer.data_param()),
        transform_(options.transform),
        samplers_(layer.annotated_data_param().batch_sampler().begin(),
                  layer.annotated_data_param().batch_sampler().end()),
        key_(transform_key(options, "annotated")),
        database_(open_database(param_.source())),
        transformer_(pixels_only(options.transform), options.phase, key_),
        order_({.size = database_->size(),
                .shuffle = param_.shuffle(),
                .key = mix_key(options.key, hash_name("order")),
                .rank = options.rank,
                .ranks = options.ranks}) {
    require(database_->size() < UINT32_MAX, param_.source(), ": holds too many records");
    check_fields();
    if (options.rank == 0) LOG(INFO) << "Opened " << database_->kind() << " " << param_.source();
    shapes_.push_back(first_shape());
    if (options.tops > 1) shapes_.push_back(Shape{most_boxes(), kBoxRow});
  }

  const Shapes& record_shapes() const override { return shapes_; }
  uint64_t size() const override { return database_->size(); }

  void draw(Ticket& ticket) override {
    ticket.index = order_.at(ticket.position);
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
      RandomStream random(mix_key(key_, global));
      std::vector<LabeledBox> boxes;
      const Picture picture = changed(ticket.record, random, scratch, &boxes);
      const Pixels pixels = pixels_of(picture);
      require_same_shape(transformer_.output_shape(pixels), shapes_[0], pixels);
      transformer_.apply(pixels, global, values[0]);
      if (shapes_.size() > 1) write_rows(boxes, values[1]);
    });
  }

 private:
  /// What is left of the transform when the boxes' part is done: mean, scale, colour.
  static TransformationParameter pixels_only(TransformationParameter transform) {
    transform.clear_mirror();
    return transform;
  }

  void check_fields() const {
    require(crop_size_of(transform_).height == 0,
            "transform_param: crop_size is not read by AnnotatedData; resize_param gives the size");
    require(!has_random_size(transform_) && transform_.max_rotation() == 0,
            "transform_param: img_rand_resize, rand_resize_ratio, the stretches and max_rotation "
            "are not read by AnnotatedData; batch_sampler and resize_param change the size");
    for (const BatchSampler& sampler : samplers_) check_sampler(sampler);
    check_expansion(transform_.expand_param());
    check_noise(transform_.noise_param());
    if (transform_.has_resize_param()) check_resize(transform_.resize_param());
  }

  Picture decoded(std::string_view datum, Scratch& scratch) const {
    parse_datum(datum, scratch.datum);
    const Pixels pixels =
        pixels_of_datum(scratch.datum, transformer_.color_mode(), scratch.picture);
    return picture_of(pixels);
  }

  Picture changed(const Record& record, RandomStream& random, Scratch& scratch,
                  std::vector<LabeledBox>* boxes) const {
    std::string_view datum;
    *boxes = parse_annotated(record.value, &datum);
    Picture picture = decoded(datum, scratch);
    const EmitConstraint* constraint =
        transform_.has_emit_constraint() ? &transform_.emit_constraint() : nullptr;
    if (transform_.has_distort_param()) {
      distort(transform_.distort_param(), random, &picture);
    }
    if (transform_.has_expand_param()) {
      const std::vector<float> mean(transform_.mean_value().begin(), transform_.mean_value().end());
      const Box canvas = expand(transform_.expand_param(), mean, random, &picture);
      move_to_crop(canvas, constraint, boxes);
    }
    if (!samplers_.empty()) {
      const Box part = draw_crop(samplers_, *boxes, random);
      crop(part, &picture);
      move_to_crop(part, constraint, boxes);
    }
    if (transform_.has_resize_param()) {
      const Box canvas = resize(transform_.resize_param(), random, &picture);
      move_to_crop(canvas, nullptr, boxes);  // nothing of the picture is cut off
    }
    if (transform_.has_noise_param()) add_noise(transform_.noise_param(), random, &picture);
    if (transform_.mirror() && random.uniform() < 0.5) {
      mirror(&picture);
      mirror_boxes(boxes);
    }
    return picture;
  }

  void write_rows(const std::vector<LabeledBox>& boxes, float* rows) const {
    std::fill_n(rows, shapes_[1].count(), -1.0f);
    for (const LabeledBox& b : boxes) {
      const float row[kBoxRow] = {0,
                                  static_cast<float>(b.label),
                                  static_cast<float>(b.instance),
                                  b.box.xmin,
                                  b.box.ymin,
                                  b.box.xmax,
                                  b.box.ymax,
                                  b.is_difficult ? 1.0f : 0.0f};
      rows = std::copy_n(row, kBoxRow, rows);
    }
  }

  Shape first_shape() {
    Scratch scratch;
    const Record first = database_->at(0);
    Shape shape;
    located(first, [&] {
      std::string_view datum;
      parse_annotated(first.value, &datum);
      Picture picture = decoded(datum, scratch);
      if (transform_.has_resize_param()) {
        RandomStream random(key_);
        resize(transform_.resize_param(), random, &picture);
      }
      shape = transformer_.output_shape(pixels_of(picture));
    });
    return shape;
  }

  /// Of all records; at least 1. Reads no pictures.
  int64_t most_boxes() {
    size_t most = 1;
    for (uint64_t i = 0; i < database_->size(); ++i) {
      const Record record = database_->at(i);
      located(record,
              [&] { most = std::max(most, parse_annotated(record.value, nullptr).size()); });
    }
    return static_cast<int64_t>(most);
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
  TransformationParameter transform_;
  std::vector<BatchSampler> samplers_;
  uint64_t key_;
  std::unique_ptr<Database> database_;
  Transformer transformer_;
  RecordOrder order_;
  Shapes shapes_;
};

}  // namespace

std::unique_ptr<RecordLoader> make_annotated_loader(const LayerParameter& layer,
                                                    const LoaderOptions& options) {
  return std::make_unique<AnnotatedLoader>(layer, options);
}

}  // namespace crema
