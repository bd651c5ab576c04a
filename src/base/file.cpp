// Whole-file reading and atomic writing on POSIX calls, each with its reason in the error.
#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace crema {
namespace {

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

void flush_to_disk(const std::string& path, int flags) {
  Descriptor file{::open(path.c_str(), flags)};
  const bool is_flushed = file.fd >= 0 && ::fsync(file.fd) == 0;
  require(is_flushed,
          errno_text());  // apart: arguments have no order, and errno must be this call's
}

/// What is no plain file (a device, a pipe) would be gone once a file is renamed onto it.
void require_plain_file(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return;
  const bool is_plain = S_ISREG(info.st_mode) || S_ISDIR(info.st_mode);  // rename refuses a folder
  require(is_plain, "is a device or a pipe, a file is needed");
}

}  // namespace

std::string errno_text() { return std::strerror(errno); }

std::string looked_for_from(const std::string& path) {
  if (!path.empty() && path.front() == '/') return "";
  std::error_code ignored;
  return str(" (looked for from ", std::filesystem::current_path(ignored).string(), ")");
}

bool is_directory(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string read_file(const std::string& path) {
  Descriptor file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  require(file.fd >= 0, path, ": ", errno_text());
  struct stat info {};
  const bool is_known = ::fstat(file.fd, &info) == 0;
  require(is_known, path, ": ", errno_text());
  require(!S_ISDIR(info.st_mode), path, ": is a directory, a file is needed");
  std::string content;
  content.reserve(S_ISREG(info.st_mode) ? static_cast<size_t>(info.st_size) : 0);
  char buffer[1 << 16];
  for (ssize_t n; (n = ::read(file.fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    require(n > 0, path, ": ", errno_text());
    content.append(buffer, static_cast<size_t>(n));
  }
  return content;
}

void write_atomically(const std::string& path,
                      const std::function<void(const std::string&)>& write) {
  const std::string temporary = str(path, ".tmp.", ::getpid());
  try {
    require_plain_file(path);
    write(temporary);
    flush_to_disk(temporary, O_WRONLY | O_CLOEXEC);
    const bool is_renamed = ::rename(temporary.c_str(), path.c_str()) == 0;
    require(is_renamed, errno_text());
  } catch (const Error& error) {
    ::unlink(temporary.c_str());
    throw error.at("cannot write " + path);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void write_file(const std::string& path, const std::string& content) {
  write_atomically(path, [&](const std::string& temporary) {
    Descriptor file{::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    require(file.fd >= 0, errno_text());
    for (size_t done = 0; done < content.size();) {
      const ssize_t n = ::write(file.fd, content.data() + done, content.size() - done);
      if (n < 0 && errno == EINTR) continue;
      require(n >= 0, errno_text());
      done += static_cast<size_t>(n);
    }
  });
}

void require_writable(const std::string& path) {
  require(!is_directory(path), "cannot write ", path, ": Is a directory");
  try {
    require_plain_file(path);
  } catch (const Error& error) {
    throw error.at("cannot write " + path);
  }
  const std::string probe = str(path, ".tmp.", ::getpid());
  Descriptor file{::open(probe.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)};
  require(file.fd >= 0, "cannot write ", path, ": ", errno_text());
  ::unlink(probe.c_str());
}

}  // namespace crema
