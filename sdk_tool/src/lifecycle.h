// The life of the recorder in a process: service threads, fork, flush, the end.
#pragma once

#include <cstdint>
#include <string>

namespace rocpd {

class Texts;
class Registrations;

Texts& texts();
Registrations& registrations();

// Starts the writer and the other service threads unless they run. Returns false when the writer cannot be started.
bool start_service();

// Waits until everything recorded before is in the file. Returns false when that failed.
bool flush();

// Makes the writer close the file, and waits for it at most `ms` after its last sign of progress. Idempotent, and safe
// in exit handlers, destructors and signal handlers at the same time: takes no lock and allocates nothing.
void finish(unsigned ms);

// Starts a thread of the recorder's own. Returns false when the system allows no further thread.
bool start_service_thread(void* (*body)(void*), void* argument);

// Whether the calling thread was started by start_service_thread.
bool is_service_thread();

// Sets the path of the file, empty before it exists, and the number of events in it and of those lost, as of the last
// commit.
void writer_status(std::string& file, std::uint64_t& written, std::uint64_t& lost);

}  // namespace rocpd
