"""rocprofv3's JSON (`*_results.json`, `--output-format json`): one or more processes, with all that was traced.

The keys are those of rocprofiler-sdk's own records. Rows get the ids that rocprofv3's databases give them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    from rocpd.importers.head import InputHead
    from rocpd.importers.json_walk import JsonWalk
    from rocpd.importers.rocprofv3_records import Record
    from rocpd.importers.rocprofv3_rows import RocprofRows
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_KEY = "rocprofiler-sdk-tool"
_RECORDS, _COUNTED, _COUNTERS = "buffer_records", "callback_records", "counter_collection"
_NEEDED = {"metadata", "agents", "strings", "kernel_symbols"}
_HINT = "was rocprofv3 killed while it wrote?"


def knows(head: InputHead) -> bool:
    """Whether it is rocprofv3's JSON."""
    start = head.start.lstrip()
    return start.startswith(b"{") and f'"{_KEY}"'.encode() in start[:200]


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a JSON file, a batch of records at a time.

    Counters stand before the dispatches that they are of: where there are some, the file is read again for them.

    Raises:
        InputError: it is no JSON.
    """
    import contextlib

    from rocpd.importers.json_walk import JsonWalk

    with contextlib.ExitStack() as ranks:
        processes: list[_Process] = []
        with source.stream() as stream:
            walk = JsonWalk(stream, source.path, _HINT)
            for _ in _processes(walk):
                processes.append(_Process(target, ranks, [process.key for process in processes]))
                processes[-1].read(walk)
        if any(process.has_counters for process in processes):
            with source.stream() as stream:
                walk = JsonWalk(stream, source.path, _HINT)
                for process, _ in zip(processes, _processes(walk), strict=False):
                    process.read_counters(walk)
        for process in processes:
            for what, count in process.rows.lost.items():
                target.lose(what, count)


def _processes(walk: JsonWalk) -> Iterator[None]:
    """Yield for each process, when it comes next."""
    for key in walk.members():
        if key == _KEY:
            yield from walk.items()
        else:
            walk.value()


class _Process:
    """One process, whose file is open until all is read.

    Args:
        target: where its file goes.
        ranks: closes it.
        keys: of the processes before it.
    """

    rows: RocprofRows
    key: int | str

    def __init__(self, target: TraceTarget, ranks: ExitStack, keys: Sequence[int | str]) -> None:
        self._target, self._ranks, self._keys = target, ranks, keys
        self.has_counters = False

    def read(self, walk: JsonWalk) -> None:
        """Read all but the counters."""
        facts: dict[str, Any] = {}
        late: dict[str, Any] = {}
        for name in walk.members():
            if name == _COUNTED:
                for kind in walk.members():
                    count = sum(map(len, walk.batches()))
                    self.has_counters |= kind == _COUNTERS and count > 0
            elif name != _RECORDS:
                facts[name] = walk.value()
            elif facts.keys() >= _NEEDED:
                self._start(facts)
                for kind in walk.members():
                    for batch in walk.batches():
                        self.rows.add(kind, batch)
            else:  # rocprofv3 writes them last
                late = walk.value()
        if not hasattr(self, "rows"):
            self._start(facts)
        for kind, records in late.items():
            self.rows.add(kind, records or ())

    def read_counters(self, walk: JsonWalk) -> None:
        """Read the counters."""
        for name in walk.members():
            if name != _COUNTED:
                walk.value()
                continue
            for kind in walk.members():
                for batch in walk.batches():
                    if kind == _COUNTERS:
                        self.rows.add_counters(batch)

    def _start(self, facts: Record) -> None:
        from rocpd.importers.rocprofv3_rows import RocprofRows

        metadata = facts["metadata"]
        pid = metadata["pid"]
        self.key = pid if pid not in self._keys else f"{pid}-{len(self._keys)}"
        trace = self._ranks.enter_context(self._target.rank(self.key, _node(metadata), _process(metadata)))
        self.rows = RocprofRows(trace, facts)


def _node(metadata: Record) -> Any:
    from rocpd.schema.trace.infos import NodeInfo

    node = metadata["node"]
    names = ("system_name", "hostname", "release", "version", "hardware_name", "domain_name")
    return NodeInfo(machine_id=node["machine_id"], **{name: node.get(name) for name in names})


def _process(metadata: Record) -> Any:
    from rocpd.schema.trace.infos import ProcessInfo

    command = metadata.get("command")
    return ProcessInfo(
        metadata["pid"],
        ppid=metadata.get("ppid"),
        init=metadata.get("init_time"),
        fini=metadata.get("fini_time"),
        command=" ".join(command) if isinstance(command, list) else command,
        extdata=json.dumps(metadata.get("config") or {}),
    )
