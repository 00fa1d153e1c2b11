"""Folders of rocprofv3's CSV files (`*_kernel_trace.csv`, `*_agent_info.csv` …), and those of `rocpd convert -f csv`.

Files whose names start alike are of one process, unless a column `Guid` says which row is of which. Folders `pass_1`,
`pass_2` … are runs of one program for different counters, one after the other; they may have a folder for each host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocpd.importers.head import InputHead
    from rocpd.importers.rocprofv3_files import CsvProcess
    from rocpd.importers.source import TraceSource
    from rocpd.importers.target import TraceTarget


_PASS = re.compile(r"pass_\d+")


def knows(head: InputHead) -> bool:
    """Whether it is a folder with files of that kind."""
    from rocpd.importers.rocprofv3_files import KINDS, NAME

    matches = (NAME.fullmatch(name.rpartition("/")[2]) for name in head.names)
    return any(match["kind"] in KINDS for match in matches if match)


def read(source: TraceSource, target: TraceTarget) -> None:
    """Write each process of a folder."""
    from rocpd.importers.rocprofv3_csv_rows import CsvRows
    from rocpd.schema.trace.infos import NodeInfo, ProcessInfo

    processes = list(_processes(source.path))
    for number, process in enumerate(processes):
        folder = next(iter(process.files.values())).parent
        is_pass = any(map(_PASS.fullmatch, (folder.name, folder.parent.name)))
        host = source.path.name if _PASS.fullmatch(folder.name) else folder.name
        node = NodeInfo(machine_id=f"rocprofv3-csv-{source.digest}-{host}", hostname=host)
        pid = process.pid or number
        start, end = process.counted_from_to if is_pass else (None, None)
        with target.rank(process.guid or f"{number}-{pid}", node, ProcessInfo(pid, start=start, end=end)) as trace:
            rows = CsvRows(trace, process)
            rows.write()
        for what, count in rows.lost.items():
            target.lose(what, count)
        source.step(number + 1, len(processes))


def _processes(path: Path) -> Iterator[CsvProcess]:
    """Yield the processes of a folder, by the order of names of files, then of rows."""
    from rocpd.importers.head import files_in
    from rocpd.importers.rocprofv3_files import KINDS, NAME, CsvProcess

    groups: dict[tuple[Path, str | None], dict[str, Path]] = {}
    for file in files_in(path):
        match = NAME.fullmatch(file.name)
        if match:
            groups.setdefault((file.parent, match["before"]), {})[match["kind"]] = file
    for files in groups.values():
        if not set(files) & set(KINDS):
            continue
        guids: dict[str, None] = {}
        for kind in KINDS:
            for batch in CsvProcess(files).batches(kind):
                guids |= dict.fromkeys(batch.get("guid", ()))
        yield from (CsvProcess(files, guid, number == 0) for number, guid in enumerate(guids or (None,)))
