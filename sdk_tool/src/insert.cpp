#include "insert.h"

#include <sqlite3.h>

#include <utility>

#include "sqlite.h"

namespace rocpd {

Insert::Insert(sqlite3* connection, const std::string& sql) {
    check(connection,
          sqlite3_prepare_v3(connection, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement_, nullptr),
          "cannot write");
}

Insert::~Insert() { sqlite3_finalize(statement_); }

Insert::Insert(Insert&& other) noexcept
    : statement_(std::exchange(other.statement_, nullptr)), next_(other.next_), failed_(other.failed_) {}

Insert& Insert::operator=(Insert&& other) noexcept {
    std::swap(statement_, other.statement_);
    std::swap(next_, other.next_);
    std::swap(failed_, other.failed_);
    return *this;
}

Insert& Insert::bound(int code) {
    if (failed_ == SQLITE_OK) failed_ = code;
    return *this;
}

Insert& Insert::integer(std::int64_t value) { return bound(sqlite3_bind_int64(statement_, ++next_, value)); }

Insert& Insert::real(double value) { return bound(sqlite3_bind_double(statement_, ++next_, value)); }

Insert& Insert::text(std::string_view value) {
    return bound(sqlite3_bind_text64(statement_, ++next_, value.data(), value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

Insert& Insert::nothing() { return bound(sqlite3_bind_null(statement_, ++next_)); }

Insert& Insert::cell(const Cell& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return integer(*number);
    if (const auto* number = std::get_if<double>(&value)) return real(*number);
    if (const auto* string = std::get_if<std::string>(&value)) return text(*string);
    return nothing();
}

void Insert::run() {
    next_ = 0;
    const int bound = std::exchange(failed_, SQLITE_OK);
    const int code = bound == SQLITE_OK ? sqlite3_step(statement_) : bound;
    sqlite3_reset(statement_);  // returns the error of the step again
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

}  // namespace rocpd
