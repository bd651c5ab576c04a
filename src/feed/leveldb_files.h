// LevelDB databases, in builds that have LevelDB.
#pragma once

#include <memory>
#include <string>

#include "feed/database.h"
#include "feed/database_writer.h"

namespace crema {

/// Whether this build has LevelDB; without it the functions below throw Error.
bool has_leveldb();

constexpr const char* kNoLevelDb =
    "this build has no LevelDB: install libleveldb-dev and build again, or use an LMDB";

/// Opens the LevelDB in this folder; several readers in one process share it. All keys are read and
/// kept. LevelDB itself asks for a folder that can be written and for no other process that has it
/// open. A bounded number of its files is open at a time. Throws Error naming the path.
std::unique_ptr<Database> open_leveldb(const std::string& path);

/// See make_database_writer.
std::unique_ptr<DatabaseWriter> make_leveldb_writer(const std::string& path);

}  // namespace crema
