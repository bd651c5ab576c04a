// V1 layers to layers: fields of the same name and type are copied, the type becomes a text, and
// the four lists about parameters become ParamSpecs.
#include <glog/logging.h>

#include "base/error.h"
#include "io/legacy_types.h"
#include "net/upgrade_steps.h"

namespace crema {
namespace {

using google::protobuf::FieldDescriptor;

void copy_field(const V1LayerParameter& from, const FieldDescriptor* source, LayerParameter* to) {
  const auto* read = from.GetReflection();
  const auto* write = to->GetReflection();
  const FieldDescriptor* target = to->GetDescriptor()->FindFieldByName(source->name());
  if (!target || target->type() != source->type() ||
      target->message_type() != source->message_type()) {
    return;
  }
  if (source->is_repeated()) {
    for (int i = 0; i < read->FieldSize(from, source); ++i) {
      if (source->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
        write->AddString(to, target, read->GetRepeatedString(from, source, i));
      } else if (source->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
        write->AddFloat(to, target, read->GetRepeatedFloat(from, source, i));
      } else {
        write->AddMessage(to, target)->CopyFrom(read->GetRepeatedMessage(from, source, i));
      }
    }
  } else if (source->cpp_type() == FieldDescriptor::CPPTYPE_STRING) {
    write->SetString(to, target, read->GetString(from, source));
  } else {
    write->MutableMessage(to, target)->CopyFrom(read->GetMessage(from, source));
  }
}

ParamSpec* spec_at(LayerParameter* layer, int index) {
  while (layer->param_size() <= index) layer->add_param();
  return layer->mutable_param(index);
}

LayerParameter modern_layer(const V1LayerParameter& old) {
  LayerParameter layer;
  std::vector<const FieldDescriptor*> fields;
  old.GetReflection()->ListFields(old, &fields);
  for (const FieldDescriptor* field : fields) copy_field(old, field, &layer);
  if (old.has_type()) layer.set_type(modern_type(old.type()));
  for (int i = 0; i < old.param_size(); ++i) spec_at(&layer, i)->set_name(old.param(i));
  for (int i = 0; i < old.blob_share_mode_size(); ++i) {
    spec_at(&layer, i)->set_share_mode(
        static_cast<ParamSpec::DimCheckMode>(old.blob_share_mode(i)));
  }
  for (int i = 0; i < old.blobs_lr_size(); ++i) spec_at(&layer, i)->set_lr_mult(old.blobs_lr(i));
  for (int i = 0; i < old.weight_decay_size(); ++i) {
    spec_at(&layer, i)->set_decay_mult(old.weight_decay(i));
  }
  return layer;
}

}  // namespace

void upgrade_v1(NetParameter& net, const std::string& file) {
  if (net.layers().empty()) return;
  for (const V1LayerParameter& old : net.layers()) *net.add_layer() = modern_layer(old);
  net.clear_layers();
  LOG(WARNING) << file << ": the old `layers` syntax is read as `layer`; nothing needs to be done";
}

}  // namespace crema
