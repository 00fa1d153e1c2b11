// A stand-in for rocprofiler-sdk, for tests only: it has the C functions that the client uses and plays a script of
// GPU work through the client's callbacks and buffers, from many threads. Nothing here talks to a GPU. Where the SDK is
// hard on its clients, the stand-in is too: each such way was seen in SDK 1.0.0 or is in its public source.
#pragma once

#include <cstdint>

#include "rocprofiler.h"

namespace standin {

// What differs between versions of the SDK and between machines.
struct Ways {
    bool as_calls = false;        // markers are reported as calls, and calls without their arguments
    bool small_agents = false;    // the SDK's agents lack the last fields that the client knows
    bool large_agents = false;    // they have more
    bool no_agents = false;       // no size of agents is right
    bool other_counts = false;    // another tool counts: a context with counters cannot start
    bool appended = false;        // records have more fields than the client knows
    bool later = false;           // kinds that the client does not know
};

// To be called before start().
void behave(const Ways& ways);

// Finds rocprofiler_configure as the SDK does, and has the client set itself up. False when there is no client.
bool start(std::uint32_t version = 10100);

// What one thread of an application does, `rounds` times: a range; in it a malloc, copies, kernels on two streams,
// now and then a mark, scratch memory, an RCCL and HSA call, and a range that another thread ends.
void work(int rounds);

// A call without work on the GPU.
void call();

// As hipModuleLoad and hipDeviceGetName; their strings are read when the record is.
void load_module(const char* path);
void get_name(char* name);

// As hipStreamCreate; `stream` is the hipStream_t.
void create_stream(std::uint64_t stream);
constexpr std::uint64_t kStream = 0x5001;  // made by start()
constexpr std::uint64_t kStreamPerThread = 2;

// A kernel on a stream.
void launch_on(std::uint64_t stream);

// RCCL above the stand-in: a communicator of processes that see how far the others are in a file that they share,
// $ROCPD_STANDIN_JOB. A kernel of an operation is over when all have launched theirs.
void init_comm(int size, int member);
void destroy_comm();
void all_reduce();
void send_on();             // in a group of calls: to the next member, and from the one before
void capture_all_reduce();  // launches nothing, as into a graph
void synchronize();         // as hipStreamSynchronize

// A range with one call that launches so many kernels.
void graph(int kernels);

// What only some versions report: events of the driver, of rocDecode, rocJPEG and OpenMP, of HIP's events and graphs,
// and of a library that nobody knows yet.
void rare();

// A range of the thread and one of the process that never end.
void leave_open();

// As roctxRangePush, roctxRangePop, roctxMark. The SDK keeps the ranges of a thread while their service is active only.
void push(const char* text);
void pop();
void mark(const char* text);

// As roctxNameOsThread and its kin; `operation` is one of rocprofiler_marker_name_api_id_t.
void name(int operation, const char* text);
void name_stream(const char* text, std::uint64_t stream);

// As roctxProfilerPause and roctxProfilerResume.
void pause();
void resume();

// Has `handler` called in the middle of whatever puts a record into a buffer.
void interrupt_puts(void (*handler)());

// Has it called while a call gets its number.
void interrupt_numbering(void (*handler)());

// The longest time that a call waited for room in a buffer [ns], and the most that it can have waited for: the records
// of one delivery [bytes].
std::uint64_t longest_wait();
std::uint64_t largest_delivery();

// As the SDK at exit: delivers what is buffered and finalizes the client. Idempotent.
void finish();

}  // namespace standin
