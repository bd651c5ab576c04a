// Threads turn list entries into serialized Datums; the calling thread alone stores them and keeps
// the account. BVLC: skips unreadable pictures in silence and succeeds with an empty database.
#include "feed/image_converter.h"

#include <glog/logging.h>

#include "base/error.h"
#include "base/file.h"
#include "base/philox.h"
#include "feed/datum.h"
#include "feed/lmdb_writer.h"
#include "feed/ordered_workers.h"
#include "io/image.h"

namespace crema {
namespace {

constexpr size_t kLogEvery = 1000;
constexpr uint64_t kItemsPerThread = 32;

/// What became of one entry.
struct Outcome {
  std::string value;   // a serialized Datum; empty when it failed
  std::string reason;  // why it failed
  bool is_cut = false;
  int channels = 0, height = 0, width = 0;
};

class Converter {
 public:
  Converter(std::vector<ListEntry> entries, const ConvertOptions& options, DatabaseWriter& writer)
      : options_(options), entries_(std::move(entries)), writer_(writer) {
    require(options.resize_height >= 0 && options.resize_width >= 0,
            "resize_height and resize_width must not be negative: ", options.resize_height, " and ",
            options.resize_width);
    require((options.resize_height > 0) == (options.resize_width > 0),
            "resize_height and resize_width must be given both or neither");
    require(!options.reduced_decode || is_resized(),
            "reduced_decode needs resize_height and resize_width");
    // Asked before the work begins: a build without pictures, or a format that is not known.
    encode({1, 1, 1, {0}}, options.encode_type.empty() ? ".png" : "." + options.encode_type);
    if (options.shuffle) shuffle();
  }

  ConvertReport run();

 private:
  void shuffle();
  Outcome convert(const ListEntry& entry) const;
  Picture read(const std::string& path, const std::string& bytes, bool is_cut) const;
  std::string datum_of(const ListEntry& entry, const Picture& picture, const std::string& bytes,
                       bool may_keep) const;
  bool has_wanted_channels(const std::string& bytes) const;
  void account(size_t index, Outcome& outcome);
  void check_size(const ListEntry& entry, const Outcome& outcome);
  std::string nothing_stored() const;

  bool is_resized() const { return options_.resize_height > 0; }

