"""What people see of a trace in Perfetto: rows in order, what GPUs do, steps, where markers ran, titles, colours."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.formats import pftrace
from rocpd.convert.formats.pftrace import correlation
from rocpd.convert.options import ConvertOptions
from rocpd.schema.rules.kernel_categories import is_communication, load
from rocpd.simulator import JobOptions, simulate
from rocpd.table.palette import GREY, Colour, colour_of
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.convert.conftest import BASE, ToPerfetto, to_perfetto
from tests.perfetto_engine import Engine

MS = 1_000_000
SHOWN = """SELECT G.name, S.name, S.ts - {}, S.dur FROM slice S JOIN track G ON G.id = S.track_id
WHERE S.category = '{}' ORDER BY S.ts, S.dur DESC"""
ROWS = """WITH RECURSIVE tree(id, place, path) AS (
  SELECT id, name, name FROM track WHERE parent_id IS NULL
  UNION ALL
  SELECT T.id, place || PRINTF(' %06d', EXTRACT_ARG(T.source_arg_set_id, 'sibling_order_rank')), path || ' / ' || T.name
  FROM track T JOIN tree ON T.parent_id = tree.id
) SELECT path FROM tree ORDER BY place"""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=11, nodes=2, steps=2, seed=5))
    with rocpd.connect(folder / "job") as opened:
        yield opened


@pytest.fixture(scope="module")
def engine(session: rocpd.Session, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    return to_perfetto(session, tmp_path_factory.mktemp("trace"))


def rows_of(engine: Engine) -> list[str]:
    return [path for (path,) in engine.rows(ROWS)]


def test_rows_lie_in_the_order_in_which_people_look_for_them(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder(host="gpu7.cluster.local")
        .region("hsa_init", BASE, BASE + 1, tid=77)
        .region("hsa_init", BASE, BASE + 1, tid=78)
        .region("launch", BASE, BASE + 1, stack=7)
        .kernel("k", BASE + 10, BASE + 20, stack=7, stream=10)
        .counter("SQ_WAVES", 1.0)
        .kernel("k", BASE + 10, BASE + 20, stream=2)
        .copy(BASE + 30, BASE + 40, stream=2)
        .alloc(BASE + 50, BASE + 51)
        .graph_launch(BASE + 60, BASE + 61, graph=1, kernels=1)
        .sample("GPU power", BASE + 1, category="rocm_smi")
        .counter("watt", 300.0)
    )

    gpu = "rank 0 · gpu7 / GPU 0"
    assert rows_of(engine) == [
        "rank 0 · gpu7",
        "rank 0 · gpu7 / thread 16",
        gpu,
        f"{gpu} / stream 2",
        f"{gpu} / stream 10",
        f"{gpu} / queue 1 · graphs",
        f"{gpu} / stream 2 · copies",
        f"{gpu} / memory",
        f"{gpu} / memory / allocations",
        f"{gpu} / memory / memory REAL held",
        f"{gpu} / Agent [1] PMC SQ_WAVES",
        f"{gpu} / GPU power · watt",
        "rank 0 · gpu7 / other threads",
        "rank 0 · gpu7 / other threads / thread 77",
        "rank 0 · gpu7 / other threads / thread 78",
    ]


def test_every_row_of_a_job_holds_something(engine: Engine) -> None:
    full = "SELECT track_id FROM slice UNION SELECT track_id FROM counter UNION SELECT parent_id FROM track"
    empty = f"SELECT COUNT(*) FROM track WHERE id NOT IN (SELECT * FROM ({full}) WHERE track_id IS NOT NULL)"
    assert engine.one(empty) == 0


def test_ranks_sort_by_number(session: rocpd.Session, engine: Engine) -> None:
    top = [path for path in rows_of(engine) if " / " not in path]
    assert top == ["job · 11 ranks", *(f"rank {rank.number:02d} · {rank.hostname}" for rank in session.ranks)]


@pytest.mark.parametrize(
    ("commands", "hosts", "labels"),
    [
        (("./app a", "./app b"), ("n1.x", "n2.x"), ["rank 0 · n1", "rank 1 · n2"]),
        (("./app", "/bin/load"), ("n1.x", "n1.y"), ["rank 0 · app · n1.x", "rank 1 · load · n1.y"]),
        (("./app", "./app"), ("0455c96dcc6a", None), ["rank 0", "rank 1 · 0455c9"]),
    ],
)
def test_labels_are_short_and_differ(
    perfetto: ToPerfetto, commands: tuple[str, ...], hosts: tuple[str, ...], labels: list[str]
) -> None:
    engine = perfetto(
        *(
            TraceBuilder(i, host=host, command=command).kernel("k", BASE, BASE + 1)
            for i, (command, host) in enumerate(zip(commands, hosts, strict=True))
        )
    )
    assert engine.rows("SELECT name FROM track WHERE parent_id IS NULL ORDER BY 1") == [(label,) for label in labels]


def test_what_gpus_do_over_time(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .kernel("gemm", BASE, BASE + MS)
        .kernel("gemm", BASE + MS + 5_000, BASE + 2 * MS)
        .kernel("ncclDevKernel_Generic", BASE + MS, BASE + 3 * MS, stream=1)
        .copy(BASE + 2 * MS, BASE + 4 * MS, stream=2)
        .kernel("gemm", BASE + 5 * MS, BASE + 6 * MS)
    )

    assert engine.rows(SHOWN.format(BASE, "gpu_time")) == [
        ("rank 0 · node0", "compute", 0, MS),
        ("rank 0 · node0", "exposed communication", MS, 5_000),
        ("rank 0 · node0", "hidden communication", MS + 5_000, MS - 5_000),
        ("rank 0 · node0", "exposed communication", 2 * MS, MS),
        ("rank 0 · node0", "exposed copies", 3 * MS, MS),
        ("rank 0 · node0", "compute", 5 * MS, MS),
    ]


def test_short_pauses_are_closed_and_gpus_are_apart_where_there_are_several(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .kernel("a", BASE, BASE + 100)
        .kernel("a", BASE + 10_099, BASE + 10_200)
        .kernel("a", BASE + 20_200, BASE + 20_300)
        .kernel("a", BASE + 10_150, BASE + 20_250, agent=2)
    )

    assert engine.rows(SHOWN.format(BASE, "gpu_time")) == [
        ("rank 0 · node0", "compute", 0, 20_300),
        ("GPU 0", "compute", 0, 10_200),
        ("GPU 1", "compute", 10_150, 10_100),
        ("GPU 0", "compute", 20_200, 100),
    ]


def test_time_of_gpus_is_that_of_the_events(session: rocpd.Session, engine: Engine) -> None:
    """Without pauses, what is shown adds up to the unions of kernels and copies, calculated on a grid of all edges."""
    categories = load(None)
    work = session.execute('SELECT rank, name, start, "end", 0 FROM kernels').fetchall()
    work += session.execute('SELECT rank, name, start, "end", 1 FROM memory_copies').fetchall()
    shown = {rank: dict[str, int]() for rank in range(11)}
    for label, name, total in engine.rows(
        "SELECT T.name, S.name, SUM(S.dur) FROM slice S JOIN track T ON T.id = S.track_id"
        " WHERE S.category = 'gpu_time' GROUP BY 1, 2"
    ):
        shown[int(label.split()[1])][name] = total
    for rank in range(11):
        rows = [row[1:] for row in work if row[0] == rank]
        kind = np.array([2 if copy else int(is_communication(categories.of(name))) for name, _, _, copy in rows])
        start, end = (np.array([row[side] for row in rows]) for side in (1, 2))
        edges = np.unique(np.concatenate([start, end]))
        runs = np.zeros((3, len(edges) + 1), np.int64)
        np.add.at(runs, (kind, np.searchsorted(edges, start)), 1)
        np.add.at(runs, (kind, np.searchsorted(edges, end)), -1)
        compute, communication, copy = np.cumsum(runs, 1)[:, : len(edges) - 1] > 0
        length = np.diff(edges)
        exact = {
            "compute": length[compute & ~communication].sum(),
            "hidden communication": length[compute & communication].sum(),
            "exposed communication": length[communication & ~compute].sum(),
            "exposed copies": length[copy & ~compute & ~communication].sum(),
        }
        pauses = 10_000 * (len(rows) + 1)
        for name, total in exact.items():
            assert total <= shown[rank].get(name, 0) <= total + pauses, (rank, name)
        assert sum(shown[rank].values()) <= edges[-1] - edges[0]


def test_steps_of_ranks_and_of_the_job(perfetto: ToPerfetto) -> None:
    def rank(number: int, late: int) -> TraceBuilder:
        builder = TraceBuilder(number)
        for step in (0, 1):
            begin = BASE + step * 10 * MS + late
            builder.region("roctxRangePushA", begin, begin + 10 * MS, message=f"ProfilerStep#{step}")
        return builder.kernel("k", BASE, BASE + 1)

    engine = perfetto(rank(0, 0), rank(1, MS))

    steps = engine.rows(SHOWN.format(BASE, "step"))
    assert [row for row in steps if row[0] == "steps"] == [
        ("steps", "step 0", 0, 10 * MS),
        ("steps", "step 0", MS, 10 * MS),
        ("steps", "step 1", 10 * MS, 10 * MS),
        ("steps", "step 1", 11 * MS, 10 * MS),
    ]
    assert [row for row in steps if row[0] != "steps"] == [
        ("job · 2 ranks", "step 0", 0, 10 * MS),
        ("job · 2 ranks", "step 1", 10 * MS, 11 * MS),
    ]
    counter = "SELECT ts - {}, value FROM counter JOIN counter_track T ON T.id = track_id WHERE T.name = 'step time'"
    assert engine.rows(counter.format(BASE)) == [(0, 11.0), (10 * MS, 11.0), (21 * MS, 0.0)]


def test_a_window_that_cuts_cuts_what_is_calculated_too(session: rocpd.Session, tmp_path: Path) -> None:
    assert session.time_range
    first, last = session.time_range
    low, high = first + (last - first) // 3, first + 2 * (last - first) // 3
    engine = to_perfetto(session.within(rocpd.Window(low, high, clip=True)), tmp_path)

    assert engine.rows("SELECT DISTINCT category FROM slice WHERE category IN ('gpu_time', 'gpu_marker', 'step')") != []
    assert engine.rows(f"SELECT name, category FROM slice WHERE ts < {low} OR ts + dur > {high}") == []


def test_where_the_work_of_markers_ran(perfetto: ToPerfetto) -> None:
    engine = perfetto(
        TraceBuilder()
        .region("roctxRangePushA", BASE, BASE + 100, message="outer")
        .region("roctxRangePushA", BASE + 10, BASE + 50, message="inner")
        .region("roctxRangePushA", BASE + 60, BASE + 70, message="nothing")
        .region("hipLaunchKernel", BASE + 20, BASE + 30, stack=1)
        .region("hipLaunchKernel", BASE + 80, BASE + 90, stack=2)
        .region("hipLaunchKernel", BASE + 200, BASE + 210, stack=3)
        .region("hipLaunchKernel", BASE + 20, BASE + 30, stack=4, tid=99)
        .kernel("a", BASE + 1000, BASE + 1100, stack=1)
        .kernel("b", BASE + 1200, BASE + 1300, stack=2)
        .kernel("outside", BASE + 1400, BASE + 1500, stack=3)
        .kernel("of another thread", BASE + 1600, BASE + 1700, stack=4)
    )

    assert engine.rows(SHOWN.format(BASE, "gpu_marker")) == [
        ("markers", "outer", 1000, 300),
        ("markers", "inner", 1000, 100),
    ]


def test_titles_are_short_and_the_same_on_all_ranks(session: rocpd.Session, engine: Engine) -> None:
    titles = engine.rows("SELECT DISTINCT name, title FROM recorded WHERE category = 'kernel_dispatch'")
    names = {name for (name,) in session.execute("SELECT DISTINCT name FROM kernels").fetchall()}
    assert {name for name, _ in titles} == names
    assert len({title for _, title in titles}) == len(titles) == len(names)
    assert max(len(title) for _, title in titles) < 60 < max(map(len, names))


def test_alike_kernels_of_different_ranks_have_different_titles(open_job: OpenJob, tmp_path: Path) -> None:
    session = open_job(*(TraceBuilder(i).kernel(f"void f<64, {i}>(int)", BASE, BASE + 1) for i in range(2)))
    engine = to_perfetto(session, tmp_path)
    assert sorted(engine.rows("SELECT title FROM recorded")) == [("f<64, 0>",), ("f<64, 1>",)]


def test_one_colour_per_kind_of_work_near_that_of_the_palette(engine: Engine) -> None:
    categories = load(None)
    of_kernels = "SELECT DISTINCT name, EXTRACT_ARG(arg_set_id, 'correlation_id') FROM recorded"
    kernels = set(engine.rows(f"{of_kernels} WHERE category = 'kernel_dispatch'"))
    assert {(name, correlation(categories.of(name))) for name, _ in kernels} == kernels
    texts = engine.rows("SELECT DISTINCT EXTRACT_ARG(arg_set_id, 'correlation_id') FROM slice")
    kinds = {text.rstrip("\u200b\u200c\u200d\u2060"): text for (text,) in texts if text}
    assert len(kinds) > 8
    for kind, text in kinds.items():
        if colour_of(kind) != GREY:
            assert abs((_hue(text) - _hue_of(colour_of(kind)) + 180) % 360 - 180) <= 12, kind


def _hue(text: str) -> int:
    """Return the hue that Perfetto's UI gives slices of this correlation id."""
    number = 0x811C9DC5 & 0xFFFFFFF
    for character in text:
        product = int(float(number ^ ord(character)) * 16777619) & 0xFFFFFFFF  # JavaScript has doubles only
        number = product - (1 << 32) if product >= 1 << 31 else product
    return abs(number) % 360


