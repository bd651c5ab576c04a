// crema draw: a net as a graph. Boxes are layers with their fields and parameters, edges are blobs
// with their shapes, colours tell the phase. Graphviz's dot lays it out where it is installed.
#include <glog/logging.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "net/deploy.h"
#include "net/filter.h"
#include "net/upgrade.h"
#include "net/wire.h"
#include "program.h"

DECLARE_string(output);
DEFINE_string(rankdir, "TB", "draw: TB (top to bottom), LR, BT or RL");

namespace crema {
namespace {

struct Box {
  LayerParameter layer;
  bool in_train = false, in_test = false;
  int64_t parameters = 0;
};

std::string dot_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

/// The fields of the layer's own kind on one line, without fillers.
std::string fields_of(const LayerParameter& layer) {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  const auto* reflection = layer.GetReflection();
  reflection->ListFields(layer, &fields);
  std::string out;
  for (const auto* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE ||
        field->is_repeated()) {
      continue;
    }
    for (const std::string& line : split(write_text(reflection->GetMessage(layer, field)), '\n')) {
      const bool is_top_level =
          !line.empty() && line[0] != ' ' && line.find(':') != std::string::npos;
      if (is_top_level) out += (out.empty() ? "" : ", ") + line;
    }
  }
  for (size_t at = 40; at < out.size(); at += 40) {  // wrapped at blanks
    at = out.find(' ', at);
    if (at == std::string::npos) break;
    out[at] = '\n';
  }
  return out;
}

class Drawing {
 public:
  explicit Drawing(NetParameter net) : net_(std::move(net)) {
    upgrade_net(net_, FLAGS_model);
    for (const LayerParameter& layer : net_.layer()) boxes_.push_back({.layer = layer});
    const std::optional<Phase> only = phase_flag();
    for (const Phase phase : {TRAIN, TEST}) {
      if (!only || *only == phase) add_phase(phase);
    }
    std::erase_if(boxes_, [](const Box& box) { return !box.in_train && !box.in_test; });
    require(!boxes_.empty(), FLAGS_model, ": has no layers");
  }

  std::string to_dot() const {
    std::string out = "digraph " + dot_text(net_.name().empty() ? "net" : net_.name()) + " {\n";
    out += "  rankdir=" + FLAGS_rankdir + ";\n";
    out += "  node [shape=box style=\"filled,rounded\" fontname=\"Helvetica\" fontsize=11];\n";
    out += "  edge [fontname=\"Helvetica\" fontsize=9];\n";
    for (size_t i = 0; i < boxes_.size(); ++i) out += node(i);
    out += edges();
    return out + "}\n";
  }

 private:
  /// Marks the layers of a phase and takes shapes and parameters from its graph.
  void add_phase(Phase phase) {
    NetParameter net = net_;
    net.clear_layer();
    net.mutable_state()->set_phase(phase);
    for (Box& box : boxes_) {
      NetParameter alone;
      *alone.add_layer() = box.layer;
      ErrorList errors;
      filter_net(alone, net.state(), FLAGS_model, errors);
      errors.throw_if_any();
      if (alone.layer().empty()) continue;
      (phase == TRAIN ? box.in_train : box.in_test) = true;
      *net.add_layer() = box.layer;
    }
    measure(net, phase);
  }

  /// A net that cannot be wired is drawn without shapes.
  void measure(const NetParameter& net, Phase phase) {
    try {
      std::vector<std::string> notes;
      const NetParameter with_shapes = with_inputs(net, FLAGS_model, &notes);
      WireOptions options;
      options.file = FLAGS_model;
      options.context.phase = phase;
      ErrorList errors;
      const Graph graph = wire(with_shapes, options, errors);
      errors.throw_if_any();
      for (const Value& value : graph.values) shapes_[value.name] = join(value.shape, "x");
      for (Box& box : boxes_) {
        int64_t count = 0;
        for (const ParamSlot& slot : graph.params) {
          if (slot.owner == box.layer.name()) count += slot.shape.count();
        }
        box.parameters = std::max(box.parameters, count);
      }
    } catch (const Error& error) {
      for (const std::string& line : split(error.what(), '\n')) LOG(WARNING) << line;
      LOG(WARNING) << "The net is drawn without shapes in phase " << Phase_Name(phase);
    }
  }

