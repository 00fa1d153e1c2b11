#include "sqlite.h"

#include <sqlite3.h>

#include <cstring>

namespace rocpd {

void fail(const std::string& what, const std::string& why) { throw DatabaseError(what + ": " + why); }

void check(sqlite3* connection, int code, const char* doing) {
    if (code == SQLITE_OK || code == SQLITE_DONE || code == SQLITE_ROW) return;
    const int system = connection != nullptr ? sqlite3_system_errno(connection) : 0;
    std::string why = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    if (system != 0 && code != SQLITE_CONSTRAINT) why += std::string(" (") + std::strerror(system) + ")";
    fail(doing, why);
}

void run(sqlite3* connection, const std::string& sql) {
    check(connection, sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, nullptr), "cannot write");
}

sqlite3* connect(const std::string& path, int flags, const char* vfs) {
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &connection, flags, vfs);
    if (code == SQLITE_OK) return connection;
    const std::string why = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    sqlite3_close(connection);
    fail("cannot open " + path, why);
}

}  // namespace rocpd
