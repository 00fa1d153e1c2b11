/* The part of rocprofiler-sdk's C interface (version 1.x, ROCm 7) that the client uses, declared for machines without
 * ROCm. Names, values and layouts are the public interface's; tests/abi_check.cpp compares them with the real headers.
 */
#ifndef ROCPD_ABI_ROCPROFILER_H
#define ROCPD_ABI_ROCPROFILER_H

/* In this order: later ones use the types of earlier ones. */
#include "sdk_types.h"
#include "sdk_callbacks.h"
#include "sdk_buffers.h"
#include "sdk_queries.h"

#endif
