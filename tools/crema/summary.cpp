// crema summary: a table of layers, shapes, parameters and multiply-adds, and what memory the net
// takes. Records are not needed: where a source is missing its shape is taken from the fields.
#include <glog/logging.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "commands.h"
#include "net/deploy.h"
#include "work.h"

namespace crema {
namespace {

struct Row {
  std::string name, type, shape;
  int64_t params = 0, macs = 0;
};

std::string shapes_text(const Shapes& shapes) {
  std::vector<std::string> parts;
  for (const Shape& shape : shapes) parts.push_back(shape.axes() == 0 ? "1" : join(shape, "x"));
  return join(parts, " ");
}

Shapes shapes_of(const Net& net, const google::protobuf::RepeatedPtrField<std::string>& names) {
  Shapes out;
  for (const std::string& name : names) out.push_back(net.blob_shape(name));
  return out;
}

/// Parameters that several layers share are counted where they first stand.
std::vector<Row> rows_of(Net& net) {
  std::vector<Row> rows;
  std::vector<bool> is_counted(net.params().size());
  for (int i = 0; i < net.layer_count(); ++i) {
    const LayerParameter& param = net.layer(i).param();
    const Shapes top = shapes_of(net, param.top());
    Row row{.name = param.name(), .type = param.type(), .shape = shapes_text(top)};
    for (int k = 0; net.param_of(i, k) >= 0; ++k) {
      const auto place = static_cast<size_t>(net.param_of(i, k));
      if (!is_counted[place]) row.params += net.params()[place].value.count();
      is_counted[place] = true;
    }
    row.macs = multiply_adds(net.layer(i), shapes_of(net, param.bottom()), top);
    rows.push_back(row);
  }
  return rows;
}

/// 1234567 as "1,234,567".
std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

void print_table(const std::vector<Row>& rows) {
  size_t name = 5, type = 4, shape = 6;
  Row total{.name = "total", .type = str(rows.size(), " layers"), .shape = ""};
  for (const Row& row : rows) {
    name = std::max(name, row.name.size());
    type = std::max(type, row.type.size());
    shape = std::max(shape, row.shape.size());
    total.params += row.params;
    total.macs += row.macs;
  }
  const auto line = [&](const Row& row, const std::string& params, const std::string& macs) {
    std::printf("%-*s  %-*s  %-*s  %13s  %17s\n", static_cast<int>(name), row.name.c_str(),
                static_cast<int>(type), row.type.c_str(), static_cast<int>(shape),
                row.shape.c_str(), params.c_str(), macs.c_str());
  };
  line({.name = "layer", .type = "type", .shape = "output"}, "parameters", "multiply-adds");
  for (const Row& row : rows) {
    line(row, row.params > 0 ? grouped(row.params) : "", row.macs > 0 ? grouped(row.macs) : "");
  }
  line(total, grouped(total.params), grouped(total.macs));
}

void print_memory(const MemoryReport& memory, const char* purpose) {
  const auto line = [](const char* what, size_t bytes) {
    std::printf("  %-34s %10.2f MiB\n", what, static_cast<double>(bytes) / (1 << 20));
  };
  std::printf("memory for %s, batch as written:\n", purpose);
  line("activations (as planned)", memory.activations);
  line("the same without a plan", memory.unplanned);
  line("parameters", memory.parameters);
  line("gradients of parameters", memory.gradients);
  line("scratch, kept, state and packed",
       memory.scratch + memory.saved + memory.state + memory.packed);
}

}  // namespace

int summary_command() {
  require_flag(FLAGS_model, "summary", "model", "the net to describe");
  const Phase phase = phase_flag().value_or(TEST);
  NetParameter model = read_model(phase);
  std::vector<std::string> notes;
  model = with_inputs(model, FLAGS_model, &notes);
  for (const std::string& note : notes) LOG(WARNING) << note;
  NetOptions options = net_options();
  options.log = false;
  const std::shared_ptr<Ops> ops = make_ops(chosen_device());
  {
    NetOptions plain = options;
    plain.fuse = false;
    plain.force_nchw = true;  // no layers but those of the file
    plain.precision = DType::f32;
    Net net(model, plain, ops);
    std::printf("%s, phase %s\n", net.name().c_str(), Phase_Name(net.phase()).c_str());
    print_table(rows_of(net));
  }
  options.train = phase == TRAIN;
  print_memory(Net(model, options, ops).memory(), options.train ? "training" : "testing");
  return 0;
}

}  // namespace crema
