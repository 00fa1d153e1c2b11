// The part of NVTX's injection interface that is used, as version 3 of its headers has it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rocpd::nvtx {

// A table of pointers to the places of an annotated library's function pointers; `nullptr` where one is not there.
using Function = void (*)();
using Table = Function**;

constexpr std::uint32_t kCallbacks = 1;  // NVTX_ETID_CALLBACKS
enum Module { kCore = 1, kCore2 = 5 };   // NVTX_CB_MODULE_…

enum Core {
    kMarkEx = 1, kMarkA, kMarkW, kRangeStartEx, kRangeStartA, kRangeStartW, kRangeEnd,
    kRangePushEx, kRangePushA, kRangePushW, kRangePop, kNameOsThreadA = 14, kNameOsThreadW
};
enum Core2 {
    kDomainMarkEx = 1, kDomainRangeStartEx, kDomainRangeEnd, kDomainRangePushEx, kDomainRangePop,
    kDomainRegisterStringA = 10, kDomainRegisterStringW, kDomainCreateA, kDomainCreateW, kDomainDestroy
};

// NvtxExportTableCallbacks
struct Exports {
    std::size_t size;
    int (*module_table)(int module, Table* table, unsigned* size);
};
using ExportTable = const void* (*)(std::uint32_t id);

enum Message { kAscii = 1, kUnicode = 2, kRegistered = 3 };

// nvtxEventAttributes_t
struct Attributes {
    std::uint16_t version, size;
    std::uint32_t category;
    std::int32_t color_type;
    std::uint32_t color;
    std::int32_t payload_type, reserved;
    std::uint64_t payload;
    std::int32_t message_type;
    const void* message;  // char, wchar_t or a registered string
};

}  // namespace rocpd::nvtx
