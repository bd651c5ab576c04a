// HDF5 files. The library is not thread-safe, so every call holds one global mutex; its own error
// printing is off, every failure is an Error with file, data set and the library's reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/shape.h"
#include "io/blob.h"

namespace crema {

/// True when path is a file with HDF5's signature.
bool is_hdf5(const std::string& path);

/// An open HDF5 file. Names are paths within it, "data/conv1/0"; a leading '/' makes no difference.
/// Everything throws Error "FILE: data set "NAME": ...".
class Hdf5File {
 public:
  /// Opens for reading, without a lock.
  static Hdf5File open(const std::string& path);
  /// A new file, held in memory until close() writes it to path. Use it inside write_atomically
  /// where an old file must survive.
  static Hdf5File create(const std::string& path);

  Hdf5File(Hdf5File&& other) noexcept;
  Hdf5File& operator=(Hdf5File&& other) noexcept;
  /// Drops a new file that was not closed.
  ~Hdf5File();
  /// Writes a new file to its path and closes it. Throws Error, the system's reason alone (as
  /// write_atomically needs it), when it cannot.
  void close();

  const std::string& path() const { return path_; }

  /// True when there is a group or data set of this name.
  bool has(const std::string& name) const;
  /// All data sets below group, at any depth, as paths from group ("conv1/0"), in alphabetical
  /// order. Empty when there is no such group.
  std::vector<std::string> datasets(const std::string& group = "/") const;
  /// The same for groups.
  std::vector<std::string> groups(const std::string& group = "/") const;

  /// Shape of a data set; no axes for a scalar.
  Shape shape(const std::string& name) const;
  /// True when a data set holds floating-point or whole numbers.
  bool is_numeric(const std::string& name) const;
  /// A whole data set, converted to float. At most kMaxBlobCount values.
  HostBlob read(const std::string& name) const;
  /// count entries of axis 0 from first on, converted to float, into out (count times the
  /// other sizes).
  void read_rows(const std::string& name, int64_t first, int64_t count, float* out) const;
  /// A data set of whole numbers, of any shape.
  std::vector<int64_t> read_integers(const std::string& name) const;
  /// A data set that is one text.
  std::string read_string(const std::string& name) const;

  /// Writing makes parent groups as needed. A scalar shape (no axes) makes a scalar data set.
  void write(const std::string& name, const Shape& shape, const float* values);
  void write(const std::string& name, const Shape& shape, const double* values);
  void write(const std::string& name, const Shape& shape, const int32_t* values);
  void write(const std::string& name, const Shape& shape, const int64_t* values);
  void write_string(const std::string& name, const std::string& text);
  void make_group(const std::string& name);

 private:
  Hdf5File(const std::string& path, int64_t id, bool is_new)
      : path_(path), id_(id), is_new_(is_new) {}
  void write_any(const std::string& name, const Shape& shape, int64_t type, const void* values);

  std::string path_;
  int64_t id_;  // HDF5's handle; negative when closed
  bool is_new_;
};

}  // namespace crema
