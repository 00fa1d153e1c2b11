"""Writes a simulated rank as PyTorch's profiler would have seen it: a second recording of the same run.

Each call that launches lies in an operator; the GPU's times are those of the file, by a clock that differs and drifts.
What the rank's file lacks, the trace lacks; it may lack more. Never changes the file.
https://github.com/pytorch/kineto, format of torch.profiler's export_chrome_trace
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from rocpd.base import by_key, frozen
from rocpd.base.output import complete_or_nothing
from rocpd.facts.cxx import bare_name

_BASE_NS = 1_700_000_000_000_000_000  # of the clock of the trace
_PPM = 12  # by which it drifts
_OPERATORS = (("Cijk", "aten::mm"), ("Fmha", "aten::_flash_attention_forward"), ("nccl", "c10d::allreduce_"),
              ("norm", "aten::native_layer_norm"), ("reduce", "aten::sum"))  # fmt: skip


@frozen
class KinetoOptions:
    """How the second recording differs.

    Args:
        lost: share of the dispatches that it lacks.
        first, last: it has dispatches between these shares of the run.
        seed: which dispatches are lost.
    """

    lost: float = 0.0
    first: float = 0.0
    last: float = 1.0
    seed: int = 0


def write_kineto(rank: Path, out: Path, options: KinetoOptions | None = None, *, force: bool = False) -> None:
    """Write the trace of a rank.

    Args:
        rank: a file that `simulate` wrote.
        out: `.json.gz`.
        options: how it differs; None: it has everything.
        force: replace an existing file.

    Raises:
        OutputError: the file exists, or cannot be written.
    """
    with closing(sqlite3.connect(f"file:{rank}?mode=ro", uri=True)) as connection:
        events = list(_Trace(connection, options or KinetoOptions()).events())
    document = {"schemaVersion": 1, "baseTimeNanoseconds": _BASE_NS, "deviceProperties": [], "traceEvents": events}
    with complete_or_nothing(out, force) as temporary:
        temporary.write_bytes(gzip.compress(json.dumps(document).encode(), 1, mtime=0))


class _Trace:
    """The events of a trace, from the tables of a rank."""

    def __init__(self, connection: sqlite3.Connection, options: KinetoOptions) -> None:
        self._connection, self._options = connection, options
        self._random = np.random.default_rng(options.seed)
        ((self._pid,),) = self._rows("SELECT pid FROM rocpd_info_process")
        ((self._origin, self._end),) = self._rows('SELECT MIN(start), MAX("end") FROM rocpd_kernel_dispatch')

    def _rows(self, sql: str) -> list[Any]:
        return self._connection.execute(sql).fetchall()

    def events(self) -> Iterator[dict[str, Any]]:
        """Yield operators with calls in them, and kernels."""
        yield {"ph": "M", "name": "process_name", "pid": self._pid, "tid": 0, "ts": 0, "args": {"name": "python"}}
        kernels = by_key((stack, kernel) for stack, *kernel in self._kernels())
        until: dict[int, int] = {}
        for name, thread, start, end, stack in self._calls():
            if stack in kernels:
                launched = kernels.pop(stack)
                yield self._operator(launched[0][0], thread, (start, end), until.get(thread, start - 4000))
                common = {"correlation": stack, "External id": stack}
                yield self._event("cuda_runtime", name, (self._pid, thread), (start, end), common)
                for kernel, begin, finish, agent, stream in launched:
                    args = common | {"device": agent, "stream": stream}
                    yield self._event("kernel", kernel, (agent, stream), (begin, finish), args)
            until[thread] = max(end, until.get(thread, 0))

    def _operator(self, kernel: str, thread: int, call: tuple[int, int], before: int) -> dict[str, Any]:
        """Return the operator around a call, begun between the call before and this one."""
        name = next((operator for word, operator in _OPERATORS if word in kernel), "aten::add")
        start = call[0] - min(2000, max(0, call[0] - before) // 2)
        return self._event("cpu_op", name, (self._pid, thread), (start, call[1]), {"Input Dims": [[128, 256]]})

    def _kernels(self) -> Iterator[tuple[Any, ...]]:
        """Yield stack id, name, start, end, agent and stream of the dispatches that the trace has."""
        rows = self._rows("""
            SELECT E.stack_id, S.display_name, D.start, D."end", A.type_index, D.stream_id
            FROM rocpd_kernel_dispatch D JOIN rocpd_event E ON E.id = D.event_id
            JOIN rocpd_info_kernel_symbol S ON S.id = D.kernel_id JOIN rocpd_info_agent A ON A.id = D.agent_id
            WHERE D."end" >= D.start AND D.start > 0 ORDER BY D.start""")
        span = self._end - self._origin
        low, high = self._origin + self._options.first * span, self._origin + self._options.last * span
        for row in rows:
            if low <= row[2] <= high and self._random.random() >= self._options.lost:
                yield (row[0], bare_name(row[1]), *row[2:])

    def _calls(self) -> list[Any]:
        """Return name, thread, start, end and stack id of the calls of HIP, in order."""
        return self._rows("""
            SELECT N.string, T.tid, R.start, R."end", E.stack_id FROM rocpd_region R
            JOIN rocpd_string N ON N.id = R.name_id JOIN rocpd_event E ON E.id = R.event_id
            JOIN rocpd_info_thread T ON T.id = R.tid WHERE N.string GLOB 'hip*' AND R."end" >= R.start AND R.start > 0
            ORDER BY R.start""")

    def _event(
        self, kind: str, name: str, track: tuple[int, int], times: tuple[int, int], args: dict[str, Any]
    ) -> dict[str, Any]:
        """Return an event on a process and thread, or an agent and stream, by the clock of the trace."""
        start, end = (round((time - self._origin) * (1 + _PPM * 1e-6)) for time in times)
        of_track = {"pid": track[0], "tid": track[1], "ts": start / 1000, "dur": (end - start) / 1000}
        return {"ph": "X", "cat": kind, "name": name, **of_track, "args": args}
