// One walk over the words of a prototxt beside the descriptor of its message. It goes on after each
// mistake that leaves the structure clear, so that a file's mistakes come in one run. Words of
// forks that have one of ours for the same thing are replaced by it on the way.
#include "io/text_check.h"

#include <glog/logging.h>

#include <map>
#include <optional>

#include "base/error.h"
#include "io/fork_text.h"
#include "io/text_tokens.h"
#include "io/text_value.h"

namespace crema {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// A block that is being read: its message type, the name it goes by and the line where it opened.
struct Block {
  const Descriptor* type;
  std::string name;
  int line;
  bool in_layer;
  char closing;               // 0 for the file itself
  std::map<int, int> seen{};  // field index -> line
};

bool is_layer(const Descriptor* type) {
  return type == LayerParameter::descriptor() || type == V1LayerParameter::descriptor();
}

std::vector<std::string> field_names(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

class Checker {
 public:
  Checker(const std::string& text, const std::string& name, const ReadOptions& options)
      : text_(text), reader_(text, name), name_(name), options_(options) {}

  std::string check_file(const Descriptor* type) {
    const std::string root = type == NetParameter::descriptor()      ? "the net"
                             : type == SolverParameter::descriptor() ? "the solver"
                                                                     : "the file";
    blocks_.push_back({type, root, 1, false, 0});
    try {
      require(reader_.peek().kind != Token::end, name_, ": is empty, a text with ", root,
              " is needed");
      check_block();
    } catch (const Error& error) {  // the structure is lost: nothing after it can be judged
      errors_.push_back(error.what());
    }
    log_ignored();
    if (!errors_.empty()) throw Error(join(errors_, "\n"));
    return replaced();
  }

 private:
  void mistake(int line, const std::string& text) {
    errors_.push_back(str(name_, ":", line, ": ", text));
  }
  [[noreturn]] void stop(int line, const std::string& text) const {
    fail(name_, ":", line, ": ", text);
  }
  static std::string shown(const Token& token) {
    return token.kind == Token::end ? "the end of the file" : std::string(token.word);
  }

  void check_block() {
    for (;;) {
      const Token token = reader_.next();
      if (token.kind == Token::end) {
        if (blocks_.size() > 1) report_unclosed(token.line);
        return check_required(token.line);
      }
      if (token.is('}') || token.is('>')) {
        if (blocks_.size() == 1) stop(token.line, str(token.word, " closes nothing"));
        if (!token.is(blocks_.back().closing)) {
          stop(token.line, str(token.word, " cannot close ", blocks_.back().name,
                               ", which opened at line ", blocks_.back().line));
        }
        return check_required(token.line);
      }
      if (token.is(',') || token.is(';')) continue;
      if (token.kind != Token::identifier) {
        stop(token.line,
             str("a field name is expected in ", blocks_.back().name, ", not ", token.word));
      }
      check_field(token);
    }
  }

  void check_required(int line) {
    const Block& block = blocks_.back();
    for (int i = 0; i < block.type->field_count(); ++i) {
      const FieldDescriptor* field = block.type->field(i);
      if (field->is_required() && !block.seen.count(i)) {
        mistake(line, str(block.name, " needs ", field->name()));
      }
    }
  }

  void check_field(const Token& name) {
    const Descriptor* type = blocks_.back().type;
    const FieldDescriptor* field = type->FindFieldByName(std::string(name.word));
    const ForkField* fork = field ? nullptr : find_fork_field(type->name(), name.word);
    if (fork) {
      field = type->FindFieldByName(fork->own);
      replace(name, fork->own);
    }
    if (!field) {
      unknown(name);
      return skip_value(name);
    }
    const auto [first, is_first] = blocks_.back().seen.emplace(field->index(), name.line);
    if (!is_first && !field->is_repeated()) {
      mistake(name.line, str(name.word, " is given twice in ", blocks_.back().name,
                             ", first at line ", first->second, ": it takes one value",
                             fork_value_note(field->full_name(), "a list")));
    }
    const bool colon = reader_.peek().is(':');
    if (colon) reader_.next();
    if (reader_.peek().is('[')) return check_list(field);
    const bool is_block = reader_.peek().is('{') || reader_.peek().is('<');
    if (!colon && !is_block) {
      const bool wants_block = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
      stop(reader_.peek().line, str(wants_block ? "{" : ":", " is missing after ", name.word,
                                    ", before ", shown(reader_.peek())));
    }
    fork&& * fork->if_true ? check_fork_value(*fork) : check_value(field);
  }

  // A truth value of a fork's field, for which one of our words stands.
  void check_fork_value(const ForkField& fork) {
    const Token word = reader_.next();
    const bool is_true = word.word == "true" || word.word == "1";
    if (!is_true && word.word != "false" && word.word != "0") {
      stop(word.line, str(fork.field, " takes true or false, not ", shown(word)));
    }
    replace(word, is_true ? fork.if_true : fork.if_false);
  }

  void check_list(const FieldDescriptor* field) {
    const int line = reader_.next().line;
    if (!field->is_repeated()) mistake(line, wrong_kind(field, "a list"));
    if (reader_.peek().is(']')) return static_cast<void>(reader_.next());
    for (;;) {
      check_value(field);
      const Token token = reader_.next();
      if (token.is(']')) return;
      if (!token.is(',')) {
        stop(token.line, str("the list of ", field->name(), " that began at line ", line,
                             " goes on with , or ends with ], not ", shown(token)));
      }
    }
  }

  void check_value(const FieldDescriptor* field) {
    const bool wants_block = field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
    const int line = reader_.peek().line;
    if (reader_.peek().is('{') || reader_.peek().is('<')) {
      if (!wants_block) mistake(line, wrong_kind(field, "a block"));
      if (!wants_block) return skip_block();
      const bool in_layer = blocks_.back().in_layer || is_layer(field->message_type());
      const char closing = reader_.next().is('{') ? '}' : '>';
      blocks_.push_back({field->message_type(), field->name(), line, in_layer, closing});
      check_block();
      blocks_.pop_back();
      return;
    }
    const bool negative = reader_.peek().is('-');
    if (negative) reader_.next();
    const Token word = reader_.next();
    if (word.kind == Token::end || word.kind == Token::symbol) {
      stop(word.line, wrong_kind(field, shown(word)));
    }
    if (field->name() == "engine" && is_fork_engine(word.word) && !options_.strict) {
      replace(word, "DEFAULT");
      return ignore(line, str("engine ", word.word, " belongs to another Caffe"));
    }
    const std::string text = value_mistake(field, word, negative);
    if (!text.empty()) mistake(line, text);
    while (word.kind == Token::text && reader_.peek().kind == Token::text) reader_.next();
  }

  // A name that is no field of the block it stands in.
  void unknown(const Token& name) {
    const Block& block = blocks_.back();
    const std::string field(name.word);
    if (!misplaced_ && blocks_.size() > 1 && blocks_.front().type->FindFieldByName(field)) {
      misplaced_ = Misplaced{errors_.size(), name.line, field, block.name, block.line};
    }
    int distance = 99;
    for (const std::string& valid : field_names(block.type)) {
      const size_t longer = std::max(valid.size(), field.size());
      const int edits = edit_distance(field, valid);
      if (static_cast<size_t>(edits) < longer) distance = std::min(distance, edits);
    }
    const std::string text =
        str(field, " is not a field of ", block.name, " (", block.type->name(), ")");
    const bool is_forks = block.in_layer ? distance > 2 || is_fork_block(field)
                                         : is_fork_hint(block.type->name(), field);
    if (is_forks && !options_.strict) return ignore(name.line, text);
    mistake(name.line, text + hint(block, field));
  }

  void ignore(int line, const std::string& text) {
    auto& [first, times] = ignored_[text];
    if (!times++) first = line;
  }

  static std::string hint(const Block& block, const std::string& field) {
    if (block.type == NetParameter::descriptor() &&
        SolverParameter::descriptor()->FindFieldByName(field)) {
      return ": it belongs to a solver";
    }
    if (block.type == SolverParameter::descriptor() &&
        NetParameter::descriptor()->FindFieldByName(field)) {
      return ": it belongs to a net";
    }
    return did_you_mean(field, field_names(block.type));
  }

  void skip_value(const Token& name) {
    const bool colon = reader_.peek().is(':');
    if (colon) reader_.next();
    if (reader_.peek().is('{') || reader_.peek().is('<') || reader_.peek().is('[')) {
      return skip_block();
    }
    if (!colon) {
      stop(name.line, str(": is missing after ", name.word, ", before ", shown(reader_.peek())));
    }
    if (reader_.peek().is('-')) reader_.next();
    const Token word = reader_.next();
    if (word.kind == Token::end || word.kind == Token::symbol) {
      stop(word.line, str("a value is missing after ", name.word, ", before ", shown(word)));
    }
    while (word.kind == Token::text && reader_.peek().kind == Token::text) reader_.next();
  }

  // Everything up to the bracket that closes the next one.
  void skip_block() {
    const int line = reader_.peek().line;
    int depth = 0;
    do {
      const Token token = reader_.next();
      if (token.kind == Token::end) {
        stop(token.line, str("the file ends inside the block that opened at line ", line));
      }
      if (token.is('{') || token.is('[') || token.is('<')) ++depth;
      if (token.is('}') || token.is(']') || token.is('>')) --depth;
    } while (depth > 0);
  }

  // The file's end inside a block. Where a field of the file itself stood inside a block before
  // that, the closing bracket was forgotten there.
  [[noreturn]] void report_unclosed(int line) {
    if (misplaced_) {
      errors_.resize(misplaced_->errors_before);
      stop(misplaced_->line,
           str(misplaced_->field, " stands inside ", misplaced_->block, ", which opened at line ",
               misplaced_->block_line, ": a closing } is missing before it"));
    }
    stop(line, str("the file ends inside ", blocks_.back().name, ", which opened at line ",
                   blocks_.back().line, ": a closing ", blocks_.back().closing, " is missing"));
  }

  void log_ignored() const {
    for (const auto& [text, where] : ignored_) {
      LOG(WARNING) << name_ << ":" << where.first << ": " << text << ": ignored"
                   << (where.second > 1 ? str(" (", where.second, " times)") : "");
    }
  }

  void replace(const Token& token, const char* word) {
    replacements_.push_back(
        {static_cast<size_t>(token.word.data() - text_.data()), token.word.size(), word});
  }

  std::string replaced() const {
    std::string out;
    size_t at = 0;
    for (const Replacement& one : replacements_) {
      out.append(text_, at, one.at - at).append(one.word);
      at = one.at + one.length;
    }
    return out.append(text_, at, std::string::npos);
  }

  struct Replacement {
    size_t at, length;
    const char* word;
  };
  struct Misplaced {
    size_t errors_before;
    int line;
    std::string field, block;
    int block_line;
  };

  const std::string& text_;
  TokenReader reader_;
  std::string name_;
  ReadOptions options_;
  std::vector<Block> blocks_;
  std::vector<std::string> errors_;
  std::map<std::string, std::pair<int, int>> ignored_;  // message -> first line, times
  std::optional<Misplaced> misplaced_;
  std::vector<Replacement> replacements_;  // in the order of the text
};

}  // namespace

std::string check_text(const std::string& text, const std::string& name, const Descriptor* type,
                       const ReadOptions& options) {
  return Checker(text, name, options).check_file(type);
}

}  // namespace crema
