"""The CSV files of rocprofv3 by process: which there are, and their rows as columns.

Headers count in small letters: AMD's tool of 2026 writes the same ones in others.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocpd.frozen import frozen

_BATCH = 1 << 14
_TIMES = ("start_timestamp", "end_timestamp")
_APIS = ("hip", "hsa", "marker", "rccl", "rocdecode", "rocjpeg", "ompt", "rocshmem")
CALLS = (*(f"{api}_api_trace" for api in _APIS), "regions_trace")
KERNELS, COPIES, ALLOCATIONS, SCRATCH = (
    "kernel_trace", "memory_copy_trace", "memory_allocation_trace", "scratch_memory_trace"
)  # fmt: skip
COUNTERS, AGENTS = ("counter_collection", "counter_collection_trace"), "agent_info"
GRAPHS = "graph_launch_trace"
PC_SAMPLES = {f"pc_sampling_{method}": method for method in ("host_trap", "stochastic")}
KINDS = (*CALLS, KERNELS, COPIES, ALLOCATIONS, SCRATCH, GRAPHS, *COUNTERS, *PC_SAMPLES)
NAME = re.compile(rf"(?:(?P<before>.*?)_)?(?P<kind>{'|'.join(sorted((*KINDS, AGENTS), key=len, reverse=True))})\.csv")

Columns = Mapping[str, Sequence[str]]


@frozen
class CsvProcess:
    """The files of one process, and which of their rows are its own.

    Args:
        files: kind -> file.
        guid: what `Guid` says of its rows; None: all rows.
        counts_damage: whether damaged rows are its own to count, which may be of any process.
    """

    files: Mapping[str, Path]
    guid: str | None = None
    counts_damage: bool = True

    def batches(self, *kinds: str, lost: Counter[str] | None = None) -> Iterator[Columns]:
        """Yield the columns of files, by header, some thousand rows at a time; `lost` counts damaged rows."""
        for kind in kinds:
            if kind in self.files:
                counter = Counter[str]() if lost is None or not self.counts_damage else lost
                yield from _batches(self.files[kind], self.guid, counter)

    @property
    def pid(self) -> int | None:
        """Id of the process: as calls have it, else as the names of files start, else its first thread."""
        for batch in self.batches(*CALLS, *COUNTERS):
            known = [text for text in batch.get("process_id", ()) if text.isdecimal()]
            if known:
                return int(known[0])
        named = re.match(r"\d+", next(iter(self.files.values())).name)
        if named:
            return int(named[0])
        threads = [t for batch in self.batches(KERNELS) for t in batch.get("thread_id", ()) if t.isdecimal()]
        return min(map(int, threads), default=None)

    @property
    def counted_from_to(self) -> tuple[int | None, int | None]:
        """First start and last end of dispatches with counters [ns]; None: there are no times."""
        starts, ends = set[int](), set[int]()
        for batch in self.batches(*COUNTERS):
            starts |= {min(filter(None, numbers(batch, _TIMES[0])), default=0)}
            ends |= {max(filter(None, numbers(batch, _TIMES[1])), default=0)}
        return min(starts - {0}, default=None), max(ends - {0}, default=None)


def _batches(path: Path, guid: str | None, lost: Counter[str]) -> Iterator[Columns]:
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        lines = csv.reader(file)
        header = [name.strip().lower() for name in next(lines, [])]
        of_guid = header.index("guid") if guid is not None and "guid" in header else None
        timed = [header.index(name) for name in _TIMES if name in header]

        def is_whole(line: Sequence[str]) -> bool:
            good = len(line) == len(header) and all(line[column].isdecimal() for column in timed)
            lost["lines of CSV files that are cut or damaged"] += not good
            return good

        whole = filter(is_whole, lines)
        of_process = whole if of_guid is None else (line for line in whole if line[of_guid] == guid)
        while rows := list(itertools.islice(of_process, _BATCH)):
            yield dict(zip(header, zip(*rows, strict=True), strict=True))


def numbers(batch: Columns, name: str, default: Any = None) -> list[Any]:
    """Return a column as whole numbers; `default` where it is absent or holds none."""
    texts = batch.get(name)
    if texts is None:
        return [default] * len(next(iter(batch.values())))
    return [_number(text, default) for text in texts]


def _number(text: str, default: Any) -> Any:
    try:
        return int(text, 0) if text[:2] in ("0x", "0X") else int(text)
    except ValueError:
        return default
