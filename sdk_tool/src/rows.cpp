#include "rows.h"

#include "clock.h"

namespace rocpd {

Rows::Rows(const Identity& identity)
    : tables_(identity),
      referenced_(tables_),
      ranges_(tables_, referenced_),
      gpu_rows_(tables_, referenced_),
      stacks_(tables_, referenced_) {
    referenced_.write_new();
}

bool Rows::begin() {
    if (!tables_.begin()) return false;
    referenced_.write_new();
    return true;
}

void Rows::take(ThreadBuffer& thread, const Head& entry) {
    switch (entry.kind) {
        case kPush: return ranges_.push(thread, entry);
        case kPop: return ranges_.pop(thread, entry);
        case kBegin: return ranges_.begin(thread, entry);
        case kEnd: return ranges_.end(entry);
        case kMark: return ranges_.mark(thread, entry);
        case kThread: return ranges_.name_thread(thread, text_of(entry));
        case kCorrelate: thread.timeline.correlation = body<std::uint64_t>(entry); return;
        case kRegion: return gpu_rows_.region(thread, entry);
        case kDispatch: return gpu_rows_.dispatch(thread, entry);
        case kCopy: return gpu_rows_.copy(thread, entry);
        case kAllocate: return gpu_rows_.allocation(thread, entry);
        case kMarkAs: return ranges_.mark_as(thread, entry);
        case kGraph: return gpu_rows_.graph_launch(thread, entry);
        case kSample: return gpu_rows_.sample(entry);
        case kSamples: return gpu_rows_.samples(entry);
        case kCounter: return gpu_rows_.counter(entry);
        case kStack: return stacks_.sample(entry);
        case kNativeStack: return stacks_.native_sample(entry);
        default: return;
    }
}

bool Rows::commit(const Losses& losses) {
    if (!(losses == losses_) && !begin()) return false;
    if (!tables_.in_transaction()) return true;
    referenced_.write_new();
    if (clocks_.is_due(clock_ns(CLOCK_MONOTONIC))) tables_.read_clocks();
    if (!(losses == losses_)) {
        losses_ = losses;
        tables_.note("recorder_lost_events", std::to_string(losses.lost));
        tables_.note("recorder_cut_texts", std::to_string(losses.cuts));
        tables_.note("recorder_waits", std::to_string(losses.waits));
    }
    return tables_.commit();
}

void Rows::finish(const std::vector<ThreadBuffer*>& threads) {
    const std::uint64_t time = now_ns();
    for (ThreadBuffer* thread : threads) end_thread(*thread, time);
    ranges_.end_all(time);
    gpu_rows_.end_all();
    tables_.end_process(time);
    tables_.read_clocks();
    tables_.note("recorder_closed", "1");
}

}  // namespace rocpd
