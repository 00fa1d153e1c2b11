"""Ranks that run collectives, each launched by a call that names its communicator."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tests.build import GPU, QUEUE, STREAM, TraceBuilder

NCCL = "ncclDevKernel_Generic_1"


class Member(TraceBuilder):
    """A rank that runs collectives; all run for 10 ms."""

    def __init__(self, number: int, host: str = "node0") -> None:
        super().__init__(number, host=host)
        self.region("main", 1, 10_000_000, tid=99)

    def collective(
        self,
        start: int,
        end: int,
        communicator: str | None = None,
        stream: int = STREAM,
        call: str = "ncclAllReduce",
        queue: int = QUEUE,
        arguments: Mapping[str, str] = MappingProxyType({"count": "4"}),
        agent: int = GPU,
    ) -> Member:
        """Add a kernel and the calls that launch it, with further arguments of the RCCL call."""
        launch = start - 10
        self.region(call, launch, launch + 8, category="RCCL_API")
        if communicator is not None:
            self.arg("comm", communicator, type="ncclComm_t")
        for name, value in arguments.items():
            self.arg(name, value)
        self.region("hipExtLaunchKernel", launch + 2, launch + 6, stack=launch)
        return self.kernel(NCCL, start, end, stack=launch, stream=stream, queue=queue, agent=agent)

    def init(self, communicator: str, ranks: int) -> Member:
        """Add the call that makes a communicator."""
        self.region("ncclCommInitRank", 1, 5, category="RCCL_API")
        return self.arg("newcomm", communicator).arg("nranks", str(ranks), type="int")
