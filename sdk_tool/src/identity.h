// The description of the process and its node when recording starts.
#pragma once

#include <cstdint>
#include <string>

#include "secrets.h"

namespace rocpd {

struct Identity {
    std::int64_t pid = 0;
    std::int64_t ppid = 0;
    std::uint64_t init = 0;         // recorder started [ns]
    std::uint64_t start = 0;        // process started [ns]
    std::string command;            // arguments, quoted for a shell where they need it
    std::string environment;        // JSON object
    std::string extdata;            // JSON object
    int rank = -1;                  // MPI rank, -1 without one
    std::int64_t node_id = 0;       // 31 bits of the hash, as rocprofv3 has it
    std::int64_t node_hash = 0;
    std::string machine_id, system, host, release, version, hardware, domain;
};

// Describes the calling process; what looks like a secret and is not kept is masked.
Identity identify_process(const Kept& kept);

// Returns the number of the pid namespace, 0 where it is not known: processes of two containers may have one pid.
unsigned long long pid_namespace();

// Returns argv as one line that a shell would split into the same words.
std::string shell_line(const std::string& zero_terminated_words);

}  // namespace rocpd
