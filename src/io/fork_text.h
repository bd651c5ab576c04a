// What prototxts of forks say in words that are not Caffe's: fields that mean what a field of ours
// means, engines, and hints about how fast to compute.
#pragma once

#include <string>
#include <string_view>

namespace crema {

/// A field of a fork that says the same as one of ours. A truth value of the fork becomes one of
/// our words; where `if_true` is empty the value stays as it is.
struct ForkField {
  const char* message;
  const char* field;
  const char* own;
  const char* if_true = "";
  const char* if_false = "";
};

/// nullptr where no fork has such a field with the meaning of one of ours.
const ForkField* find_fork_field(std::string_view message, std::string_view field);

/// A block of fields in a layer that belongs to a fork's own layer, however near its name is to one
/// of ours.
bool is_fork_block(std::string_view field);

/// A field of a net or a solver with which a fork says how to compute, or when to test, and never
/// what.
bool is_fork_hint(std::string_view message, std::string_view field);

/// What is known about a value that a field does not take, to stand behind the mistake: ": HDF5
/// files are read by ..."; "" where nothing is. field: its full name.
std::string fork_value_note(std::string_view field, std::string_view value);

/// An engine that is another program's: any of ours can do its work.
bool is_fork_engine(std::string_view word);

}  // namespace crema
