// State of the stand-in SDK: contexts, buffers, callbacks, external correlation ids. For its own sources.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "rocprofiler.h"

namespace standin {

constexpr rocprofiler_status_t kGood = ROCPROFILER_STATUS_SUCCESS;

struct Record {
    std::uint32_t kind;
    std::vector<std::uint64_t> bytes;
};

struct Buffer {
    std::uint64_t context;
    std::size_t watermark;
    rocprofiler_buffer_tracing_cb_t callback;
    void* data;
    std::mutex mutex;
    std::vector<Record> records;
    std::size_t used = 0;
};

struct Callback {
    std::uint64_t context;
    rocprofiler_callback_tracing_cb_t call;
    void* data;
};

// Never destroyed: threads play until the end.
struct World {
    std::mutex mutex;
    std::uint64_t contexts = 0;
    std::atomic<bool> active[8] = {};
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::map<int, Callback> callbacks;
    std::map<int, std::uint64_t> buffered;  // kind -> buffer
    std::set<int> requests;
    rocprofiler_external_correlation_id_request_cb_t request = nullptr;
    void* request_data = nullptr;
    std::mutex pushed_mutex;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::vector<std::uint64_t>> pushed;  // context, thread
    rocprofiler_dispatch_counting_service_cb_t count_dispatch = nullptr;
    rocprofiler_dispatch_counting_record_cb_t count_record = nullptr;
    std::uint64_t count_context = 0;
    std::vector<std::uint64_t> counters;  // that are collected
    rocprofiler_tool_configure_result_t* client = nullptr;
    std::atomic<std::uint64_t> correlation{1};
    std::atomic<std::uint64_t> dispatch{1};
    std::atomic<bool> finished{false};
    bool as_calls = false;       // markers are reported as calls, and calls without their arguments
    bool threads_are_quiet = true;  // the client keeps signals off the threads that the SDK starts
    void (*in_put)() = nullptr;  // called while a buffer is locked
};

World& world();

inline std::uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

inline std::uint64_t tid() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

// Calls the client back twice: when made, and at `leave`, even where its context was stopped in between. The user data
// is carried from one call to the other.
class Told {
public:
    Told(rocprofiler_callback_tracing_kind_t kind, int operation, std::uint64_t id, std::uint64_t parent,
         void* payload);
    void leave(void* payload);

private:
    const Callback* callback_ = nullptr;
    rocprofiler_callback_tracing_record_t record_{};
    rocprofiler_user_data_t user_{};
};

// Hands records to the client.
void deliver(Buffer& buffer, std::vector<Record>& records);

// Puts bytes of a record into the buffer of its kind, unless that is not traced.
void put_bytes(std::uint32_t kind, const void* bytes, std::size_t size);

template <typename T>
void put(T& record) {
    record.size = sizeof record;
    put_bytes(static_cast<std::uint32_t>(record.kind), &record, sizeof record);
}

// Reports the counters of a dispatch to a client that collects some.
void count_dispatch(const rocprofiler_kernel_dispatch_info_t& info);

// The id that the client sets for work of this kind, else the one that the calling thread pushed last.
rocprofiler_user_data_t external_id(rocprofiler_external_correlation_id_request_kind_t kind, std::uint64_t id);

// What the calling thread pushed last.
rocprofiler_user_data_t pushed_id();

}  // namespace standin
