// The HDF5 C library behind one mutex, with its handles closed on every path. A file is made in
// memory and written by us: the library cannot close a file on a full disk and crashes at exit.
#include "io/hdf5.h"

#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "io/file_kind.h"
#include "io/wire.h"

namespace crema {
namespace {

static_assert(sizeof(hid_t) == sizeof(int64_t));

constexpr size_t kMemoryStep = 1 << 20;  // by which a file in memory grows
constexpr int kMaxDepth = 32;            // of nested groups: links may form a circle

// Held during every call of the library; the first one turns its error printing off.
class Lock {
 public:
  Lock() : lock_(mutex()) { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); }

 private:
  static std::recursive_mutex& mutex() {
    static std::recursive_mutex mutex;
    return mutex;
  }
  std::lock_guard<std::recursive_mutex> lock_;
};

class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

herr_t keep_description(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc && static_cast<std::string*>(text)->empty()) {
    *static_cast<std::string*>(text) = error->desc;
  }
  return 0;
}

// The innermost reason of the last failure; the system's words where they are in it.
std::string reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, &text);
  const std::string mark = "error message = '";
  const size_t from = text.find(mark);
  if (from != std::string::npos) {
    text = text.substr(from + mark.size());
    text = text.substr(0, text.find('\''));
  }
  return text.empty() ? "the HDF5 library gives no reason" : text;
}

void check(int64_t status, const std::string& place) {
  if (status < 0) fail(place, ": ", reason());
}

std::string place(const std::string& path, const std::string& name) {
  return str(path, ": data set \"", name, "\"");
}

Handle open_dataset(int64_t file, const std::string& path, const std::string& name) {
  const hid_t id = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
  require(id >= 0, path, ": has no data set \"", name, "\"");
  return {id, H5Dclose};
}

Shape shape_of(hid_t dataset, const std::string& where) {
  const Handle space(H5Dget_space(dataset), H5Sclose);
  check(space, where);
  require(H5Sget_simple_extent_type(space) != H5S_NULL, where, ": holds nothing");
  hsize_t dims[H5S_MAX_RANK];
  const int axes = H5Sget_simple_extent_dims(space, dims, nullptr);
  check(axes, where);
  try {
    Shape shape;
    for (int i = 0; i < axes; ++i) shape.push_back(static_cast<int64_t>(dims[i]));
    return shape;
  } catch (const Error& error) {
    throw error.at(where);
  }
}

// Number of values of a shape that is to be held in memory.
int64_t checked_count(const Shape& shape, const std::string& where) {
  int64_t count = 1;
  for (int64_t dim : shape) {
    require(dim == 0 || count <= kMaxBlobCount / dim, where, ": has the shape ", shape,
            ", more than ", kMaxBlobCount, " values");
    count *= dim;
  }
  return count;
}

bool has_numbers(hid_t dataset) {
  const Handle type(H5Dget_type(dataset), H5Tclose);
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

void list(hid_t group, const std::string& prefix, H5I_type_t wanted, int depth,
          std::vector<std::string>* out) {
  H5G_info_t info{};
  if (depth > kMaxDepth || H5Gget_info(group, &info) < 0) return;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    char name[1024];
    const ssize_t size = H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, i, name,
                                            sizeof name, H5P_DEFAULT);
    if (size < 0 || size >= static_cast<ssize_t>(sizeof name)) continue;
    const Handle object(H5Oopen(group, name, H5P_DEFAULT), H5Oclose);
    if (object < 0) continue;  // a link to nothing
    const H5I_type_t kind = H5Iget_type(object);
    if (kind == wanted) out->push_back(prefix + name);
    if (kind == H5I_GROUP) list(object, prefix + name + "/", wanted, depth + 1, out);
  }
}

std::vector<std::string> list_all(const Hdf5File& file, int64_t id, const std::string& group,
                                  H5I_type_t wanted) {
  std::vector<std::string> names;
  if (group != "/" && !file.has(group)) return names;
  const Handle start(H5Oopen(id, group.c_str(), H5P_DEFAULT), H5Oclose);
  if (start >= 0 && H5Iget_type(start) == H5I_GROUP) list(start, "", wanted, 0, &names);
  std::sort(names.begin(), names.end());
  return names;
}

