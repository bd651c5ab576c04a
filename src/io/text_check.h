// Checks a prototxt against its message type before protobuf reads it: protobuf stops at the first
// mistake and knows no neighbours of a misspelled name.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

#include "io/prototxt.h"

namespace crema {

/// Throws Error with one line "NAME:LINE: ..." for each unknown field, wrong value and missing or
/// surplus field of text; a syntax error ends the list. Fields of forks inside a layer are lines of
/// the log, or errors where options.strict is set. Returns the text with the same lines, in which
/// other spellings that forks have for a field (DeepLab's hole, SegNet's class_weighting) are ours.
std::string check_text(const std::string& text, const std::string& name,
                       const google::protobuf::Descriptor* type, const ReadOptions& options);

}  // namespace crema
