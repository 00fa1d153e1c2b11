// Owns the life of the recorder in a process: service threads, fork, flush, the end.
#pragma once

#include <cstdint>
#include <string>

namespace rocpd {

class Texts;
class Facts;

Texts& texts();
Facts& facts();

// Starts the writer, and what else serves the process, when there is none. False when it cannot be started.
bool start_service();

// Waits until everything recorded before is in the file. False when that failed.
bool flush();

// Has the writer close the file, and waits for it at most `ms` beyond its last sign of progress. Asks again in vain:
// safe from exit handlers, destructors and signal handlers at once. Takes no lock and allocates nothing.
void finish(unsigned ms);

// Starts a thread that no signal of the application runs on. False when there is none to be had.
bool start_detached(void* (*body)(void*), void* argument);

// Whether the calling thread was started by that.
bool is_service_thread();

// Gives the file, empty before it exists, the number of events in it and of those lost, as of the last commit.
void writer_status(std::string& file, std::uint64_t& written, std::uint64_t& lost);

}  // namespace rocpd
