// The stand-in's script: what an application does on a GPU, reported as the SDK reports it.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "standin_sdk.h"
#include "standin_world.h"

namespace {

using namespace standin;

thread_local std::vector<std::uint64_t> t_calls;  // correlation ids of the calls and ranges that are open

struct Entered {
    explicit Entered(std::uint64_t chosen) : id(chosen), parent(t_calls.empty() ? 0 : t_calls.back()) {
        t_calls.push_back(id);
    }
    ~Entered() { t_calls.pop_back(); }
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;
    std::uint64_t id, parent;
};

std::uint64_t fresh() { return world().correlation.fetch_add(1); }

void call(rocprofiler_buffer_tracing_kind_t kind, int operation, const Entered& frame, std::uint64_t start) {
    rocprofiler_buffer_tracing_hip_api_record_t r{};
    r.kind = kind;
    if (world().as_calls && kind == ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT)
        r.kind = ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API;
    if (world().as_calls && kind == ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT)
        r.kind = ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = pushed_id();
    r.correlation_id.ancestor = frame.parent;
    r.start_timestamp = start;
    r.end_timestamp = now();
    r.thread_id = tid();
    put(r);
}

// The calling thread works on this stream.
class OnStream {
public:
    explicit OnStream(std::uint64_t stream)
        : data_{sizeof data_, {stream}, {}},
          told_(ROCPROFILER_CALLBACK_TRACING_HIP_STREAM, ROCPROFILER_HIP_STREAM_SET, 0, 0, &data_) {}
    ~OnStream() { told_.leave(&data_); }
    OnStream(const OnStream&) = delete;
    OnStream& operator=(const OnStream&) = delete;

private:
    rocprofiler_callback_tracing_hip_stream_data_t data_;
    Told told_;
};

void dispatch(const Entered& frame, std::uint64_t start, std::uint64_t stream, std::uint64_t kernel) {
    rocprofiler_buffer_tracing_kernel_dispatch_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH;
    r.operation = ROCPROFILER_KERNEL_DISPATCH_COMPLETE;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = external_id(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_KERNEL_DISPATCH, frame.id);
    r.thread_id = tid();
    r.start_timestamp = start;
    r.end_timestamp = start + 1000;
    r.dispatch_info.size = sizeof r.dispatch_info;
    r.dispatch_info.agent_id.handle = 9002;
    r.dispatch_info.queue_id.handle = 16 + stream;
    r.dispatch_info.kernel_id = kernel;
    r.dispatch_info.dispatch_id = world().dispatch.fetch_add(1);
    r.dispatch_info.workgroup_size = {64, 1, 1};
    r.dispatch_info.grid_size = {6400, 1, 1};
    count_dispatch(r.dispatch_info);
    put(r);
}

void launch(std::uint64_t stream, std::uint64_t kernel, int kernels = 1) {
    const OnStream on(stream);
    const Entered frame(fresh());
    const std::uint64_t start = now();
    for (int i = 0; i < kernels; ++i) dispatch(frame, start, stream, kernel);
    call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, 1, frame, start);
}

void copy(rocprofiler_memory_copy_operation_t operation) {
    const Entered frame(fresh());
    const std::uint64_t start = now();
    rocprofiler_buffer_tracing_memory_copy_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_COPY;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = external_id(ROCPROFILER_EXTERNAL_CORRELATION_REQUEST_MEMORY_COPY, frame.id);
    r.thread_id = tid();
    r.start_timestamp = start;
    r.end_timestamp = start + 500;
    const bool up = operation == ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE;
    r.dst_agent_id.handle = up ? 9002 : 9000;
    r.src_agent_id.handle = up ? 9000 : 9002;
    r.bytes = 4096;
    r.dst_address.value = 0x1000;
    put(r);
    call(ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API_EXT, 2, frame, start);
}

void allocate(rocprofiler_memory_allocation_operation_t operation) {
    const Entered frame(fresh());
    rocprofiler_buffer_tracing_memory_allocation_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_MEMORY_ALLOCATION;
    r.operation = operation;
    r.correlation_id.internal = frame.id;
    r.correlation_id.external = pushed_id();
    r.correlation_id.ancestor = frame.parent;
    r.thread_id = tid();
    r.start_timestamp = now();
    r.end_timestamp = now();
    r.agent_id.handle = 9002;
    r.address.value = 0x7f0000001000;
    r.allocation_size = operation == ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE ? 1 << 20 : 0;
    put(r);
}

void scratch() {
    const Entered frame(fresh());
    rocprofiler_buffer_tracing_scratch_memory_record_t r{};
    r.kind = ROCPROFILER_BUFFER_TRACING_SCRATCH_MEMORY;
    r.operation = ROCPROFILER_SCRATCH_MEMORY_ALLOC;
    r.correlation_id.internal = frame.id;
    r.agent_id.handle = 9002;
    r.queue_id.handle = 17;
    r.thread_id = tid();
    r.start_timestamp = now();
    r.end_timestamp = now();
    r.flags = 1;
    r.allocation_size = 512;
    put(r);
}

