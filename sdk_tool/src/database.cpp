#include "database.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "guid.h"
#include "new_file.h"
#include "sqlite.h"

namespace rocpd {
namespace {

// How long SQLite waits for a lock [ms]. Short, because fork() waits meanwhile; the caller tries again.
constexpr int kPatience = 20;

// Keeps a connection whose descriptor the program closed: closing it would close another file of the program.
void keep_for_ever(sqlite3* connection) {
    static std::vector<sqlite3*>& lost = *new std::vector<sqlite3*>;
    lost.push_back(connection);
}

// Waits until the file is on the disk. Network file systems report only now that they have no room for it.
void sync(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const int error = fsync(file) != 0 ? errno : 0;
    ::close(file);
    if (error != 0 && error != EINVAL && error != ENOSYS && error != EROFS)
        fail("cannot sync the file to disk", std::strerror(error));
}

}  // namespace

Database::Database(const std::string& folder, const std::string& stem, const std::string& guid)
    : path_(make_database(folder, stem, guid)), guid_(guid), suffix_(suffix_of(guid)) {
    open();
}

Database::~Database() { abandon(); }

void Database::open() {
    connection_ = connect(path_, SQLITE_OPEN_READWRITE, has_locks_ ? nullptr : "unix-none", &descriptor_);
    // Parallel file systems are often mounted without locks. No other process writes this file, so it needs none there.
    // Tested on the new file only, which no other process can have locked.
    if (connections_++ == 0 &&
        sqlite3_exec(connection_, "BEGIN IMMEDIATE; COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) {
        has_locks_ = false;
        sqlite3_close(connection_);
        connection_ = connect(path_, SQLITE_OPEN_READWRITE, "unix-none", &descriptor_);
    }
    sqlite3_busy_timeout(connection_, kPatience);
    // Journal mode delete is SQLite's default. Pages reach the file only at commits, of bounded size: spilling them
    // earlier would lock out readers.
    run(connection_, "PRAGMA synchronous=OFF; PRAGMA cache_size=-32768; PRAGMA foreign_keys=OFF");
    struct stat facts {};
    if (stat(path_.c_str(), &facts) != 0) fail("cannot open " + path_, std::strerror(errno));
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
}

// Programs that close all descriptors (daemons do) get ours for the next file they open: writing on would damage it.
bool Database::owns_descriptor() const {
    struct stat facts {};
    return descriptor_ < 0 ||
           (fstat(descriptor_, &facts) == 0 && facts.st_dev == device_ && facts.st_ino == inode_);
}

void Database::check_name() const {
    struct stat facts {};
    if (stat(path_.c_str(), &facts) != 0 || facts.st_dev != device_ || facts.st_ino != inode_)
        fail("cannot write", "the file was removed or replaced");
}

std::string Database::name(const char* table) const { return "\"" + (table + suffix_) + "\""; }

std::string Database::insert_text(const char* verb, const char* table, const char* columns, int rows) const {
    std::string marks = "(?";
    for (const char* c = columns; *c != '\0'; ++c)
        if (*c == ',') marks += ", ?";
    marks += ')';
    std::string text = std::string(verb) + " INTO " + name(table) + " (" + columns + ") VALUES " + marks;
    for (int row = 1; row < rows; ++row) text += ", " + marks;
    return text;
}

Batch Database::batch(const char* table, const char* columns) {
    return {Insert(connection_, insert_text("INSERT", table, columns, Batch::kRows)),
            Insert(connection_, insert_text("INSERT", table, columns, 1))};
}

void Database::write(const Registration& row, std::int64_t node, std::int64_t process) {
    Insert& insert = inserts_.try_emplace(row.table).first->second;
    const std::string_view columns = row.table->columns;
    static constexpr std::string_view kOwner = ", nid, pid";
    if (!insert.prepared())
        insert = Insert(connection_, insert_text("INSERT OR REPLACE", row.table->name, row.table->columns, 1));
    for (const Cell& value : row.cells) insert.cell(value);
    if (columns.size() > kOwner.size() && columns.substr(columns.size() - kOwner.size()) == kOwner)
        insert.integer(node).integer(process);
    insert.run();
}

void Database::note(const std::string& tag, const std::string& value) {
    if (!update_note_.prepared()) {
        update_note_ = Insert(connection_, "UPDATE " + name("rocpd_metadata") + " SET value = ? WHERE tag = ?");
        insert_note_ = Insert(connection_, insert_text("INSERT", "rocpd_metadata", "value, tag", 1));
    }
    update_note_.text(value).text(tag).run();
    if (sqlite3_changes(connection_) == 0) insert_note_.text(value).text(tag).run();
}

void Database::update(const char* table, const std::string& set, const std::string& where) {
    run(connection_, "UPDATE " + name(table) + " SET " + set + " WHERE " + where);
}

void Database::forget_statements() {
    for (auto& entry : inserts_) entry.second.leak();
    inserts_.clear();
    update_note_.leak();
    insert_note_.leak();
}

bool Database::begin() {
    if (in_transaction_) return true;
    check_name();
    if (!owns_descriptor()) {
        forget_statements();
        keep_for_ever(connection_);
        open();
    }
    const int code = sqlite3_exec(connection_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    if (code == SQLITE_BUSY) return false;
    check(connection_, code, "cannot write");
    in_transaction_ = true;
    return true;
}

bool Database::commit() {
    if (!in_transaction_) return true;
    if (!owns_descriptor()) fail("cannot write", "the program closed the recorder's file descriptor");
    const int code = sqlite3_exec(connection_, "COMMIT", nullptr, nullptr, nullptr);
    if (code == SQLITE_BUSY) return false;
    check(connection_, code, "cannot write");
    in_transaction_ = false;
    return true;
}

void Database::close() {
    inserts_.clear();
    update_note_ = Insert();
    insert_note_ = Insert();
    check(connection_, sqlite3_close(connection_), "cannot close");
    connection_ = nullptr;
    sync(path_);
}

void Database::abandon() noexcept {
    if (connection_ == nullptr) return;
    if (owns_descriptor()) {
        if (in_transaction_) sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
        inserts_.clear();
        sqlite3_close_v2(connection_);  // completes when the last statement is finalized
    } else {
        forget_statements();
        keep_for_ever(connection_);
    }
    in_transaction_ = false;
    connection_ = nullptr;
}

}  // namespace rocpd
