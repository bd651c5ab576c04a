// Traps: nets that run, and learn nothing or the wrong thing. Each rule has a name and a sentence
// that says what would be right.
#pragma once

#include <string>
#include <vector>

#include "crema.pb.h"

namespace crema {

struct Finding {
  std::string rule;  // "batch_norm_without_scale"
  std::string text;  // "FILE:LINE: layer "x" (Type): what and what would be right"
  bool is_error = false;
};

/// Whether training begins from weights that are there already.
struct LintContext {
  std::string file;
  bool is_finetuned = false;
};

/// All mistakes and traps of a net in the phase of its state. Sources are opened; their first
/// records are looked at. Throws nothing: what cannot be read is a finding.
std::vector<Finding> lint_net(const NetParameter& net, const LintContext& context);

/// What two phases of one net do differently to their pictures. Both filtered.
std::vector<Finding> lint_phases(const NetParameter& train, const NetParameter& test,
                                 const LintContext& context);

/// The net as it is in a phase: upgraded, filtered. Throws Error.
NetParameter net_in_phase(const NetParameter& net, Phase phase, const std::string& file);

/// Records and batch size of the first layer that reads records, of a filtered net; 0 records where
/// there is none or it cannot be opened.
struct SetSize {
  std::string layer;
  uint64_t records = 0, batch_size = 1;
};
SetSize set_size(const NetParameter& net);

}  // namespace crema
