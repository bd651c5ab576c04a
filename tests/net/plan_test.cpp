// The passes without layers' arithmetic: filtering, wiring mistakes, gradient flow, memory.
#include <gtest/gtest.h>

#include "io/prototxt.h"
#include "net/filter.h"
#include "net/memory_plan.h"
#include "net/net.h"
#include "net/wire.h"

namespace crema {
namespace {

NetParameter parse(const std::string& text) {
  NetParameter net;
  parse_text(text, "net.prototxt", &net);
  return net;
}

std::string input(const std::string& name, const std::string& dims) {
  std::string text =
      "layer { name: \"" + name + "\" type: \"Input\" top: \"" + name + "\" input_param { shape {";
  for (const std::string& dim : split(dims, ' ')) text += " dim: " + dim;
  return text + " } } }\n";
}

std::string error_of(const std::string& text) {
  try {
    NetOptions options;
    options.log = false;
    options.train = true;
    options.file = "net.prototxt";
    Net net(parse(text), options, make_ops({}));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

NetStateRule rule(const std::string& text) {
  NetStateRule out;
  parse_text(text, "rule", &out);
  return out;
}

TEST(Filter, RulesNeedEveryCondition) {
  NetState state;
  state.set_phase(TRAIN);
  state.set_level(2);
  state.add_stage("a");
  EXPECT_TRUE(matches(state, NetStateRule()));
  EXPECT_TRUE(
      matches(state, rule("phase: TRAIN min_level: 2 max_level: 2 stage: 'a' not_stage: 'b'")));
  EXPECT_FALSE(matches(state, rule("phase: TEST")));
  EXPECT_FALSE(matches(state, rule("min_level: 3")));
  EXPECT_FALSE(matches(state, rule("max_level: 1")));
  EXPECT_FALSE(matches(state, rule("stage: 'a' stage: 'b'")));
  EXPECT_FALSE(matches(state, rule("not_stage: 'a'")));
}

TEST(Filter, IncludeAndExcludeTogetherAreRefused) {
  EXPECT_TRUE(
      contains(error_of(input("x", "1 2") + "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'x' "
                                            "include { phase: TRAIN } exclude { phase: TEST } }"),
               "not both"));
}

TEST(Wire, MistakesAreCollectedWithTheirLines) {
  const std::string error =
      error_of(input("data", "2 3") +
               "layer { name: 'a' type: 'ReLu' bottom: 'data' top: 'a' }\n"
               "layer { name: 'b' type: 'ReLU' bottom: 'dat' top: 'b' }\n"
               "layer { name: 'c' type: 'ReLU' bottom: 'b' top: 'c' }\n"
               "layer { name: 'd' type: 'ReLU' bottom: 'data' bottom: 'data' top: 'd' }\n"
               "layer { name: 'e' type: 'ReLU' bottom: 'data' top: 'd' }\n");
  EXPECT_TRUE(contains(error, "net.prototxt:2: layer \"a\" (ReLu): unknown layer type")) << error;
  EXPECT_TRUE(contains(error, "did you mean ReLU?")) << error;
  EXPECT_TRUE(contains(
      error, "net.prototxt:3: layer \"b\" (ReLU): unknown bottom \"dat\" (did you mean data?)"))
      << error;
  EXPECT_FALSE(contains(error, "net.prototxt:4")) << error;  // only follows from line 3
  EXPECT_TRUE(contains(error, "net.prototxt:5: layer \"d\" (ReLU): needs exactly 1 bottom, got 2"))
      << error;
  EXPECT_TRUE(contains(
      error, "net.prototxt:6: layer \"e\" (ReLU): top \"d\" is already made by layer \"d\""))
      << error;
}

TEST(Reports, B69_TwoLayersWithParametersNeedTwoNames) {
  const std::string layer =
      "layer { name: 'fc' type: 'InnerProduct' bottom: 'x' top: 'TOP' inner_product_param { "
      "num_output: 2 } }\n";
  std::string second = layer;
  second.replace(second.find("TOP"), 3, "z");
  EXPECT_TRUE(contains(error_of(input("x", "1 2") + layer + second), "same name"));
}

TEST(Reports, B67_SharedMultipliersMustAgreeWhereWritten) {
  auto net = [](const std::string& third) {
    std::string text = input("x", "1 4");
    for (const char* name : {"a", "b", "c"}) {
      const bool last = std::string(name) == "c";
      text += str("layer { name: '", name, "' type: 'InnerProduct' bottom: 'x' top: '", name,
                  "' param { name: 'w' ", last ? third : "lr_mult: 2",
                  " } inner_product_param { num_output: 4 bias_term: false } }\n");
    }
    return text;
  };
  EXPECT_EQ(error_of(net("lr_mult: 2")), "no error");
  EXPECT_EQ(error_of(net("")), "no error");
  EXPECT_TRUE(contains(error_of(net("lr_mult: 1")), "shared parameter \"w\" has 2"));
}

TEST(Memory, BuffersAliveTogetherNeverOverlap) {
  std::vector<PlannedBuffer> buffers;
  for (int i = 0; i < 200; ++i) {
    const int first = (i * 37) % 50;
    buffers.push_back({static_cast<size_t>((i * 7919) % 5000 + 1), first, first + (i * 13) % 9});
  }
  const size_t total = place_buffers(buffers);
  size_t sum = 0;
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(buffers[i].offset % 64, 0u);
    EXPECT_LE(buffers[i].offset + buffers[i].bytes, total);
    sum += buffers[i].bytes;
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool overlap = buffers[i].offset < buffers[j].offset + buffers[j].bytes &&
                           buffers[j].offset < buffers[i].offset + buffers[i].bytes;
      EXPECT_FALSE(together && overlap) << i << " and " << j;
    }
  }
  EXPECT_LT(total, sum / 3);
}

TEST(Memory, AChainInTestNeedsTwoBlobs) {
  std::string text = input("x", "1 1000");
  std::string bottom = "x";
  for (int i = 0; i < 20; ++i) {
    const std::string top = str("y", i);
    text += str("layer { name: '", top, "' type: 'InnerProduct' bottom: '", bottom, "' top: '", top,
                "' inner_product_param { num_output: 1000 bias_term: false } }\n");
    bottom = top;
  }
  NetOptions options;
  options.log = false;
  const Net net(parse(text), options, make_ops({}));
  EXPECT_LE(net.memory().activations - net.memory().scratch, 3u * 4096);
  EXPECT_EQ(net.memory().unplanned, 21u * 4000);
}

std::vector<std::string> saved_names(const std::string& text) {
  NetOptions options;
  options.log = false;
  options.train = true;
  std::vector<std::string> names;
  const NetParameter saved = Net(parse(text), options, make_ops({})).to_proto();
  for (const LayerParameter& layer : saved.layer()) names.push_back(layer.name());
  return names;
}

TEST(Saved, SplitsHaveCaffesNames) {
  const std::string text = input("x", "2 3") +
                           "layer { name: 'a' type: 'ReLU' bottom: 'x' top: 'y' }\n"
                           "layer { name: 'b' type: 'TanH' bottom: 'y' top: 'p' }\n"
                           "layer { name: 'c' type: 'TanH' bottom: 'y' top: 'q' }\n";
  EXPECT_EQ(saved_names(text), (std::vector<std::string>{"x", "a", "y_a_0_split", "b", "c"}));
}

}  // namespace
}  // namespace crema
