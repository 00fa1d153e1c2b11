// Reads the environment. A program may change it at any time, and no lock protects it: the recorder's own threads
// read it as it was when the recorder was loaded, or the process forked.
#pragma once

#include <string>
#include <string_view>

namespace rocpd {

// To be called while no thread of the recorder runs.
void remember_environment();

// The variables as NAME=value, each ended by a zero.
std::string environment();

// Returns the value of a variable in such a text, empty where there is none.
std::string_view value_in(std::string_view environment, std::string_view name);

}  // namespace rocpd
