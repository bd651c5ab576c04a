// convert_mnist_siamese_data: pairs of MNIST's pictures, one above the other as two channels, for
// the siamese example. Label 1: the same digit. BVLC: writes a LevelDB; the net finds either.
#include "base/file.h"
#include "base/philox.h"
#include "feed/datum.h"
#include "feed/idx_file.h"
#include "feed/lmdb_writer.h"
#include "tool.h"

DEFINE_uint64(seed, 1, "The same seed gives the same pairs");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Makes as many random pairs of MNIST's pictures (idx, plain or gzip) as there are pictures.\n"
    "    convert_mnist_siamese_data [FLAGS] IMAGES LABELS DB";

void convert(const std::vector<std::string>& arguments) {
  const std::string& target = arguments[2];
  require(!exists(target), target, ": is there already; remove it or name another database");
  const IdxImages images = read_idx_images(arguments[0]);
  const std::vector<uint8_t> labels = read_idx_labels(arguments[1]);
  const auto count = static_cast<uint64_t>(images.count);
  require(count > 0, arguments[0], ": holds no images");
  require(count == labels.size(), arguments[1], ": holds ", labels.size(), " labels, but ",
          arguments[0], " holds ", count, " images");
  LOG(INFO) << "A total of " << count << " items.";
  LOG(INFO) << "Rows: " << images.rows << " Cols: " << images.cols;
  const size_t size = static_cast<size_t>(images.rows) * images.cols;
  const auto* pixels = reinterpret_cast<const char*>(images.pixels.data());
  RandomStream random(mix_key(FLAGS_seed, hash_name("pairs")));
  catch_signals();
  LmdbWriter writer(target);
  for (uint64_t pair = 0; pair < count; ++pair) {
    require(stop_signal == 0, "stopped; nothing was stored");
    const uint64_t i = random.below(count), j = random.below(count);
    const DatumFields fields{2, images.rows, images.cols, labels[i] == labels[j] ? 1 : 0, false};
    writer.put(record_key(pair), write_datum(fields, std::string(pixels + i * size, size) +
                                                         std::string(pixels + j * size, size)));
  }
  writer.finish();
  LOG(INFO) << "Stored " << count << " pairs in " << target;
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  const auto counts = [] { return std::pair<size_t, size_t>(3, 3); };
  return crema::run_tool(argc, argv, {"convert_mnist_siamese_data", crema::kUsage}, counts,
                         crema::convert);
}
