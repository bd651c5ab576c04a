// str(a, b, c): the parts in stream notation, one after another. The only way text is put together
// in Crema.
#pragma once

#include <sstream>
#include <string>
#include <vector>

namespace crema {

template <class... Parts>
std::string str(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return std::move(out).str();
}

/// "a, b, c" for any range whose elements can be streamed.
template <class Range>
std::string join(const Range& range, const char* separator = ", ") {
  std::ostringstream out;
  bool first = true;
  for (const auto& item : range) {
    if (!first) out << separator;
    out << item;
    first = false;
  }
  return std::move(out).str();
}

/// Parts of text between separators; an empty text has no parts, empty parts are kept.
std::vector<std::string> split(const std::string& text, char separator);

/// The candidate within a few edits of word, or "" when none is near: "did you mean" texts.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// Levenshtein distance in single-character edits.
int edit_distance(const std::string& a, const std::string& b);

/// " (did you mean X?)" when a candidate is near, else "".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace crema
