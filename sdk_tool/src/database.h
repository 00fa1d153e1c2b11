// The connection to the file: its locks, its transactions, its end. Knows SQL, and nothing of threads or rings.
//
// Between commits the file is complete and has nothing beside it: journal mode delete. A killed process leaves at most
// the journal of its last commit, from which any SQLite recovers. No fsync before the end: what was committed survives
// the process, and a profiler must not make the application wait for disks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>

#include "registrations.h"
#include "insert.h"

struct sqlite3;

namespace rocpd {

class Database {
public:
    // Makes the file; see make_database.
    Database(const std::string& folder, const std::string& stem, const std::string& guid);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    const std::string& path() const { return path_; }
    const std::string& guid() const { return guid_; }

    Batch batch(const char* table, const char* columns);
    // Inserts or replaces a row; `node` and `process` go into tables that have columns for them.
    void write(const Registration& row, std::int64_t node, std::int64_t process);
    // Sets the value of a tag in rocpd_metadata.
    void note(const std::string& tag, const std::string& value);
    // `set` is the SET clause of an UPDATE, `where` a condition.
    void update(const char* table, const std::string& set, const std::string& where);

    // Starts a transaction unless one is open. False: another process has locked the file; try again.
    bool begin();
    bool in_transaction() const { return in_transaction_; }
    // False: another process reads the file. The transaction stays open; try again.
    bool commit();
    // Counts up when the program closed our descriptor: the connection is new, and every Batch must be made again.
    unsigned connections() const { return connections_; }

    // Closes after a commit, and waits for the disk.
    void close();
    // Closes the connection after a failure, rolling back what is not committed.
    void abandon() noexcept;

private:
    std::string name(const char* table) const;
    std::string insert_text(const char* verb, const char* table, const char* columns, int rows) const;
    void open();
    bool owns_descriptor() const;
    void check_name() const;
    void forget_statements();

    std::string path_;
    std::string guid_;
    std::string suffix_;
    sqlite3* connection_ = nullptr;
    std::unordered_map<const Table*, Insert> inserts_;
    Insert update_note_, insert_note_;
    bool in_transaction_ = false;
    bool has_locks_ = true;  // the file system supports locks
    unsigned connections_ = 0;
    int descriptor_ = -1;  // SQLite's own: only looked at, never closed
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace rocpd
