// The settings: environment variables, read once per process.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>

namespace rocpd {

struct Config {
    std::string folder;                 // ROCPD_OUTPUT_PATH, absolute: a daemon changes its working directory
    bool start = true;                  // ROCPD_START=0: recording waits for `rocpd control start` or rocpd_start
    unsigned flush_ms = 1000;           // ROCPD_FLUSH_MS
    bool drop = false;                  // ROCPD_OVERFLOW=drop: lose events rather than wait for the writer
    std::size_t buffer_limit = 4 << 20; // ROCPD_BUFFER_KB: most that one thread's buffer grows to [bytes]
    double sample_hz = 0;               // ROCPD_SAMPLE_HZ
    double smi_hz = 0;                  // ROCPD_SMI
    double python_hz = 0;               // ROCPD_PYTHON_STACKS
    double stacks_hz = 0;               // ROCPD_STACKS, per second of CPU time
    double stacks_wall_hz = 0;          // ROCPD_STACKS_WALL, per second; then not by CPU time
    std::string stack_threads;          // ROCPD_STACK_THREADS: all, main, or a regular expression for their names
    std::string keep_env;               // ROCPD_KEEP_ENV: names of variables to store as they are, or all
    bool group = false;                 // ROCPD_GROUP: the group may read the files
    bool control = true;                // ROCPD_CONTROL=0: no socket
    bool signals = true;                // ROCPD_SIGNALS=0: no handlers
    std::string control_folder;         // ROCPD_CONTROL_DIR
    std::string run;                    // ROCPD_RUN: `rocpd record` finds its files by this
};

constexpr std::size_t kSmallestRing = 256 << 10;

const Config& config();

// Held over fork(): a child must not find the settings half read by a thread that it does not have.
std::mutex& config_mutex();

}  // namespace rocpd
