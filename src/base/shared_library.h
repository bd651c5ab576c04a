// Parts of the program that are loaded when they are needed: linked, their own libraries would cost
// every start, and a machine without them could not start it at all.
#pragma once

#include <string>

namespace crema {

/// Where name lies in the lib folder beside the program's own folder; name itself where it is not
/// there, for the loader to look for.
std::string beside_program(const std::string& name);

/// The function `entry` of the library; nullptr and the loader's reason where there is none.
void* load_function(const std::string& library, const char* entry, std::string* reason);

}  // namespace crema
