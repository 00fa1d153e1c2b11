#include "sqlite.h"

#include <sqlite3.h>

#include <cstring>

namespace rocpd {
namespace {

using OpenCall = int (*)(const char* path, int flags, int mode);

OpenCall g_open = nullptr;       // what SQLite called before
thread_local int t_opened = -1;  // the descriptor that this thread opened last through SQLite

int open_and_remember(const char* path, int flags, int mode) { return t_opened = g_open(path, flags, mode); }

// SQLite tells its descriptors to nobody, but lets its system calls be replaced: those of all its VFSes for Unix at
// once. An SQLite that is shared with the program opens the program's files in this way too, as it did before.
bool watch_opens() {
    sqlite3_vfs* vfs = sqlite3_vfs_find("unix");
    if (vfs == nullptr || vfs->iVersion < 3) return false;
    g_open = reinterpret_cast<OpenCall>(vfs->xGetSystemCall(vfs, "open"));
    return g_open != nullptr &&
           vfs->xSetSystemCall(vfs, "open", reinterpret_cast<sqlite3_syscall_ptr>(open_and_remember)) == SQLITE_OK;
}

}  // namespace

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

sqlite3* connect(const std::string& path, int flags, const char* vfs, int* descriptor) {
    static const bool is_watched = watch_opens();
    static_cast<void>(is_watched);
    t_opened = -1;
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &connection, flags, vfs);
    // The file is opened at once, and nothing after it: the journal and the like come with the first statement.
    if (descriptor != nullptr) *descriptor = t_opened;
    if (code == SQLITE_OK) return connection;
    const std::string why = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
    sqlite3_close(connection);
    fail("cannot open " + path, why);
}

}  // namespace rocpd
