// What the probe's scenarios share: each is one way in which a process lives or ends.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rocpd/recorder.h"

extern "C" {
int roctxRangePushA(const char* message);
int roctxRangePop();
void roctxMarkA(const char* message);
uint64_t roctxRangeStartA(const char* message);
void roctxRangeStop(uint64_t id);
int roctxProfilerPause(uint64_t tid);
int roctxProfilerResume(uint64_t tid);
int roctxNameOsThread(const char* name);
int roctxNameHsaAgent(const char* name, const void* agent);
int roctxNameHipDevice(const char* name, int device);
int roctxNameHipStream(const char* name, const void* stream);
int roctxGetThreadId(uint64_t* tid);
uint32_t roctx_version_major();
uint32_t roctx_version_minor();
}

namespace probe {

using Arguments = std::vector<std::string>;
using Scenarios = std::map<std::string, int (*)(const Arguments&)>;

constexpr int kCode = 7;

// Records so many ranges.
void ranges(int count, const char* text = "range");

// Runs `body` in so many threads at once.
void run_threads(int threads, const std::function<void(int)>& body);

inline rocpd_text_t text(const char* s) { return rocpd_text(s, std::strlen(s)); }

// Scenarios of one source each.
Scenarios ways_to_live();
Scenarios ways_to_end();
Scenarios kinds_of_events();

}  // namespace probe
