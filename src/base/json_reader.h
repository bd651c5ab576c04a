// Reads JSON (RFC 8259) into a tree of values.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace crema {

class JsonValue {
 public:
  enum Kind { null, boolean, number, text, list, object };

  Kind kind = null;
  double value = 0;                                        // of a number; 1 for true
  std::string words;                                       // of a text, escapes resolved
  std::vector<JsonValue> items;                            // of a list
  std::vector<std::pair<std::string, JsonValue>> members;  // of an object, in the file's order

  /// nullptr where this is no object or has no such member.
  const JsonValue* find(const std::string& name) const;
  /// Throws Error 'has no "name"'.
  const JsonValue& at(const std::string& name) const;
  /// Of a number; throws Error "WHAT must be a number".
  double as_number(const std::string& what) const;
  /// Of a list; throws Error "WHAT must be a list".
  const std::vector<JsonValue>& as_list(const std::string& what) const;
};

/// Throws Error "line N: ..." for what is no JSON, and for more than 100 brackets inside each
/// other.
JsonValue parse_json(const std::string& text);

}  // namespace crema
