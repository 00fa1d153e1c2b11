#include "new_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "config.h"
#include "guid.h"
#include "schema.h"
#include "sqlite.h"
#include "state.h"

namespace rocpd {
namespace {

std::string replaced(std::string text, const std::string& mark, const std::string& value) {
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
        text.replace(at, mark.size(), value);
    return text;
}

void make_folder(const std::string& folder) {
    for (std::size_t at = 1; at != std::string::npos;) {
        at = folder.find('/', at + 1);
        const std::string part = folder.substr(0, at);
        if (mkdir(part.c_str(), 0777) == 0 || errno == EEXIST || errno == EISDIR) continue;
        const int reason = errno;  // that the file system is read-only is said of folders that exist, too
        if (reason != EROFS || access(part.c_str(), F_OK) != 0)
            fail("cannot make the folder " + part, std::strerror(reason));
    }
}

void create_tables(sqlite3* connection, const std::string& guid) {
    const std::string suffix = suffix_of(guid);
    run(connection, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
    const bool graphs = g_state.graphs.load();
    for (const char* const* text = graphs ? kGraphSchema : kSchema; *text != nullptr; ++text)
        run(connection, replaced(replaced(*text, "{{uuid}}", suffix), "{{guid}}", guid));
    run(connection, "INSERT INTO \"rocpd_metadata" + suffix + "\" (tag, value) VALUES ('schema_version', '" +
                        (graphs ? "3.0.2" : "3") + "'), ('uuid', '" + suffix + "'), ('guid', '" + guid + "')");
    if (graphs)
        run(connection, "INSERT INTO \"rocpd_metadata" + suffix +
                            "\" (tag, value) VALUES ('schema_version_major', '3'), "
                            "('schema_version_minor', '0'), ('schema_version_patch', '2')");
    run(connection, "COMMIT");
}

// Makes an empty file that its user alone may read, or its group too, whatever the umask: a profile names files, hosts
// and users. SQLite gives its journal the same mode.
void make_private(const std::string& path, bool for_group) {
    const int file = ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (file < 0) fail("cannot open " + path, std::strerror(errno));
    // File systems without modes refuse: then what they show counts.
    const bool changed = !for_group || fchmod(file, 0640) == 0;
    static_cast<void>(changed);
    ::close(file);
}

// Renames `source` to `target`. False: `target` exists.
bool rename_to_free(const std::string& source, const std::string& target) {
    if (link(source.c_str(), target.c_str()) == 0) {
        unlink(source.c_str());
        return true;
    }
    if (errno == EEXIST) return false;
    // File systems without hard links: the name is claimed first, then replaced.
    const int claimed = ::open(target.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    if (claimed < 0 && errno == EEXIST) return false;
    if (claimed < 0) fail("cannot make " + target, std::strerror(errno));
    ::close(claimed);
    if (rename(source.c_str(), target.c_str()) != 0) fail("cannot make " + target, std::strerror(errno));
    return true;
}

}  // namespace

// The tables are made under a name that no glob for databases matches: a process that is killed meanwhile leaves no
// incomplete database, and the file gets its final name at once, and only a free one.
std::string make_database(const std::string& folder, const std::string& stem, const std::string& guid) {
    make_folder(folder);
    const std::string partial = folder + "/.rocpd-" + guid + ".partial";
    make_private(partial, config().group);
    sqlite3* connection = nullptr;
    try {
        connection = connect(partial, SQLITE_OPEN_READWRITE, "unix-none");  // no other process knows the name
        create_tables(connection, guid);
        sqlite3_close(connection);
        connection = nullptr;
        for (int copy = 1;; ++copy) {
            const std::string path = folder + "/" + stem + (copy > 1 ? "-" + std::to_string(copy) : "") + ".db";
            if (rename_to_free(partial, path)) return path;
        }
    } catch (...) {
        sqlite3_close(connection);
        unlink(partial.c_str());
        throw;
    }
}

}  // namespace rocpd
