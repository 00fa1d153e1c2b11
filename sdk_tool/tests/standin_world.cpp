#include "standin_world.h"

#include <pthread.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <stdexcept>
#include <thread>

namespace standin {

World& world() {
    static World& only = *new World;
    return only;
}

bool is_traced(rocprofiler_callback_tracing_kind_t kind, int operation) {
    const auto found = world().callbacks.find(kind);
    if (found == world().callbacks.end() || !world().active[found->second.context]) return false;
    return found->second.operations.empty() || found->second.operations.count(operation) != 0;
}

Told::Told(rocprofiler_callback_tracing_kind_t kind, int operation, std::uint64_t id, std::uint64_t parent,
           void* payload) {
    if (!is_traced(kind, operation)) return;
    callback_ = &world().callbacks.find(kind)->second;
    record_.context_id.handle = callback_->context;
    record_.thread_id = tid();
    record_.correlation_id.internal = id;
    const bool api = kind <= ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API;  // requests count on from there otherwise
    record_.correlation_id.external = external_id(api ? kind : 0, id);
    record_.correlation_id.ancestor = parent;
    record_.kind = kind;
    record_.operation = operation;
    record_.phase = ROCPROFILER_CALLBACK_PHASE_ENTER;
    record_.payload = payload;
    callback_->call(record_, &user_, callback_->data);
}

void Told::leave(void* payload) {
    if (callback_ == nullptr) return;
    record_.phase = ROCPROFILER_CALLBACK_PHASE_EXIT;
    record_.payload = payload;
    callback_->call(record_, &user_, callback_->data);
}

namespace {

void raise(std::atomic<std::uint64_t>& most, std::uint64_t value) {
    std::uint64_t before = most.load();
    while (value > before && !most.compare_exchange_weak(before, value)) {
    }
}

void deliver(const Buffer& buffer, std::vector<Record>& records) {
    std::vector<rocprofiler_record_header_t> headers(records.size());
    std::vector<rocprofiler_record_header_t*> pointers;
    for (std::size_t i = 0; i < records.size(); ++i) {
        headers[i].category = ROCPROFILER_BUFFER_CATEGORY_TRACING;
        headers[i].kind = records[i].kind;
        headers[i].payload = records[i].bytes.data();
        pointers.push_back(&headers[i]);
    }
    buffer.callback({buffer.context}, {0}, pointers.data(), pointers.size(), buffer.data, 0);
}

void deliver_when_asked(Buffer& buffer) {
    pthread_setname_np(pthread_self(), "standin-sdk");
    std::unique_lock<std::mutex> lock(buffer.mutex);
    for (;;) {
        buffer.changed.wait(lock, [&] { return buffer.asked; });
        lock.unlock();
        if (!buffer.delivered.empty()) deliver(buffer, buffer.delivered);
        buffer.delivered.clear();
        buffer.taken.store(false);
        lock.lock();
        buffer.asked = false;
        buffer.changed.notify_all();
    }
}

void wait_for_delivery(Buffer& buffer) {
    std::unique_lock<std::mutex> lock(buffer.mutex);
    buffer.changed.wait(lock, [&] { return !buffer.asked; });
}

// Returns false where it is full.
bool try_put(Buffer& buffer, const Record& record, std::size_t size) {
    take(buffer.taken);
    if (world().in_put != nullptr) world().in_put();
    const bool fits = buffer.used.load() + size <= buffer.size;
    if (fits) {
        buffer.records.push_back(record);
        buffer.used.fetch_add(size);
    }
    buffer.taken.store(false);
    return fits;
}

}  // namespace

void serve(Buffer& buffer) { std::thread([&buffer] { deliver_when_asked(buffer); }).detach(); }

void serve_in_child() {
    for (const std::unique_ptr<Buffer>& buffer : world().buffers) {
        new (&buffer->mutex) std::mutex;  // the parent's threads wait at these
        new (&buffer->changed) std::condition_variable;
        buffer->asked = false;
        serve(*buffer);
    }
}

void take(std::atomic<bool>& flag) {
    while (flag.exchange(true)) pause_for(10);
}

bool is_any_active() {
    return std::any_of(std::begin(world().active), std::end(world().active),
                       [](const auto& one) { return one.load(); });
}

void flush(Buffer& buffer, bool wait) {
    if (wait) wait_for_delivery(buffer);
    if (wait)
        take(buffer.taken);
    else if (buffer.taken.exchange(true))
        return;
    buffer.delivered.swap(buffer.records);
    raise(world().largest_delivery, buffer.used.exchange(0));
    {
        const std::lock_guard<std::mutex> lock(buffer.mutex);
        buffer.asked = true;
    }
    buffer.changed.notify_all();
    if (wait) wait_for_delivery(buffer);
}

void put_bytes(std::uint32_t kind, int operation, const void* bytes, std::size_t size) {
    const auto found = world().buffered.find(static_cast<int>(kind));
    if (found == world().buffered.end()) return;
    Record record{kind, std::vector<std::uint64_t>((size + 7) / 8)};
    std::memcpy(record.bytes.data(), bytes, size);
    const std::uint64_t started = now();
    for (const Buffered& service : found->second) {
        if (!world().active[service.context]) continue;
        if (!service.operations.empty() && service.operations.count(operation) == 0) continue;
        Buffer& buffer = *world().buffers[service.buffer];
        while (!try_put(buffer, record, size)) flush(buffer, true);
        if (buffer.used.load() >= buffer.watermark) flush(buffer, false);
    }
    raise(world().longest_put, now() - started);
}

void count_dispatch(const rocprofiler_kernel_dispatch_info_t& info) {
    World& w = world();
    if (w.count_dispatch == nullptr || !w.active[w.count_context]) return;
    rocprofiler_dispatch_counting_service_data_t data{};
    data.dispatch_info = info;
    rocprofiler_counter_config_id_t config{};
    rocprofiler_user_data_t user{};
    w.count_dispatch(data, &config, &user, nullptr);
    if (config.handle == 0) return;
    // Two instances of each counter: the low byte is the counter, the rest the place.
    std::vector<rocprofiler_counter_record_t> records;
    for (const std::uint64_t counter : w.counters) {
        for (std::uint64_t place = 0; place < 2; ++place) {
            rocprofiler_counter_record_t record{};
            record.id = counter | place << 8;
            record.counter_value = static_cast<double>(info.dispatch_id + 2 * (counter - 1) + place);
            record.dispatch_id = info.dispatch_id;
            records.push_back(record);
        }
    }
    w.count_record(data, records.data(), records.size(), user, nullptr);
}

rocprofiler_user_data_t external_id(int kind, std::uint64_t id) {
    World& w = world();
    rocprofiler_user_data_t value{};
    const auto asked = static_cast<rocprofiler_external_correlation_id_request_kind_t>(kind);
    const bool asks = w.request != nullptr && (w.requests.empty() || w.requests.count(kind) != 0);
    for (const std::uint64_t context : w.request_contexts)
        if (asks && w.active[context] && w.request(tid(), {context}, asked, 0, id, &value, w.request_data) == 0)
            return value;
    const std::lock_guard<std::mutex> lock(w.pushed_mutex);
    for (const std::uint64_t thread : {tid(), static_cast<std::uint64_t>(getpid())}) {
        const auto found = w.pushed.find(thread);
        if (found == w.pushed.end()) continue;
        value.value = found->second.empty() ? 0 : found->second.back();
        break;
    }
    return value;
}

void add_stream(std::uint64_t stream) {
    if (!is_traced(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_CREATE)) return;
    const std::lock_guard<std::mutex> lock(world().streams_mutex);
    world().streams.emplace(stream, world().streams.size());
}

std::uint64_t stream_id(std::uint64_t stream) {
    if (!is_traced(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_SET)) return 0;
    const std::lock_guard<std::mutex> lock(world().streams_mutex);
    const auto found = world().streams.find(stream);
    if (found == world().streams.end()) throw std::out_of_range("no such stream");
    return found->second;
}

}  // namespace standin
