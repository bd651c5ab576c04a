// BVLC: reads labels with atoi, so "cat", "1x" and a missing label silently become numbers; here
// they are errors.
#include "feed/list_file.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr int kMaxReported = 10;

std::string_view without_trailing_blanks(std::string_view text) {
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

bool parse_label(std::string_view text, int& label) {
  if (text.size() > 1 && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), label);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_number(std::string_view text, float& number) {
  if (text.size() > 1 && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
}

/// What is no list may have lines of any length: its beginning tells as much.
std::string quoted(std::string_view text) {
  constexpr size_t kShown = 80;
  return str('"', text.substr(0, kShown), text.size() > kShown ? "...\"" : "\"");
}

/// Takes the last word off the line. Throws Error where there is none.
std::string_view take_label(std::string_view& line, std::string_view whole) {
  const size_t at = line.find_last_of(kBlanks);
  require(at != std::string_view::npos, "no label after the path in ", quoted(whole));
  const std::string_view label = line.substr(at + 1);
  line = without_trailing_blanks(line.substr(0, at));
  return label;
}

/// Throws Error with the rule that the line breaks.
ListEntry parse_line(std::string_view line, const ListOptions& options) {
  ListEntry entry;
  std::string_view rest = line;
  if (options.label_count == 1 && options.is_whole) {
    const std::string_view label = take_label(rest, line);
    require(parse_label(label, entry.label), "label ", quoted(label), " is not a whole number in ",
            quoted(line));
  } else {
    entry.labels.resize(static_cast<size_t>(options.label_count));
    const std::string needed = str(", which needs ", options.label_count, " at its end");
    for (size_t i = entry.labels.size(); i-- > 0;) {
      require(rest.find_last_of(kBlanks) != std::string_view::npos, "too few labels in ",
              quoted(line), needed);
      const std::string_view label = take_label(rest, line);
      require(parse_number(label, entry.labels[i]), "label ", quoted(label), " is not a number in ",
              quoted(line), needed);
    }
    const float first = entry.labels[0];
    entry.label = first > -1e9F && first < 1e9F ? static_cast<int>(first) : 0;
  }
  entry.path = rest;
  require(!entry.path.empty(), "no path before the label in ", quoted(line));
  return entry;
}

}  // namespace

std::vector<ListEntry> read_list(const std::string& path, const ListOptions& options) {
  require(options.label_count > 0, path, ": at least one label is needed, not ",
          options.label_count);
  const std::string content = read_file(path);
  require(content.find('\0') == std::string::npos, path,
          ": is binary data, a list (a path, a blank and a label in each line) is needed");
  std::string_view rest = content;
  if (rest.substr(0, 3) == "\xEF\xBB\xBF") rest.remove_prefix(3);
  std::vector<ListEntry> entries;
  ErrorList errors;
  int line_number = 0, error_count = 0;
  while (!rest.empty() && error_count < kMaxReported) {
    const size_t end = rest.find('\n');
    const std::string_view line = without_trailing_blanks(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line_number;
    if (line.empty()) continue;
    try {
      entries.push_back(parse_line(line, options));
    } catch (const Error& error) {
      errors.add(error.at(str(path, ":", line_number)));
      ++error_count;
    }
  }
  errors.throw_if_any();
  require(!entries.empty(), path, ": the list is empty");
  return entries;
}

}  // namespace crema
