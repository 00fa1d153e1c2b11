#include "stack_copies.h"

#include <sys/mman.h>

namespace rocpd {

bool StackCopies::create() {
    if (copies_ != nullptr) return true;
    void* place = mmap(nullptr, kCopies * sizeof(StackCopy), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place != MAP_FAILED) copies_ = static_cast<StackCopy*>(place);  // zeros: all are free
    return copies_ != nullptr;
}

StackCopy* StackCopies::claim() {
    for (std::size_t i = 0; copies_ != nullptr && i < kCopies; ++i) {
        std::uint32_t free = StackCopy::kFree;
        if (copies_[i].state.compare_exchange_strong(free, StackCopy::kFilling, std::memory_order_acquire))
            return &copies_[i];
    }
    return nullptr;
}

void StackCopies::forget() {
    for (std::size_t i = 0; copies_ != nullptr && i < kCopies; ++i) copies_[i].state.store(StackCopy::kFree);
}

}  // namespace rocpd
