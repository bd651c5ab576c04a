// convert_imageset: picture files, named by a list or sorted into folders, into a database of
// Datums.
#include "base/file.h"
#include "feed/folder_labels.h"
#include "feed/image_converter.h"
#include "feed/ordered_workers.h"
#include "tool.h"

DEFINE_bool(gray, false, "Store gray pictures");
DEFINE_bool(shuffle, false, "Store the pictures in random order");
DEFINE_uint64(seed, 1, "Of --shuffle: the same seed gives the same order");
DEFINE_string(backend, "lmdb", "The kind of database: lmdb or leveldb");
DEFINE_int32(resize_width, 0, "Width to resize to (with resize_height); 0: as it is");
DEFINE_int32(resize_height, 0, "Height to resize to (with resize_width); 0: as it is");
DEFINE_bool(
    reduced_decode, false,
    "Decode a JPEG that is at least twice the new size at a half, quarter or eighth: faster, "
    "slightly other pixels");
DEFINE_bool(check_size, false, "Stop when pictures differ in size");
DEFINE_bool(encoded, false, "Store picture files instead of pixels");
DEFINE_string(encode_type, "",
              "The format of stored files (png, jpg, ...); empty: each file's own");
DEFINE_bool(strict, false, "Stop at a picture that cannot be read instead of skipping it");
DEFINE_int32(label_count, 1, "Labels at the end of each line of LIST; several may be any numbers");
DEFINE_bool(float_labels, false, "One label may be any number too");
DEFINE_bool(labels_from_folders, false,
            "ROOT holds a folder for each class; no LIST. Writes DB/labels.txt");
DEFINE_int32(threads, 0, "Threads that decode; 0: as many as the machine has");

namespace crema {
namespace {

constexpr const char* kUsage =
    "Stores pictures with their labels in a database for training.\n"
    "    convert_imageset [FLAGS] ROOT/ LIST DB\n"
    "    convert_imageset --labels_from_folders [FLAGS] ROOT DB\n"
    "Each line of LIST is a path below ROOT/, a blank, and a label (a whole number).";

struct Input {
  std::string root, database;
  std::vector<ListEntry> entries;
  std::vector<std::string> classes;
};

Input read_input(const std::vector<std::string>& arguments) {
  Input input;
  input.root = arguments[0];
  input.database = arguments.back();
  require(!exists(input.database), input.database,
          ": is there already; remove it or name another database");
  if (!FLAGS_labels_from_folders) {
    input.entries = read_list(arguments[1],
                              {.label_count = FLAGS_label_count, .is_whole = !FLAGS_float_labels});
    return input;
  }
  FolderLabels found = labels_from_folders(input.root);
  if (input.root.back() != '/') input.root += '/';
  input.entries = std::move(found.entries);
  input.classes = std::move(found.classes);
  LOG_IF(WARNING, found.ignored > 0)
      << found.ignored << " files are no pictures by their names and were left out";
  if (!FLAGS_shuffle && input.classes.size() > 1) {
    LOG(INFO)
        << "The records are sorted by class: train on them with data_param { shuffle: true }, "
           "or store them with --shuffle";
  }
  return input;
}

ConvertOptions options_of(const Input& input) {
  ConvertOptions options;
  options.root = input.root;
  options.gray = FLAGS_gray;
  options.resize_height = FLAGS_resize_height;
  options.resize_width = FLAGS_resize_width;
  options.reduced_decode = FLAGS_reduced_decode;
  options.check_size = FLAGS_check_size;
  options.encoded = FLAGS_encoded;
  options.encode_type = FLAGS_encode_type;
  options.strict = FLAGS_strict;
  options.threads = FLAGS_threads > 0 ? FLAGS_threads : hardware_threads();
  options.seed = FLAGS_seed;
  options.shuffle = FLAGS_shuffle;
  options.is_stopped = [] { return stop_signal != 0; };
  return options;
}

void report(const ConvertReport& report, const std::string& database) {
  size_t skipped = 0;
  for (const auto& [reason, count] : report.skipped) skipped += count;
  LOG(INFO) << "Stored " << report.stored << " of " << report.total << " pictures in " << database;
  if (report.cut > 0) LOG(WARNING) << report.cut << " of them end early";
  if (skipped > 0) LOG(WARNING) << "Skipped " << skipped << ":";
  for (const auto& [reason, count] : report.skipped)
    LOG(WARNING) << "  " << count << ": " << reason;
}

void convert(const std::vector<std::string>& arguments) {
  check_database_kind(FLAGS_backend);
  Input input = read_input(arguments);
  if (FLAGS_shuffle) LOG(INFO) << "Shuffling data";
  LOG(INFO) << "A total of " << input.entries.size() << " images.";
  catch_signals();
  const auto writer = make_database_writer(FLAGS_backend, input.database);
  ConvertOptions options = options_of(input);
  ConvertReport result;
  {
    ProgressLine line(input.entries.size());
    options.progress = [&](size_t done) { line.show(done); };
    result = convert_images(std::move(input.entries), options, *writer);
  }
  if (FLAGS_labels_from_folders) {
    write_file(writer->folder() + "/labels.txt", join(input.classes, "\n") + "\n");
  }
  writer->finish();
  report(result, input.database);
}

}  // namespace
}  // namespace crema

int main(int argc, char** argv) {
  const auto counts = [] {
    return FLAGS_labels_from_folders ? std::pair<size_t, size_t>(2, 2)
                                     : std::pair<size_t, size_t>(3, 3);
  };
  return crema::run_tool(argc, argv, {"convert_imageset", crema::kUsage}, counts, crema::convert);
}
