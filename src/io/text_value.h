// What a field takes as its value, and whether a word of a prototxt is that.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

#include "io/text_tokens.h"

namespace crema {

/// "" when word (after a minus sign where negative is set) is a value for field, else the mistake:
/// "batch_size takes a whole number, not abc".
std::string value_mistake(const google::protobuf::FieldDescriptor* field, const Token& word,
                          bool negative);

/// "batch_size takes a whole number, not WHAT".
std::string wrong_kind(const google::protobuf::FieldDescriptor* field, const std::string& what);

}  // namespace crema
