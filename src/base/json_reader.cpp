// One pass over the text, a function for each kind of value.
#include "base/json_reader.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/error.h"

namespace crema {
namespace {

constexpr int kDeepest = 100;

class Reader {
 public:
  explicit Reader(const std::string& text) : text_(text) {}

  JsonValue read() {
    JsonValue value = read_value(0);
    skip_blanks();
    require(at_ == text_.size(), place(), "something follows the value");
    return value;
  }

 private:
  std::string place() const {
    const auto end = text_.begin() + static_cast<std::ptrdiff_t>(std::min(at_, text_.size()));
    return str("line ", 1 + std::count(text_.begin(), end, '\n'), ": ");
  }

  void skip_blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(char c) {
    skip_blanks();
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  void expect(char c, const char* where) {
    require(take(c), place(), "a ", c, " is missing ", where);
  }

  JsonValue read_value(int depth) {
    require(depth < kDeepest, place(), "more than ", kDeepest, " brackets lie inside each other");
    skip_blanks();
    const char c = peek();
    if (c == '{') return read_object(depth);
    if (c == '[') return read_list(depth);
    JsonValue value;
    if (c == '"') {
      value.kind = JsonValue::text;
      value.words = read_text();
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      value.kind = JsonValue::number;
      value.value = read_number();
    } else {
      read_word(&value);
    }
    return value;
  }

  void read_word(JsonValue* value) {
    for (const auto& [word, kind] : {std::pair{"true", JsonValue::boolean},
                                     {"false", JsonValue::boolean},
                                     {"null", JsonValue::null}}) {
      const std::string name = word;
      if (text_.compare(at_, name.size(), name) != 0) continue;
      at_ += name.size();
      value->kind = kind;
      value->value = name == "true" ? 1 : 0;
      return;
    }
    fail(place(), "a value is expected");
  }

  double read_number() {
    const char* begin = text_.c_str() + at_;
    char* end = nullptr;
    const double value = std::strtod(begin, &end);
    require(end != begin && std::isfinite(value), place(), "a number is expected");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  std::string read_text() {
    std::string out;
    for (++at_; peek() != '"'; ++at_) {
      require(at_ < text_.size() && text_[at_] != '\n', place(), "a text is not closed");
      if (text_[at_] == '\\') {
        ++at_;
        read_escape(&out);
      } else {
        out += text_[at_];
      }
    }
    ++at_;
    return out;
  }

  void read_escape(std::string* out) {
    const std::string names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    if (peek() == 'u') {
      append_utf8(read_code(), out);
      return;
    }
    const size_t found = names.find(peek());
    require(at_ < text_.size() && found != std::string::npos, place(), "\\", peek(),
            " is no escape");
    *out += values[found];
  }

  /// Of \uXXXX; ends on its last digit.
  unsigned read_code() {
    unsigned code = 0;
    for (int i = 0; i < 4; ++i) {
      ++at_;
      const std::string digits = "0123456789abcdef";
      const char c = peek();
      const size_t digit = digits.find(c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c);
      require(c != '\0' && digit != std::string::npos, place(), "\\u needs four digits");
      code = code * 16 + static_cast<unsigned>(digit);
    }
    return code;
  }

  static void append_utf8(unsigned code, std::string* out) {
    if (code < 0x80) {
      *out += static_cast<char>(code);
      return;
    }
    if (code < 0x800) {
      *out += static_cast<char>(0xC0 | code >> 6);
    } else {
      *out += static_cast<char>(0xE0 | code >> 12);
      *out += static_cast<char>(0x80 | (code >> 6 & 0x3F));
    }
    *out += static_cast<char>(0x80 | (code & 0x3F));
  }

  JsonValue read_list(int depth) {
    JsonValue value;
    value.kind = JsonValue::list;
    ++at_;
    if (take(']')) return value;
    do {
      value.items.push_back(read_value(depth + 1));
    } while (take(','));
    expect(']', "after a list's values");
    return value;
  }

  JsonValue read_object(int depth) {
    JsonValue value;
    value.kind = JsonValue::object;
    ++at_;
    if (take('}')) return value;
    do {
      skip_blanks();
      require(peek() == '"', place(), "a name in quotation marks is expected");
      std::string name = read_text();
      expect(':', "after a name");
      value.members.emplace_back(std::move(name), read_value(depth + 1));
    } while (take(','));
    expect('}', "after an object's values");
    return value;
  }

  const std::string& text_;
  size_t at_ = 0;
};

}  // namespace

const JsonValue* JsonValue::find(const std::string& name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members.end() ? nullptr : &found->second;
}

const JsonValue& JsonValue::at(const std::string& name) const {
  const JsonValue* found = find(name);
  require(found != nullptr, "has no \"", name, '"');
  return *found;
}

double JsonValue::as_number(const std::string& what) const {
  require(kind == number, what, " must be a number");
  return value;
}

const std::vector<JsonValue>& JsonValue::as_list(const std::string& what) const {
  require(kind == list, what, " must be a list");
  return items;
}

JsonValue parse_json(const std::string& text) { return Reader(text).read(); }

}  // namespace crema