  const ConvertOptions& options_;
  std::vector<ListEntry> entries_;
  DatabaseWriter& writer_;
  ConvertReport report_;
  Outcome first_;
  bool sizes_differ_ = false;
};

void Converter::shuffle() {
  RandomStream random(mix_key(options_.seed, hash_name("convert")));
  for (size_t i = entries_.size(); i > 1; --i)
    std::swap(entries_[i - 1], entries_[random.below(i)]);
}

Picture Converter::read(const std::string& path, const std::string& bytes, bool is_cut) const {
  const ColorMode mode = options_.gray ? ColorMode::gray : ColorMode::color;
  Picture picture;
  if (is_cut) {
    picture = read_picture(path, mode);
  } else {
    const int reduction = options_.reduced_decode
                              ? jpeg_reduction(bytes, options_.resize_height, options_.resize_width)
                              : 1;
    decode(bytes, mode, picture, reduction);
  }
  if (!is_resized()) return picture;
  return resize(picture, options_.resize_height, options_.resize_width);
}

// BVLC: keeps a colour file under --gray too, which then is read back in colour, and one of 16
// bits, which cannot be read back.
bool Converter::has_wanted_channels(const std::string& bytes) const {
  if (!options_.gray) return true;
  Picture stored;
  try {
    decode(bytes, ColorMode::as_stored, stored);
  } catch (const Error&) {  // it was read in gray before: it has more than 8 bits
    return false;
  }
  return stored.channels == 1;
}

std::string Converter::datum_of(const ListEntry& entry, const Picture& picture,
                                const std::string& bytes, bool may_keep) const {
  DatumFields fields{picture.channels, picture.height, picture.width,
                     entry.label,      false,          entry.labels};
  if (options_.encoded || !options_.encode_type.empty()) {
    fields.is_encoded = true;
    const std::string own = extension_of(entry.path);
    const std::string wanted =
        options_.encode_type.empty() ? own : extension_of("." + options_.encode_type);
    require(!wanted.empty(), "no extension tells its format; set encode_type");
    if (may_keep && wanted == own && !is_resized() && has_wanted_channels(bytes)) {
      return write_datum(fields, bytes);
    }
    return write_datum(fields, encode(picture, "." + wanted));
  }
  std::string planes(picture.pixels.size(), '\0');
  const size_t area = static_cast<size_t>(picture.height) * picture.width,
               channels = picture.channels;
  for (size_t c = 0; c < channels; ++c) {
    for (size_t i = 0; i < area; ++i) {
      planes[c * area + i] = static_cast<char>(picture.pixels[i * channels + c]);
    }
  }
  return write_datum(fields, planes);
}

Outcome Converter::convert(const ListEntry& entry) const {
  const std::string path = options_.root + entry.path;
  Outcome outcome;
  try {
    const std::string bytes = read_file(path);
    outcome.is_cut = is_cut_jpeg(bytes);
    const Picture picture = read(path, bytes, outcome.is_cut);
    outcome.channels = picture.channels;
    outcome.height = picture.height;
    outcome.width = picture.width;
    outcome.value = datum_of(entry, picture, bytes, !outcome.is_cut);
  } catch (const Error& error) {
    outcome.reason = error.what();
    if (outcome.reason.compare(0, path.size() + 2, path + ": ") == 0) {
      outcome.reason.erase(0, path.size() + 2);
    }
  }
  return outcome;
}

void Converter::check_size(const ListEntry& entry, const Outcome& o) {
  if (report_.stored == 0) {
    first_ = {"", "", false, o.channels, o.height, o.width};
    return;
  }
  if (o.height == first_.height && o.width == first_.width) return;
  require(!options_.check_size, options_.root, entry.path, ": is ", o.height, " x ", o.width,
          " (height x width), but the pictures before it are ", first_.height, " x ", first_.width);
  LOG_IF(WARNING, !sizes_differ_) << "The pictures differ in size (" << entry.path << " is "
                                  << o.height << " x " << o.width << ", the first one "
                                  << first_.height << " x " << first_.width
                                  << "): training on them needs a crop_size";
  sizes_differ_ = true;
}

void Converter::account(size_t index, Outcome& outcome) {
  const ListEntry& entry = entries_[index];
  const std::string path = options_.root + entry.path;
  if (!outcome.reason.empty()) {
    require(!options_.strict, path, ": ", outcome.reason);
    LOG(ERROR) << "Could not open or find file " << path << ": " << outcome.reason;
    ++report_.skipped[outcome.reason];
    return;
  }
  if (outcome.is_cut) {
    require(!options_.strict, path, ": the JPEG ends early");
    LOG(WARNING) << path << ": the JPEG ends early; what is missing is gray";
    ++report_.cut;
  }
  check_size(entry, outcome);
  writer_.put(record_key(index, entry.path), std::move(outcome.value));
  if (++report_.stored % kLogEvery == 0) LOG(INFO) << "Processed " << report_.stored << " files.";
}

std::string Converter::nothing_stored() const {
  const std::string text = str("stored 0 of ", report_.total, " pictures");
  const std::string& root = options_.root;
  if (root.empty() || root.back() == '/' || !exists(root + "/" + entries_[0].path)) return text;
  return str(text, "; ", root,
             " and the paths are put together as they are: it should end in a slash (", root, "/)");
}

ConvertReport Converter::run() {
  report_.total = entries_.size();
  const uint64_t window = static_cast<uint64_t>(options_.threads) * kItemsPerThread;
  std::vector<Outcome> outcomes(window);
  OrderedWorkers workers(
      {.draw = {},
       .work = [&](uint64_t item, int) { outcomes[item % window] = convert(entries_[item]); },
       .threads = options_.threads,
       .window = window,
       .end = entries_.size()});
  for (size_t i = 0; i < entries_.size(); ++i) {
    require(!options_.is_stopped || !options_.is_stopped(), "stopped; nothing was stored");
    workers.wait(i);
    account(i, outcomes[i % window]);
    workers.release_below(i + 1);
    if (options_.progress) options_.progress(i + 1);
  }
  if (report_.stored == 0) fail(nothing_stored());
  if (report_.stored % kLogEvery != 0) LOG(INFO) << "Processed " << report_.stored << " files.";
  return report_;
}

}  // namespace

ConvertReport convert_images(std::vector<ListEntry> entries, const ConvertOptions& options,
                             DatabaseWriter& writer) {
  return Converter(std::move(entries), options, writer).run();
}

}  // namespace crema
