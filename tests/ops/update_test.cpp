// The six update rules over several steps.
#include "ops/ops_harness.h"

namespace crema {
namespace {

enum class Decay : uint8_t { none, l1, l2 };

struct UpdateRow {
  const char* name = "";
  UpdateRule rule{};
  int64_t count = 1003;
};

const std::vector<UpdateRow> kRows = {
    {.name = "sgd", .rule = {.rule = Rule::sgd, .momentum = 0.9f}},
    {.name = "sgd_no_momentum", .rule = {.rule = Rule::sgd}},
    {.name = "sgd_lr_mult", .rule = {.rule = Rule::sgd, .lr_mult = 2, .momentum = 0.9f}},
    {.name = "sgd_lr_mult_zero", .rule = {.rule = Rule::sgd, .lr_mult = 0, .momentum = 0.9f}},
    {.name = "sgd_one_element", .rule = {.rule = Rule::sgd, .momentum = 0.9f}, .count = 1},
    {.name = "sgd_large", .rule = {.rule = Rule::sgd, .momentum = 0.9f}, .count = 100000},
    {.name = "nesterov", .rule = {.rule = Rule::nesterov, .momentum = 0.95f}},
    {.name = "nesterov_no_momentum", .rule = {.rule = Rule::nesterov}},
    {.name = "adagrad", .rule = {.rule = Rule::adagrad, .delta = 1e-4f}},
    {.name = "rmsprop", .rule = {.rule = Rule::rmsprop, .rms_decay = 0.98f, .delta = 1e-4f}},
    {.name = "adadelta", .rule = {.rule = Rule::adadelta, .momentum = 0.95f, .delta = 1e-4f}},
    {.name = "adam",
     .rule = {.rule = Rule::adam, .momentum = 0.9f, .momentum2 = 0.99f, .delta = 1e-4f}},
    {.name = "adam_lr_mult",
     .rule = {.rule = Rule::adam, .lr_mult = 0.5f, .momentum = 0.8f, .delta = 1e-3f}},
};

/// With the low-precision copy weight where low is not f32.
void play(const UpdateRow& row, DType low, Side& side, Results& results) {
  const TensorDesc desc{.shape = {row.count}};
  const Tensor master = side.inout(desc, sprinkle(random_values(row.count, 1), {0, -0.0f}, 9));
  const Tensor grad = side.inout(desc, random_values(row.count, 2));
  const Tensor weight =
      low == DType::f32 ? Tensor{} : side.output({.shape = desc.shape, .dtype = low});
  std::vector<Tensor> state;
  for (int i = 0; i < history_count(row.rule.rule); ++i) {
    state.push_back(side.inout(desc, std::vector<float>(static_cast<size_t>(row.count), 0)));
  }
  for (int step = 0; step < 4; ++step) {
    side.set(grad, sprinkle(random_values(row.count, 10 + static_cast<uint64_t>(step)), {0}, 8));
    const auto t = static_cast<float>(step + 1);
    side.ops().set_step({.rate = 0.1f / t,
                         .grad_scale = step == 2 ? 0.25f : 1.0f,
                         .adam_correction = 0.3f * t,
                         .iteration = step});
    side.ops().update(row.rule, grad, state, master, weight);
    results.put(str("master after step ", step), side.read(master));
    if (weight) results.put(str("weight after step ", step), side.read(weight));
    for (size_t i = 0; i < state.size(); ++i) {
      results.put(str("history ", i, " after step ", step), side.read(state[i]));
    }
  }
  side.ops().set_step({});
}

std::vector<Row> rows() {
  std::vector<Row> out;
  for (const UpdateRow& row : kRows) {
    for (const Decay decay : {Decay::none, Decay::l1, Decay::l2}) {
      UpdateRow one = row;
      one.rule.decay = decay == Decay::none ? 0 : 0.05f;
      one.rule.l1 = decay == Decay::l1;
      const char* suffix = decay == Decay::none ? "" : decay == Decay::l1 ? "_l1" : "_l2";
      out.push_back({.name = str(row.name, suffix),
                     .play = [one](Side& side, Layout,
                                   Results& results) { play(one, DType::f32, side, results); },
                     .tolerance = {.relative = 2e-5f, .floor = 1e-2f, .each = true},
                     .both_layouts = false});
    }
    for (const auto& [name, low] :
         {std::pair("_bf16", DType::bf16), std::pair("_f16", DType::f16)}) {
      out.push_back({.name = str(row.name, name),
                     .play = [row, low = low](Side& side, Layout,
                                              Results& results) { play(row, low, side, results); },
                     .tolerance = {.relative = low == DType::f16 ? 1e-3f : 8e-3f,
                                   .floor = 1e-2f,
                                   .each = true},
                     .both_layouts = false});
    }
  }
  return out;
}

INSTANTIATE_TEST_SUITE_P(Update, OpsRows, testing::ValuesIn(rows()), row_name);

}  // namespace
}  // namespace crema
