"""Facts are kept as columns: every table is the same with and without, and none outlives what it was made of."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import rocpd
from rocpd.base import NULL, RocpdError, frozen
from rocpd.base.cache import file_entries
from rocpd.cli import diagnostics
from rocpd.facts.columns import TextCodes
from rocpd.facts.rank import By, Options
from rocpd.facts.spread import Spread
from rocpd.federate.engine import Engine
from rocpd.federate.federation import Federation
from rocpd.federate.limits import Limits
from rocpd.federate.run.local import Local
from rocpd.federate.run.rank_reader import Fact
from rocpd.index import facts
from rocpd.index.build import build
from rocpd.index.facts import FactFolder
from rocpd.index.packed import packed, unpacked
from rocpd.simulator import JobOptions, simulate
from rocpd.summary.host.calls import CallTree
from rocpd.summary.reading import Reading, planned, run, run_planned
from rocpd.summary.registry import SUMMARIES
from tests.conftest import Cli
from tests.index.test_entries import _change

ANY_SIZE = Limits(small_bytes=0, kept_bytes=0)

SELECTIONS: dict[str, Callable[[rocpd.Session], Federation]] = {
    "all": lambda session: session,
    "clipped": lambda session: session.within(rocpd.Window("20%", "70%", clip=True)),
    "step": lambda session: session.within(rocpd.Window(step=0)),
    "filters": lambda session: session.where(rocpd.Filters(ranks="1", streams="0-1")),
}


def _tables(session: Federation) -> list[str]:
    """The tables of all analyses with every digit, notes too, and the errors of those that lack data."""
    lines = []
    for name, tables in run_planned(Reading(session), planned(SUMMARIES)):
        try:
            for table in tables:
                lines += [f"{name} {table.name} {table.columns} {table.findings}", *map(repr, table)]
        except RocpdError as error:
            lines.append(f"{name}: {error!r}")
    return [*lines, *session.notes]


@pytest.fixture(autouse=True)
def of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests keep nothing here; small files have columns of any share."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(facts, "_MOST", 100)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Fact]:
    """The facts that were kept when they were asked for."""
    kept: list[Fact] = []
    known = FactFolder.known

    def noted(self: FactFolder, fact: Fact) -> Any:
        value = known(self, fact)
        kept.extend([fact] if value is not None else [])
        return value

    monkeypatch.setattr(FactFolder, "known", noted)
    return kept


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two ranks of two nodes with everything that the simulator knows, complete: files written to just now may grow.

    The rows of a file that may grow are read at once, and texts are numbered in the order in which they are read.
    """
    folder = tmp_path_factory.mktemp("facts")
    files = list(simulate(JobOptions(out=folder / "job", ranks=2, nodes=2, events_per_rank=300, seed=31)))
    an_hour_ago = time.time() - 3600
    for file in files:
        os.utime(file, (an_hour_ago, an_hour_ago))
    return files


def _of(files: list[Path], select: Callable[[rocpd.Session], Federation], index: str) -> list[str]:
    with rocpd.connect(files, index=index, limits=ANY_SIZE) as session:
        return _tables(select(session))


@pytest.fixture(scope="module")
def whole(job: list[Path]) -> list[str]:
    """What is said of the whole job where nothing is kept."""
    return _of(job, SELECTIONS["all"], "off")


@pytest.mark.parametrize("name", SELECTIONS)
def test_tables_are_the_same(job: list[Path], whole: list[str], name: str, read: list[Fact]) -> None:
    plain = whole if name == "all" else _of(job, SELECTIONS[name], "off")
    assert not file_entries("facts").entries()
    assert _of(job, SELECTIONS["all"], "auto") == whole
    read.clear()
    assert _of(job, SELECTIONS[name], "auto") == plain
    of_rows = {"operations", "regions", "markers", "activities"}
    of_analyses = {"blamed", "busy", "budget", "call trees", "checked", "compared", "contexts", "counters", "graphs"}
    of_analyses |= {"idle", "kernels-of-agents", "measured", "operators", "runs", "sampled-with-kernels", "sites"}
    of_analyses |= {"functions", "stacks", "totals"}
    assert (of_analyses if name == "all" else of_rows) <= {fact.name for fact in read}