def _hue_of(colour: Colour) -> float:
    """Return the hue of a colour in HSLuv, which Perfetto's UI uses: that of CIELUV."""
    red, green, blue = ((part / 255 + 0.055) / 1.055 for part in colour)
    red, green, blue = red**2.4, green**2.4, blue**2.4
    x = 0.4124 * red + 0.3576 * green + 0.1805 * blue
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = 0.0193 * red + 0.1192 * green + 0.9505 * blue
    whole = x + 15 * y + 3 * z
    return math.degrees(math.atan2(9 * y / whole - 0.4683, 4 * x / whole - 0.1978))


def test_chrome_json_has_the_same_order(session: rocpd.Session, tmp_path: Path) -> None:
    (path,) = FORMATS["json"].write(session.where(rocpd.Filters(ranks="10")), ConvertOptions(tmp_path))
    events: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    order = {e["args"]["sort_index"]: names[e["tid"]] for e in events if e["name"] == "thread_sort_index"}
    shown = [order[place] for place in sorted(order)]
    assert shown[:3] == ["GPU time", "steps", "main"]
    assert shown.index("loader") < shown.index("GPU 4 · stream 1") < shown.index("GPU 4 · stream 4 · copies")
    used = {e["tid"] for e in events if e["ph"] in "Xi"}
    assert set(names) <= used


def test_a_large_trace_is_written_and_a_line_says_how_to_cut_it(
    open_job: OpenJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pftrace, "_LARGE_BYTES", 100)
    session = open_job(TraceBuilder().kernel("k", BASE, BASE + 1))
    (path,) = FORMATS["pftrace"].write(session, ConvertOptions(tmp_path))

    assert path.exists()
    assert session.notes[-1].startswith("out_results.pftrace has 0 MB: Perfetto's UI will be slow with it; --step 5,")
