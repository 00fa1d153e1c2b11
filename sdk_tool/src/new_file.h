// Owns how a database comes into being: its folder, its tables, a name that nobody has.
#pragma once

#include <string>

namespace rocpd {

// Makes `stem`.db, or `stem`-2.db … where that exists, in `folder`, which is made too, with the tables and views of
// `guid`. Gives its path.
std::string make_database(const std::string& folder, const std::string& stem, const std::string& guid);

}  // namespace rocpd