def test_what_is_kept_needs_no_file(job: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def shown() -> list[str]:
        with rocpd.connect(job, limits=ANY_SIZE) as session:
            return [str(session.summary(name).fetchall()) for name in ("overview", "calls", "idle", "budget", "ranks")]

    plain = shown()
    monkeypatch.setattr(Local, "each", lambda *_: pytest.fail("a rank was read"))
    assert shown() == plain


@pytest.mark.parametrize("folder", [[], ["-d", "elsewhere"]], ids=["cache", "elsewhere"])
def test_after_an_index_the_first_summary_reads_no_file(
    folder: list[str], job: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Building one derives what the summary goes by, whatever the size of files; `--no-summary` does not."""
    monkeypatch.chdir(tmp_path)
    use = ["--index-folder", "elsewhere"] if folder else []
    plain = cli("summary", *job, "--index", "off").out
    assert cli("index", *job, *folder, "--no-summary").code == 0
    assert not file_entries("facts").entries()
    assert cli("index", *job, *folder).code == 0
    with monkeypatch.context() as reading:
        reading.setattr(Local, "each", lambda *_: pytest.fail("a rank was read"))
        assert cli("summary", *job, *use).out == plain


ATTACHED = "select count(*) from kernels a join kernels b using (id)"


@pytest.fixture(scope="module")
def built(job: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index of the job."""
    folder = tmp_path_factory.mktemp("index")
    with rocpd.connect(job) as session:
        build(session, folder)
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["query", "select count(*) from kernels"],
        ["query", ATTACHED],
        ["summary"],
        ["summary", "gaps"],
        ["summary", "--amd"],
        ["advise"],
        ["report", "--force"],
    ],
)
def test_what_took_long_mentions_the_index(
    words: list[str], job: list[Path], built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """Once, where there is none and one may be used; not of analyses, which keep what the next one needs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(diagnostics, "LONG_S", -1.0)
    monkeypatch.setattr(Engine, "_size", 1 << 30)
    without = int(words[0] == "query" and ATTACHED not in words)
    asked: list[tuple[list[object], int]] = [([], without), (["--index-folder", built], 0)]
    asked += [(["--index", "off"], 0)] if words[0] == "query" else []
    for more, times in asked:
        said = cli(*words, *job, *more)
        assert (said.code, said.err.count("after `rocpd index` of these files")) == (0, times)


def _shown(files: list[Path], index: str, options: Options, align: str) -> list[object]:
    """What ranks are compared by, and what is said of them."""
    with rocpd.connect(files, index=index, align=align, limits=ANY_SIZE) as session:
        every = (table for name in ("ranks", "idle", "budget") for table in run(session, name, options))
        return [(table.name, str(table.fetchall()), str(table.findings)) for table in every]


def test_what_is_asked_tells_facts_apart(job: list[Path]) -> None:
    """Those of a job are not those of some of its ranks, of another order, of other clocks or other options."""
    plain = Options()
    asked: list[tuple[list[Path], Options, str]] = [(job, plain, "auto"), (job, plain, "none"), (job, plain, "start")]
    asked += [(job[::-1], plain, "auto"), (job[1:], plain, "auto"), (job, Options(everything=True), "auto")]
    asked += [(job, Options(by=By.HOST, bins=7), "auto"), (job, Options(step_marker="nothing"), "auto")]
    expected = [_shown(files, "off", options, align) for files, options, align in asked]
    for _ in range(2):
        assert [_shown(files, "auto", options, align) for files, options, align in asked] == expected


def test_damaged_files_leave_out_the_same(tmp_path: Path, read: list[Fact]) -> None:
    job = list(simulate(JobOptions(out=tmp_path / "job", ranks=4, nodes=2, events_per_rank=300, seed=7, faults=True)))
    plain = _of(job, SELECTIONS["all"], "off")
    assert [_of(job, SELECTIONS["all"], "auto") for _ in range(2)] == [plain, plain]
    assert "channels" in {fact.name for fact in read}


def _kept(files: list[Path], every: list[Fact]) -> list[set[str]]:
    """Names of the facts of each file that are kept now."""
    with rocpd.connect(files, limits=ANY_SIZE) as session:
        ranks = {rank.opening.path: facts.FactCache().of(rank) for rank in session.ranks}
        kept = [ranks[path] for path in files]
        return [{fact.name for fact in every if rank and rank.known(fact) is not None} for rank in kept]


def test_a_changed_file_has_none(job: list[Path], tmp_path: Path, read: list[Fact]) -> None:
    files = [tmp_path / path.name for path in job]
    for path, copy in zip(job, files, strict=True):
        copy.write_bytes(path.read_bytes())
    _of(files, SELECTIONS["all"], "auto")
    every = [*read]
    _change(files[0], "CREATE TABLE another (id)")
    changed, same = _kept(files, every)
    assert not changed
    assert same >= {"operations", "regions"}
    assert _of(files, SELECTIONS["all"], "auto") == _of(files, SELECTIONS["all"], "off")


def test_a_file_that_changes_meanwhile_keeps_none(job: list[Path], tmp_path: Path) -> None:
    copy = tmp_path / "rank.db"
    copy.write_bytes(job[0].read_bytes())
    with rocpd.connect(copy, limits=ANY_SIZE) as session:
        kept = facts.FactCache().of(session.ranks[0])
        assert kept
        kept.derived(FACT, 1)
        _change(copy, "CREATE TABLE another (id)")
        kept.keep()
    assert not file_entries("facts").entries()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "half-written": lambda content: content[: len(content) // 2],
    "a bit": lambda content: content[:-1] + bytes([content[-1] ^ 1]),
    "empty": lambda _: b"",
    "foreign": lambda _: hashlib.blake2b(b"no fact", digest_size=16).digest() + b"no fact",
}


def test_what_is_damaged_is_not_read(job: list[Path], read: list[Fact]) -> None:
    plain = _of(job, SELECTIONS["all"], "auto")
    every, files = [*read], [path for entry in file_entries("facts").entries() for path in entry.folder.glob("*-*")]
    contents = [path.read_bytes() for path in files]
    assert all(_kept(job, every))
    for damaged in DAMAGE.values():
        for path, content in zip(files, contents, strict=True):
            path.write_bytes(damaged(content))
        assert not any(_kept(job, every))
    assert _of(job, SELECTIONS["all"], "auto") == plain


def test_other_layouts_and_small_jobs_have_none(
    job: list[Path], read: list[Fact], monkeypatch: pytest.MonkeyPatch
) -> None:
    with rocpd.connect(job) as session:
        session.summary("idle")
    assert not file_entries("facts").entries()
    with rocpd.connect(job, limits=ANY_SIZE) as session:
        session.summary("idle")
        session.summary("gaps")
    every = [*read]
    assert all(_kept(job, every))
    monkeypatch.setattr(facts, "LAYOUT", facts.LAYOUT + 1)
    assert not any(_kept(job, every))


def test_facts_take_their_share_at_most(job: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "_MOST", 0.01)
    _of(job, SELECTIONS["all"], "auto")
    for entry in file_entries("facts").entries():
        kept = sum(path.stat().st_size for path in entry.folder.glob("*-*"))
        assert kept <= 0.01 * Path(entry.source).stat().st_size


DEFINITIONS = {
    "activities 1": "4ace25953416",
    "allocations 2": "b5d5420dc808",
    "begun 2": "859089cabaaf",
    "blamed 24": "fe4af6c9ac0e",
    "budget 4": "7f37ab35c04a",
    "busy 2": "56e1f36f0616",
    "call trees 3": "ebdc6d33ba66",
    "callers 2": "abf749017db0",
    "channels 2": "f3de2829168a",
    "checked 4": "d6e205a72689",
    "communication 2": "085019058b81",
    "compared 5": "d564e768c87a",
    "contexts 1": "b96d3966a8c4",
    "copying calls 1": "f570ce07a6a6",
    "counters 1": "37198bd094bb",
    "functions 2": "3ed17a3d4f99",
    "graphs 1": "07a57571acfc",
    "idle 4": "abb5a3033198",
    "is-counted 1": "070f7d7723d9",
    "kernels-of-agents 1": "de424b178c36",
    "launches 1": "a7162d2079c4",
    "launching 3": "d20b2b71e1ab",
    "markers 1": "d840823b5d11",
    "measured 2": "d5704e9d7ddf",
    "memory 1": "b69f035f7110",
    "nesting 2": "8d0d4e07a913",
    "operations 1": "6c2bdb560b45",
    "operators 1": "36f944bd54db",
    "rates 1": "c905d36d4392",
    "regions 2": "824851b8d2f5",
    "runs 1": "ee73cc32180c",
    "sampled 1": "081f4ead6a13",
    "sampled-with-kernels 1": "4797dfeb8be0",
    "shapes 3": "0a71e7c09907",
    "sites 1": "9ab051183765",
    "span 2": "84ac5015c707",
    "stacks 3": "cfabfe5f8d52",
    "totals 1": "27103480cd48",
}


def test_definitions_have_their_version(job: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A fact that changed has another hash: raise its version, unless the simulator writes other rows now."""
    hashes: dict[str, str] = {}
    derived = FactFolder.derived

    def noted(self: FactFolder, fact: Fact, value: object) -> None:
        if self._ranks[0].number == 0:
            digest = hashlib.blake2b(_text(value).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
            hashes.setdefault(f"{fact.name} {fact.version}", digest)
        derived(self, fact, value)

    monkeypatch.setattr(FactFolder, "derived", noted)
    _of(job, SELECTIONS["all"], "auto")
    assert hashes == DEFINITIONS


@frozen
class Frozen:
    """A part of a fact."""

    column: object
    name: str | None


class Named(NamedTuple):
    """Another one."""

    number: int
    text: str


FACT = Fact("of a test", 1, (Frozen, Named))
EXTREMES = np.array([np.iinfo(np.int64).min, NULL, -1, 0, np.iinfo(np.int64).max])
VALUES = [
    Frozen(EXTREMES, "\ud800\n"),
    [Named(number, "ab"[number % 2]) for number in range(40)],
    {number: Named(number, "") for number in range(-3, 50)},
    (1 << 70, float("inf"), -0.0, None, True, frozenset({Named(1, "x")})),
    {(1, "a"): [[], (), {}], None: list(range(99)), True: [True] * 20, False: [NULL] * 20},
    np.array([], np.int64),
    np.arange(8.0).reshape(2, 4),
    np.array([True, False]),
    np.array([5], np.int64),
    np.array([NULL] * 20),
    np.array([-(1 << 62), *range(1 << 40, (1 << 40) + 900, 3)]),
    np.array([NULL, *range(1000, 1300), NULL]),
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_values_come_back_as_they_were(value: object) -> None:
    assert _text(unpacked(FACT, packed(FACT, value))) == _text(value)


@pytest.mark.parametrize("seed", range(20))
def test_columns_come_back_as_they_were(seed: int) -> None:
    rng = np.random.default_rng(seed)
    column = rng.integers(-(1 << int(rng.integers(1, 63))), 1 << int(rng.integers(1, 63)), int(rng.integers(1, 60)))
    column = np.cumsum(column) if seed % 2 else column
    column[rng.random(len(column)) < rng.choice([0, 0.2, 1])] = NULL
    assert _text(unpacked(FACT, packed(FACT, column))) == _text(column)


@pytest.mark.parametrize("value", [Path("x"), {1, 2}, np.array(["x"], object), Fact("other", 1, ())], ids=str)
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError):
        packed(FACT, value)


def _text(value: Any) -> str:
    """Everything of a value, types too."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{value.shape}{value.tolist()}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({', '.join(map(_text, value))})"
    if isinstance(value, dict):
        return f"dict({', '.join(f'{_text(key)}: {_text(each)}' for key, each in value.items())})"
    if isinstance(value, frozenset):
        return f"frozenset({', '.join(sorted(map(_text, value)))})"
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}{_text([getattr(value, each.name) for each in dataclasses.fields(value)])}"
    if isinstance(value, TextCodes):
        return f"TextCodes{_text(value.texts)}"
    if isinstance(value, (CallTree, Spread)):
        return f"{type(value).__name__}{_text(value.parts())}"
    return repr(value)
