// V1 layer types: mostly the words of the enum in camel case, with some spellings of their own.
#include "io/legacy_types.h"

#include <cctype>
#include <map>

#include "crema.pb.h"

namespace crema {
namespace {

std::string camel_case(const std::string& name) {
  std::string out;
  bool starts_word = true;
  for (char c : name) {
    if (c != '_') {
      out += starts_word ? c : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
    starts_word = c == '_';
  }
  return out;
}

}  // namespace

std::string modern_type(int v1_type) {
  static const std::map<int, std::string> spelled = {
      {V1LayerParameter::NONE, ""},
      {V1LayerParameter::ABSVAL, "AbsVal"},
      {V1LayerParameter::ARGMAX, "ArgMax"},
      {V1LayerParameter::BN, "BN"},
      {V1LayerParameter::BNLL, "BNLL"},
      {V1LayerParameter::HDF5_DATA, "HDF5Data"},
      {V1LayerParameter::HDF5_OUTPUT, "HDF5Output"},
      {V1LayerParameter::LRN, "LRN"},
      {V1LayerParameter::MVN, "MVN"},
      {V1LayerParameter::PRELU, "PReLU"},
      {V1LayerParameter::RELU, "ReLU"},
      {V1LayerParameter::ROI_POOLING, "ROIPooling"},
      {V1LayerParameter::SOFTMAX_LOSS, "SoftmaxWithLoss"},
      {V1LayerParameter::TANH, "TanH"},
  };
  if (!V1LayerParameter::LayerType_IsValid(v1_type)) return "";
  const auto it = spelled.find(v1_type);
  if (it != spelled.end()) return it->second;
  return camel_case(
      V1LayerParameter::LayerType_Name(static_cast<V1LayerParameter::LayerType>(v1_type)));
}

}  // namespace crema
