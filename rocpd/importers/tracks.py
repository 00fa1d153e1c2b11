"""Threads, lines of a GPU that are no streams, and counters, as importers name them in what they write."""

from __future__ import annotations

from collections.abc import Mapping

from rocpd.schema.trace.events import CounterValues, Events, Samples
from rocpd.schema.trace.infos import CounterInfo, ThreadInfo, TrackInfo
from rocpd.schema.trace.writer import TraceWriter

_ABOVE_THREADS = 1 << 22
"""Linux's largest thread id: where ids of what is no thread begin."""


class ThreadIds:
    """Gives the ids of threads, and of lines that the source draws beside them.

    Args:
        trace: the file.
        names: thread -> its name, as far as it is known.
    """

    def __init__(self, trace: TraceWriter, names: Mapping[object, str]) -> None:
        self._trace, self._names = trace, names
        self._ids: dict[object, int] = {}
        self._others = 0

    def thread(self, tid: object) -> int:
        """Return the id of a thread; one that is named by a text gets a number above those of threads."""
        known = self._ids.get(tid)
        if known is not None:
            return known
        if isinstance(tid, int) and not isinstance(tid, bool):
            chosen = self._trace.register(ThreadInfo(tid, name=self._names.get(tid)))
            self._ids[tid] = chosen
            return chosen
        return self._numbered(tid, "unknown thread" if tid is None else str(tid))

    def other(self, device: object, stream: object, what: str) -> int:
        """Return the id of a line of a GPU, such as that of its annotations."""
        key = (device, stream, what)
        return self._ids.get(key) or self._numbered(key, f"GPU {device} stream {stream} {what}")

    def _numbered(self, key: object, name: str) -> int:
        self._others += 1
        chosen = self._trace.register(ThreadInfo(_ABOVE_THREADS + self._others, name=name))
        self._ids[key] = chosen
        return chosen


class CounterTracks:
    """Collects values of counters over time and writes them, each counter on a track of its name."""

    def __init__(self, trace: TraceWriter) -> None:
        self._trace = trace
        self._known: dict[tuple[str, int | None], tuple[int, int]] = {}
        self._rows: list[tuple[int, int, int, float]] = []

    def add(self, name: str, agent: int | None, unit: str, time: int, value: float) -> None:
        """Add a value [unit] at a time [ns]; `agent` None: of no agent."""
        known = self._known.get((name, agent))
        if known is None:
            target = None if agent is None else "GPU" if agent else "CPU"
            info = CounterInfo(agent_id=agent, target_arch=target, name=name, units=unit, value_type="ABS")
            known = self._known[name, agent] = self._trace.register(info), self._trace.register(TrackInfo(name=name))
        self._rows.append((*known, time, value))

    def write(self) -> None:
        """Write what was added."""
        if not self._rows:
            return
        counter, track, time, value = zip(*self._rows, strict=True)
        samples = self._trace.write(Samples(track_id=track, timestamp=time, event=Events("COUNTER")))
        self._trace.write(CounterValues(event_id=samples.events, pmc_id=counter, value=value))
        self._rows.clear()
