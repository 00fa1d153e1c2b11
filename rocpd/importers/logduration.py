"""logduration's log, `kernel,dispatch,startNs,endNs`: kernels as dispatches, each with when it was launched.

Names stand between quotes and are not escaped; the column `dispatch` is the host's time of the launch.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator

from rocpd.base.errors import InputError
from rocpd.importers.omniprobe import lines
from rocpd.importers.signs import LOG_HEADER
from rocpd.importers.source import TraceSource
from rocpd.importers.target import TraceTarget
from rocpd.schema.trace.events import Events, KernelDispatches
from rocpd.schema.trace.infos import AgentInfo, KernelInfo, NodeInfo, ProcessInfo

_LINE = re.compile(r'"(.*)",(\d{1,19}),(\d{1,19}),(\d{1,19})')
_BATCH = 1 << 14


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write its kernels.

    Raises:
        InputError: it holds none that can be read.
    """

    if next(_lines(source, None), None) is None:
        raise InputError(f"{source.path}: damaged: no kernel of it can be read", 'a line is "name",launch,start,end')
    node = NodeInfo(machine_id=f"logduration-{source.digest}", hostname="logduration")
    with target.rank(0, node, ProcessInfo(1)) as trace:
        agent = trace.register(AgentInfo(0, type="GPU", absolute_index=0, name="unknown GPU"))
        kernels: dict[str, int] = {}
        lines = _lines(source, target)
        while batch := list(itertools.islice(lines, _BATCH)):
            for name, *_ in batch:
                if name not in kernels:
                    kernels[name] = trace.register(KernelInfo(len(kernels) + 1, display_name=name))
            extdata = [json.dumps({"launch_ns": launch}) for _, launch, _, _ in batch]
            trace.write(KernelDispatches(
                kernel_id=[kernels[name] for name, *_ in batch], start=[start for *_, start, _ in batch],
                end=[end for *_, end in batch], agent_id=agent, tid=1, event=Events(extdata=extdata),
            ))  # fmt: skip


def _lines(source: TraceSource, target: TraceTarget | None) -> Iterator[tuple[str, int, int, int]]:
    """Yield name, launch, start and end [ns] of each kernel; `target` counts lines that say no such thing."""
    with source.stream() as stream:
        for line in lines(stream):
            match = _LINE.fullmatch(line)
            launch, start, end = (int(match[group]) for group in (2, 3, 4)) if match else (0, 0, 0)
            if match and max(launch, start, end) < 1 << 63:
                yield match[1], launch, start, end
            elif target and line and line.encode() != LOG_HEADER:
                target.lose("lines that say no kernel")
