// The rules are those of Caffe; each broken one is an Error with both numbers.
#include "solver/solver_nets.h"

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {

void merge_state(NetSource& source, Phase phase, const NetState* wanted) {
  NetState state;
  state.set_phase(phase);
  state.MergeFrom(source.net.state());
  if (wanted != nullptr) state.MergeFrom(*wanted);
  *source.net.mutable_state() = state;
}

NetSource from_file(const std::string& file, const char* field, const std::string& solver_file,
                    const ReadOptions& options) {
  require(exists(file), solver_file, ": ", field, ": ", file, ": No such file or directory",
          looked_for_from(file));
  return {.net = read_net(file, options), .file = file, .origin = str(field, " file: ", file)};
}

NetSource inline_net(const NetParameter& net, const std::string& solver_file,
                     const std::string& field) {
  return {.net = net, .file = solver_file, .origin = field};
}

/// The test nets that fields of their own give, then `generic` from net or net_param.
std::vector<NetSource> sources(const SolverParameter& param, const std::string& file, int generic,
                               const ReadOptions& options) {
  std::vector<NetSource> out;
  for (const NetParameter& net : param.test_net_param())
    out.push_back(inline_net(net, file, "test_net_param"));
  for (const std::string& path : param.test_net())
    out.push_back(from_file(path, "test_net", file, options));
  for (int i = 0; i < generic; ++i) {
    if (param.has_net_param()) {
      out.push_back(inline_net(param.net_param(), file, "net_param"));
    } else {
      out.push_back(i == 0 ? from_file(param.net(), "net", file, options) : out.back());
    }
  }
  return out;
}

void check_test_fields(const SolverParameter& param, int own) {
  ErrorList errors;
  const auto check = [&](bool ok, const std::string& text) {
    if (!ok) errors.add(Error(text));
  };
  const bool has_generic = param.has_net() || param.has_net_param();
  const int iters = param.test_iter_size();
  const int all = has_generic && iters > own ? iters : own;
  check(iters >= own && (has_generic || iters == own),
        str("test_iter is given ", iters, " times, the ", own, " test nets need one each"));
  check(param.test_state_size() == 0 || param.test_state_size() == all,
        str("test_state is given ", param.test_state_size(), " times; none or one for each of the ",
            all, " test nets is needed"));
  check(
      all == 0 || param.test_interval() > 0,
      str("test_interval must be above 0 where there are test nets, not ", param.test_interval()));
  check(param.test_interval() >= 0,
        str("test_interval must not be negative: ", param.test_interval()));
  for (int iter : param.test_iter()) {
    check(iter >= 0, str("test_iter must not be negative: ", iter));
  }
  errors.throw_if_any();
}

}  // namespace

NetSource train_net_source(const SolverParameter& param, const std::string& solver_file,
                           const ReadOptions& options) {
  std::vector<std::string> given;
  const auto rule = [&](bool ok, const std::string& text) { require(ok, solver_file, ": ", text); };
  if (param.has_net()) given.emplace_back("net");
  if (param.has_net_param()) given.emplace_back("net_param");
  if (param.has_train_net()) given.emplace_back("train_net");
  if (param.has_train_net_param()) given.emplace_back("train_net_param");
  rule(!given.empty(),
       "no net to train: one of net, train_net, net_param and train_net_param is needed");
  rule(given.size() <= 1, join(given, " and ") + " each give a net to train: only one may");
  NetSource source =
      param.has_net()         ? from_file(param.net(), "net", solver_file, options)
      : param.has_train_net() ? from_file(param.train_net(), "train_net", solver_file, options)
      : param.has_net_param() ? inline_net(param.net_param(), solver_file, "net_param")
                              : inline_net(param.train_net_param(), solver_file, "train_net_param");
  merge_state(source, TRAIN, param.has_train_state() ? &param.train_state() : nullptr);
  return source;
}

std::vector<NetSource> test_net_sources(const SolverParameter& param,
                                        const std::string& solver_file,
                                        const ReadOptions& options) {
  const int own = param.test_net_param_size() + param.test_net_size();
  try {
    check_test_fields(param, own);
  } catch (const Error& error) {
    throw error.at(solver_file);
  }
  std::vector<NetSource> out = sources(param, solver_file, param.test_iter_size() - own, options);
  for (size_t i = 0; i < out.size(); ++i) {
    const int index = static_cast<int>(i);
    merge_state(out[i], TEST, param.test_state_size() > 0 ? &param.test_state(index) : nullptr);
    out[i].test_iter = param.test_iter(index);
  }
  return out;
}

}  // namespace crema
