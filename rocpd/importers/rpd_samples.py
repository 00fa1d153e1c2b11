"""Monitors of an RPD file as samples of counters, and the hardware counters of kernels."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from rocpd.importers.rpd_places import agent_of
from rocpd.importers.rpd_tables import RpdTables
from rocpd.schema.trace.events import CounterValues, Events, Samples
from rocpd.schema.trace.infos import CounterInfo, TrackInfo
from rocpd.schema.trace.writer import TableRows, TraceWriter

MONITOR = "GPU_MONITOR"
"""Category of samples of monitors."""

_UNITS = {"sclk": "MHz", "mclk": "MHz", "power": "W", "temp": "C", "vram": "bytes"}


def write_monitors(
    trace: TraceWriter, tables: RpdTables, devices: Sequence[int], lose: Callable[[str, int], None]
) -> None:
    """Write what monitors showed: a sample where a value begins, which holds to the `end` in the extdata of its event.

    Args:
        trace: the file.
        tables: of the RPD file.
        devices: GPUs whose monitors go into this file, as monitors count.
        lose: called with what has no place, and how often.
    """
    known: dict[tuple[str, int, str], tuple[int, int]] = {}
    for device in devices:
        for batch in tables.batches(
            'SELECT deviceType, monitorType, start, "end", value FROM rocpd_monitor WHERE deviceId = ? ORDER BY id',
            (device,),
        ):
            rows = []
            for kind, monitor, start, end, text in batch:
                key = (kind, device, monitor)
                value = _real(text)
                if value is None:
                    lose("values of monitors that are no numbers", 1)
                    continue
                if key not in known:
                    known[key] = _register(trace, tables, *key)
                rows.append((*known[key], start, f'{{"end": {json.dumps(end)}}}', value))
            if rows:
                counters, tracks, starts, facts, values = zip(*rows, strict=True)
                samples = trace.write(Samples(track_id=tracks, timestamp=starts, event=Events(MONITOR, extdata=facts)))
                trace.write(CounterValues(event_id=samples.events, pmc_id=counters, value=values))


def _register(trace: TraceWriter, tables: RpdTables, kind: str, device: int, monitor: str) -> tuple[int, int]:
    is_gpu = kind == "gpu"
    index = device % tables.gpu_stride
    agent = trace.register(agent_of(index + tables.first_gpu, tables.first_gpu)) if is_gpu else None
    info = CounterInfo(
        agent_id=agent,
        target_arch="GPU" if is_gpu else None,
        name=monitor,
        units=_UNITS.get(monitor, ""),
        value_type="ABS",
        extdata=json.dumps({"rpd_deviceType": kind, "rpd_deviceId": device}),
    )
    return trace.register(info), trace.register(TrackInfo(name=f"{monitor} {kind.upper()} {index}"))


def _real(text: object) -> float | None:
    try:
        value = float(str(text))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class CountersOfKernels:
    """Hardware counters of kernels, which schema 3 has.

    Args:
        trace: the file.
        tables: of the RPD file.
    """

    def __init__(self, trace: TraceWriter, tables: RpdTables) -> None:
        self._trace, self._tables = trace, tables
        self._known: dict[str, int] = {}
        self._exist = tables.has_counters

    def write(self, kernels: TableRows) -> None:
        """Write the counters of kernels that were written."""
        if not self._exist:
            return
        events = dict(zip(kernels.ids, kernels.events, strict=True))
        values = self._tables.rows(
            """SELECT op_id, name, value FROM counter_by_op WHERE op_id IN (SELECT value FROM json_each(?))
            ORDER BY op_id, rowid""",
            (json.dumps(list(events)),),
        )
        rows = [(events[operation], self._counter(name or ""), value) for operation, name, value in values]
        if rows:
            event, counter, value = zip(*rows, strict=True)
            self._trace.write(CounterValues(event_id=event, pmc_id=counter, value=value))

    def _counter(self, name: str) -> int:
        if name not in self._known:
            self._known[name] = self._trace.register(CounterInfo(target_arch="GPU", name=name))
        return self._known[name]