// Writes the bytes of a file that lives in memory.
void write_image(hid_t file, const std::string& path) {
  check(H5Fflush(file, H5F_SCOPE_LOCAL), path);
  void* memory = nullptr;  // points to the address of the file's bytes
  check(H5Fget_vfd_handle(file, H5P_DEFAULT, &memory), path);
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  check(size, path);
  WireWriter out(path);
  out.raw(*static_cast<char**>(memory), static_cast<size_t>(size));
  out.close();
}

}  // namespace

bool is_hdf5(const std::string& path) {
  const Lock lock;
  return exists(path) && !is_directory(path) && H5Fis_hdf5(path.c_str()) > 0;
}

Hdf5File Hdf5File::open(const std::string& path) {
  const Lock lock;
  if (!exists(path)) fail(path, ": ", errno_text());
  require(!is_directory(path), path, ": is a directory, an HDF5 file is needed");
  if (H5Fis_hdf5(path.c_str()) <= 0) {
    const MappedFile file(path);
    fail(path, ": is ", describe(kind_of_bytes(file.bytes().substr(0, 1 << 16))),
         ", an HDF5 file is needed");
  }
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
#if H5_VERSION_GE(1, 10, 7)
  H5Pset_file_locking(access, false, true);
#endif
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, access);
  if (id < 0) fail(path, ": cannot be read as HDF5: ", reason());
  return {path, id, false};
}

Hdf5File Hdf5File::create(const std::string& path) {
  const Lock lock;
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_fapl_core(access, kMemoryStep, false);
  const hid_t id = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  if (id < 0) fail(path, ": ", reason());
  return {path, id, true};
}

Hdf5File::Hdf5File(Hdf5File&& other) noexcept
    : path_(std::move(other.path_)), id_(std::exchange(other.id_, -1)), is_new_(other.is_new_) {}

Hdf5File& Hdf5File::operator=(Hdf5File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(id_, other.id_);
  std::swap(is_new_, other.is_new_);
  return *this;
}

Hdf5File::~Hdf5File() {
  const Lock lock;
  if (id_ >= 0) H5Fclose(id_);
}

void Hdf5File::close() {
  const Lock lock;
  if (is_new_) write_image(id_, path_);
  check(H5Fclose(std::exchange(id_, -1)), path_);
}

bool Hdf5File::has(const std::string& name) const {
  const Lock lock;
  for (size_t slash = name.find('/', 1);; slash = name.find('/', slash + 1)) {
    if (H5Lexists(id_, name.substr(0, slash).c_str(), H5P_DEFAULT) <= 0) return false;
    if (slash == std::string::npos) return true;
  }
}

std::vector<std::string> Hdf5File::datasets(const std::string& group) const {
  const Lock lock;
  return list_all(*this, id_, group, H5I_DATASET);
}

std::vector<std::string> Hdf5File::groups(const std::string& group) const {
  const Lock lock;
  return list_all(*this, id_, group, H5I_GROUP);
}

Shape Hdf5File::shape(const std::string& name) const {
  const Lock lock;
  return shape_of(open_dataset(id_, path_, name), place(path_, name));
}

bool Hdf5File::is_numeric(const std::string& name) const {
  const Lock lock;
  return has_numbers(open_dataset(id_, path_, name));
}

HostBlob Hdf5File::read(const std::string& name) const {
  const Lock lock;
  const std::string where = place(path_, name);
  const Handle dataset = open_dataset(id_, path_, name);
  require(has_numbers(dataset), where, ": holds no numbers");
  HostBlob blob;
  blob.shape = shape_of(dataset, where);
  const int64_t count = checked_count(blob.shape, where);
  try {
    blob.data.resize(static_cast<size_t>(count));
  } catch (const std::bad_alloc&) {
    fail(where, ": there is no memory for its ", count, " values (shape ", blob.shape, ")");
  }
  check(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, blob.data.data()), where);
  return blob;
}

