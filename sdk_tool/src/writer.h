// The writer thread: when rings are emptied, when the file is committed, and what happens when that fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "identity.h"
#include "rows.h"
#include "state.h"

namespace rocpd {

class Writer {
public:
    explicit Writer(Identity identity) : identity_(std::move(identity)) {}

    // The thread's body. Ends when the file is closed or cannot be written.
    void run();

    // Held while SQLite works: fork() waits for it, so that the child's copy of SQLite is consistent.
    std::mutex& gate() { return gate_; }
    std::atomic<int>& forks_waiting() { return forks_waiting_; }

    void status(std::string& file, std::uint64_t& written, std::uint64_t& lost);

private:
    void work();
    void step();
    void drain();
    void drain_thread(ThreadBuffer& thread);
    std::size_t drain_some(ThreadBuffer& thread, std::size_t entries);
    void take(ThreadBuffer& thread, const Head& entry);
    void remove(ThreadBuffer* thread);
    static const Head* next_entry(ThreadBuffer& thread);
    void open();
    void begin();
    void commit();
    void finish();
    void end(Phase phase);
    void fail(const std::string& why);
    Losses losses() const;
    void publish_status();
    template <typename Action>
    void gated(Action action);
    template <typename Action>
    void persist(Action action);

    const Identity identity_;
    std::unique_ptr<Rows> rows_;
    std::vector<ThreadBuffer*> threads_;  // a member, because nothing may be allocated or freed outside the gate
    std::unordered_map<std::uint32_t, std::string> names_;  // of threads that were named before there was a file
    std::mutex gate_;
    std::atomic<int> forks_waiting_{0};
    Losses of_ended_;  // of threads that have ended
    std::uint64_t committed_ = 0;
    std::mutex status_mutex_;
    std::string status_file_;
    std::atomic<std::uint64_t> status_written_{0};
    std::atomic<std::uint64_t> status_lost_{0};
};

}  // namespace rocpd
