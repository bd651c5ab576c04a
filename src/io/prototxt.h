// Prototxt in and out. Every mistake names FILE:LINE; unknown fields, wrong enum values and wrong
// types of a file are reported in one run, each with the nearest valid name.
#pragma once

#include <string>

#include "crema.pb.h"

namespace crema {

struct ReadOptions {
  /// Unknown fields inside a layer (those of forks) are errors; else each is a line of the log.
  bool strict = false;
};

/// The net of a text file, as written: net/upgrade.h brings old syntax up to date. Each layer has
/// its source_location "FILE:LINE". Throws Error.
NetParameter read_net(const std::string& path, const ReadOptions& options = {});

/// The solver of a text file, as written. Throws Error.
SolverParameter read_solver(const std::string& path, const ReadOptions& options = {});

/// Parses text into message, which is cleared first. name stands for the file in messages.
/// An unknown field within two edits of a field of its message, or outside a layer, is an error.
/// Throws Error with one line "NAME:LINE: ..." for each mistake.
void parse_text(const std::string& text, const std::string& name,
                google::protobuf::Message* message, const ReadOptions& options = {});

/// The message in text form, floats in the shortest form that reads back the same, without
/// source_location.
std::string write_text(const google::protobuf::Message& message);

/// Clears source_location in every layer of message.
void clear_source_locations(google::protobuf::Message* message);

}  // namespace crema
