// State of the stand-in SDK: contexts, buffers, callbacks, external correlation ids. For its own sources.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "rocprofiler.h"
#include "standin_sdk.h"

namespace standin {

constexpr rocprofiler_status_t kGood = ROCPROFILER_STATUS_SUCCESS;

struct Record {
    std::uint32_t kind;
    std::vector<std::uint64_t> bytes;
};

// Two halves: one is filled, the other delivered in a thread of its own. One flag for both: whoever puts a record waits
// until the client has taken all of a delivery. In a forked child the flag is as it was in the parent.
struct Buffer {
    std::uint64_t context;
    std::size_t size, watermark;
    rocprofiler_buffer_tracing_cb_t callback;
    void* data;
    std::atomic<bool> taken{false};  // the flag
    std::vector<Record> records, delivered;
    std::atomic<std::size_t> used{0};
    // Of the thread that delivers, as is this: made anew in a forked child.
    std::mutex mutex;
    std::condition_variable changed;
    bool asked = false;
};

// Which operations of a kind are reported; none: all.
using Operations = std::set<int>;

struct Callback {
    std::uint64_t context;
    rocprofiler_callback_tracing_cb_t call;
    void* data;
    Operations operations;
};

struct Buffered {
    std::uint64_t context, buffer;
    Operations operations;
};

// Never destroyed: threads play until the end.
struct World {
    Ways ways;
    std::mutex mutex;
    std::uint64_t contexts = 0;
    std::atomic<bool> active[16] = {};
    bool locked = false;  // nothing can be configured any more
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::map<int, Callback> callbacks;
    std::map<int, std::vector<Buffered>> buffered;  // by kind
    std::set<int> requests;
    std::set<std::uint64_t> request_contexts;
    rocprofiler_external_correlation_id_request_cb_t request = nullptr;
    void* request_data = nullptr;
    std::mutex pushed_mutex;
    std::map<std::uint64_t, std::vector<std::uint64_t>> pushed;  // by thread
    std::mutex streams_mutex;
    std::map<std::uint64_t, std::uint64_t> streams{{0, 0}};  // hipStream_t -> id, of those that the SDK knows
    rocprofiler_dispatch_counting_service_cb_t count_dispatch = nullptr;
    rocprofiler_dispatch_counting_record_cb_t count_record = nullptr;
    std::uint64_t count_context = 0;
    std::vector<std::uint64_t> counters;  // that are collected
    rocprofiler_tool_configure_result_t* client = nullptr;
    std::atomic<std::uint64_t> correlation{1};
    std::atomic<bool> numbering{false};  // the lock that each call takes for its number
    std::atomic<std::uint64_t> dispatch{1};
    std::atomic<std::uint64_t> longest_put{0};       // [ns]
    std::atomic<std::uint64_t> largest_delivery{0};  // [bytes]
    std::atomic<bool> finished{false};
    bool threads_are_quiet = true;  // the client keeps signals off the threads that the SDK starts
    // Called while a buffer is locked, and while a call gets its number.
    void (*in_put)() = nullptr;
    void (*in_numbering)() = nullptr;
};

World& world();

inline std::uint64_t now() {
    timespec t{};
    clock_gettime(CLOCK_BOOTTIME, &t);
    return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

inline void pause_for(std::uint64_t microseconds) {
    const timespec span{0, static_cast<long>(microseconds) * 1000};
    nanosleep(&span, nullptr);
}

inline std::uint64_t tid() { return static_cast<std::uint64_t>(syscall(SYS_gettid)); }

// Calls the client back twice: when made, and at `leave`, even where its context was stopped in between. The user data
// is carried from one call to the other.
class Told {
public:
    Told(rocprofiler_callback_tracing_kind_t kind, int operation, std::uint64_t id, std::uint64_t parent,
         void* payload);
    void leave(void* payload);
    explicit operator bool() const { return callback_ != nullptr; }

private:
    const Callback* callback_ = nullptr;
    rocprofiler_callback_tracing_record_t record_{};
    rocprofiler_user_data_t user_{};
};

// Starts the thread that delivers.
void serve(Buffer& buffer);

// Starts those threads in a forked child, where the buffers hold what they held in the parent.
void serve_in_child();

// Waits for a flag and sets it.
void take(std::atomic<bool>& flag);

// Has what is in the buffer delivered. Without `wait`, only if nobody uses the buffer.
void flush(Buffer& buffer, bool wait);

// Whether any context is active.
bool is_any_active();

// Whether a context with that service is active, and the operation one of its.
bool is_traced(rocprofiler_callback_tracing_kind_t kind, int operation);

// Puts bytes of a record into the buffer of its kind, unless that is not traced.
void put_bytes(std::uint32_t kind, int operation, const void* bytes, std::size_t size);

template <typename T>
void put(T& record, std::size_t size = sizeof(T)) {
    record.size = size;
    put_bytes(static_cast<std::uint32_t>(record.kind), static_cast<int>(record.operation), &record, size);
}

// Reports the counters of a dispatch to a client that collects some.
void count_dispatch(const rocprofiler_kernel_dispatch_info_t& info);

// The id that the client sets for work of this kind, else the one that the calling thread pushed last. A thread that
// never pushed one inherits the main thread's.
rocprofiler_user_data_t external_id(int kind, std::uint64_t id);

// The number of a stream. The SDK throws for those that it does not know.
std::uint64_t stream_id(std::uint64_t stream);

// Makes a stream known, if its service is active.
void add_stream(std::uint64_t stream);

// Numbers of kinds that later SDKs have.
constexpr int kHipGraph = 33, kPlannedApi = 38, kHipEvent = 39, kLastKind = 40;
constexpr int kGraphCallbacks = 22, kGraphLaunch = 3;

// Makes a stream known and tells the client.
void meet_stream(std::uint64_t stream);

// A HIP call with its arguments, as callbacks and records have them.
struct HipArguments {
    std::uint64_t word[4];
};

struct HipCallData {
    std::uint64_t size;
    HipArguments arguments;
    std::uint64_t result;
};

struct HipCallRecord {
    std::uint64_t size;
    rocprofiler_buffer_tracing_kind_t kind;
    rocprofiler_tracing_operation_t operation;
    rocprofiler_correlation_id_t correlation_id;
    rocprofiler_timestamp_t start_timestamp, end_timestamp;
    rocprofiler_thread_id_t thread_id;
    HipArguments arguments;
    std::uint64_t result;
};

enum HipCall : int {
    kHipInit,
    kHipLaunchKernel,
    kHipMemcpy,
    kSomeCall,
    kHipModuleLoad,
    kHipStreamCreate,
    kHipDeviceGetName,
    kHipStreamSynchronize,
    kHipCalls
};

constexpr auto kRcclCallbacks = static_cast<rocprofiler_callback_tracing_kind_t>(14);

}  // namespace standin
