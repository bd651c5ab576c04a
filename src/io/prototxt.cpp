// Text files: what is no text is refused, check_text finds the mistakes, protobuf does the reading.
#include "io/prototxt.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "base/error.h"
#include "base/file.h"
#include "io/file_kind.h"
#include "io/text_check.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::TextFormat;

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(const std::string& name) : name_(name) {}
  void AddError(int line, google::protobuf::io::ColumnNumber, const std::string& text) override {
    errors_.add(Error(line < 0 ? str(name_, ": ", text) : str(name_, ":", line + 1, ": ", text)));
  }
  void throw_if_any() const { errors_.throw_if_any(); }

 private:
  std::string name_;
  ErrorList errors_;
};

bool is_layer(const google::protobuf::Descriptor* type) {
  return type == LayerParameter::descriptor() || type == V1LayerParameter::descriptor();
}

// Calls visit(child, field, index) for every message directly inside message; index -1 where the
// field is singular.
template <class Visit>
void each_child(Message* message, const Visit& visit) {
  const Reflection* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) visit(reflection->MutableMessage(message, field), field, -1);
    for (int i = 0; field->is_repeated() && i < reflection->FieldSize(*message, field); ++i) {
      visit(reflection->MutableRepeatedMessage(message, field, i), field, i);
    }
  }
}

void set_source(Message* layer, const std::string& place) {
  const FieldDescriptor* field = layer->GetDescriptor()->FindFieldByName("source_location");
  if (place.empty()) {
    layer->GetReflection()->ClearField(layer, field);
  } else {
    layer->GetReflection()->SetString(layer, field, place);
  }
}

void mark_layers(Message* message, const std::string& name, TextFormat::ParseInfoTree* tree) {
  each_child(message, [&](Message* child, const FieldDescriptor* field, int index) {
    if (is_layer(child->GetDescriptor())) {
      set_source(child, str(name, ":", tree->GetLocation(field, index).line + 1));
    } else if (TextFormat::ParseInfoTree* nested = tree->GetTreeForNested(field, index)) {
      mark_layers(child, name, nested);
    }
  });
}

void require_text(const std::string& text, const std::string& name) {
  if (text.compare(0, 2, "\xff\xfe") == 0 || text.compare(0, 2, "\xfe\xff") == 0) {
    fail(name, ": is UTF-16 text: save it as UTF-8");
  }
  const FileKind kind = kind_of_bytes(text);
  const bool is_text =
      kind == FileKind::text || kind == FileKind::prototxt || kind == FileKind::empty;
  require(is_text, name, ": is ", describe(kind), ", a text file (prototxt) is needed");
}

template <class Proto>
Proto read_proto(const std::string& path, const ReadOptions& options) {
  Proto proto;
  parse_text(read_file(path), path, &proto, options);
  return proto;
}

}  // namespace

NetParameter read_net(const std::string& path, const ReadOptions& options) {
  return read_proto<NetParameter>(path, options);
}

SolverParameter read_solver(const std::string& path, const ReadOptions& options) {
  return read_proto<SolverParameter>(path, options);
}

void parse_text(const std::string& text, const std::string& name, Message* message,
                const ReadOptions& options) {
  require_text(text, name);
  const bool has_mark = text.compare(0, 3, "\xef\xbb\xbf") == 0;
  const std::string content =
      check_text(has_mark ? text.substr(3) : text, name, message->GetDescriptor(), options);
  Collector collector(name);
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.WriteLocationsTo(&tree);
  const bool parsed = parser.ParseFromString(content, message);
  collector.throw_if_any();
  require(parsed, name, ": cannot be read");
  mark_layers(message, name, &tree);
}

std::string write_text(const Message& message) {
  const std::unique_ptr<Message> copy(message.New());
  copy->CopyFrom(message);
  clear_source_locations(copy.get());
  std::string text;
  TextFormat::PrintToString(*copy, &text);
  return text;
}

void clear_source_locations(Message* message) {
  if (is_layer(message->GetDescriptor())) return set_source(message, "");
  each_child(message,
             [](Message* child, const FieldDescriptor*, int) { clear_source_locations(child); });
}

}  // namespace crema
