// Owns the file: making it, inserting rows, committing, closing. Knows SQL, and nothing of threads or rings.
//
// Between commits the file is complete and has nothing beside it: journal mode delete. A killed process leaves at most
// the journal of its last commit, from which any SQLite recovers. No fsync before the end: what was committed survives
// the process, and a profiler must not make the application wait for disks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "facts.h"

struct sqlite3;
struct sqlite3_stmt;

namespace rocpd {

struct DatabaseError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// A prepared INSERT; values are bound in the order of its columns.
class Insert {
public:
    Insert() = default;
    Insert(sqlite3* connection, const std::string& sql);
    ~Insert();
    Insert(Insert&& other) noexcept : statement_(other.statement_), next_(other.next_) { other.statement_ = nullptr; }
    Insert& operator=(Insert&& other) noexcept;
    Insert(const Insert&) = delete;
    Insert& operator=(const Insert&) = delete;

    Insert& integer(std::int64_t value);
    Insert& integer_or_null(std::int64_t value, bool null) { return null ? nothing() : integer(value); }
    Insert& real(double value);
    Insert& text(std::string_view value);  // has to live until run()
    Insert& nothing();
    Insert& cell(const Cell& value);
    void run();
    bool prepared() const { return statement_ != nullptr; }
    // Forgets the statement of a connection that must not be touched any more.
    void leak() { statement_ = nullptr; }

private:
    sqlite3_stmt* statement_ = nullptr;
    int next_ = 0;
};

// Rows that go into one table many at a time: one statement for kRows of them, another for what is left over. A statement
// costs SQLite about as much as a row (AUTOINCREMENT reads and writes its counter once per statement).
class Batch {
public:
    static constexpr int kRows = 40;

    Batch& integer(std::int64_t value) {
        slots_.push_back({Kind::kInteger, value, 0, 0});
        return *this;
    }
    Batch& integer_or_null(std::int64_t value, bool null) { return null ? nothing() : integer(value); }
    Batch& real(double value) {
        slots_.push_back({Kind::kReal, 0, 0, value});
        return *this;
    }
    Batch& text(std::string_view value);  // copied
    Batch& nothing() {
        slots_.push_back({Kind::kNull, 0, 0, 0});
        return *this;
    }
    // Ends a row.
    void run() {
        if (++rows_ == kRows) flush();
    }
    void flush();
    void leak();

private:
    friend class Database;
    enum class Kind : std::uint8_t { kNull, kInteger, kReal, kText };
    struct Slot {
        Kind kind;
        std::int64_t integer;  // or the text's size
        std::size_t offset;    // of the text
        double real;
    };
    void bind(Insert& insert, const Slot& slot);

    Insert many_;
    Insert one_;
    int rows_ = 0;
    std::vector<Slot> slots_;
    std::string texts_;
};

class Database {
public:
    // Makes the file `stem`.db, or `stem`-2.db … where that exists, in `folder`, which is made too.
    Database(const std::string& folder, const std::string& stem, const std::string& guid);
    ~Database();
    Database(const Database&) = delete;
    Database& operator=(const Database&) = delete;

    const std::string& path() const { return path_; }

    enum class Conflict { kFails, kReplaces };
    Insert prepare(const char* table, const char* columns, Conflict conflict = Conflict::kFails);
    Batch batch(const char* table, const char* columns);
    void write(const Fact& fact, std::int64_t node, std::int64_t process);
    void execute(const std::string& sql);
    const std::string& suffix() const { return suffix_; }

    // True when the connection had to be made anew, and with it every Insert: the program closed our descriptor.
    bool begin();
    bool in_transaction() const { return in_transaction_; }
    void commit();

    // Commits to the disk itself and closes.
    void close();
    // Gives up the connection, rolling back what is not committed.
    void abandon() noexcept;

private:
    std::string insert_text(const char* table, const char* columns, const char* verb, int rows) const;
    void make(const std::string& folder, const std::string& stem, const std::string& guid);
    void open();
    bool owns_descriptor() const;
    void check_name() const;

    std::string path_;
    std::string suffix_;
    sqlite3* connection_ = nullptr;
    std::unordered_map<const Table*, Insert> inserts_;
    bool in_transaction_ = false;
    int descriptor_ = -1;  // SQLite's own, to be looked at only
    dev_t device_ = 0;
    ino_t inode_ = 0;
};

}  // namespace rocpd
