"""Owns what is said where data is missing: what is not recorded, and what records it."""

from __future__ import annotations

from rocpd.frozen import frozen
from rocpd.trace.recorders import Recordable, TraceProfiler


@frozen
class NotRecorded:
    """Something that is not recorded, or not in the inputs.

    Args:
        what: it is, in words.
        recordable: what would have to be recorded.
        besides: what helps as well, whatever the profiler.
    """

    what: str
    recordable: Recordable
    besides: str = ""

    def text(self, recorder: TraceProfiler) -> str:
        """Return what to say of it, with the options of the profiler that recorded the inputs."""
        return recorder.missing(self.what, self.recordable) + self.besides


KERNELS = NotRecorded("no kernels are recorded", Recordable.KERNELS)
HIP = NotRecorded("calls that launch kernels are not recorded", Recordable.CALLS)
COPIES = NotRecorded("no copies are recorded", Recordable.COPIES)
ALLOCATIONS = NotRecorded("no allocations are recorded", Recordable.ALLOCATIONS)
COMMUNICATION = "no communication between ranks is in the inputs: open the files of all ranks together"
COLLECTIVES = "no collectives of several ranks are in the inputs: open the files of all ranks together"
SIZES = NotRecorded("the sizes of collectives are not recorded", Recordable.COLLECTIVES)
STEPS = NotRecorded("no steps are marked", Recordable.STEPS, "; or name their markers with --step-marker")
CLOCKS = NotRecorded("no clocks of GPUs are sampled", Recordable.CLOCKS)
COUNTERS = NotRecorded("counters that say so are not collected", Recordable.COUNTERS)
