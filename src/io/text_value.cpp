// Values of a prototxt: one question for each kind of field.
#include "io/text_value.h"

#include <strings.h>

#include <cerrno>
#include <cstdlib>

#include "base/str.h"
#include "io/fork_text.h"

namespace crema {
namespace {

using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;

std::vector<std::string> enum_names(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) names.push_back(type->value(i)->name());
  return names;
}

// "MAX, AVE or STOCHASTIC"; nothing but "a name" for long lists.
std::string choices(const EnumDescriptor* type) {
  std::vector<std::string> names = enum_names(type);
  if (names.size() > 8) return "one of the names of " + type->name();
  if (names.size() == 1) return names[0];
  const std::string last = names.back();
  names.pop_back();
  return join(names) + " or " + last;
}

std::string described(const FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
    case FieldDescriptor::CPPTYPE_INT64:
      return "a whole number";
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number from 0 up";
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "a number";
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_STRING:
      return "a text in quotes";
    case FieldDescriptor::CPPTYPE_ENUM:
      return choices(field->enum_type());
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return "a block { ... }";
  }
  return "";
}

bool is_whole(const Token& word, bool negative, int bits, bool is_signed) {
  if (word.kind != Token::number) return false;
  const std::string digits(word.word);
  char* end = nullptr;
  errno = 0;
  const unsigned long long value = std::strtoull(digits.c_str(), &end, 0);
  if (*end || errno) return false;
  if (!is_signed) return !negative && (bits == 64 || value <= 0xffffffffULL);
  const unsigned long long limit = bits == 64 ? 0x7fffffffffffffffULL : 0x7fffffffULL;
  return value <= limit + (negative ? 1 : 0);
}

bool is_real(const Token& word) {
  if (word.kind == Token::identifier) {
    for (const char* name : {"inf", "infinity", "nan"}) {
      if (strcasecmp(std::string(word.word).c_str(), name) == 0) return true;
    }
    return false;
  }
  if (word.kind != Token::number) return false;
  std::string digits(word.word);
  if (digits.back() == 'f' || digits.back() == 'F') digits.pop_back();
  char* end = nullptr;
  std::strtod(digits.c_str(), &end);
  return !*end && (digits.size() < 2 || (digits[1] != 'x' && digits[1] != 'X'));
}

bool is_bool(const Token& word) {
  for (const char* name : {"true", "True", "t", "false", "False", "f", "0", "1"}) {
    if (word.word == name) return true;
  }
  return false;
}

std::string enum_mistake(const FieldDescriptor* field, const Token& word, bool negative) {
  const EnumDescriptor* type = field->enum_type();
  const std::string name(word.word);
  if (word.kind == Token::number) {
    const int value = std::atoi(name.c_str());
    if (type->FindValueByNumber(negative ? -value : value)) return "";
  } else if (word.kind == Token::identifier) {
    if (!negative && type->FindValueByName(name)) return "";
    const bool is_known = !fork_value_note(field->full_name(), name).empty();
    return wrong_kind(field, name) + (is_known ? "" : did_you_mean(name, enum_names(type)));
  } else if (word.kind == Token::text) {
    const std::string bare = name.substr(1, name.size() - 2);
    if (type->FindValueByName(bare)) return wrong_kind(field, name) + " (leave out the quotes)";
    return wrong_kind(field, name) + did_you_mean(bare, enum_names(type));
  }
  return wrong_kind(field, (negative ? "-" : "") + name);
}

bool fits(const FieldDescriptor* field, const Token& word, bool negative) {
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return is_whole(word, negative, 32, true);
    case FieldDescriptor::CPPTYPE_INT64:
      return is_whole(word, negative, 64, true);
    case FieldDescriptor::CPPTYPE_UINT32:
      return is_whole(word, negative, 32, false);
    case FieldDescriptor::CPPTYPE_UINT64:
      return is_whole(word, negative, 64, false);
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return is_real(word);
    case FieldDescriptor::CPPTYPE_BOOL:
      return !negative && is_bool(word);
    case FieldDescriptor::CPPTYPE_STRING:
      return !negative && word.kind == Token::text;
    default:
      return false;
  }
}

}  // namespace

std::string wrong_kind(const FieldDescriptor* field, const std::string& what) {
  return str(field->name(), " takes ", described(field), ", not ", what,
             fork_value_note(field->full_name(), what));
}

std::string value_mistake(const FieldDescriptor* field, const Token& word, bool negative) {
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
    return enum_mistake(field, word, negative);
  }
  if (fits(field, word, negative)) return "";
  return wrong_kind(field, str(negative ? "-" : "", word.word));
}

}  // namespace crema
