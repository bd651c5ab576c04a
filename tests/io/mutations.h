// Damage for files: the same number gives the same damage on every machine. A reader must answer
// each damaged file with a value or with one Error; anything else ends the test program.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "base/error.h"
#include "base/philox.h"

namespace crema {

/// `bytes` after damage `number`: cut, a bit flipped, a byte set to an extreme, a piece copied over
/// another, bytes put in or taken out, or a wide number written over what is there.
inline std::string damaged(std::string bytes, uint64_t number) {
  RandomStream random(mix_key(hash_name("damage"), number));
  const size_t at = random.below(bytes.size()), from = random.below(bytes.size());
  const size_t length = std::min<size_t>(1 + random.below(40), bytes.size() - from);
  switch (number % 8) {
    case 0:
      return bytes.substr(0, at);
    case 1:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      return bytes;
    case 2:
      bytes[at] = "\x00\xff\x80\x7f"[random.below(4)];
      return bytes;
    case 3:
      return bytes.replace(at, length, bytes.substr(from, length));
    case 4:
      return bytes.insert(at, length % 9 + 1, static_cast<char>(random.below(256)));
    case 5:
      return bytes.erase(at, length % 20 + 1);
    case 6:  // where most formats keep what everything else hangs on
      bytes[at % 64 % bytes.size()] = static_cast<char>(random.below(256));
      return bytes;
    default: {
      const std::string wide[] = {std::string(8, '\xff') + "\x7f", "\xff\xff\xff\x7f",
                                  "\xff\xff\xff\xff\x0f", std::string(8, '\0')};
      const std::string& number_bytes = wide[random.below(4)];
      return bytes.replace(at, number_bytes.size(), number_bytes);
    }
  }
}

/// Runs read for `count` damages of bytes. Returns how many of them it refused; each refusal must
/// be one line, and begin with `place` where that is given.
inline int count_refused(const std::string& bytes, int count, const std::string& place,
                         const std::function<void(const std::string&)>& read,
                         std::string* wrong_refusal) {
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    try {
      read(damaged(bytes, static_cast<uint64_t>(i)));
    } catch (const Error& error) {
      ++refused;
      const std::string what = error.what();
      const bool is_good = what.rfind(place, 0) == 0 && what.size() > place.size();
      if (!is_good && wrong_refusal->empty()) *wrong_refusal = str("damage ", i, ": ", what);
    }
  }
  return refused;
}

}  // namespace crema
