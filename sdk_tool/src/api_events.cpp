// The C functions of rocpd/recorder.h for events of calls, GPU work, samples and counters.
#include <cstring>

#include "recording.h"
#include "rocpd/recorder.h"

using namespace rocpd;

namespace {

// Size of a text as it is stored [bytes].
std::size_t stored_size(const char* text, std::size_t size) {
    if (text == nullptr) return 0;
    return size < kLongestText ? size : kLongestText;
}

// Size of the arguments in an entry; counts the values that are cut.
std::size_t size_of(const Turn& turn, const rocpd_argument_t* arguments, std::size_t count) {
    std::size_t size = 0;
    for (std::size_t i = 0; i < count; ++i)
        size += sizeof(Argument) + padded(turn->cut(view(arguments[i].value, arguments[i].value_size)).size());
    return size;
}

char* append_argument(char* at, const rocpd_argument_t& argument) {
    const std::size_t size = stored_size(argument.value, argument.value_size);
    const Argument head{argument.type, argument.name, static_cast<std::uint32_t>(size), 0};
    return append(append(at, &head, sizeof head), argument.value, size);
}

template <typename Enumeration>
unsigned number_of(const Enumeration& value) {
    unsigned number = 0;
    static_assert(sizeof number == sizeof value);
    std::memcpy(&number, &value, sizeof number);
    return number;
}

// Records a struct as it is, then the message and the arguments of its event.
template <typename T>
int record(Kind kind, const T& what, const rocpd_argument_t* arguments = nullptr, std::size_t count = 0) {
    if (!is_recording()) return -1;
    Turn turn;
    if (!turn) return -1;
    T event = what;
    const std::string_view message = turn->cut(view(event.event.message, event.event.message_size));
    event.event.message_size = message.size();
    const std::size_t size = sizeof event + padded(message.size()) + size_of(turn, arguments, count);
    return turn.put(kind, 0, size, [&](char* at) {
        std::memcpy(at, &event, sizeof event);
        at = append(at + sizeof event, message.data(), message.size());
        for (std::size_t i = 0; i < count; ++i) at = append_argument(at, arguments[i]);
    });
}

int record(Kind kind, std::uint64_t time, const Value& value) {
    if (!is_recording()) return -1;
    Turn turn;
    return turn ? turn.put(kind, time, value) : -1;
}

}  // namespace

extern "C" {

int rocpd_region(const rocpd_region_t* region) {
    return record(kRegion, *region, region->arguments, region->argument_count);
}

int rocpd_dispatch(const rocpd_dispatch_t* dispatch) { return record(kDispatch, *dispatch); }

int rocpd_copy(const rocpd_copy_t* copy) { return record(kCopy, *copy); }

int rocpd_allocation(const rocpd_allocation_t* allocation) {
    // Both index arrays of names; a C program may pass any number.
    if (number_of(allocation->type) > ROCPD_RECLAIM || number_of(allocation->level) > ROCPD_SCRATCH) return -1;
    return record(kAllocate, *allocation);
}

void rocpd_use_graphs(void) { g_state.graphs.store(true); }

int rocpd_graph_launch(const rocpd_graph_launch_t* launch) { return record(kGraph, *launch); }

int rocpd_sample(int64_t track, uint64_t time, int64_t counter, double value) {
    return record(kSample, time, Value{track, counter, value});
}

int rocpd_counter_value(int64_t dispatch_id, int64_t counter, double value) {
    return record(kCounter, 0, Value{dispatch_id, counter, value});
}

}  // extern "C"
