"""One process recorded twice: operators of PyTorch's trace on the dispatches of rocprofv3's file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.facts.cxx import bare_name
from rocpd.importers.join import ProcessDispatches, matched
from rocpd.session import Session
from rocpd.simulator.job import simulate
from rocpd.simulator.kineto import write_kineto
from rocpd.simulator.options import JobOptions
from tests.conftest import Cli
from tests.soak import sized

_SQL = 'select start, "end", name, stack_id from kernels order by start, stack_id'


@pytest.fixture(scope="module")
def rank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One rank of a job of two."""
    first, _ = simulate(JobOptions(tmp_path_factory.mktemp("join") / "job", ranks=2, steps=4, seed=3))
    return first


def dispatches(session: Session) -> tuple[list[tuple[int, int, str, int]], list[str]]:
    rows = [(start, end, bare_name(name), stack) for start, end, name, stack in session.execute(_SQL)]
    return rows, [row[2] for row in rows]


def columns_of(rows: list[tuple[int, int, str, int]], codes: dict[str, int]) -> ProcessDispatches:
    start, end = (np.array([row[n] for row in rows], np.int64) for n in (0, 1))
    return ProcessDispatches(start, end, np.array([codes[row[2]] for row in rows], np.int64))


def same(one: Path, other: Path) -> tuple[int, int, int]:
    """Return how many dispatches a trace has, how many are matched, and how many of these wrongly."""
    with rocpd.connect(one) as traced, rocpd.connect(other) as recorded:
        (there, names), (here, others) = dispatches(traced), dispatches(recorded)
    codes = {name: code for code, name in enumerate(dict.fromkeys((*names, *others)))}
    pairs = matched(*(columns_of(rows, codes) for rows in (there, here)))
    wrong = [(a, b) for a, b in zip(*pairs, strict=True) if there[a][3] != here[b][3]]
    return len(there), len(pairs[0]), len(wrong)


def lose(trace: Path, part: tuple[float, float], lost: float, random: np.random.Generator) -> None:
    """Leave only the events of a part of the run in a trace, without a share of its kernels."""
    document = json.loads(gzip.decompress(trace.read_bytes()))
    end = max(event["ts"] + event["dur"] for event in document["traceEvents"] if event.get("cat") == "kernel")

    def stays(event: dict[str, Any]) -> bool:
        is_lost = event.get("cat") == "kernel" and random.random() < lost
        return "dur" not in event or (part[0] * end <= event["ts"] <= part[1] * end and not is_lost)

    document["traceEvents"] = list(filter(stays, document["traceEvents"]))
    trace.write_bytes(gzip.compress(json.dumps(document).encode(), 1))


def test_all_dispatches_are_found(rank: Path, tmp_path: Path) -> None:
    write_kineto(rank, tmp_path / "k.json.gz")
    count, found, wrong = same(tmp_path / "k.json.gz", rank)
    assert found >= 0.99 * count
    assert wrong == 0


@pytest.mark.soak(300)
@pytest.mark.parametrize("seed", sized([1, 2], list(range(200))))
def test_lost_events_mislead_nobody(seed: int, rank: Path, tmp_path: Path) -> None:
    """Of a part of the run, with up to half of the dispatches lost: the others are found, none wrongly.

    So few that several places fit them are refused.
    """
    random = np.random.default_rng(seed)
    first, last = sorted(random.uniform(0, 1, 2).tolist())
    write_kineto(rank, tmp_path / "k.json.gz")
    lose(tmp_path / "k.json.gz", (first, min(1.0, last + 0.2)), random.uniform(0, 0.5), random)
    count, found, wrong = same(tmp_path / "k.json.gz", rank)
    assert wrong == 0
    assert found >= 0.95 * count or (found == 0 and count < 32)


def test_another_run_is_refused(rank: Path, tmp_path: Path, cli: Cli) -> None:
    other, _ = simulate(JobOptions(tmp_path / "other", ranks=2, steps=4, seed=4))
    write_kineto(other, tmp_path / "k.json.gz")
    _, found, _ = same(tmp_path / "k.json.gz", rank)
    assert found == 0
    said = cli("import", rank, "--join", tmp_path / "k.json.gz", "-d", tmp_path / "joined")
    assert said.code == 1
    assert "no dispatch is certainly one of rank0.db" in said.err
    assert not (tmp_path / "joined").exists()


def test_runs_that_repeat_themselves_are_not_told_apart() -> None:
    """Every step is like every other: of a trace of two steps nobody knows which."""
    start = np.arange(400) * 50_000
    every = ProcessDispatches(start, start + 10_000, np.arange(400) % 4)
    some = ProcessDispatches(start[:80] + 7, start[:80] + 10_007, np.arange(80) % 4)
    assert len(matched(some, every)[0]) == 0


def test_operators_are_those_of_the_trace(tmp_path: Path, cli: Cli) -> None:
    job, traces, joined = (tmp_path / name for name in ("job", "traces", "joined"))
    assert cli("simulate", "-o", job, "--ranks", "2", "--steps", "3", "--kineto", traces).code == 0
    before = [path.read_bytes() for path in sorted(job.iterdir())]
    words = [word for path in sorted(traces.iterdir()) for word in ("--join", path)]
    said = cli("import", job, *words, "-d", joined)
    assert said.code == 0, said.err
    assert [path.read_bytes() for path in sorted(job.iterdir())] == before
    with rocpd.connect(traces) as traced, rocpd.connect(joined) as session:
        asked = ("operator", "calls", "launches")
        tables = [each.summary("operators", by="rank").df()[["rank", *asked]] for each in (traced, session)]
        assert tables[0].values.tolist() == tables[1].values.tolist()
        ((matches,),) = session.execute("select count(*) from rocpd_metadata where tag = 'joined'").fetchall()
        assert matches == 2
