// The identity of a file.
#pragma once

#include <string>

namespace rocpd {

// A new GUID (RFC 9562, version 7): Unix time first, so that GUIDs sort by age on every node, then 62 random bits.
std::string new_guid();

// The suffix of a GUID's tables: `_` and the GUID with `-` turned into `_`.
std::string suffix_of(const std::string& guid);

}  // namespace rocpd
