// Calls SQLite: its error codes become exceptions.
#pragma once

#include <stdexcept>
#include <string>

struct sqlite3;

namespace rocpd {

struct DatabaseError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& what, const std::string& why);

// Throws unless `code` means success.
void check(sqlite3* connection, int code, const char* doing);

// Runs statements that return no rows.
void run(sqlite3* connection, const std::string& sql);

// Opens a file. A VFS of nullptr is SQLite's own choice, "unix-none" takes no locks. Sets `descriptor` to the one that
// SQLite opened, -1 where that is not known.
sqlite3* connect(const std::string& path, int flags, const char* vfs, int* descriptor = nullptr);

}  // namespace rocpd
