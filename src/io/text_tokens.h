// Words of a prototxt, with their places. Comments and blanks are left out.
#pragma once

#include <string>
#include <string_view>

namespace crema {

struct Token {
  enum Kind { identifier, number, text, symbol, end };
  Kind kind = end;
  std::string_view word;  // as written, a text with its quotes
  int line = 0;           // from 1

  bool is(char c) const { return kind == symbol && word[0] == c; }
};

/// Reads tokens of content, which must outlive it. Throws Error "NAME:LINE: ..." for a text that is
/// not closed and for template placeholders (${X}, {{x}}), these with their column too.
class TokenReader {
 public:
  TokenReader(std::string_view content, const std::string& name);

  const Token& peek() const { return token_; }
  Token next();

 private:
  void skip_blanks();
  void read_token();
  size_t text_end() const;
  void refuse_placeholder(std::string_view word, size_t at) const;

  std::string_view content_;
  std::string name_;
  size_t at_ = 0;
  size_t line_start_ = 0;
  int line_ = 1;
  Token token_;
};

}  // namespace crema
