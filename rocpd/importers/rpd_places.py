"""Where operations of an RPD file ran: agents, queues, streams, registered when an operation names them first."""

from __future__ import annotations

import json

from rocpd.importers.rpd_arguments import whole
from rocpd.importers.rpd_tables import RpdTables
from rocpd.importers.vocabulary import HOST
from rocpd.schema.trace.infos import AgentInfo, QueueInfo, StreamInfo, ThreadInfo
from rocpd.schema.trace.writer import TraceWriter

_ABOVE_THREADS = 1 << 40  # where ids of lines that are no threads begin


class Places:
    """Agents, queues, streams and lines of one process; an agent has the number of its GPU in the file.

    Args:
        trace: the file.
        tables: of the RPD file.
    """

    def __init__(self, trace: TraceWriter, tables: RpdTables) -> None:
        self._trace = trace
        self._stride, self._first = tables.gpu_stride, tables.first_gpu
        self._agents: dict[int, int] = {}
        self._queues: dict[tuple[int, int], int] = {}
        self._streams: dict[str, int] = {}
        self._lines: dict[tuple[int, int], int] = {}
        self._host = trace.register(HOST)

    def agent(self, gpu: int) -> int:
        """Return the agent of a GPU, by its number in operations."""
        agent = self._agents.get(gpu)
        if agent is None:
            agent = self._agents[gpu] = self._trace.register(agent_of(gpu % self._stride, self._first))
        return agent

    def agent_of_copy(self, gpu: int) -> int | None:
        """Return the agent that a copy ran on, None if unknown: some tracers give copies the number 0, of a CPU."""
        if gpu % self._stride >= self._first:
            return self.agent(gpu)
        return next(iter(self._agents.values())) if len(self._agents) == 1 else None

    def ends(self, direction: str, agent: int | None, source: object, to: object) -> tuple[int | None, int | None]:
        """Return the agents that a copy comes from and goes to.

        Args:
            direction: its name.
            agent: that it ran on.
            source, to: numbers of GPUs as the call was given them; they count from 0, and only differ where peers copy.
        """
        if direction == "MEMORY_COPY":
            return None, agent
        start, _, end = direction.removeprefix("MEMORY_COPY_").partition("_TO_")
        if start == end == "DEVICE" and isinstance(source, int) and isinstance(to, int) and source != to:
            return self.agent(source + self._first), self.agent(to + self._first)
        return (self._host if start == "HOST" else agent), (self._host if end == "HOST" else agent)

    def queue(self, gpu: int, queue: int) -> int:
        """Return a queue: numbers count for each GPU."""
        known = self._queues.get((gpu, queue))
        if known is None:
            facts = json.dumps({"rpd_gpuId": gpu, "rpd_queueId": queue})
            info = QueueInfo(name=f"GPU {gpu} queue {queue}", extdata=facts)
            known = self._queues[gpu, queue] = self._trace.register(info)
        return known

    def stream(self, text: str | None) -> int:
        """Return a stream, by its pointer; 0, the default one, where it is unknown."""
        name = text or ""
        stream = self._streams.get(name)
        if stream is None:
            stream = whole(name) or 0
            self._trace.register(StreamInfo(stream, name=name if stream else None))
            self._streams[name] = stream
        return stream

    def line(self, gpu: int, queue: int) -> int:
        """Return the line on which a queue waits, as a thread that is none."""
        line = self._lines.get((gpu, queue))
        if line is None:
            info = ThreadInfo(_ABOVE_THREADS + len(self._lines), name=f"GPU {gpu} queue {queue} waits")
            line = self._lines[gpu, queue] = self._trace.register(info)
        return line


def agent_of(gpu: int, first: int) -> AgentInfo:
    """Return the agent that is a GPU.

    Args:
        gpu: its number in operations.
        first: the smallest of these; where it is 0 the agents begin at 1, after the host.
    """
    number = gpu if first else gpu + 1
    index = gpu - first
    facts = json.dumps({"rpd_gpuId": gpu})
    return AgentInfo(
        number,
        type="GPU",
        absolute_index=number,
        logical_index=number,
        type_index=index,
        name=f"GPU {index}",
        extdata=facts,
    )
