// The roctx functions that this library has.
#pragma once

#include <cstdint>

extern "C" {
void roctxMarkA(const char* message);
int roctxRangePushA(const char* message);
int roctxRangePop();
std::uint64_t roctxRangeStartA(const char* message);
void roctxRangeStop(std::uint64_t id);
int roctxNameOsThread(const char* name);
}
