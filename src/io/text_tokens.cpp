// TokenReader: the lexical half of the text format.
#include "io/text_tokens.h"

#include <cctype>

#include "base/error.h"

namespace crema {
namespace {

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)); }

}  // namespace

TokenReader::TokenReader(std::string_view content, const std::string& name)
    : content_(content), name_(name) {
  read_token();
}

Token TokenReader::next() {
  const Token token = token_;
  read_token();
  return token;
}

void TokenReader::skip_blanks() {
  for (; at_ < content_.size(); ++at_) {
    const char c = content_[at_];
    if (c == '#') {
      at_ = std::min(content_.find('\n', at_), content_.size());
      if (at_ == content_.size()) return;
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      return;
    }
    if (content_[at_] == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    }
  }
}

size_t TokenReader::text_end() const {
  const char quote = content_[at_];
  for (size_t i = at_ + 1; i < content_.size() && content_[i] != '\n'; ++i) {
    if (content_[i] == '\\') {
      ++i;
    } else if (content_[i] == quote) {
      return i + 1;
    }
  }
  fail(name_, ":", line_, ": the text that begins with ", content_.substr(at_, 20).substr(0, 20),
       " is not closed by a quote on its line");
}

void TokenReader::refuse_placeholder(std::string_view word, size_t at) const {
  auto refuse = [&](size_t from, size_t to) {
    fail(name_, ":", line_, ":", at + from - line_start_ + 1, ": ", word.substr(from, to - from),
         " is a placeholder of a template: put its value there");
  };
  for (const auto& [open, close] : {std::pair{"${", "}"}, std::pair{"{{", "}}"}}) {
    const size_t from = word.find(open);
    if (from == std::string_view::npos) continue;
    const size_t to = word.find(close, from);
    if (to != std::string_view::npos) refuse(from, to + std::string_view(close).size());
  }
}

void TokenReader::read_token() {
  skip_blanks();
  token_ = Token{Token::end, {}, line_};
  if (at_ == content_.size()) return;
  const char c = content_[at_];
  size_t to = at_ + 1;
  if (c == '"' || c == '\'') {
    token_.kind = Token::text;
    to = text_end();
    refuse_placeholder(content_.substr(at_, to - at_), at_);
  } else if (is_digit(c) || (c == '.' && to < content_.size() && is_digit(content_[to]))) {
    token_.kind = Token::number;
    const bool hex = content_.substr(at_, 2) == "0x" || content_.substr(at_, 2) == "0X";
    auto is_exponent = [&](char e) { return !hex && (e == 'e' || e == 'E'); };
    while (to < content_.size() &&
           (is_word_char(content_[to]) || content_[to] == '.' ||
            ((content_[to] == '+' || content_[to] == '-') && is_exponent(content_[to - 1])))) {
      ++to;
    }
  } else if (is_word_char(c)) {
    token_.kind = Token::identifier;
    while (to < content_.size() && is_word_char(content_[to])) ++to;
  } else {
    token_.kind = Token::symbol;
    const std::string_view two = content_.substr(at_, 2);
    if (two == "${" || two == "{{") {
      const size_t line_end = std::min(content_.find('\n', at_), content_.size());
      refuse_placeholder(content_.substr(at_, line_end - at_), at_);
    }
  }
  token_.word = content_.substr(at_, to - at_);
  at_ = to;
}

}  // namespace crema
