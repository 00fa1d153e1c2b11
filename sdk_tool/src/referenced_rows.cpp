#include "referenced_rows.h"

#include <cstdio>
#include <utility>
#include <vector>

#include "json.h"
#include "lifecycle.h"
#include "texts.h"

namespace rocpd {
namespace {

// The operating system's name of the thread; NULL when it is gone.
Cell name_in_system(std::uint32_t tid) {
    const std::string path = "/proc/self/task/" + std::to_string(tid) + "/comm";
    std::string name;
    if (FILE* file = std::fopen(path.c_str(), "re")) {
        char text[64];
        if (std::fgets(text, sizeof text, file) != nullptr) name = text;
        std::fclose(file);
    }
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name.empty() ? Cell(nullptr) : Cell(readable(name));
}

std::string numbered(const char* what, std::int64_t id) { return what + (" " + std::to_string(id)); }

}  // namespace

void ReferencedRows::write_new() {
    const std::vector<Registration> fresh = registrations().after(registrations_written_);
    registrations_written_ += fresh.size();
    for (const Registration& row : fresh) {
        if (row.table == &kMetadata) {
            tables_.note(std::get<std::string>(row.cells[0]), std::get<std::string>(row.cells[1]));
            continue;
        }
        known_[row.table].insert(std::get<std::int64_t>(row.cells.front()));
        tables_.put(row);
    }
    for (const Registration& row : fresh) needed_by(row);
    // After the rows, which name texts.
    for (const std::string_view text : texts().after(texts_written_)) tables_.string(++texts_written_, text);
}

void ReferencedRows::needed_by(const Registration& row) {
    if (row.table != &kCodeObject && row.table != &kPmc && row.table != &kSymbol) return;
    const auto* second = std::get_if<std::int64_t>(&row.cells[1]);
    if (second == nullptr) return;
    if (row.table == &kSymbol)
        code_object(*second);
    else
        agent(*second);
}

void ReferencedRows::thread(std::uint32_t tid, Cell began) {
    if (is_new(kThreadTable, tid)) put_thread(tid, name_in_system(tid), std::move(began));
}

void ReferencedRows::put_thread(std::uint32_t tid, Cell name, Cell began) {
    const Identity& id = tables_.identity();
    tables_.put(kThreadTable,
                {std::int64_t{tid}, id.node_id, id.ppid, id.pid, std::int64_t{tid}, std::move(name), std::move(began)});
}

void ReferencedRows::name_thread(std::uint32_t tid, std::string_view name, std::uint64_t began) {
    is_new(kThreadTable, tid);
    put_thread(tid, readable(name), static_cast<std::int64_t>(began));
}

void ReferencedRows::end_thread(std::uint32_t tid, std::uint64_t time) {
    if (known_[&kThreadTable].count(tid) != 0) tables_.end_thread(tid, time);
}

void ReferencedRows::agent(std::int64_t id) {
    if (!is_new(kAgent, id)) return;
    std::vector<Cell> cells(12, nullptr);
    cells[0] = cells[2] = id;
    cells[6] = numbered("agent", id);
    cells[11] = std::string("{}");
    tables_.put(kAgent, std::move(cells));
}

void ReferencedRows::plain(const Table& table, std::int64_t id, const char* what) {
    if (!is_new(table, id)) return;
    tables_.put(table, {id, id == 0 ? std::string("Default ") + what : numbered(what, id)});
}

void ReferencedRows::code_object(std::int64_t id) {
    if (!is_new(kCodeObject, id)) return;
    std::vector<Cell> cells(8, nullptr);
    cells[0] = id;
    cells[2] = std::string("unknown");
    cells[7] = std::string("{}");
    tables_.put(kCodeObject, std::move(cells));
}

void ReferencedRows::kernel(std::int64_t id) {
    if (!is_new(kSymbol, id)) return;
    code_object(0);
    std::vector<Cell> cells(13, nullptr);
    cells[0] = id;
    cells[1] = std::int64_t{0};
    cells[2] = cells[3] = numbered("kernel", id);
    cells[12] = std::string("{}");
    tables_.put(kSymbol, std::move(cells));
}

void ReferencedRows::counter(std::int64_t id) {
    if (!is_new(kPmc, id)) return;
    std::vector<Cell> cells(16, nullptr);
    cells[0] = id;
    cells[5] = cells[6] = numbered("counter", id);
    cells[9] = std::string();
    cells[15] = std::string("{}");
    tables_.put(kPmc, std::move(cells));
}

std::int64_t ReferencedRows::track_of_thread(std::uint32_t tid, std::uint32_t name) {
    thread(tid, nullptr);
    const auto [known, is_new] = thread_tracks_.try_emplace({tid, name});
    if (!is_new) return known->second;
    known->second = g_next_track.fetch_add(1);
    tables_.put(kThreadTrack, {known->second, std::int64_t{name}, std::int64_t{tid}});
    return known->second;
}

void ReferencedRows::track(std::int64_t id) {
    if (!is_new(kTrack, id)) return;
    tables_.put(kTrack, {id, std::int64_t{texts().number(numbered("track", id))}});
}

}  // namespace rocpd
