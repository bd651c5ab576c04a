// Error: places are added line by line, since one Error may carry several independent mistakes.
#include "base/error.h"

namespace crema {

Error Error::at(const std::string& place) const {
  std::string text = place + ": ";
  for (const char* c = what(); *c; ++c) {
    text += *c;
    if (*c == '\n') text += place + ": ";
  }
  return Error(text);
}

void ErrorList::add(const Error& error) {
  if (!text_.empty()) text_ += '\n';
  text_ += error.what();
}

void ErrorList::throw_if_any() const {
  if (!text_.empty()) throw Error(text_);
}

}  // namespace crema
