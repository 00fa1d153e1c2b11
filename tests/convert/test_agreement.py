"""Formats agree with each other, and two adjoining windows hold together what the whole trace holds, in each."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq
import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from rocpd.simulator import JobOptions, simulate
from tests.convert.conftest import read_csv, to_perfetto

Kernels: TypeAlias = "Counter[tuple[str, int, int]]"
"""Name, start and end of kernels."""
Read: TypeAlias = Callable[[rocpd.Session, Path], Kernels]

_CATEGORY = "kernel_dispatch"


def _write(form: str, session: rocpd.Session, folder: Path, **options: Any) -> tuple[Path, ...]:
    return FORMATS[form].write(session, ConvertOptions(folder, **options))


def pftrace(session: rocpd.Session, folder: Path) -> Kernels:
    sql = f"SELECT name, ts, ts + dur FROM recorded WHERE category = '{_CATEGORY}'"
    return Counter(to_perfetto(session, folder).rows(sql))


def chrome(session: rocpd.Session, folder: Path) -> Kernels:
    (path,) = _write("json", session, folder)
    events = json.loads(path.read_bytes(), parse_float=lambda text: int(text.replace(".", "")))["traceEvents"]
    kernels = [e for e in events if e.get("cat") == _CATEGORY]
    return Counter((e["args"].get("name", e["name"]), e["ts"], e["ts"] + e["dur"]) for e in kernels)


def csv(session: rocpd.Session, folder: Path) -> Kernels:
    (path, *_) = _write("csv", session, folder)
    rows = read_csv(path) if path.name == "out_kernel_trace.csv" else []
    return Counter((row["Kernel_Name"], int(row["Start_Timestamp"]), int(row["End_Timestamp"])) for row in rows)


def parquet(session: rocpd.Session, folder: Path) -> Kernels:
    (path,) = _write("parquet", session, folder, views=("kernels",))
    rows = pq.read_table(path / "kernels").to_pylist()
    return Counter((row["name"], row["start"], row["end"]) for row in rows)


def otf2(session: rocpd.Session, folder: Path) -> Kernels:
    library = pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    (path,) = _write("otf2", session, folder)
    written: Kernels = Counter()
    begun: dict[Any, int] = {}
    with library.reader.open(str(path)) as trace:
        for location, event in trace.events:
            if "· stream" not in location.name or "copies" in location.name:
                continue
            if isinstance(event, library.events.Enter):
                begun[location] = event.time
            elif isinstance(event, library.events.Leave):
                written[event.region.name, begun.pop(location), event.time] += 1
    return written


READERS: tuple[Read, ...] = (pftrace, chrome, csv, parquet, otf2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=2, steps=3))
    return folder / "job"


@pytest.mark.parametrize("read", READERS)
def test_every_format_has_the_kernels_of_the_view(folder: Path, tmp_path: Path, read: Read) -> None:
    with rocpd.connect(folder) as session:
        wanted = Counter(session.execute('SELECT name, start, "end" FROM kernels').fetchall())
        assert read(session, tmp_path) == wanted


@pytest.mark.parametrize("read", READERS)
def test_adjoining_windows_add_up(folder: Path, tmp_path: Path, read: Read) -> None:
    with rocpd.connect(folder) as session:
        first, last = session.time_range or (0, 0)
        middle = first + (last - first) // 2
        crossing = Counter(
            session.execute(
                f'SELECT name, start, "end" FROM kernels WHERE start < {middle} AND "end" > {middle}'
            ).fetchall()
        )
        whole = read(session, tmp_path / "whole")
    parts: Kernels = Counter()
    for i, window in enumerate((rocpd.Window(end=middle), rocpd.Window(start=middle))):
        with rocpd.connect(folder, window=window) as session:
            written = read(session, tmp_path / str(i))
            assert 0 < written.total() < whole.total()
            parts += written

    assert parts == whole + crossing