void plain_call(rocprofiler_buffer_tracing_kind_t kind) {
    const Entered frame(fresh());
    call(kind, 3, frame, now());
}

rocprofiler_callback_tracing_marker_api_data_t marker(const char* text) {
    rocprofiler_callback_tracing_marker_api_data_t data{};
    data.size = sizeof data;
    data.args.roctxMarkA.message = text;
    return data;
}

void call_twice(rocprofiler_callback_tracing_kind_t kind, int operation, const char* text) {
    auto data = marker(text);
    Told(kind, operation, fresh(), 0, &data).leave(&data);
}

// A range or mark, in either of the SDK's ways to report them: as what it is, or as the calls that it takes.
class Range {
public:
    Range(rocprofiler_marker_core_range_api_id_t what, std::uint64_t id, std::uint64_t parent, const char* text)
        : what_(what),
          data_(marker(text)),
          told_(kind(), world().as_calls ? begin_call() : what, id, parent, &data_) {
        if (!world().as_calls) return;
        data_.retval.roctx_range_id_t_retval = id;
        told_.leave(&data_);
        data_.args.roctxRangeStop.id = id;
    }
    void end() {
        if (!world().as_calls)
            told_.leave(&data_);
        else if (what_ == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA)
            Told(kind(), ROCPROFILER_MARKER_CORE_API_ID_roctxRangePop, fresh(), 0, &data_).leave(&data_);
        else if (what_ == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA)
            Told(kind(), ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStop, fresh(), 0, &data_).leave(&data_);
    }

private:
    static rocprofiler_callback_tracing_kind_t kind() {
        return world().as_calls ? ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_API
                                : ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API;
    }
    int begin_call() const {
        switch (what_) {
            case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA:
                return ROCPROFILER_MARKER_CORE_API_ID_roctxRangePushA;
            case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA:
                return ROCPROFILER_MARKER_CORE_API_ID_roctxRangeStartA;
            default: return ROCPROFILER_MARKER_CORE_API_ID_roctxMarkA;
        }
    }

    const rocprofiler_marker_core_range_api_id_t what_;
    rocprofiler_callback_tracing_marker_api_data_t data_;
    Told told_;
};

// What happens in every tenth round.
void now_and_then(std::uint64_t step) {
    scratch();
    for (const auto kind :
         {ROCPROFILER_BUFFER_TRACING_HSA_CORE_API, ROCPROFILER_BUFFER_TRACING_HSA_AMD_EXT_API,
          ROCPROFILER_BUFFER_TRACING_HSA_IMAGE_EXT_API, ROCPROFILER_BUFFER_TRACING_HSA_FINALIZE_EXT_API,
          ROCPROFILER_BUFFER_TRACING_HIP_COMPILER_API_EXT, ROCPROFILER_BUFFER_TRACING_RCCL_API})
        plain_call(kind);
    Range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA, fresh(), step, "mark").end();
    Range whole(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, fresh(), 0, "process range");
    std::thread([&] { whole.end(); }).join();
}

}  // namespace

namespace standin {

void work(int rounds) {
    for (int round = 0; round < rounds; ++round) {
        const std::string text = "step " + std::to_string(round % 3);
        const Entered step(fresh());
        Range range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, step.id, step.parent, text.c_str());
        allocate(ROCPROFILER_MEMORY_ALLOCATION_ALLOCATE);
        copy(ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE);
        launch(0, 1);
        launch(1, 2);
        copy(ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST);
        allocate(ROCPROFILER_MEMORY_ALLOCATION_FREE);
        if (round % 10 == 0) now_and_then(step.id);
        range.end();
    }
}

void graph(int kernels) {
    const Entered step(fresh());
    Range range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, step.id, step.parent, "graph");
    launch(1, 2, kernels);
    range.end();
}

void leave_open() {
    Range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, fresh(), 0, "open");
    Range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA, fresh(), 0, "open process range");
}

void across_pause() {
    Range range(ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA, fresh(), 0, "across");
    pause();
    range.end();
    resume();
}

void name(int operation, const char* text) {
    call_twice(ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, operation, text);
}

void name_stream(const char* text, std::uint64_t stream) {
    auto data = marker(text);
    std::memcpy(&data.args.roctxNameHipStream.stream, &stream, sizeof stream);
    Told(ROCPROFILER_CALLBACK_TRACING_MARKER_NAME_API, ROCPROFILER_MARKER_NAME_API_ID_roctxNameHipStream, fresh(), 0,
         &data);
}

void pause() {
    call_twice(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause,
               nullptr);
}

void resume() {
    call_twice(ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume,
               nullptr);
}

void tell_ranges_as_calls() { world().as_calls = true; }

void interrupt_puts(void (*handler)()) { world().in_put = handler; }

}  // namespace standin
