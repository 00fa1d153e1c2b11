// Names as the recorder numbers them, of kinds and functions, each asked for once.
#pragma once

#include <cstdint>
#include <string>

#include "rocpd/recorder.h"
#include "sdk.h"

namespace rocpd::client {

rocpd_text_t text_of(const char* text);

// The SDK's name of a kind of records, which rocprofv3 writes as the category.
rocpd_text_t category_of(std::uint32_t kind);

// The name of a function, or of whatever else the kind distinguishes.
rocpd_text_t function_of(std::uint32_t kind, rocprofiler_tracing_operation_t operation);

// A name as C++ writes it; unchanged where it is not mangled.
std::string demangled(const std::string& name);

}  // namespace rocpd::client
