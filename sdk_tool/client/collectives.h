// Calls of RCCL as they happen: which operations of which communicator have begun, in which call a thread is, and when
// the work of an operation on the GPU is over. This goes into the state file; rows come from the records, as of all
// calls.
//
// An operation is over when all kernels that its call launched are. One whose call launches nothing that is seen (it
// was captured into a graph, or other threads launch it) counts as over when the call returns: then nobody is said to
// wait.
#pragma once

#include <memory>

#include "sdk.h"

namespace rocpd::client {

// The operations of a call, or of a group of calls, and the work that they launched.
class Batch;

// Has the SDK call back during those calls, in this context. `sees_kernels`: it reports kernels, too.
void follow_collectives(rocprofiler_context_id_t context, bool sees_kernels);

// The batch that the calling thread launches a kernel for; none: it is in no such call.
std::shared_ptr<Batch> launched_by_collective();

// Such a kernel is over.
void end_of_work(const std::shared_ptr<Batch>& batch);

}  // namespace rocpd::client
