#include "database.h"

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "guid.h"
#include "schema.h"

namespace rocpd {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& why) { throw DatabaseError(what + ": " + why); }

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

std::string replaced(std::string text, const std::string& mark, const std::string& value) {
    for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
        text.replace(at, mark.size(), value);
    return text;
}

void make_folder(const std::string& folder) {
    for (std::size_t at = 1; at != std::string::npos;) {
        at = folder.find('/', at + 1);
        const std::string part = folder.substr(0, at);
        if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST && errno != EISDIR && errno != EROFS)
            fail("cannot make the folder " + part, std::strerror(errno));
    }
}

// A VFS of nullptr is SQLite's own choice, "unix-none" takes no locks.
sqlite3* connect(const std::string& path, int flags, const char* vfs) {
    sqlite3* connection = nullptr;
    const int code = sqlite3_open_v2(path.c_str(), &connection, flags, vfs);
    if (code != SQLITE_OK) {
        const std::string why = connection != nullptr ? sqlite3_errmsg(connection) : sqlite3_errstr(code);
        sqlite3_close(connection);
        fail("cannot open " + path, why);
    }
    return connection;
}

void create_tables(sqlite3* connection, const std::string& suffix, const std::string& guid) {
    run(connection, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
    for (const char* const* text = kSchema; *text != nullptr; ++text)
        run(connection, replaced(replaced(*text, "{{uuid}}", suffix), "{{guid}}", guid));
    run(connection, "INSERT INTO \"rocpd_metadata" + suffix + "\" (tag, value) VALUES ('schema_version', '" +
                        kSchemaVersion + "'), ('uuid', '" + suffix + "'), ('guid', '" + guid + "'); COMMIT");
}

// Gives `source` the name `target` unless that exists. False: it exists.
bool rename_to_free(const std::string& source, const std::string& target) {
    if (link(source.c_str(), target.c_str()) == 0) {
        unlink(source.c_str());
        return true;
    }
    if (errno == EEXIST) return false;
    // File systems without hard links: the name is claimed first, then replaced.
    const int claimed = ::open(target.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
    if (claimed < 0 && errno == EEXIST) return false;
    if (claimed < 0) fail("cannot make " + target, std::strerror(errno));
    ::close(claimed);
    if (rename(source.c_str(), target.c_str()) != 0) fail("cannot make " + target, std::strerror(errno));
    return true;
}

// A connection whose descriptor the program closed: closing it would close somebody else's file.
void keep_for_ever(sqlite3* connection) {
    static std::vector<sqlite3*>& lost = *new std::vector<sqlite3*>;
    lost.push_back(connection);
}

// Finds which descriptor of this process is the file.
int descriptor_of(dev_t device, ino_t inode) {
    int found = -1;
    DIR* folder = opendir("/proc/self/fd");
    if (folder == nullptr) return -1;
    while (const dirent* entry = readdir(folder)) {
        const int number = std::atoi(entry->d_name);
        struct stat facts {};
        if (number > 2 && fstat(number, &facts) == 0 && facts.st_dev == device && facts.st_ino == inode) found = number;
    }
    closedir(folder);
    return found;
}

}  // namespace

Insert::Insert(sqlite3* connection, const std::string& sql) {
    check(connection,
          sqlite3_prepare_v3(connection, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr),
          "cannot write");
}

Insert::~Insert() { sqlite3_finalize(statement_); }

Insert& Insert::operator=(Insert&& other) noexcept {
    std::swap(statement_, other.statement_);
    std::swap(next_, other.next_);
    return *this;
}

Insert& Insert::integer(std::int64_t value) {
    sqlite3_bind_int64(statement_, ++next_, value);
    return *this;
}

Insert& Insert::real(double value) {
    sqlite3_bind_double(statement_, ++next_, value);
    return *this;
}

Insert& Insert::text(std::string_view value) {
    sqlite3_bind_text64(statement_, ++next_, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8);
    return *this;
}

Insert& Insert::nothing() {
    sqlite3_bind_null(statement_, ++next_);
    return *this;
}

Insert& Insert::cell(const Cell& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return integer(*number);
    if (const auto* number = std::get_if<double>(&value)) return real(*number);
    if (const auto* string = std::get_if<std::string>(&value)) return text(*string);
    return nothing();
}

void Insert::run() {
    next_ = 0;
    const int code = sqlite3_step(statement_);
    sqlite3_reset(statement_);
    if (code != SQLITE_DONE) check(sqlite3_db_handle(statement_), code, "cannot write");
}

Batch& Batch::text(std::string_view value) {
    slots_.push_back({Kind::kText, static_cast<std::int64_t>(value.size()), texts_.size(), 0});
    texts_ += value;
    return *this;
}

void Batch::bind(Insert& insert, const Slot& slot) {
    switch (slot.kind) {
        case Kind::kInteger: insert.integer(slot.integer); break;
        case Kind::kReal: insert.real(slot.real); break;
        case Kind::kText: insert.text({texts_.data() + slot.offset, static_cast<std::size_t>(slot.integer)}); break;
        case Kind::kNull: insert.nothing(); break;
    }
}

void Batch::flush() {
    if (rows_ == 0) return;
    const std::size_t columns = slots_.size() / static_cast<std::size_t>(rows_);
    if (rows_ == kRows) {
        for (const Slot& slot : slots_) bind(many_, slot);
        many_.run();
    } else {
        std::size_t at = 0;
        for (const Slot& slot : slots_) {
            bind(one_, slot);
            if (++at % columns == 0) one_.run();
        }
    }
    rows_ = 0;
    slots_.clear();
    texts_.clear();
}

void Batch::leak() {
    many_.leak();
    one_.leak();
}

Database::Database(const std::string& folder, const std::string& stem, const std::string& guid)
    : suffix_(suffix_of(guid)) {
    make_folder(folder);
    make(folder, stem, guid);
    open();
}

Database::~Database() { abandon(); }

// The tables are made under a name that no glob for databases finds: a process that is killed meanwhile leaves no
// half-made file for readers to stumble on, and the final name appears at once and only where it is free.
void Database::make(const std::string& folder, const std::string& stem, const std::string& guid) {
    const std::string partial = folder + "/.rocpd-" + guid + ".partial";
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE;
    sqlite3* connection = connect(partial, flags, "unix-none");  // nobody else knows the name
    try {
        create_tables(connection, suffix_, guid);
        sqlite3_close(connection);
        connection = nullptr;
        for (int copy = 1;; ++copy) {
            path_ = folder + "/" + stem + (copy > 1 ? "-" + std::to_string(copy) : "") + ".db";
            if (rename_to_free(partial, path_)) return;
        }
    } catch (...) {
        sqlite3_close(connection);
        unlink(partial.c_str());
        throw;
    }
}

void Database::open() {
    connection_ = connect(path_, SQLITE_OPEN_READWRITE, nullptr);
    // Parallel file systems are often mounted without locks. Nobody else writes this file: do without them there.
    if (sqlite3_exec(connection_, "BEGIN IMMEDIATE; COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) {
        sqlite3_close(connection_);
        connection_ = connect(path_, SQLITE_OPEN_READWRITE, "unix-none");
    }
    sqlite3_busy_timeout(connection_, 10000);  // somebody looks at the file while it grows
    // Pages reach the file only at commits, of bounded size: spilling early would lock out readers in between.
    run(connection_, "PRAGMA journal_mode=DELETE; PRAGMA synchronous=OFF; PRAGMA cache_size=-32768; "
                     "PRAGMA foreign_keys=OFF");
    struct stat facts {};
    if (stat(path_.c_str(), &facts) != 0) fail("cannot open " + path_, std::strerror(errno));
    device_ = facts.st_dev;
    inode_ = facts.st_ino;
    descriptor_ = descriptor_of(device_, inode_);
}

// Programs that close all descriptors (daemons do) hand ours to the next file they open: writing on would damage it.
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

std::string Database::insert_text(const char* table, const char* columns, const char* verb, int rows) const {
    std::string marks = "(?";
    for (const char* c = columns; *c != '\0'; ++c)
        if (*c == ',') marks += ", ?";
    marks += ')';
    std::string text = std::string(verb) + " INTO \"" + table + suffix_ + "\" (" + columns + ") VALUES " + marks;
    for (int row = 1; row < rows; ++row) text += ", " + marks;
    return text;
}

Insert Database::prepare(const char* table, const char* columns, Conflict conflict) {
    const char* verb = conflict == Conflict::kReplaces ? "INSERT OR REPLACE" : "INSERT";
    return {connection_, insert_text(table, columns, verb, 1)};
}

Batch Database::batch(const char* table, const char* columns) {
    Batch fresh;
    fresh.many_ = Insert(connection_, insert_text(table, columns, "INSERT", Batch::kRows));
    fresh.one_ = Insert(connection_, insert_text(table, columns, "INSERT", 1));
    return fresh;
}

void Database::write(const Fact& fact, std::int64_t node, std::int64_t process) {
    Insert& insert = inserts_.try_emplace(fact.table).first->second;
    const std::string_view columns = fact.table->columns;
    static constexpr std::string_view kOwner = ", nid, pid";
    if (!insert.prepared()) insert = prepare(fact.table->name, fact.table->columns, Conflict::kReplaces);
    for (const Cell& value : fact.cells) insert.cell(value);
    if (columns.size() > kOwner.size() && columns.substr(columns.size() - kOwner.size()) == kOwner)
        insert.integer(node).integer(process);
    insert.run();
}

void Database::execute(const std::string& sql) { run(connection_, sql); }

bool Database::begin() {
    if (in_transaction_) return false;
    check_name();
    const bool lost = !owns_descriptor();
    if (lost) {
        for (auto& entry : inserts_) entry.second.leak();
        inserts_.clear();
        keep_for_ever(connection_);
        open();
    }
    run(connection_, "BEGIN IMMEDIATE");
    in_transaction_ = true;
    return lost;
}

void Database::commit() {
    if (!in_transaction_) return;
    if (!owns_descriptor()) fail("cannot write", "the program closed the recorder's file descriptor");
    run(connection_, "COMMIT");
    in_transaction_ = false;
}


void Database::close() {
    commit();
    inserts_.clear();
    const std::string path = path_;
    check(connection_, sqlite3_close(connection_), "cannot close");
    connection_ = nullptr;
    // The one time that the disk is waited for.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        fsync(file);
        ::close(file);
    }
}

void Database::abandon() noexcept {
    if (connection_ == nullptr) return;
    if (owns_descriptor()) {
        if (in_transaction_) sqlite3_exec(connection_, "ROLLBACK", nullptr, nullptr, nullptr);
        inserts_.clear();
        sqlite3_close_v2(connection_);
    } else {
        for (auto& entry : inserts_) entry.second.leak();
        keep_for_ever(connection_);
    }
    in_transaction_ = false;
    connection_ = nullptr;
}

}  // namespace rocpd
