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

// As roctxProfilerPause and roctxProfilerResume.
void pause();
void resume();

// As the SDK at exit: hands over what is buffered and has the client finish. Safe to call twice.
void finish();

}  // namespace standin
