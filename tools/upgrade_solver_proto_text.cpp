// upgrade_solver_proto_text IN OUT: an old solver's prototxt (solver_type, nets of old syntax) as
// today's.
#include "io/prototxt.h"
#include "net/upgrade.h"
#include "upgrade.h"

int main(int argc, char** argv) {
  return crema::run_upgrade(argc, argv, "upgrade_solver_proto_text", [](const std::string& path) {
    crema::SolverParameter solver = crema::read_solver(path);
    crema::upgrade_solver(solver, path);
    return crema::write_text(solver);
  });
}
