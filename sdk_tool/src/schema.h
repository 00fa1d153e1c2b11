// The tables and views of a file; the text is made at build time from rocpd/schema/sql.
#pragma once

namespace rocpd {

// Statements in order, ending with nullptr; {{uuid}} stands for the suffix, {{guid}} for the GUID. Version 3.0.0.
extern const char* const kSchema[];

// Version 3.0.2, which has graphs.
extern const char* const kGraphSchema[];

}  // namespace rocpd
