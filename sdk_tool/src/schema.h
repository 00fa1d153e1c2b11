// Owns the tables and views of a file; the text is made at build time from rocpd/schema/sql.
#pragma once

namespace rocpd {

extern const char* const kSchemaVersion;

// Statements in order, ending with nullptr; {{uuid}} stands for the suffix, {{guid}} for the GUID.
extern const char* const kSchema[];

}  // namespace rocpd
