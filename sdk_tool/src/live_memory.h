// Reads memory of this process that may not be there: a copy by the kernel, which fails where reading would crash.
#pragma once

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace rocpd {

constexpr std::uint64_t kPage = 4096;

// Copies up to `size` bytes, at most 32 pages, and returns how many were there in one piece. Usable in signal handlers,
// where `errno` is the caller's to keep.
inline std::size_t copy_live(std::uint64_t address, void* to, std::size_t size) {
    iovec local{to, size}, remote[33];
    unsigned long pieces = 0;
    // One piece a page: the kernel promises whole pieces only.
    for (std::size_t done = 0; done < size && pieces < 33;) {
        const std::size_t to_page_end = static_cast<std::size_t>(kPage - (address + done) % kPage);
        const std::size_t length = std::min(to_page_end, size - done);
        remote[pieces++] = {reinterpret_cast<void*>(address + done), length};
        done += length;
    }
    const long copied = syscall(SYS_process_vm_readv, getpid(), &local, 1ul, remote, pieces, 0ul);
    return copied > 0 ? static_cast<std::size_t>(copied) : 0;
}

template <typename T>
bool read_live(std::uint64_t address, T& value) {
    return copy_live(address, &value, sizeof value) == sizeof value;
}

}  // namespace rocpd
