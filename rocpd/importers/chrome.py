"""Chrome JSON as `rocpd convert -f json` writes it: each process of it becomes a rank again.

What the format keeps comes back: kernels, calls, markers, copies, allocations, samples, the links between them, times
to the ns. Agents have no more than their numbers, and times are those of the common time line.
"""

from __future__ import annotations

import contextlib
import itertools
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
    from rocpd.schema.trace.infos import ProcessInfo

_MOST_FILES = 128  # that are open at one time
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
    from rocpd.schema.trace.infos import NodeInfo

    processes: dict[int, ChromeProcess] = {}
    with source.stream() as stream:
        for events in JsonEvents(source.path, target.lose).batches(stream):
            for event in events:
                _add_names(processes, event)
    times = Counter(process.facts.get("rank") for process in processes.values())
    numbered = iter(processes.items())
    while some := list(itertools.islice(numbered, _MOST_FILES)):
        with contextlib.ExitStack() as ranks:
            rows: dict[object, ChromeRows] = {}
            for pid, process in some:
                rank, agents = process.facts.get("rank"), process.facts.get("agents", {})
                info = _process(pid, process, is_numbered=times[rank] == 1)
                # All are on one time line: however many machines they ran on, their clocks compare.
                node = NodeInfo(machine_id=f"chrome-{source.digest}", hostname=process.facts.get("hostname"))
                trace = ranks.enter_context(target.rank(pid if rank is None else rank, node, info))
                rows[pid] = ChromeRows(trace, process.tracks, agents, target.lose)
            stream = ranks.enter_context(source.stream())
            for events in JsonEvents(source.path, lambda _: None, exactly=True).batches(stream):
                for pid, of_process in itertools.groupby(events, lambda event: event.get("pid")):
                    if pid in rows:
                        rows[pid].add(of_process)


def _process(pid: int, process: ChromeProcess, *, is_numbered: bool) -> ProcessInfo:
    from rocpd.schema.trace.infos import ProcessInfo

    facts = process.facts
    rank = facts.get("rank")
    extdata = {"mpi_rank": rank} if rank is not None and is_numbered else {}
    command = facts.get("command", process.label)
    return ProcessInfo(facts.get("pid") or pid, command=command, extdata=json.dumps(extdata))


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
