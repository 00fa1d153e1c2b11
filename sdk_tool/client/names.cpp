#include "names.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <utility>

#include "forks.h"
#include "kinds.h"

namespace rocpd::client {
namespace {

// Numbers of texts by what they are the name of.
template <typename Key>
class Numbers {
public:
    template <typename Name>
    rocpd_text_t of(const Key& key, Name name) {
        const std::lock_guard<ForkMutex> lock(mutex_);
        const auto [known, fresh] = numbers_.try_emplace(key, 0);
        if (fresh) known->second = text_of(name().c_str());
        return known->second;
    }

private:
    ForkMutex mutex_;
    std::map<Key, rocpd_text_t> numbers_;
};

std::string function_name(std::uint32_t kind, rocprofiler_tracing_operation_t operation) {
    const char* name = nullptr;
    std::uint64_t size = 0;
    const auto status = g_sdk.query_buffer_tracing_kind_operation_name(
        static_cast<rocprofiler_buffer_tracing_kind_t>(kind), operation, &name, &size);
    if (status == ROCPROFILER_STATUS_SUCCESS && name != nullptr) return name;
    return kind_name(kind) + " " + std::to_string(operation);
}

}  // namespace

rocpd_text_t text_of(const char* text) { return text != nullptr ? rocpd_text(text, std::strlen(text)) : 0; }

rocpd_text_t category_of(std::uint32_t kind) {
    static auto& numbers = *new Numbers<std::uint32_t>;
    return numbers.of(kind, [&] { return kind_name(kind); });
}

rocpd_text_t function_of(std::uint32_t kind, rocprofiler_tracing_operation_t operation) {
    static auto& numbers = *new Numbers<std::pair<std::uint32_t, rocprofiler_tracing_operation_t>>;
    return numbers.of({kind, operation}, [&] { return function_name(kind, operation); });
}

std::string demangled(const std::string& name) {
    int status = 0;
    char* plain = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
    std::string result = status == 0 && plain != nullptr ? plain : name;
    std::free(plain);
    return result;
}

}  // namespace rocpd::client
