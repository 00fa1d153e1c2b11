#include "channels.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <string>

#include "kinds.h"
#include "launches.h"
#include "records.h"

namespace rocpd::client {
namespace {

// While the SDK delivers one half of a buffer, calls fill the other; when that is full too, they wait until we have
// taken all of the first. The smaller the buffer, the shorter that wait: above SDK 1.0.0 the worst of 200,000 calls
// took 31 to 39 ms with 64 KiB, 140 to 430 ms with 4 MiB. CPU time is the same from 16 KiB on.
constexpr std::size_t kBufferBytes = 64 << 10;
// The SDK takes 68 times this for each channel, before anything forks.
constexpr std::size_t kChildsBufferBytes = 16 << 10;
// A process, its children, theirs, and so on.
constexpr std::size_t kGenerations = 5;

Channel g_channels[kGenerations];
std::atomic<std::size_t> g_generation{0};

bool make_buffer(Channel& channel, std::size_t bytes, std::size_t generation, rocprofiler_callback_thread_t& thread) {
    rocprofiler_buffer_id_t buffer{};
    if (!good(g_sdk.create_buffer(channel.context, bytes, bytes - bytes / 8, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
                                  on_records, reinterpret_cast<void*>(generation), &buffer)))
        return false;
    channel.buffers.push_back(buffer);
    if (g_sdk.create_callback_thread == nullptr || g_sdk.assign_callback_thread == nullptr) return true;
    if (thread.handle != 0 || good(g_sdk.create_callback_thread(&thread))) g_sdk.assign_callback_thread(buffer, thread);
    return true;
}

bool is_gpu_work(const std::string& kind) { return kind == "KERNEL_DISPATCH" || kind == "MEMORY_COPY"; }

// GPU work has a buffer of its own.
void trace_kinds(const Channel& channel, const std::set<std::string>& kinds) {
    for (const std::string& kind : kinds)
        if (!good(g_sdk.configure_buffer_tracing_service(
                channel.context, static_cast<rocprofiler_buffer_tracing_kind_t>(record_kind(kind)), nullptr, 0,
                channel.buffers[is_gpu_work(kind) ? 1 : 0])) &&
            &channel == g_channels)
            std::fprintf(stderr, "rocpd: this rocprofiler-sdk does not report %s\n", kind.c_str());
}

}  // namespace

bool make_channels(const std::set<std::string>& kinds, void (*first_call)()) {
    rocprofiler_callback_thread_t threads[2] = {};
    for (std::size_t generation = 0; generation < kGenerations; ++generation) {
        Channel& made = g_channels[generation];
        if (!good(g_sdk.create_context(&made.context))) return false;
        for (rocprofiler_callback_thread_t& thread : threads)
            if (!make_buffer(made, generation == 0 ? kBufferBytes : kChildsBufferBytes, generation, thread))
                return false;
        trace_kinds(made, kinds);
        follow_launches(made.context, first_call);
    }
    return true;
}

const Channel& channel() { return g_channels[std::min(g_generation.load(), kGenerations - 1)]; }

bool take_next_channel() { return g_generation.fetch_add(1) + 1 < kGenerations; }

bool is_own(const void* data) { return reinterpret_cast<std::uintptr_t>(data) == g_generation.load(); }

}  // namespace rocpd::client
