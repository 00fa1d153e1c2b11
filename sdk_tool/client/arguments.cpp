#include "arguments.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "forks.h"
#include "kinds.h"
#include "names.h"
#include "pending.h"
#include "streams.h"

namespace rocpd::client {
namespace {

constexpr std::size_t kLongestText = 32768;                         // as the recorder cuts them [bytes]
constexpr std::size_t kLargestRecord = 65536;                       // [bytes]
constexpr std::size_t kInRecord = sizeof(rocprofiler_buffer_tracing_hip_api_record_t);  // arguments start there
constexpr std::size_t kInCallback = sizeof(std::uint64_t);          // after the size

enum class Role { kText, kTextToFill, kStream, kNewStream };

struct Slot {
    std::size_t position;  // among the arguments
    std::size_t offset;    // after the first [bytes]
    Role role;
};

class Signature {
public:
    bool readable = true;  // all places of texts are known
    bool makes_stream = false;
    std::string waits;  // its name, where it waits for the GPU
    std::vector<std::pair<std::string, std::string>> names;  // type and name of each argument
    std::vector<Slot> slots;                                 // of those that need care

    bool has(Role role) const {
        return std::any_of(slots.begin(), slots.end(), [role](const Slot& slot) { return slot.role == role; });
    }
    bool has_texts() const { return has(Role::kText) || has(Role::kTextToFill); }
    bool needs_callback() const {
        return has(Role::kText) || has(Role::kStream) || (has(Role::kNewStream) && makes_stream) || !waits.empty();
    }
    // Type and name of each argument, as the recorder numbers them: asked for at the first call, as few are ever
    // called.
    const std::vector<rocpd_argument_t>& arguments() {
        std::call_once(numbered_, [&] {
            for (const auto& [type, name] : names)
                arguments_.push_back({text_of(demangled(type).c_str()), text_of(name.c_str()), nullptr, 0});
        });
        return arguments_;
    }

private:
    std::once_flag numbered_;
    std::vector<rocpd_argument_t> arguments_;
};

using Key = std::pair<std::uint32_t, rocprofiler_tracing_operation_t>;  // kind of records, operation

// Filled before any context starts and only read from then on.
std::map<Key, Signature>& signatures() {
    static auto& only = *new std::map<Key, Signature>;
    return only;
}

Signature* signature_of(std::uint32_t kind, rocprofiler_tracing_operation_t operation) {
    const auto found = signatures().find({kind, operation});
    return found != signatures().end() ? &found->second : nullptr;
}

struct KeptText {
    std::size_t position;
    std::string text;
};

Pending<std::vector<KeptText>>& g_kept = *new Pending<std::vector<KeptText>>;

// ---- learning ----

constexpr std::size_t kBlank = 4096;  // [bytes]

struct BlankRecord {
    alignas(16) unsigned char bytes[kBlank] = {};
    Signature* signature = nullptr;    // to fill
    const void* first = nullptr;       // address of the first argument
};

bool role_of(const char* type, Role& role) {
    static const std::map<std::string, Role> roles = {{"PKc", Role::kText},
                                                      {"Pc", Role::kTextToFill},
                                                      {"P12ihipStream_t", Role::kStream},
                                                      {"PP12ihipStream_t", Role::kNewStream}};
    const auto found = roles.find(type != nullptr ? type : "");
    if (found == roles.end()) return false;
    role = found->second;
    return true;
}

int learn_argument(rocprofiler_buffer_tracing_kind_t, rocprofiler_tracing_operation_t, std::uint32_t position,
                   const void* const address, std::int32_t, const char* type, const char* name, const char*,
                   void* data) {
    auto& blank = *static_cast<BlankRecord*>(data);
    blank.signature->names.emplace_back(type != nullptr ? type : "", name != nullptr ? name : "");
    // The SDK may iterate over a copy of the arguments: only where they are relative to the first one says something.
    if (position == 0) blank.first = address;
    Role role{};
    if (!role_of(type, role)) return 0;
    const std::uintptr_t offset =
        reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(blank.first);
    if (blank.first == nullptr || offset >= kBlank - kInRecord)
        blank.signature->readable = false;
    else
        blank.signature->slots.push_back({position, offset, role});
    return 0;
}

// Whether a function of HIP returns only when work on the GPU is over.
bool waits_for_gpu(const std::string& name) {
    const auto begins = [&name](const char* with) { return name.rfind(with, 0) == 0; };
    const auto has = [&name](const char* part) { return name.find(part) != std::string::npos; };
    if (!begins("hip") || has("Async")) return false;
    return has("Synchronize") || begins("hipMemcpy") || begins("hipFree") || begins("hipHostFree");
}

int learn_operation(rocprofiler_buffer_tracing_kind_t kind, rocprofiler_tracing_operation_t operation, void*) {
    static auto& blank = *new BlankRecord;
    blank.signature = &signatures()[{static_cast<std::uint32_t>(kind), operation}];
    blank.first = nullptr;
    auto* record = reinterpret_cast<rocprofiler_buffer_tracing_hip_api_record_t*>(blank.bytes);
    record->size = sizeof blank.bytes;
    record->kind = kind;
    record->operation = operation;
    rocprofiler_record_header_t header{};
    header.category = ROCPROFILER_BUFFER_CATEGORY_TRACING;
    header.kind = static_cast<std::uint32_t>(kind);
    header.payload = blank.bytes;
    g_sdk.iterate_buffer_tracing_record_args(header, learn_argument, &blank);
    const char* name = nullptr;
    std::uint64_t size = 0;
    g_sdk.query_buffer_tracing_kind_operation_name(kind, operation, &name, &size);
    blank.signature->makes_stream = name != nullptr && std::strstr(name, "StreamCreate") != nullptr;
    if (name != nullptr && waits_for_gpu(name)) blank.signature->waits = name;
    return 0;
}

// ---- during a call ----

template <typename T>
T read(const void* payload, const Slot& slot) {
    T value{};
    std::memcpy(&value, static_cast<const char*>(payload) + kInCallback + slot.offset, sizeof value);
    return value;
}

void enter(const Signature& signature, const rocprofiler_callback_tracing_record_t& call) {
    std::vector<KeptText> texts;
    for (const Slot& slot : signature.slots) {
        if (slot.role == Role::kStream) enter_stream(read<const void*>(call.payload, slot));
        if (slot.role != Role::kText) continue;
        const char* text = read<const char*>(call.payload, slot);
        if (text != nullptr) texts.push_back({slot.position, std::string(text, strnlen(text, kLongestText))});
    }
    if (!texts.empty()) g_kept.keep(call.correlation_id.internal, std::move(texts));
    if (!signature.waits.empty()) rocpd_call_begin(signature.waits.c_str(), 0);
}

void leave(const Signature& signature, const rocprofiler_callback_tracing_record_t& call) {
    if (!signature.waits.empty()) rocpd_call_end();
    for (const Slot& slot : signature.slots) {
        if (slot.role == Role::kStream) leave_stream();
        if (slot.role != Role::kNewStream || !signature.makes_stream) continue;
        if (const auto* made = read<const void* const*>(call.payload, slot)) add_stream(*made);
    }
}

// `data` is the kind of the records of these calls.
void on_call(rocprofiler_callback_tracing_record_t call, rocprofiler_user_data_t*, void* data) {
    pass_forks();
    const auto kind = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data));
    const Signature* signature = signature_of(kind, call.operation);
    if (signature == nullptr || call.payload == nullptr) return;
    if (call.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) enter(*signature, call);
    if (call.phase == ROCPROFILER_CALLBACK_PHASE_EXIT) leave(*signature, call);
}

