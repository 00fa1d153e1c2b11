// Creates a database: its folder, its tables, a free name.
#pragma once

#include <string>

namespace rocpd {

// Makes `stem`.db, or `stem`-2.db … where that exists, with the tables and views of `guid`, and `folder` if need be.
// Returns the path of the file.
std::string make_database(const std::string& folder, const std::string& stem, const std::string& guid);

}  // namespace rocpd
