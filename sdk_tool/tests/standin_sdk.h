// A stand-in for rocprofiler-sdk, for tests only: it has the C functions that the client uses and plays a script of
// GPU work through the client's callbacks and buffers, from many threads. Nothing here talks to a GPU.
#pragma once

#include <cstdint>

#include "rocprofiler.h"

namespace standin {

// Finds rocprofiler_configure as the SDK does, and has the client set itself up. False when there is no client.
bool start(std::uint32_t version = 10100);

// What one thread of an application does, `rounds` times: a range; in it a malloc, copies, kernels on two streams,
// now and then a mark, scratch memory, an RCCL and HSA call, and a range that another thread ends.
void work(int rounds);

// A range with one call that launches so many kernels.
void graph(int kernels);

// A range of the thread and one of the process that never end.
void leave_open();

// A range that begins before a pause and ends in it.
void across_pause();

// As roctxNameOsThread and its kin; `operation` is one of rocprofiler_marker_name_api_id_t.
void name(int operation, const char* text);
void name_stream(const char* text, std::uint64_t stream);

// As roctxProfilerPause and roctxProfilerResume.
void pause();
void resume();

// Before start(): behave as SDKs that report ranges only by the calls that start and end them, and no arguments.
void tell_ranges_as_calls();

// Has `handler` called in the middle of whatever puts a record into a buffer.
void interrupt_puts(void (*handler)());

// As the SDK at exit: delivers what is buffered and finalizes the client. Idempotent.
void finish();

}  // namespace standin
