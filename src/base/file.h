// Files are written beside their place, flushed and renamed, so that a crash or a full disk leaves
// the old file whole.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace crema {

/// The whole file. Throws Error "PATH: reason" when it cannot be read, also for a directory.
std::string read_file(const std::string& path);

/// Calls write(temporary path), then flushes the file to disk and renames it to path. Whatever
/// fails, the temporary file is removed and path keeps its old content; throws Error "cannot write
/// PATH: reason".
void write_atomically(const std::string& path,
                      const std::function<void(const std::string&)>& write);

/// write_atomically with a content that is at hand.
void write_file(const std::string& path, const std::string& content);

/// Throws Error when no file could be made beside path (missing or read-only folder): asked before
/// long work.
void require_writable(const std::string& path);

bool is_directory(const std::string& path);
bool exists(const std::string& path);

/// " (looked for from /home/me)" for a path that counts from the working folder, else nothing: for
/// errors about paths that stand in a file, whose reader may expect them to count from that file.
std::string looked_for_from(const std::string& path);

/// The text "No such file or directory" and the like for errno.
std::string errno_text();

}  // namespace crema
