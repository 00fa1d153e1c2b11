"""rocprofv3's JSON (`*_results.json`, `--output-format json`): one or more processes, with all that was traced.

The keys are those of rocprofiler-sdk's own records. Rows get the ids that rocprofv3's databases give them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.rocprofv3_records import Record
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget

_KEY = "rocprofiler-sdk-tool"


def knows(head: InputHead) -> bool:
    """Whether it is rocprofv3's JSON."""
    start = head.start.lstrip()
    return start.startswith(b"{") and f'"{_KEY}"'.encode() in start[:200]


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a JSON file.

    Raises:
        InputError: it is no JSON.
    """
    from rocpd.errors import InputError
    from rocpd.importers import fast_json
    from rocpd.importers.rocprofv3_rows import RocprofRows

    with source.stream() as stream:
        content = stream.read()
    try:
        processes = fast_json.parsed(content)[_KEY]
    except ValueError as error:
        raise InputError(f"{source.path}: damaged: {error}", "was rocprofv3 killed while it wrote?") from error
    del content
    pids = [process["metadata"]["pid"] for process in processes]
    for number, process in enumerate(processes):
        pid = pids[number]
        key = pid if pids.count(pid) == 1 else f"{pid}-{number}"
        with target.rank(key, _node(process["metadata"]), _process(process["metadata"])) as trace:
            rows = RocprofRows(trace, process)
            rows.write()
            for what, count in rows.lost().items():
                target.lose(what, count)
        source.step(number + 1, len(processes))


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
