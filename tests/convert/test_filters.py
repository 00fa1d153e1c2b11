"""Windows and filters through `rocpd convert`, each format read back by readers that we did not write.

What should be in an output is worked out from a list of events, as for all commands: see `tests.selections`.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocpd.simulator import JobOptions, simulate
from tests.conftest import Cli
from tests.convert.conftest import read_csv
from tests.perfetto_engine import CALCULATED, Engine
from tests.pftrace_frames import count_packets
from tests.selections import (
    BASE,
    FILTERS,
    FORMS,
    KERNELS,
    MARKERS,
    MS,
    TIMES,
    TOGETHER,
    Job,
    Spec,
    Words,
    make,
    real_job,
    windows_of,
)
from tests.soak import sample

Item: TypeAlias = tuple[int, str, int, int]
"""Rank (0 in csv), name, start and end [ns] of what an output shows as an event."""
Items: TypeAlias = "Counter[Item]"
Points: TypeAlias = list[int]
"""Times of counter values [ns]."""

CHOSEN = sample((TIMES[0], MARKERS[3], KERNELS[1], *FORMS[::3], *FILTERS[1::5], *TOGETHER[::2]), 2)


# --- readers: all events, and the times of counter values


def read_json(folder: Path) -> tuple[Items, Points]:
    text = (folder / "out.json").read_bytes()
    events = json.loads(text, parse_float=lambda number: int(number.replace(".", "")))  # µs with three decimals
    pids = {e["pid"]: _rank(e["args"]["name"]) for e in events["traceEvents"] if e["name"] == "process_name"}
    shown = [e for e in events["traceEvents"] if e["ph"] in ("X", "i") and e["cat"] not in CALCULATED]
    items = Counter(
        (pids[e["pid"]], e["args"].get("name", e["name"]), e["ts"], e["ts"] + e.get("dur", 0)) for e in shown
    )
    return items, [e["ts"] for e in events["traceEvents"] if e["ph"] in ("C", "s", "f")]


def read_pftrace(folder: Path) -> tuple[Items, Points]:
    path = folder / "out_results.pftrace"
    assert count_packets(path) > 0
    engine = Engine(path)
    assert engine.complaints() == []
    rows = engine.rows("SELECT rank, name, ts, ts + dur FROM recorded")
    return Counter((_rank(row[0]), *row[1:]) for row in rows), [ts for (ts,) in engine.rows("SELECT ts FROM counter")]


def read_otf2(folder: Path) -> tuple[Items, Points]:
    library = pytest.importorskip("otf2", reason="the otf2 wheel is not installed")
    items: Items = Counter()
    points: Points = []
    begun: dict[Any, list[int]] = {}
    with library.reader.open(str(folder / "out_results.otf2")) as trace:
        for location, event in trace.events:
            if isinstance(event, library.events.Metric):
                points.append(event.time)
            elif isinstance(event, library.events.Enter):
                begun.setdefault(location, []).append(event.time)
            elif isinstance(event, library.events.Leave):
                start = begun[location].pop()
                items[_rank(location.group.name), event.region.name, start, event.time] += 1
    return items, points


_OPERATIONS = {
    "MEMORY_ALLOCATION_ALLOCATE": "ALLOC REAL",
    "MEMORY_ALLOCATION_FREE": "FREE REAL",
    "SCRATCH_MEMORY_ALLOC": "ALLOC SCRATCH",
}


def read_csvs(folder: Path) -> tuple[Items, Points]:
    items: Items = Counter()
    points: Points = []
    for path in folder.glob("*_trace.csv"):
        for row in read_csv(path):
            name = next(row[key] for key in ("Kernel_Name", "Function", "Direction", "Operation") if key in row)
            times = int(row["Start_Timestamp"] or 0), int(row["End_Timestamp"] or 0)
            items[0, _OPERATIONS.get(name, name), *times] += 1
    for path in folder.glob("*_counter_collection.csv"):
        points += [int(row[key]) for row in read_csv(path) for key in ("Start_Timestamp", "End_Timestamp")]
    return items, points


def read_parquet(folder: Path) -> tuple[Items, Points]:
    items: Items = Counter()
    points: Points = []
    for path in (folder / "out_parquet").glob("*/rank=*/part.parquet"):
        view, rank = path.parts[-3], int(path.parts[-2].removeprefix("rank="))
        for row in pq.ParquetFile(path).read().to_pylist():
            marker = str(row.get("category")).startswith("MARKER_")
            if view == "pmc_events":
                points += [time for time in (row["start"], row["end"]) if time]
            elif view in EVENTS and marker == (view == "markers"):
                times = (row["timestamp"],) * 2 if view == "samples" else (row["start"], row["end"])
                items[rank, _name(view, row), *times] += 1
    return items, points


def _name(view: str, row: dict[str, Any]) -> str:
    if view == "memory_allocations":
        return f"{row['type']} {row['level']}"
    return f"graph {row['graph_exec_id']}" if view == "graph_launches" else row["name"] or ""


def read_arrow(folder: Path) -> tuple[Items, Points]:
    with pa.ipc.open_file(folder / "out_kernels.arrow") as file:
        rows = file.read_all().to_pylist()
    return Counter((row["rank"], row["name"] or "", row["start"], row["end"]) for row in rows), []


def _rank(label: str) -> int:
    match = re.match(r"rank (\d+) ·", label)
    assert match, label
    return int(match[1])


EVENTS = ("kernels", "memory_copies", "memory_allocations", "regions", "markers", "samples", "graph_launches")
TRACES = {"json": read_json, "pftrace": read_pftrace, "otf2": read_otf2}
TABLES = {"csv": read_csvs, "parquet": read_parquet, "arrow": read_arrow}
READERS = TRACES | TABLES


def expected(form: str, job: Job, spec: Spec) -> Items:
    """Return what an output should show: tables keep times as recorded, traces align the clocks of selected ranks."""
    written: Items = Counter()
    clocks: dict[int, int] = {}
    for event in job.events:
        if spec.ranks is None or event.rank in spec.ranks:
            recorded = event.start + event.offset
            clocks[event.offset] = min(recorded, clocks.get(event.offset, recorded))
    for event in spec.of(job.events, as_amd=True):
        if form == "arrow" and event.kind != "kernels":
            continue
        if form == "csv" and (event.domain in ("OTHER", "SMI") or event.kind == "graph_launches"):
            continue
        if form in TRACES and event.kind == "samples":  # a counter, not an event
            continue
        name = f"graph {event.name}" if event.kind == "graph_launches" else event.name
        unknown = "kernel ?" if form in TRACES else ""
        offset = event.offset - (clocks[event.offset] - min(clocks.values()) if form in TRACES else 0)
        rank = 0 if form == "csv" else event.rank
        written[rank, name or unknown, event.start + offset, event.end + offset] += 1
    return written


def converted_to(forms: Sequence[str], cli: Cli, folder: Path, *words: str | Path) -> dict[str, tuple[Items, Points]]:
    """Convert to several forms at once and read back."""
    said = cli("convert", *(word for form in forms for word in ("-f", form)), "-d", folder, *words)
    assert said.code == 0, said.err
    return {form: READERS[form](folder) for form in forms}


@pytest.fixture(scope="module")
def forms() -> list[str]:
    """All of them; without OTF2 where its wheel is not installed."""
    return [form for form in READERS if form != "otf2" or importlib.util.find_spec("otf2")]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return make(tmp_path_factory.mktemp("made"))


@pytest.mark.soak
@pytest.mark.parametrize(("words", "spec"), CHOSEN, ids=[" ".join(words) for words, _ in CHOSEN])
def test_what_is_written(words: Words, spec: Spec, forms: list[str], made: Job, tmp_path: Path, cli: Cli) -> None:
    for form, (items, _) in converted_to(forms, cli, tmp_path / "out", made.folder, *words).items():
        assert items == expected(form, made, spec), form


def test_outputs_of_their_own_hold_the_selection_too(forms: list[str], made: Job, tmp_path: Path, cli: Cli) -> None:
    """`-j 2`: the conditions reach the other processes."""
    words = ("--exclude-kernel", "gemm_a", "--start", "20%", "--end", "60%", "--clip")
    spec = Spec(BASE + 200 * MS, BASE + 600 * MS, clip=True, exclude="gemm_a")
    for form, (items, _) in converted_to(forms, cli, tmp_path / "out", made.folder, *words, "-j", "2").items():
        assert items == expected(form, made, spec), form


# --- laws, on a damaged job


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    simulate(JobOptions(folder, ranks=3, nodes=2, events_per_rank=200, seed=5, faults=True))
    return folder


PARTS: dict[str, tuple[Words, tuple[Words, ...]]] = {
    "ranks": ((), (("--rank", "0"), ("--rank", "1-2"))),
    "kernels": (
        ("--category", "KERNELS"),
        (("--category", "KERNELS", "--kernel", "Cijk|k"), ("--category", "KERNELS", "--exclude-kernel", "Cijk|k")),
    ),
    "domains": (
        (),
        (
            ("--category", "KERNELS,HSA"),
            ("--category", "HIP,MEMORY_COPIES,SMI"),
            ("--category", "MARKERS,RCCL,MEMORY_ALLOCATIONS,SCRATCH_MEMORY,GRAPH,OTHER"),
        ),
    ),
}


@pytest.mark.soak(3)
@pytest.mark.parametrize("name", PARTS)
def test_parts_add_up_to_the_whole(name: str, forms: list[str], simulated: Path, tmp_path: Path, cli: Cli) -> None:
    """Two of the formats for each kind of part, which are all of them; in a soak all for each."""
    whole, parts = PARTS[name]
    forms = [*sample(forms, 3, list(PARTS).index(name))]
    outputs = [
        converted_to(forms, cli, tmp_path / str(number), simulated, *words, "--align", "none")
        for number, words in enumerate((whole, *parts))
    ]
    for form in forms:
        both = [output[form][0] for output in outputs]
        if form != "arrow" or name != "domains":
            assert all(both), form
        assert sum(both[1:], Counter()) == both[0], form


def test_nothing_outside_of_a_window_that_cuts(forms: list[str], simulated: Path, tmp_path: Path, cli: Cli) -> None:
    """Neither an event nor a counter value, nor an end of a flow. Tables keep invalid times as they are."""
    times = 'min((start + "end") / 2), max((start + "end") / 2)'
    sql = f'select {times} from counters_collection where start > 0 and "end" > start group by rank order by rank'
    rows = cli("query", sql, simulated, "-f", "csv").out.splitlines()
    low, high = map(int, rows[-1].split(","))  # from within a dispatch with counters to within another
    window = ("--align", "none", "--start", str(low), "--end", str(high), "--clip")
    outputs = converted_to(forms, cli, tmp_path / "out", simulated, *window, "--annotate-pmc", "--annotate-args")
    for form, (items, points) in outputs.items():
        sound = [item for item in items if form in TRACES or (item[2] > 0 and item[3] >= item[2])]
        assert [item for item in sound if not (low <= item[2] <= item[3] <= high)] == [], form
        assert [time for time in points if not low <= time <= high and time > 0] == [], form
        assert any(item[2] == low for item in sound), form
        assert any(item[3] == high for item in sound), form
        assert points or form == "arrow", form


def test_real_files(real_files: tuple[Path, ...], tmp_path: Path, cli: Cli) -> None:
    files = real_files[3:5]
    job = real_job(files)
    forms = [form for form in READERS if form != "otf2"]
    for number, (words, spec) in enumerate(windows_of(job)[1::3]):
        folder = tmp_path / str(number)
        assert (
            cli("convert", *(word for form in forms for word in ("-f", form)), "-d", folder, *files, *words).code == 0
        )
        for form in forms:
            assert READERS[form](folder)[0] == expected(form, job, spec), (form, words)


# --- memory that is held


REAL, SCRATCH = "GPU 0 · memory REAL held", "GPU 1 · memory SCRATCH held"


@pytest.mark.parametrize(
    ("words", "held"),
    [
        ((), {REAL, SCRATCH}),
        (("--agent", "GPU-1"), {SCRATCH}),
        (("--category", "KERNELS"), set()),
        (("--start", "1%"), {REAL, SCRATCH}),
        (("--start", "1%", "--agent", "GPU-1"), {SCRATCH}),
        (("--start", "1%", "--category", "KERNELS"), set()),
    ],
)
def test_memory_held_is_that_of_the_selection(
    words: Words,
    held: set[str],
    made: Job,
    tmp_path: Path,
    cli: Cli,
) -> None:
    assert cli("convert", "-f", "json", "-d", tmp_path, made.folder, *words).code == 0
    text = (tmp_path / "out.json").read_text()
    assert set(re.findall(r'"ph":"C".*?"name":"(.*?held)"', text)) == held
