"""Chrome JSON as `rocpd convert -f json` writes it: each process of it becomes a rank again.

What the format keeps comes back: kernels, calls, markers, copies, allocations, samples, the links between them, times
to the ns. Agents have no more than their numbers, and times are those of the common time line.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from rocpd.frozen import frozen

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.json_events import Event
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_START = re.compile(rb'\{"displayTimeUnit":"ns","traceEvents":\[\s*\{"ph":"M","pid":\d+,"name":"process_name"')


def knows(head: InputHead) -> bool:
    """Whether it is Chrome JSON of ours: another writer has other keys, or other spaces."""
    return bool(_START.match(head.start))


@frozen
class ChromeProcess:
    """What the file says of one process: its label, its tracks by their numbers, and facts of its rank."""

    label: str
    tracks: dict[int, str]
    facts: dict[str, Any]


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a file.

    Raises:
        InputError: the file is damaged elsewhere than at its end.
    """
    from rocpd.importers.chrome_rows import ChromeRows
    from rocpd.importers.json_events import JsonEvents
    from rocpd.schema.trace.infos import NodeInfo, ProcessInfo

    processes: dict[int, ChromeProcess] = {}
    with source.stream() as stream:
        for events in JsonEvents(source.path, target.lose).batches(stream):
            for event in events:
                _add_names(processes, event)
    times = Counter(process.facts.get("rank") for process in processes.values())
    for number, (pid, process) in enumerate(processes.items()):
        facts = process.facts
        rank = facts.get("rank")
        # All are on one time line: however many machines they ran on, their clocks compare.
        node = NodeInfo(machine_id=f"chrome-{source.digest}", hostname=facts.get("hostname"))
        extdata = {"mpi_rank": rank} if rank is not None and times[rank] == 1 else {}
        command = facts.get("command", process.label)
        info = ProcessInfo(facts.get("pid") or pid, command=command, extdata=json.dumps(extdata))
        with target.rank(pid if rank is None else rank, node, info) as trace, source.stream() as stream:
            rows = ChromeRows(trace, process.tracks, facts.get("agents", {}), target.lose)
            for events in JsonEvents(source.path, lambda _: None, exactly=True).batches(stream):
                rows.add(event for event in events if event.get("pid") == pid)
        source.step(number + 1, len(processes))


def _add_names(processes: dict[int, ChromeProcess], event: Event) -> None:
    if event.get("ph") != "M":
        return
    arguments: Any = event.get("args") or {}
    if event.get("name") == "process_name":
        processes[event["pid"]] = ChromeProcess(str(arguments.get("name")), {}, {})
    elif event.get("name") == "rank" and event.get("pid") in processes:
        processes[event["pid"]].facts.update(arguments)
    elif event.get("name") == "thread_name" and event.get("pid") in processes:
        processes[event["pid"]].tracks[event["tid"]] = str(arguments.get("name"))
