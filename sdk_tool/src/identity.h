// Owns what is known of the process and its node when recording begins.
#pragma once

#include <cstdint>
#include <string>

namespace rocpd {

struct Identity {
    std::int64_t pid = 0;
    std::int64_t ppid = 0;
    std::uint64_t init = 0;         // recorder started [ns]
    std::uint64_t start = 0;        // process started [ns]
    std::string command;            // arguments, quoted for a shell where they need it
    std::string environment;        // JSON object
    std::string extdata;            // JSON object
    int rank = -1;                  // of the MPI job, -1 when there is none
    std::int64_t node_id = 0;       // as rocprofv3: 31 bits of the hash
    std::int64_t node_hash = 0;
    std::string machine_id, system, host, release, version, hardware, domain;
};

// Looks at the calling process. `keep_env` stores environment values that look like secrets too.
Identity identify_process(bool keep_env);

// Gives argv as one line that a shell would split into the same words.
std::string shell_line(const std::string& zero_terminated_words);

// Whether an environment variable of this name may hold a secret.
bool looks_secret(const std::string& name);

}  // namespace rocpd
