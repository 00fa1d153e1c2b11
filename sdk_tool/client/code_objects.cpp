#include "code_objects.h"

#include <cxxabi.h>

#include <cstdlib>
#include <string>

#include "json.h"
#include "agents.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

// `_Z3addPfS_.kd` → `add(float*, float*)`; a name that is not mangled loses its ending only.
std::string readable_name(std::string name) {
    if (name.size() > 3 && name.compare(name.size() - 3, 3, ".kd") == 0) name.resize(name.size() - 3);
    int status = 0;
    char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    if (status == 0 && plain != nullptr) name = plain;
    std::free(plain);
    return name;
}

// Drops return type, template arguments and parameters: `void f<int>(float*)` → `f`.
std::string short_name(const std::string& name) {
    std::size_t end = name.find_first_of("<(");
    if (end == std::string::npos || end == 0) return name;
    const std::size_t blank = name.rfind(' ', end);
    const std::size_t begin = blank == std::string::npos ? 0 : blank + 1;
    return name.substr(begin, end - begin);
}

void add(std::string& json, const char* name, std::uint64_t value) {
    json += (json.size() > 1 ? ",\"" : "\"") + std::string(name) + "\":" + std::to_string(value);
}

void add(std::string& json, const char* name, const std::string& value) {
    json += (json.size() > 1 ? ",\"" : "\"") + std::string(name) + "\":";
    append_json(json, value);
}

void on_load(const rocprofiler_callback_tracing_code_object_load_data_t& data) {
    std::string json = "{";
    add(json, "code_object_id", data.code_object_id);
    add(json, "uri", std::string(data.uri != nullptr ? data.uri : ""));
    add(json, "load_base", data.load_base);
    add(json, "load_size", data.load_size);
    add(json, "storage_type", static_cast<std::uint64_t>(data.storage_type));
    const bool memory = data.storage_type == ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY;
    if (memory) {
        add(json, "memory_base", data.memory_base);
        add(json, "memory_size", data.memory_size);
    }
    json += '}';
    rocpd_code_object_t object{};
    object.id = static_cast<std::int64_t>(data.code_object_id);
    object.agent_id = agent_of(data.agent_id);
    object.uri = data.uri;
    object.load_base = data.load_base;
    object.load_size = data.load_size;
    object.load_delta = static_cast<std::uint64_t>(data.load_delta);
    object.storage_type = memory ? "MEMORY" : "FILE";
    object.extdata = json.c_str();
    rocpd_register_code_object(&object);
}

void on_symbol(const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t& data) {
    const std::string mangled = data.kernel_name != nullptr ? data.kernel_name : "";
    const std::string plain = readable_name(mangled);
    std::string json = "{";
    add(json, "kernel_id", data.kernel_id);
    add(json, "code_object_id", data.code_object_id);
    add(json, "kernel_name", mangled);
    add(json, "kernel_object", data.kernel_object);
    add(json, "kernel_code_entry_byte_offset", static_cast<std::uint64_t>(data.kernel_code_entry_byte_offset));
    json += ",\"kernel_address\":{\"handle\":" + std::to_string(data.kernel_address.handle) + "}";
    add(json, "formatted_kernel_name", plain);
    add(json, "demangled_kernel_name", plain);
    add(json, "truncated_kernel_name", short_name(plain));
    json += '}';
    rocpd_kernel_symbol_t symbol{};
    symbol.id = static_cast<std::int64_t>(data.kernel_id);
    symbol.code_object_id = static_cast<std::int64_t>(data.code_object_id);
    symbol.kernel_name = mangled.c_str();
    symbol.display_name = plain.c_str();
    symbol.kernel_object = data.kernel_object;
    symbol.kernarg_segment_size = data.kernarg_segment_size;
    symbol.kernarg_segment_alignment = data.kernarg_segment_alignment;
    symbol.group_segment_size = data.group_segment_size;
    symbol.private_segment_size = data.private_segment_size;
    symbol.sgpr_count = data.sgpr_count;
    symbol.arch_vgpr_count = data.arch_vgpr_count;
    symbol.accum_vgpr_count = data.accum_vgpr_count;
    symbol.extdata = json.c_str();
    rocpd_register_kernel_symbol(&symbol);
}

}  // namespace

void on_code_object(rocprofiler_callback_tracing_record_t event, rocprofiler_user_data_t*, void*) {
    if (event.phase != ROCPROFILER_CALLBACK_PHASE_LOAD) return;
    if (event.operation == ROCPROFILER_CODE_OBJECT_LOAD)
        on_load(*static_cast<const rocprofiler_callback_tracing_code_object_load_data_t*>(event.payload));
    else if (event.operation == ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER)
        on_symbol(*static_cast<const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t*>(
            event.payload));
}

}  // namespace rocpd::client