  std::string node(size_t i) const {
    const Box& box = boxes_[i];
    const bool is_both = box.in_train && box.in_test;
    std::string label = box.layer.name() + "\n" + box.layer.type();
    const std::string fields = fields_of(box.layer);
    if (!fields.empty()) label += "\n" + fields;
    if (box.parameters > 0) label += str("\n", box.parameters, " parameters");
    if (!is_both) label += box.in_train ? "\nTRAIN only" : "\nTEST only";
    const char* colour = is_both ? "#dbe9f6" : box.in_train ? "#fde0c5" : "#d9f0d3";
    return str("  l", i, " [label=", dot_text(label), " fillcolor=\"", colour, "\"];\n");
  }

  std::string edges() const {
    std::map<std::string, std::vector<size_t>> makers;  // of a blob's present version
    std::string out;
    for (size_t i = 0; i < boxes_.size(); ++i) {
      const LayerParameter& layer = boxes_[i].layer;
      for (const std::string& bottom : layer.bottom()) {
        for (const size_t maker : makers[bottom]) {
          if (!meet(boxes_[maker], boxes_[i])) continue;
          const auto shape = shapes_.find(bottom);
          const std::string label = bottom + (shape == shapes_.end() ? "" : "\n" + shape->second);
          out += str("  l", maker, " -> l", i, " [label=", dot_text(label), "];\n");
        }
      }
      for (const std::string& top : layer.top()) {
        std::vector<size_t>& all = makers[top];
        std::erase_if(all, [&](size_t maker) { return covers(boxes_[i], boxes_[maker]); });
        all.push_back(i);
      }
    }
    return out;
  }

  static bool meet(const Box& a, const Box& b) {
    return (a.in_train && b.in_train) || (a.in_test && b.in_test);
  }
  static bool covers(const Box& a, const Box& b) {
    return (a.in_train || !b.in_train) && (a.in_test || !b.in_test);
  }

  NetParameter net_;
  std::vector<Box> boxes_;
  std::map<std::string, std::string> shapes_;
};

}  // namespace

int draw_command() {
  namespace fs = std::filesystem;
  require_flag(FLAGS_model, "draw", "model", "the net to draw");
  require_flag(FLAGS_output, "draw", "output", "the picture to write (.svg, .png, .pdf or .dot)");
  static const std::set<std::string> directions = {"TB", "LR", "BT", "RL"};
  require(directions.count(FLAGS_rankdir) > 0, "--rankdir is TB, LR, BT or RL, not ",
          FLAGS_rankdir);
  const std::string extension = fs::path(FLAGS_output).extension();
  static const std::set<std::string> formats = {".svg", ".png", ".pdf"};
  const bool is_dot = extension == ".dot" || extension == ".gv";
  require(is_dot || formats.count(extension) > 0, "--output=", FLAGS_output,
          ": the name must end in .svg, .png, .pdf or .dot");
  require_writable(FLAGS_output);
  const std::string text = Drawing(read_model(std::nullopt)).to_dot();
  const std::string format = extension.substr(1);
  if (is_dot) {
    write_file(FLAGS_output, text);
  } else if (is_installed("dot")) {
    write_atomically(FLAGS_output, [&](const std::string& path) {
      write_file(path + ".dot", text);
      run_program({"dot", "-T" + format, "-o", path, path + ".dot"});
      fs::remove(path + ".dot");
    });
  } else {
    const std::string other = fs::path(FLAGS_output).replace_extension(".dot").string();
    write_file(other, text);
    LOG(WARNING) << "Graphviz's dot is not installed: wrote " << other << "; \"dot -T" << format
                 << " -o " << FLAGS_output << " " << other << "\" draws it";
    return 0;
  }
  LOG(INFO) << "Wrote " << FLAGS_output;
  return 0;
}

}  // namespace crema
