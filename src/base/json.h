// The few pieces of JSON that reports and metrics files need: texts and numbers. Whoever writes an
// object puts the braces himself.
#pragma once

#include <string>

namespace crema {

/// text in quotation marks, with what JSON does not allow in them escaped.
std::string json_text(const std::string& text);

/// Up to nine significant digits; null for what is not finite, which JSON has no number for.
std::string json_number(double value);
/// As few digits as read back the same.
std::string json_number(float value);

}  // namespace crema
