// Checks a prototxt against its message type before protobuf reads it: protobuf stops at the first
// mistake and knows no neighbours of a misspelled name.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

#include "io/prototxt.h"

namespace crema {

/// Returns the text with the words of forks that mean the same as words of ours replaced by those,
/// each on its line. Throws Error with one line "NAME:LINE: ..." for each unknown field, wrong
/// value and missing or surplus field of text; a syntax error ends the list. Other fields of forks
/// inside a layer, their hints about speed and their engines are lines of the log, or errors where
/// options.strict is set.
std::string check_text(const std::string& text, const std::string& name,
                       const google::protobuf::Descriptor* type, const ReadOptions& options);

}  // namespace crema
