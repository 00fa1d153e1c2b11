"""Fixtures of the converters: jobs in, a trace in Perfetto's own engine or parsed CSV files out."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.options import ConvertOptions
from tests.build import TraceBuilder
from tests.perfetto_engine import Engine
from tests.pftrace_frames import count_packets

ToPerfetto: TypeAlias = Callable[..., Engine]
ToCsv: TypeAlias = Callable[..., dict[str, list[dict[str, str]]]]

BASE = 1_071_040_000_000_000
"""A time as machines have it [ns since boot]; tests add to it."""


def to_perfetto(session: rocpd.Session, folder: Path, **options: object) -> Engine:
    """Convert to pftrace, check the framing, load it and check that trace_processor has nothing to complain about."""
    (path,) = FORMATS["pftrace"].write(session, ConvertOptions(folder, **options))  # type: ignore[arg-type]
    assert count_packets(path) > 0
    engine = Engine(path)
    assert engine.complaints() == []
    return engine


@pytest.fixture
def perfetto(open_job: Callable[..., rocpd.Session], tmp_path: Path) -> ToPerfetto:
    """Convert builders to a trace in the engine."""

    def run(*builders: TraceBuilder, **options: object) -> Engine:
        return to_perfetto(open_job(*builders), tmp_path / "out", **options)

    return run


@pytest.fixture
def csv_files(open_job: Callable[..., rocpd.Session], tmp_path: Path) -> ToCsv:
    """Convert builders to CSV; return the rows of each file by its name without `out_`."""

    def run(*builders: TraceBuilder, **options: object) -> dict[str, list[dict[str, str]]]:
        paths = FORMATS["csv"].write(open_job(*builders), ConvertOptions(tmp_path / "out", **options))  # type: ignore[arg-type]
        return {path.stem.removeprefix("out_"): read_csv(path) for path in paths}

    return run


def read_csv(path: Path) -> list[dict[str, str]]:
    """Read a CSV file with a header."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
