"""Says where data is missing: what is not recorded, and what records it."""

from __future__ import annotations

from rocpd.base.frozen import frozen
from rocpd.facts.recorders import Recordable, TraceProfiler


@frozen
class NotRecorded:
    """Something that is not recorded, or not in the inputs.

    Args:
        what: it is, in words.
        recordable: what would have to be recorded; None: recording is no help.
        besides: what helps as well, whatever the profiler.
    """

    what: str
    recordable: Recordable | None
    besides: str = ""

    def text(self, recorder: TraceProfiler, *, is_part: bool = False) -> str:
        """Return what to say of it.

        Args:
            recorder: the profiler that recorded the inputs, whose options are named.
            is_part: windows or filters leave a part of what is recorded, so that recording may be no help.
        """
        if is_part:
            return f"{self.what} in this part of the trace"
        missing = self.what if self.recordable is None else recorder.missing(self.what, self.recordable)
        return missing + self.besides


KERNELS = NotRecorded("no kernels are recorded", Recordable.KERNELS)
HIP = NotRecorded("calls that launch kernels are not recorded", Recordable.CALLS)
COPIES = NotRecorded("no copies are recorded", Recordable.COPIES)
ALLOCATIONS = NotRecorded("no allocations are recorded", Recordable.ALLOCATIONS)
_TOGETHER = ": open the files of all ranks together"
RANKS = NotRecorded("there are no two ranks with kernels", None, _TOGETHER)
COMMUNICATION = NotRecorded("there is no communication between ranks", None, _TOGETHER)
COLLECTIVES = NotRecorded("there are no collectives of several ranks", None, _TOGETHER)
SIZES = NotRecorded("the sizes of collectives are not recorded", Recordable.COLLECTIVES)
STEPS = NotRecorded("no steps are marked", Recordable.STEPS, "; or name their markers with --step-marker")
CLOCKS = NotRecorded("no clocks of GPUs are sampled", Recordable.CLOCKS)
COUNTERS = NotRecorded("counters that say so are not collected", Recordable.COUNTERS)