// Has the SDK call back during the calls of a kind that need it. Returns whether streams are among their arguments.
bool follow(rocprofiler_context_id_t context, std::uint32_t kind, std::uint32_t callbacks) {
    std::vector<rocprofiler_tracing_operation_t> operations;
    bool streams = false;
    for (const auto& [key, signature] : signatures()) {
        if (key.first != kind || !signature.needs_callback()) continue;
        operations.push_back(key.second);
        streams = streams || signature.has(Role::kStream);
    }
    if (operations.empty()) return false;
    const auto status = g_sdk.configure_callback_tracing_service(
        context, static_cast<rocprofiler_callback_tracing_kind_t>(callbacks), operations.data(), operations.size(),
        on_call, reinterpret_cast<void*>(static_cast<std::uintptr_t>(kind)));
    return status == ROCPROFILER_STATUS_SUCCESS && streams;
}

// ---- of a record ----

int take_value(rocprofiler_buffer_tracing_kind_t, rocprofiler_tracing_operation_t, std::uint32_t, const void* const,
               std::int32_t, const char*, const char*, const char* value, void* data) {
    static_cast<Arguments*>(data)->values.emplace_back(value != nullptr ? value : "");
    return 0;
}

std::string as_address(const void* pointer) {
    char text[24];
    std::snprintf(text, sizeof text, "%p", pointer);
    return text;
}

