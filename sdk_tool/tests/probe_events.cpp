#include "probe.h"


#include <unistd.h>

#include <cstdio>
#include <thread>

namespace probe {
namespace {

// Ranges that cross pauses, threads and the end; unbalanced ends; a mark; depth beyond what is kept.
int odd_ranges(const Arguments&) {
    roctxRangePop();
    roctxRangePushA("before pause");
    roctxProfilerPause(0);
    roctxRangePushA("in pause");
    roctxRangePop();
    roctxMarkA("in pause");
    roctxRangePop();
    roctxProfilerResume(0);
    roctxRangePop();
    roctxMarkA("mark");
    const uint64_t id = roctxRangeStartA("across threads");
    std::thread([id] { roctxRangeStop(id); }).join();
    roctxRangeStop(id + 1000000);
    roctxRangeStartA("never stopped");
    for (int i = 0; i < 5000; ++i) roctxRangePushA("deep");
    for (int i = 0; i < 5000; ++i) roctxRangePop();
    roctxRangePushA("\"quotes\" \\ \n \xff\xfe ünï");
    roctxRangePop();
    const std::string large(100000, 'x');
    roctxRangePushA(large.c_str());
    roctxRangePop();
    roctxRangeStop(roctxRangeStartA(large.c_str()));
    std::thread([] { roctxRangePushA("thread ended"); }).join();
    return kCode;
}

// One of every kind of event, two dispatches with counters that come early and late.
int kinds(const Arguments&) {
    rocpd_start();
    const rocpd_agent_t cpu{0, "CPU", 0, 0, 0, 11, "EPYC", "model", "AMD", "EPYC", "cpu", nullptr};
    const rocpd_agent_t gpu{1, "GPU", 1, 1, 0, 12, "gfx942", "model", "AMD", "MI300X", "gpu", "{\"cu_count\":304}"};
    rocpd_register_agent(&cpu);
    rocpd_register_agent(&gpu);
    rocpd_register_queue(16, "Queue 0");
    rocpd_register_stream(0, "Default Stream");
    const rocpd_code_object_t object{1, 1, "file:///a", 4096, 100, 4096, "FILE", nullptr};
    rocpd_register_code_object(&object);
    rocpd_kernel_symbol_t symbol{};
    symbol.id = 1;
    symbol.code_object_id = 1;
    symbol.kernel_name = "kernel.kd";
    symbol.display_name = "kernel";
    rocpd_register_kernel_symbol(&symbol);
    rocpd_counter_t counter{};
    counter.id = 5;
    counter.agent_id = 1;
    counter.target_arch = "GPU";
    counter.name = "SQ_WAVES";
    counter.value_type = "ABS";
    rocpd_register_counter(&counter);

    rocpd_counter_value(1, 5, 64.0);
    rocpd_region_t region{};
    region.event.category = text("HIP_RUNTIME_API_EXT");
    region.event.stack_id = 100;
    region.event.correlation_id = 9;
    region.name = text("hipLaunchKernel");
    region.start = 1000;
    region.end = 2000;
    const rocpd_argument_t arguments[] = {{text("int"), text("n"), "42", 2}, {text("char*"), text("s"), "a\"b", 3}};
    region.arguments = arguments;
    region.argument_count = 2;
    rocpd_region(&region);
    for (int i = 1; i <= 3; ++i) {
        rocpd_dispatch_t d{};
        d.event.category = text("KERNEL_DISPATCH");
        d.event.stack_id = d.event.parent_stack_id = 100;
        d.agent_id = i < 3 ? 1 : 77;  // the fourth refers to ids that were never registered
        d.kernel_id = i < 3 ? 1 : 78;
        d.queue_id = i < 3 ? 16 : 79;
        d.stream_id = i < 3 ? 0 : 80;
        d.dispatch_id = i;
        d.start = 1500;
        d.end = 1600;
        d.workgroup_size[0] = d.workgroup_size[1] = d.workgroup_size[2] = 1;
        d.grid_size[0] = d.grid_size[1] = d.grid_size[2] = 64;
        d.region_name = i == 2 ? text("step") : 0;
        rocpd_dispatch(&d);
    }
    rocpd_counter_value(2, 5, 65.0);
    rocpd_copy_t copy{};
    copy.event.category = text("MEMORY_COPY");
    copy.event.tid = 4242;
    copy.name = text("MEMORY_COPY_HOST_TO_DEVICE");
    copy.start = 3000;
    copy.end = 3100;
    copy.dst_agent_id = 1;
    copy.src_agent_id = -1;
    copy.size = 1 << 20;
    copy.queue_id = copy.stream_id = -1;
    rocpd_copy(&copy);
    rocpd_allocation_t allocation{};
    allocation.event.category = text("MEMORY_ALLOCATION");
    allocation.event.message = "FINE_GRAINED";
    allocation.event.message_size = 12;
    allocation.type = ROCPD_FREE;
    allocation.level = ROCPD_VIRTUAL;
    allocation.start = 1;
    allocation.end = 2;
    allocation.agent_id = 1;
    allocation.address = 0xffffffffffffff00u;
    allocation.queue_id = allocation.stream_id = -1;
    rocpd_allocation(&allocation);
    rocpd_sample(rocpd_register_track("temperature"), 5000, 5, 36.6);
    rocpd_note("note", "it's \"quoted\"");
    return kCode;
}

// What a program should not do when it registers and records things; each is harmless.
int wrong_arguments(const Arguments&) {
    rocpd_start();
    rocpd_note(nullptr, "value");
    rocpd_note("tag", nullptr);
    rocpd_note("guid", "another");
    rocpd_note("recorder_closed", "no");
    for (int i = 0; i < 3; ++i) rocpd_note("again", i < 2 ? "first" : "second");
    rocpd_agent_t agent{};
    agent.id = 3;
    agent.type = "FPGA";
    rocpd_register_agent(&agent);
    rocpd_code_object_t object{};
    object.storage_type = "TAPE";
    rocpd_register_code_object(&object);
    rocpd_counter_t counter{};
    counter.id = 4;
    counter.target_arch = counter.value_type = "";
    rocpd_register_counter(&counter);
    rocpd_register_track(nullptr);
    rocpd_sample(900, 1, 901, 1.0);  // neither was registered
    rocpd_allocation_t allocation{};
    allocation.event.category = text("MEMORY_ALLOCATION");
    const int no_type = 99;
    std::memcpy(&allocation.type, &no_type, sizeof no_type);
    if (rocpd_allocation(&allocation) != -1) return 1;
    const std::string large(100000, 'y');
    std::vector<rocpd_argument_t> arguments(64, {text("char*"), text("s"), large.data(), large.size()});
    arguments[0] = {text("char*"), text("s"), nullptr, 10};
    rocpd_region_t region{};
    region.event.category = text("HIP_RUNTIME_API");
    region.name = text("call");
    region.arguments = arguments.data();
    region.argument_count = 2;
    if (rocpd_region(&region) != 0) return 1;
    region.argument_count = arguments.size();  // 2 MiB, more than a quarter of the buffer
    if (rocpd_region(&region) != -1) return 1;
    ranges(10);
    return kCode;
}

// COUNT: so many ranges that are each ended twice. The last mark is what the process grew by [KiB].
int strays(const Arguments& a) {
    const auto resident = [] {
        long pages = 0;
        if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
            if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
            std::fclose(file);
        }
        return pages * 4;
    };
    ranges(400000);  // what is cached has grown to its bounds
    rocpd_flush();
    const long before = resident();
    for (int i = 0; i < std::stoi(a.at(0)); ++i) {
        const std::uint64_t id = roctxRangeStartA("twice");
        roctxRangeStop(id);
        roctxRangeStop(id);
    }
    rocpd_flush();
    roctxMarkA(std::to_string(resident() - before).c_str());
    return kCode;
}

// COUNT: so many values whose dispatch never comes, then so many dispatches, then values of the first and the last one.
int many_counters(const Arguments& a) {
    const std::int64_t count = std::stoi(a.at(0));
    rocpd_start();
    rocpd_counter_t counter{};
    counter.id = 5;
    counter.agent_id = -1;
    counter.name = "SQ_WAVES";
    rocpd_register_counter(&counter);
    for (std::int64_t i = 1; i <= count; ++i) rocpd_counter_value(-i, 5, 1.0);
    rocpd_dispatch_t d{};
    d.event.category = text("KERNEL_DISPATCH");
    for (d.dispatch_id = 1; d.dispatch_id <= count; ++d.dispatch_id) rocpd_dispatch(&d);
    rocpd_counter_value(1, 5, 2.0);
    rocpd_counter_value(count, 5, 3.0);
    return kCode;
}

// Ranges and marks with and without an external correlation id, one of them in another thread.
int correlated(const Arguments&) {
    ranges(1, "none");
    rocpd_correlate(41);
    roctxRangePushA("outer");
    rocpd_correlate(42);
    roctxMarkA("mark");
    const std::uint64_t id = roctxRangeStartA("process range");
    std::thread([id] {
        ranges(1, "other thread");
        roctxRangeStop(id);
    }).join();
    roctxRangePop();
    rocpd_correlate(0);
    ranges(1, "none again");
    return kCode;
}

// All of roctx, and what its functions give.
int whole_roctx(const Arguments&) {
    std::uint64_t tid = 0;
    bool good = roctx_version_major() == 4 && roctx_version_minor() == 1;
    good = good && roctxRangePushA("outer") == 0 && roctxRangePushA(nullptr) == 1;
    good = good && roctxRangePop() == 1 && roctxRangePop() == 0 && roctxRangePop() == -1;
    roctxMarkA("mark");
    roctxMarkA(nullptr);
    const std::uint64_t one = roctxRangeStartA("one"), two = roctxRangeStartA("two");
    good = good && one != 0 && two != 0 && one != two;
    roctxRangeStop(one);
    roctxRangeStop(two);
    good = good && roctxProfilerPause(0) == 0 && roctxProfilerPause(0) == 0;
    roctxMarkA("paused");
    good = good && roctxProfilerResume(0) == 0 && roctxProfilerResume(0) == 0;
    good = good && roctxNameOsThread("thread") == 0 && roctxNameOsThread(nullptr) == -1;
    good = good && roctxNameHsaAgent("agent", nullptr) == 0 && roctxNameHipDevice("device", 3) == 0;
    good = good && roctxNameHipStream("stream", nullptr) == 0 && roctxNameHipStream(nullptr, nullptr) == -1;
    good = good && roctxGetThreadId(&tid) == 0 && tid == static_cast<std::uint64_t>(getpid());
    return good ? kCode : 1;
}

}  // namespace

Scenarios kinds_of_events() {
    return {
        {"odd", odd_ranges}, {"kinds", kinds}, {"wrong", wrong_arguments}, {"strays", strays},
        {"many-counters", many_counters},
        {"correlated", correlated},
        {"roctx", whole_roctx},
    };
}

}  // namespace probe
