// compute_image_mean: the mean picture of a database, as a .binaryproto for transform_param {
// mean_file }.
#include "base/file.h"
#include "feed/image_mean.h"
#include "feed/ordered_workers.h"
#include "io/mean.h"
#include "tool.h"

DEFINE_string(backend, "lmdb",
              "Accepted for old scripts; the kind of database is told from its files");
DEFINE_int32(threads, 0, "Threads that decode; 0: as many as the machine has");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Computes the mean of all pictures of a database.\n"
    "    compute_image_mean [FLAGS] DB [OUT.binaryproto]";

void compute(const std::vector<std::string>& arguments) {
  if (arguments.size() > 1) require_writable(arguments[1]);
  LOG(INFO) << "Starting iteration";
  const HostBlob mean =
      image_mean(arguments[0], FLAGS_threads > 0 ? FLAGS_threads : hardware_threads());
  if (arguments.size() > 1) {
    LOG(INFO) << "Write to " << arguments[1];
    write_mean(arguments[1], mean);
  }
  const int64_t channels = mean.shape[1], area = mean.shape.count(2);
  LOG(INFO) << "Number of channels: " << channels;
  for (int64_t c = 0; c < channels; ++c) {
    double sum = 0;
    for (int64_t i = 0; i < area; ++i) sum += mean.data[c * area + i];
    LOG(INFO) << "mean_value channel [" << c << "]: " << static_cast<float>(sum / area);
  }
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  return crema::run_tool(
      argc, argv, {"compute_image_mean", crema::kUsage},
      [] { return std::pair<size_t, size_t>(1, 2); }, crema::compute);
}
