// Solver states. The binary form is streamed blob by blob: the history of a large net exceeds what
// protobuf reads and writes whole.
#include "io/solver_state.h"

#include "base/error.h"
#include "base/file.h"
#include "io/file_kind.h"
#include "io/hdf5.h"
#include "io/wire.h"

namespace crema {
namespace {

constexpr int kHistory = 3;

void from_message(const SolverState& proto, SolverSnapshot* state) {
  state->iter = proto.iter();
  state->current_step = proto.current_step();
  state->learned_net = proto.learned_net();
  if (proto.has_seed()) state->seed = proto.seed();
  if (proto.has_forward_count()) state->forward_count = proto.forward_count();
  if (proto.has_loss_scale()) state->loss_scale = proto.loss_scale();
  state->loss_scale_steps = proto.loss_scale_steps();
  for (const DataCursor& cursor : proto.cursor()) {
    state->cursors.push_back({cursor.net(), cursor.layer(), cursor.record()});
  }
  state->test_forward_counts.assign(proto.test_forward_count().begin(),
                                    proto.test_forward_count().end());
  if (proto.has_best_score()) {
    state->best = {proto.best_score(), proto.best_iter(), proto.tests_since_best()};
  }
}

// Everything but the history.
SolverState to_message(const SolverSnapshot& state) {
  SolverState proto;
  proto.set_iter(state.iter);
  proto.set_current_step(state.current_step);
  proto.set_learned_net(state.learned_net);
  if (state.seed) proto.set_seed(*state.seed);
  if (state.forward_count) proto.set_forward_count(*state.forward_count);
  if (state.loss_scale) {
    proto.set_loss_scale(*state.loss_scale);
    proto.set_loss_scale_steps(state.loss_scale_steps);
  }
  for (const RecordCursor& cursor : state.cursors) {
    DataCursor* out = proto.add_cursor();
    out->set_net(cursor.net);
    out->set_layer(cursor.layer);
    out->set_record(cursor.record);
  }
  for (uint64_t count : state.test_forward_counts) proto.add_test_forward_count(count);
  if (state.best) {
    proto.set_best_score(state.best->score);
    proto.set_best_iter(state.best->iter);
    proto.set_tests_since_best(state.best->tests_since);
  }
  return proto;
}

SolverSnapshot read_binary(std::string_view bytes) {
  SolverSnapshot state;
  std::string rest;
  WireReader reader(bytes);
  while (!reader.is_padding()) {
    const auto field = reader.next();
    if (!field) break;
    if (field->number != kHistory || field->type != WireType::bytes) {
      rest += field->whole;
      continue;
    }
    BlobProto proto;
    require(field->bytes.size() <= static_cast<size_t>(kMaxBlobCount) &&
                proto.ParseFromArray(field->bytes.data(), static_cast<int>(field->bytes.size())),
            "history ", state.history.size(), ": is damaged");
    try {
      state.history.push_back(from_proto(proto));
    } catch (const Error& error) {
      throw error.at(str("history ", state.history.size()));
    }
  }
  SolverState proto;
  require(proto.ParseFromString(rest) && proto.has_iter(), "is damaged: holds no iteration");
  from_message(proto, &state);
  return state;
}

// The one number of a data set, or nothing where there is no such data set.
std::optional<int64_t> read_number(const Hdf5File& file, const std::string& name) {
  if (!file.has(name)) return std::nullopt;
  const std::vector<int64_t> values = file.read_integers(name);
  require(values.size() == 1, file.path(), ": data set \"", name, "\": holds ", values.size(),
          " numbers, one is needed");
  return values[0];
}

void read_own_fields(const Hdf5File& file, SolverSnapshot* state) {
  if (const auto seed = read_number(file, "crema/seed")) state->seed = static_cast<uint64_t>(*seed);
  if (const auto count = read_number(file, "crema/forward_count")) {
    state->forward_count = static_cast<uint64_t>(*count);
  }
  if (file.has("crema/loss_scale")) state->loss_scale = file.read("crema/loss_scale").data.at(0);
  state->loss_scale_steps =
      static_cast<int>(read_number(file, "crema/loss_scale_steps").value_or(0));
  if (file.has("crema/test_forward_counts")) {
    for (int64_t count : file.read_integers("crema/test_forward_counts")) {
      state->test_forward_counts.push_back(static_cast<uint64_t>(count));
    }
  }
  if (file.has("crema/best_score")) {
    state->best = {file.read("crema/best_score").data.at(0),
                   static_cast<int>(read_number(file, "crema/best_iter").value_or(0)),
                   static_cast<int>(read_number(file, "crema/tests_since_best").value_or(0))};
  }
  for (int i = 0; file.has(str("crema/cursors/", i)); ++i) {
    const std::string group = str("crema/cursors/", i, "/");
    state->cursors.push_back(
        {static_cast<int>(read_number(file, group + "net").value_or(0)),
         file.read_string(group + "layer"),
         static_cast<uint64_t>(read_number(file, group + "record").value_or(0))});
  }
}

SolverSnapshot read_hdf5(const std::string& path) {
  const Hdf5File file = Hdf5File::open(path);
  const auto iter = read_number(file, "iter");
  if (!iter) {
    fail(path, ": is ", file.has("data") ? "a weights file" : "an HDF5 file without iter",
         ", a solver state (.solverstate.h5) is needed");
  }
  SolverSnapshot state;
  state.iter = static_cast<int>(*iter);
  state.current_step = static_cast<int>(read_number(file, "current_step").value_or(0));
  if (file.has("learned_net")) state.learned_net = file.read_string("learned_net");
  const size_t count = file.datasets("history").size();
  for (size_t i = 0; i < count; ++i) state.history.push_back(file.read(str("history/", i)));
  read_own_fields(file, &state);
  return state;
}

void write_own_fields(const SolverSnapshot& state, Hdf5File* file) {
  auto write_number = [&](const std::string& name, uint64_t value) {
    const int64_t stored = static_cast<int64_t>(value);
    file->write("crema/" + name, {1}, &stored);
  };
  if (state.seed) write_number("seed", *state.seed);
  if (state.forward_count) write_number("forward_count", *state.forward_count);
  if (state.loss_scale) {
    file->write("crema/loss_scale", {1}, &*state.loss_scale);
    write_number("loss_scale_steps", static_cast<uint64_t>(state.loss_scale_steps));
  }
  if (!state.test_forward_counts.empty()) {
    const std::vector<int64_t> counts(state.test_forward_counts.begin(),
                                      state.test_forward_counts.end());
    file->write("crema/test_forward_counts", {static_cast<int64_t>(counts.size())}, counts.data());
  }
  if (state.best) {
    file->write("crema/best_score", {1}, &state.best->score);
    write_number("best_iter", static_cast<uint64_t>(state.best->iter));
    write_number("tests_since_best", static_cast<uint64_t>(state.best->tests_since));
  }
  for (size_t i = 0; i < state.cursors.size(); ++i) {
    const std::string group = str("cursors/", i, "/");
    write_number(group + "net", static_cast<uint64_t>(state.cursors[i].net));
    file->write_string("crema/" + group + "layer", state.cursors[i].layer);
    write_number(group + "record", state.cursors[i].record);
  }
}

}  // namespace

SolverSnapshot read_solver_state(const std::string& path) {
  const MappedFile file(path);
  const FileKind kind = kind_of_bytes(file.bytes().substr(0, 1 << 16));
  if (kind == FileKind::hdf5 || is_hdf5(path)) return read_hdf5(path);
  require(kind == FileKind::solver_state, path, ": is ", describe(kind),
          ", a solver state (.solverstate) is needed");
  try {
    return read_binary(file.bytes());
  } catch (const Error& error) {
    throw error.at(path);
  }
}

void write_solver_state_binary(const std::string& path, const SolverSnapshot& state) {
  write_atomically(path, [&](const std::string& temporary) {
    WireWriter out(temporary);
    const std::string bytes = to_message(state).SerializeAsString();
    out.raw(bytes.data(), bytes.size());
    for (const HostBlob& blob : state.history) write_blob(out, kHistory, blob, false);
    out.close();
  });
}

void write_solver_state_hdf5(const std::string& path, const SolverSnapshot& state) {
  write_atomically(path, [&](const std::string& temporary) {
    Hdf5File file = Hdf5File::create(temporary);
    const int32_t iter = state.iter, current_step = state.current_step;
    file.write("iter", {1}, &iter);
    file.write_string("learned_net", state.learned_net);
    file.write("current_step", {1}, &current_step);
    file.make_group("history");
    for (size_t i = 0; i < state.history.size(); ++i) {
      file.write(str("history/", i), state.history[i].shape, state.history[i].data.data());
    }
    write_own_fields(state, &file);
    file.close();
  });
}

}  // namespace crema
