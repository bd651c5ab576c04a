// The nets and solvers that tests of the commands write to disk.
#include "tools/crema_nets.h"

#include "base/str.h"

namespace crema {

std::string constant_net(const std::string& name, int inputs, int outputs) {
  return str("name: 'constant'\n",
             "layer { name: 'x' type: 'DummyData' top: 'x' top: 'y' dummy_data_param { shape { "
             "dim: 2 dim: ",
             inputs, " } shape { dim: 2 dim: ", outputs,
             " } data_filler { type: 'constant' value: 0.5 } data_filler { type: 'constant' value: "
             "1 } } }\n",
             "layer { name: '", name,
             "' type: 'InnerProduct' bottom: 'x' top: 'ip' inner_product_param { num_output: ",
             outputs, " weight_filler { type: 'xavier' } } }\n",
             "layer { name: 'loss' type: 'EuclideanLoss' bottom: 'ip' bottom: 'y' top: 'loss' }\n");
}

void write_training(const TestFolder& folder, const std::string& fields) {
  folder.write("net.prototxt", constant_net());
  folder.write("solver.prototxt",
               str("net: 'net.prototxt' base_lr: 0.01 lr_policy: 'fixed' random_seed: 1 "
                   "snapshot_prefix: 's' ",
                   fields, "\n"));
}

Ended run_crema(const TestFolder& folder, const std::vector<std::string>& arguments,
                RunOptions options) {
  options.folder = folder.path();
  std::vector<std::string> all = arguments;
  all.emplace_back("--cpu");
  return run_program("crema", all, options);
}

std::vector<std::string> lines_with(const std::string& text, const std::string& part) {
  std::vector<std::string> out;
  for (const std::string& line : split(text, '\n')) {
    if (line.find(part) != std::string::npos) out.push_back(line);
  }
  return out;
}

}  // namespace crema
