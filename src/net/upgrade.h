// Brings old syntax up to date, in the order that Caffe does: V0 layers, old transform fields, V1
// layers, input fields, batch norm's parameter specs, fields of forks; for solvers the solver_type
// enum. Each kind of upgrade is one line of the log for a file.
#pragma once

#include <string>

#include "crema.pb.h"

namespace crema {

/// Upgrades a net in place; file stands for it in messages. Idempotent. Afterwards only `layer`
/// holds layers, inputs are an Input layer, and pictures are transformed by transform_param
/// alone (the old fields of data_param and its kin are cleared). Throws Error for a net that mixes
/// `layer` and `layers`.
void upgrade_net(NetParameter& net, const std::string& file);

/// The same for a net that comes from a weights file: its input fields are dropped.
void upgrade_weights(NetParameter& net, const std::string& file);

/// Upgrades a solver, the nets inside it too. Throws Error when type and solver_type are both set.
void upgrade_solver(SolverParameter& solver, const std::string& file);

}  // namespace crema
