// The small nets and the log capture that the solver's tests share.
#include "solver/solver_harness.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "io/hdf5.h"
#include "test_device.h"

namespace crema {

std::vector<std::string> LogLines::with(const std::string& text) const {
  std::vector<std::string> out;
  for (const std::string& line : lines_) {
    if (line.find(text) != std::string::npos) out.push_back(line);
  }
  return out;
}

void write_rows(const std::string& file, int rows, int width) {
  std::vector<float> data, label;
  for (int i = 0; i < rows * width; ++i)
    data.push_back(std::sin(1.7f * static_cast<float>(i) + 0.3f));
  for (int i = 0; i < rows; ++i) label.push_back(std::cos(2.3f * static_cast<float>(i)));
  Hdf5File h5 = Hdf5File::create(file + ".h5");
  h5.write("data", Shape{rows, width}, data.data());
  h5.write("label", Shape{rows, 1}, label.data());
  h5.close();
  write_file(file + ".txt", file + ".h5\n");
}

std::string data_layer(const char* name, const char* rules, int batch) {
  return str("layer { name: '", name, "' type: 'HDF5Data' top: 'data' top: 'label' ", rules,
             " hdf5_data_param { source: 'rows.txt' batch_size: ", batch, " } } ");
}

std::string regression(int batch, const std::string& more) {
  return str("net_param { name: 'line' ", data_layer("data", "", batch), kPredict, kLoss, "} ",
             kFixed, "max_iter: 100 | ", more);
}

SolverParameter parse_solver(const std::string& text) {
  SolverParameter all;
  for (const std::string& part : split(text, '|')) {
    if (part.find_first_not_of(" \n") == std::string::npos) continue;
    SolverParameter param;
    parse_text(part, "solver.prototxt", &param);
    all.MergeFrom(param);
  }
  return all;
}

std::unique_ptr<Solver> make_solver(const std::string& text, const std::string& resume) {
  SolverOptions options;
  options.file = "solver.prototxt";
  options.ops = make_ops(test_device());
  options.resume = resume;
  return std::make_unique<Solver>(parse_solver(text), options);
}

std::string solver_error(const std::string& text, const std::string& resume) {
  try {
    make_solver(text, resume);
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "no error for " << text;
  return "";
}

std::vector<float> all_params(const Solver& solver) {
  Net& net = const_cast<Solver&>(solver).net();
  std::vector<float> out;
  for (size_t i = 0; i < net.params().size(); ++i) {
    const std::vector<float> values = net.param_values(static_cast<int>(i));
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

std::vector<float> all_history(const Solver& solver) {
  std::vector<float> out;
  for (const HostBlob& blob : solver.updater().history())
    out.insert(out.end(), blob.data.begin(), blob.data.end());
  return out;
}

}  // namespace crema
