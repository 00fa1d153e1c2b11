#include "code_objects.h"

#include <string>

#include "agents.h"
#include "json.h"
#include "names.h"
#include "rocpd/recorder.h"

namespace rocpd::client {
namespace {

// `_Z3addPfS_.kd` → `add(float*, float*)`; a name that is not mangled loses its ending only.
std::string readable_name(std::string name) {
    if (name.size() > 3 && name.compare(name.size() - 3, 3, ".kd") == 0) name.resize(name.size() - 3);
    return demangled(name);
}

// Drops return type, template arguments and parameters: `void f<int>(float*)` → `f`.
std::string short_name(const std::string& name) {
    std::size_t end = name.find_first_of("<(");
    if (end == std::string::npos || end == 0) return name;
    const std::size_t blank = name.rfind(' ', end);
    const std::size_t begin = blank == std::string::npos ? 0 : blank + 1;
    return name.substr(begin, end - begin);
}

std::string handle(std::uint64_t value) { return Json().add("handle", value).text(); }

void on_load(const rocprofiler_callback_tracing_code_object_load_data_t& data) {
    Json json;
    json.add("size", data.size).add("code_object_id", data.code_object_id);
    json.add_json("agent_id", handle(data.agent_id.handle)).add("uri", data.uri).add("load_base", data.load_base);
    json.add("load_size", data.load_size).add("load_delta", static_cast<std::uint64_t>(data.load_delta));
    json.add("storage_type", static_cast<int>(data.storage_type));
    const bool memory = data.storage_type == ROCPROFILER_CODE_OBJECT_STORAGE_TYPE_MEMORY;
    if (memory) json.add("memory_base", data.memory_base).add("memory_size", data.memory_size);
    const std::string extdata = json.text();
    rocpd_code_object_t object{};
    object.id = static_cast<std::int64_t>(data.code_object_id);
    object.agent_id = agent_of(data.agent_id);
    object.uri = data.uri;
    object.load_base = data.load_base;
    object.load_size = data.load_size;
    object.load_delta = static_cast<std::uint64_t>(data.load_delta);
    object.storage_type = memory ? "MEMORY" : "FILE";
    object.extdata = extdata.c_str();
    rocpd_register_code_object(&object);
}

void on_symbol(const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t& data) {
    const std::string mangled = data.kernel_name != nullptr ? data.kernel_name : "";
    const std::string plain = readable_name(mangled);
    Json json;
    json.add("size", data.size).add("kernel_id", data.kernel_id).add("code_object_id", data.code_object_id);
    json.add("kernel_name", mangled).add("kernel_object", data.kernel_object);
    json.add("kernarg_segment_size", data.kernarg_segment_size);
    json.add("kernarg_segment_alignment", data.kernarg_segment_alignment);
    json.add("group_segment_size", data.group_segment_size).add("private_segment_size", data.private_segment_size);
    json.add("sgpr_count", data.sgpr_count).add("arch_vgpr_count", data.arch_vgpr_count);
    json.add("accum_vgpr_count", data.accum_vgpr_count);
    json.add("kernel_code_entry_byte_offset", data.kernel_code_entry_byte_offset);
    json.add_json("kernel_address", handle(data.kernel_address.handle)).add("formatted_kernel_name", plain);
    json.add("demangled_kernel_name", plain).add("truncated_kernel_name", short_name(plain));
    const std::string extdata = json.text();
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
    symbol.extdata = extdata.c_str();
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