// Reads a copy of the record without its texts, and puts in what was kept of them, else their addresses.
void read_around_texts(const rocprofiler_record_header_t& header, const Signature& signature, Arguments& arguments) {
    const auto& record = *static_cast<const rocprofiler_buffer_tracing_hip_api_record_t*>(header.payload);
    if (record.size < kInRecord || record.size > kLargestRecord) return;
    std::vector<std::uint64_t> copy(record.size / 8 + 1);
    std::memcpy(copy.data(), &record, record.size);
    char* const first = reinterpret_cast<char*>(copy.data()) + kInRecord;
    const std::vector<KeptText> texts = g_kept.take(record.correlation_id.internal);
    std::map<std::size_t, std::string> replaced;
    for (const Slot& slot : signature.slots) {
        if (slot.role != Role::kText && slot.role != Role::kTextToFill) continue;
        const void* pointer = nullptr;
        if (kInRecord + slot.offset + sizeof pointer > record.size) return;
        std::memcpy(&pointer, first + slot.offset, sizeof pointer);
        std::memset(first + slot.offset, 0, sizeof pointer);
        if (pointer != nullptr) replaced[slot.position] = as_address(pointer);
    }
    for (const KeptText& text : texts) replaced[text.position] = text.text;
    rocprofiler_record_header_t blanked = header;
    blanked.payload = copy.data();
    g_sdk.iterate_buffer_tracing_record_args(blanked, take_value, &arguments);
    for (auto& [position, value] : replaced)
        if (position < arguments.values.size()) arguments.values[position] = std::move(value);
}

}  // namespace

bool follow_arguments(rocprofiler_context_id_t context) {
    if (g_sdk.iterate_buffer_tracing_record_args == nullptr || g_sdk.iterate_buffer_tracing_kind_operations == nullptr)
        return false;
    bool streams = false;
    for (const std::string& name : record_kinds()) {
        if (base_name(name) == name) continue;
        const std::uint32_t kind = record_kind(name);
        g_sdk.iterate_buffer_tracing_kind_operations(static_cast<rocprofiler_buffer_tracing_kind_t>(kind),
                                                     learn_operation, nullptr);
        const std::uint32_t callbacks = callback_kind(base_name(name));
        if (callbacks != 0) streams = follow(context, kind, callbacks) || streams;
    }
    return streams;
}

void read_arguments(const rocprofiler_record_header_t& header, Arguments& arguments) {
    const auto& record = *static_cast<const rocprofiler_buffer_tracing_hip_api_record_t*>(header.payload);
    Signature* signature = signature_of(header.kind, record.operation);
    if (signature == nullptr || !signature->readable) return;
    if (signature->has_texts())
        read_around_texts(header, *signature, arguments);
    else
        g_sdk.iterate_buffer_tracing_record_args(header, take_value, &arguments);
    arguments.list = signature->arguments();
    arguments.list.resize(std::min(arguments.list.size(), arguments.values.size()));
    for (std::size_t i = 0; i < arguments.list.size(); ++i) {
        arguments.list[i].value = arguments.values[i].data();
        arguments.list[i].value_size = arguments.values[i].size();
    }
}

}  // namespace rocpd::client
