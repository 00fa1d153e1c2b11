// Prepared INSERT statements: of one row, and of many rows at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "registrations.h"

struct sqlite3;
struct sqlite3_stmt;

namespace rocpd {

// A prepared statement that returns no rows; values are bound in the order of its parameters.
class Insert {
public:
    Insert() = default;
    Insert(sqlite3* connection, const std::string& sql);
    ~Insert();
    Insert(Insert&& other) noexcept;
    Insert& operator=(Insert&& other) noexcept;
    Insert(const Insert&) = delete;
    Insert& operator=(const Insert&) = delete;

    Insert& integer(std::int64_t value);
    Insert& real(double value);
    Insert& text(std::string_view value);  // must live until run()
    Insert& nothing();
    Insert& cell(const Cell& value);
    void run();
    bool prepared() const { return statement_ != nullptr; }
    // Forgets the statement of a connection that must not be touched any more.
    void leak() { statement_ = nullptr; }

private:
    Insert& bound(int code);

    sqlite3_stmt* statement_ = nullptr;
    int next_ = 0;
    int failed_ = 0;  // error code of the first value that could not be bound
};

// Rows of one table, inserted many at a time: one statement inserts kRows of them, another a single one of the rest. A
// statement costs SQLite about as much as a row (AUTOINCREMENT reads and writes its counter once per statement).
class Batch {
public:
    static constexpr int kRows = 40;

    Batch() = default;
    Batch(Insert many, Insert one) : many_(std::move(many)), one_(std::move(one)) {}

    Batch& integer(std::int64_t value) {
        slots_.push_back({Kind::kInteger, value, 0, 0});
        return *this;
    }
    // NULL when the number is negative.
    Batch& integer_or_null(std::int64_t value) { return value < 0 ? nothing() : integer(value); }
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

}  // namespace rocpd
