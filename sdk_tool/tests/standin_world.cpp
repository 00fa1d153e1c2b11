#include "standin_world.h"

namespace standin {

World& world() {
    static World& only = *new World;
    return only;
}

Told::Told(rocprofiler_callback_tracing_kind_t kind, int operation, std::uint64_t id, std::uint64_t parent,
           void* payload) {
    const auto found = world().callbacks.find(kind);
    if (found == world().callbacks.end() || !world().active[found->second.context]) return;
    callback_ = &found->second;
    record_.context_id.handle = callback_->context;
    record_.thread_id = tid();
    record_.correlation_id.internal = id;
    record_.correlation_id.external = pushed_id();
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

void deliver(Buffer& buffer, std::vector<Record>& records) {
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

void put_bytes(std::uint32_t kind, const void* bytes, std::size_t size) {
    const auto found = world().buffered.find(static_cast<int>(kind));
    if (found == world().buffered.end()) return;
    Buffer& buffer = *world().buffers[found->second];
    if (!world().active[buffer.context]) return;
    Record copy{kind, std::vector<std::uint64_t>((size + 7) / 8)};
    std::memcpy(copy.bytes.data(), bytes, size);
    std::vector<Record> full;
    {
        const std::lock_guard<std::mutex> lock(buffer.mutex);
        if (world().in_put != nullptr) world().in_put();
        buffer.records.push_back(std::move(copy));
        buffer.used += size;
        if (buffer.used >= buffer.watermark / 64) {  // small buffers: much going over
            full.swap(buffer.records);
            buffer.used = 0;
        }
    }
    if (!full.empty()) deliver(buffer, full);
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

rocprofiler_user_data_t pushed_id() {
    rocprofiler_user_data_t value{};
    const std::lock_guard<std::mutex> lock(world().pushed_mutex);
    const auto found = world().pushed.find({1, tid()});
    if (found != world().pushed.end() && !found->second.empty()) value.value = found->second.back();
    return value;
}

rocprofiler_user_data_t external_id(rocprofiler_external_correlation_id_request_kind_t kind, std::uint64_t id) {
    World& w = world();
    rocprofiler_user_data_t value{};
    if (w.requests.count(kind) != 0 && w.request(tid(), {1}, kind, 0, id, &value, w.request_data) == 0) return value;
    return pushed_id();
}

}  // namespace standin
