// Picture files named by a list.
// BVLC: with several ranks all of them read the same pictures; here they share them out.
#include <glog/logging.h>

#include <algorithm>

#include "base/error.h"
#include "base/philox.h"
#include "base/trace.h"
#include "feed/augmentation.h"
#include "feed/list_file.h"
#include "feed/loaders.h"

namespace crema {
namespace {

constexpr uint32_t kLargestSide = 65535;  // of a picture after resizing

class ListLoader final : public RecordLoader {
 public:
  ListLoader(const ImageDataParameter& param, const LoaderOptions& options)
      : param_(param),
        entries_(read(param)),
        augmentation_(options.transform, transform_key(options, "transform")),
        transformer_(options.transform, options.phase, transform_key(options, "transform")),
        order_({.size = entries_.size(),
                .shuffle = param.shuffle(),
                .key = mix_key(options.key, hash_name("order")),
                .skip = skip_of(param, options, entries_.size()),
                .rank = options.rank,
                .ranks = options.ranks}) {
    if (options.rank == 0) {
      LOG(INFO) << "Opening file " << param.source();
      LOG(INFO) << "A total of " << entries_.size() << " images.";
    }
    const ListEntry& first = entries_[order_.at(0)];
    located(first, [&] {
      Picture picture = decoded(first);
      const Pixels pixels = augmentation_.changed(pixels_of(picture), order_.global(0), picture);
      shapes_ = crema::record_shapes(transformer_.output_shape(pixels), options.tops,
                                     param_.label_count());
      const bool is_plain = !changes_pictures(options.transform);
      if (is_plain) byte_format_ = transformer_.byte_format(pixels);
    });
  }

  const Shapes& record_shapes() const override { return shapes_; }

  uint64_t size() const override { return entries_.size(); }

  void draw(Ticket& ticket) override {
    ticket.index = order_.at(ticket.position);
    ticket.record.key = entries_[ticket.index].path;
  }

  void load(const Ticket& ticket, Scratch& scratch, float* const* values) const override {
    const ListEntry& entry = entries_[ticket.index];
    located(entry, [&] {
      const uint64_t global = order_.global(ticket.position);
      transformer_.apply(decoded_alike(entry, global, scratch), global, values[0]);
      if (shapes_.size() > 1) copy_labels(entry, values[1]);
    });
  }

  std::optional<ByteFormat> byte_format() const override { return byte_format_; }

  bool load_bytes(const Ticket& ticket, Scratch& scratch, const BytePlace& place) const override {
    const ListEntry& entry = entries_[ticket.index];
    located(entry, [&] {
      const uint64_t global = order_.global(ticket.position);
      transformer_.crop_bytes(decoded_alike(entry, global, scratch), global, *byte_format_, place);
      if (shapes_.size() > 1) copy_labels(entry, place.labels);
    });
    return true;
  }

 private:
  static std::vector<ListEntry> read(const ImageDataParameter& param) {
    require((param.new_height() > 0) == (param.new_width() > 0),
            "image_data_param: new_height and new_width must be given both or neither");
    require(param.new_height() <= kLargestSide && param.new_width() <= kLargestSide,
            "image_data_param: new_height and new_width may be at most ", kLargestSide);
    require(param.has_source(), "image_data_param: source is missing");
    return read_list(param.source(), {.label_count = static_cast<int>(param.label_count())});
  }

  static uint64_t skip_of(const ImageDataParameter& param, const LoaderOptions& options,
                          uint64_t size) {
    if (param.rand_skip() == 0) return 0;
    RandomStream random(mix_key(options.key, hash_name("skip")));
    const uint64_t skip = random.below(param.rand_skip());
    if (options.rank == 0) LOG(INFO) << "Skipping first " << skip << " data points.";
    require(skip < size, "image_data_param: rand_skip ", param.rand_skip(),
            " is too large for a list of ", size, " pictures");
    return skip;
  }

  Picture decoded(const ListEntry& entry) const {
    const TraceSpan span("feed", "decode");
    const ColorMode mode = param_.is_color() ? ColorMode::color : ColorMode::gray;
    Picture picture = read_picture(param_.root_folder() + entry.path, mode);
    if (param_.new_height() == 0) return picture;
    return resize(picture, static_cast<int>(param_.new_height()),
                  static_cast<int>(param_.new_width()));
  }

  /// A picture whose transformed shape is the first one's.
  Pixels decoded_alike(const ListEntry& entry, uint64_t global, Scratch& scratch) const {
    scratch.picture = decoded(entry);
    const Pixels pixels =
        augmentation_.changed(pixels_of(scratch.picture), global, scratch.picture);
    require_same_shape(transformer_.output_shape(pixels), shapes_[0], pixels);
    return pixels;
  }

  static void copy_labels(const ListEntry& entry, float* out) {
    if (entry.labels.empty()) {
      *out = static_cast<float>(entry.label);
    } else {
      std::copy(entry.labels.begin(), entry.labels.end(), out);
    }
  }

  /// Runs call; its errors name the list, and the picture where they do not yet.
  template <class Call>
  void located(const ListEntry& entry, const Call& call) const {
    try {
      call();
    } catch (const Error& error) {
      const std::string path = param_.root_folder() + entry.path;
      const bool is_named = std::string(error.what()).compare(0, path.size(), path) == 0;
      throw(is_named ? error : error.at(path)).at(param_.source());
    }
  }

  ImageDataParameter param_;
  std::vector<ListEntry> entries_;
  Augmentation augmentation_;
  Transformer transformer_;
  RecordOrder order_;
  Shapes shapes_;
  std::optional<ByteFormat> byte_format_;
};

}  // namespace

std::unique_ptr<RecordLoader> make_list_loader(const ImageDataParameter& param,
                                               const LoaderOptions& options) {
  return std::make_unique<ListLoader>(param, options);
}

}  // namespace crema