void Hdf5File::read_rows(const std::string& name, int64_t first, int64_t count, float* out) const {
  const Lock lock;
  const std::string where = place(path_, name);
  const Handle dataset = open_dataset(id_, path_, name);
  require(has_numbers(dataset), where, ": holds no numbers");
  Shape shape = shape_of(dataset, where);
  require(shape.axes() > 0 && first >= 0 && count >= 0 && first + count <= shape[0], where,
          ": has no entries ", first, " to ", first + count - 1, " (shape ", shape, ")");
  hsize_t from[H5S_MAX_RANK] = {static_cast<hsize_t>(first)}, size[H5S_MAX_RANK];
  shape[0] = count;
  std::copy(shape.begin(), shape.end(), size);
  const Handle in_file(H5Dget_space(dataset), H5Sclose);
  check(H5Sselect_hyperslab(in_file, H5S_SELECT_SET, from, nullptr, size, nullptr), where);
  const Handle in_memory(H5Screate_simple(shape.axes(), size, nullptr), H5Sclose);
  check(H5Dread(dataset, H5T_NATIVE_FLOAT, in_memory, in_file, H5P_DEFAULT, out), where);
}

std::vector<int64_t> Hdf5File::read_integers(const std::string& name) const {
  const Lock lock;
  const std::string where = place(path_, name);
  const Handle dataset = open_dataset(id_, path_, name);
  require(has_numbers(dataset), where, ": holds no numbers");
  std::vector<int64_t> values(static_cast<size_t>(checked_count(shape_of(dataset, where), where)));
  check(H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), where);
  return values;
}

std::string Hdf5File::read_string(const std::string& name) const {
  const Lock lock;
  const std::string where = place(path_, name);
  const Handle dataset = open_dataset(id_, path_, name);
  const Handle type(H5Dget_type(dataset), H5Tclose);
  require(H5Tget_class(type) == H5T_STRING && shape_of(dataset, where).count() == 1, where,
          ": holds no text");
  if (H5Tis_variable_str(type) > 0) {
    char* text = nullptr;
    const Handle memory(H5Tcopy(type), H5Tclose);
    check(H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, &text), where);
    const std::string copy = text ? text : "";
    H5free_memory(text);
    return copy;
  }
  std::string text(H5Tget_size(type), '\0');
  check(H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()), where);
  return text.substr(0, text.find('\0'));
}

void Hdf5File::write_any(const std::string& name, const Shape& shape, int64_t type,
                         const void* values) {
  const std::string where = place(path_, name);
  hsize_t dims[H5S_MAX_RANK];
  std::copy(shape.begin(), shape.end(), dims);
  const Handle space(
      shape.axes() ? H5Screate_simple(shape.axes(), dims, nullptr) : H5Screate(H5S_SCALAR),
      H5Sclose);
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Handle dataset(H5Dcreate2(id_, name.c_str(), type, space, links, H5P_DEFAULT, H5P_DEFAULT),
                       H5Dclose);
  check(dataset, where);
  if (shape.count()) check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values), where);
}

void Hdf5File::write(const std::string& name, const Shape& shape, const float* values) {
  const Lock lock;
  write_any(name, shape, H5T_NATIVE_FLOAT, values);
}

void Hdf5File::write(const std::string& name, const Shape& shape, const double* values) {
  const Lock lock;
  write_any(name, shape, H5T_NATIVE_DOUBLE, values);
}

void Hdf5File::write(const std::string& name, const Shape& shape, const int32_t* values) {
  const Lock lock;
  write_any(name, shape, H5T_NATIVE_INT32, values);
}

void Hdf5File::write(const std::string& name, const Shape& shape, const int64_t* values) {
  const Lock lock;
  write_any(name, shape, H5T_NATIVE_INT64, values);
}

void Hdf5File::write_string(const std::string& name, const std::string& text) {
  const Lock lock;
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, text.size() + 1);
  write_any(name, {}, type, text.c_str());
}

void Hdf5File::make_group(const std::string& name) {
  const Lock lock;
  if (has(name)) return;
  const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  const Handle group(H5Gcreate2(id_, name.c_str(), links, H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
  check(group, str(path_, ": group \"", name, "\""));
}

}  // namespace crema
