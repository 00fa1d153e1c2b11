"""Windows and filters through every command: `tests.selections` works out what counts from a list of events."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import io
import json
import re
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import pytest

from rocpd.schema.load import VIEWS, view
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.cli.conftest import assert_one_error
from tests.conftest import Cli
from tests.selections import (
    AWAY,
    BASE,
    CASES,
    MS,
    Event,
    Job,
    Spec,
    Words,
    make,
    real_job,
    windows_of,
)
from tests.soak import sample


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Three ranks with the same ids: two on one host, 2 ms apart, the third on another host with another clock.

    The time line runs from 0 to 1000 ms: the third rank's last region ends it.
    """
    return make(tmp_path_factory.mktemp("made"))


def cases(first: int = 0, step: int = 1) -> pytest.MarkDecorator:
    """Run a test for every so many of the cases, beginning with `first`, or for all in a soak: some test has each."""
    chosen = sample(CASES, step, first)
    return pytest.mark.parametrize(("words", "spec"), chosen, ids=[" ".join(words) for words, _ in chosen])


# --- what each command shows, and what it should show

Rows: TypeAlias = "Counter[tuple[Any, ...]]"

SHOWN = {
    "kernels": "SELECT 'kernels', rank, name, start, \"end\" FROM kernels",
    "memory_copies": "SELECT 'memory_copies', rank, name, start, \"end\" FROM memory_copies",
    "memory_allocations": (
        "SELECT 'memory_allocations', rank, (type || ' ') || level, start, \"end\" FROM memory_allocations"
    ),
    "regions": (
        "SELECT 'regions', rank, name, start, \"end\" FROM regions"
        " WHERE category IS NULL OR category NOT GLOB 'MARKER_*'"
    ),
    "markers": "SELECT 'markers', rank, name, start, \"end\" FROM markers",
    "samples": "SELECT 'samples', rank, name, timestamp, timestamp FROM samples WHERE category NOT GLOB 'MARKER_*'",
    "graph_launches": (
        "SELECT 'graph_launches', rank, CAST(graph_exec_id AS TEXT), start, \"end\" FROM graph_launches"
    ),
    "region_args": "SELECT 'region_args', rank, name, NULL, NULL FROM region_args",
    "pmc_events": "SELECT 'pmc_events', rank, counter_name, NULL, NULL FROM pmc_events",
}
ALL = " UNION ALL ".join(SHOWN.values())
COLUMNS = ("kind", "rank", "name", "start", "end")


def shown(events: Iterable[Event]) -> Rows:
    """Return the rows of `ALL` for some events: times as recorded, then their arguments and counter values."""
    actual: Rows = Counter()
    for event in events:
        actual[event.kind, event.rank, event.name, event.start + event.offset, event.end + event.offset] += 1
        actual.update((base, event.rank, name, None, None) for base, name in event.owns)
    return actual


def queried(cli: Cli, words: Sequence[str | Path]) -> Rows:
    """Ask for all rows with `rocpd query`."""
    said = cli("query", ALL, "-f", "json", *words)
    assert said.code == 0, said.err
    return Counter(tuple(row.values()) for row in json.loads(said.out))


@pytest.mark.soak
@cases(0, 4)
def test_query(words: Words, spec: Spec, made: Job, cli: Cli) -> None:
    assert queried(cli, [made.folder, *words]) == shown(spec.of(made.events))


@pytest.mark.soak
@cases(1, 4)
def test_planned_query(words: Words, spec: Spec, made: Job, cli: Cli) -> None:
    expected = shown(spec.of(made.events))
    assert queried(cli, [made.folder, *words, "--strategy", "rows"]) == expected
    counts = " UNION ALL ".join(f"SELECT COUNT(*) AS n FROM ({sql})" for sql in SHOWN.values())
    actual = cli("query", counts, made.folder, *words, "--strategy", "aggregates", "-f", "csv").out.split()[1:]
    assert [int(n) for n in actual] == [sum(n for row, n in expected.items() if row[0] == kind) for kind in SHOWN]


@pytest.mark.soak
@cases(3, 4)
def test_shell(words: Words, spec: Spec, made: Job, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f".mode json\n{ALL};\n"))
    said = cli("shell", made.folder, *words)
    assert said.code == 0, said.err
    assert Counter(tuple(row.values()) for row in json.loads(said.out)) == shown(spec.of(made.events))


TABLES: dict[str, Callable[[Event], Words | None]] = {
    "kernels": lambda e: (str(e.name),) if e.kind == "kernels" else None,
    "copies": lambda e: (str(e.name),) if e.kind == "memory_copies" else None,
    "allocations": lambda e: tuple(str(e.name).split()) if e.domain == "MEMORY_ALLOCATIONS" else None,
    "scratch": lambda e: (str(e.name).split()[0],) if e.domain == "SCRATCH_MEMORY" else None,
    "api": lambda e: (e.domain, str(e.name)) if e.kind == "regions" else None,
    "markers": lambda e: (str(e.name),) if e.kind == "markers" else None,
    "domains": lambda e: (e.domain,),
}
"""Tables of `rocpd summary`, and under which name an event counts in them."""

Totals: TypeAlias = dict[str, dict[tuple[Any, ...], tuple[int, int]]]


def totals(events: Sequence[Event]) -> Totals:
    """Return calls and sum of durations by table, rank and name; only tables with rows."""
    actual: Totals = {}
    for table, name_of in TABLES.items():
        for event in events:
            if (name := name_of(event)) is not None:
                calls, total = actual.setdefault(table, {}).get((event.rank, *name), (0, 0))
                actual[table][event.rank, *name] = (calls + 1, total + event.end - event.start)
    return actual


@pytest.mark.soak
@cases(2, 4)
def test_summary(words: Words, spec: Spec, made: Job, cli: Cli) -> None:
    expected = totals(spec.of(made.events))
    said = cli("summary", *TABLES, "--by", "rank", "-f", "json", made.folder, *words)
    assert (said.code, bool(expected)) == (0, True), said.err
    actual: Totals = {}
    for table, rows in json.loads(said.out).items():
        for row in rows:
            values = [str(value) for value in row.values()]
            names = values[1 : list(row).index("calls")]
            actual.setdefault(table, {})[row["rank"], *names] = (row["calls"], row["total_ns"])
    assert actual == expected


@pytest.mark.soak
@cases(0, 8)
def test_summary_as_amd_has_it(words: Words, spec: Spec, made: Job, cli: Cli, tmp_path: Path) -> None:
    """AMD's domains have neither graph launches nor samples."""
    expected = totals([e for e in spec.of(made.events) if e.kind not in ("graph_launches", "samples")])
    said = cli("summary", "--summary-by-rank", "--domain-summary", "-f", "csv", "-d", tmp_path, made.folder, *words)
    assert said.code == 0, said.err
    actual = {name: by_rank(tmp_path / f"out_{name}_summary_by_rank.csv") for name in ("domain", "kernels")}
    assert actual == {"domain": expected.get("domains", {}), "kernels": expected.get("kernels", {})}


def by_rank(path: Path) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Read one of AMD's tables; the pid tells the rank, and a kernel without name has an empty cell."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (int(row["ProcessID"]) - 100, row["Name"] or "None"): (int(row["Calls"]), int(row["DURATION (nsec)"]))
            for row in csv.DictReader(file)
        }


# --- what can't be


SEVERAL = "2 markers match step: #1 step at {} ns, #2 step at {} ns"


@pytest.mark.soak(3)
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--start-marker", "step"), 2, SEVERAL.format(BASE, BASE + 300 * MS)),
        (("--end-marker", "step", "--rank", "1"), 2, SEVERAL.format(BASE + 2 * MS, BASE + 302 * MS)),
        # Times of candidates are those of the common time line, which the rank alone has too.
        (("--end-marker", "step", "--rank", "2"), 2, SEVERAL.format(BASE + AWAY, BASE + AWAY + 300 * MS)),
        (("--start-marker", "/step/"), 2, "3 markers match /step/: #1 step at "),
        (("--start-marker", "step#3"), 2, "no marker matches step#3"),
        (("--start-marker", "step#0"), 2, "no marker matches step#0"),
        (("--start-marker", "/(/"), 2, "/(/: not a regular expression"),
        (
            ("--start-marker", "forward", "--start", "1%"),
            2,
            "--start and --start-marker both set the start",
        ),
        (("--start", "101%", "--end", "-5%"), 2, "the window ends before it starts"),
        (("--start", "5e1000%"), 2, "5e1000%: not a time"),
        (("--start", "-5%"), 0, ""),
        (("--start", "5 parsecs"), 2, "5 parsecs: not a time"),
        (("--start", "300ms", "--end", "30%"), 2, "the window ends before it starts"),
        (("--start", "5"), 0, ""),
        (("--end", "5"), 1, "the window lies outside the trace"),
        (("--start", "+2s"), 1, "the window lies outside the trace"),
        (("--inclusive", "maybe"), 2, "--inclusive maybe: neither True nor False"),
        (("--clip",), 2, "--clip needs a window"),
        (("--launched",), 2, "--launched needs a window"),
        (("--step", "1", "--step-marker", "("), 2, "--step-marker (: not a regular expression"),
        (("--step", "7"), 2, "there is no step 7"),
        (("--step", "0-7"), 2, "there is no step 7"),
        (("--step", "1-0"), 2, "steps 1-0: the last comes before the first"),
        (("--step", "/step/"), 2, "3 markers match /step/: #1 step at "),
        (("--step", "1", "--end", "60%"), 2, "--step sets both sides of the window"),
        (("--auto-roi", "--start", "1%"), 2, "set both sides of the window"),
        (("--auto-roi", "--category", "HIP"), 1, "no kernel ran: there is no hottest region"),
        (("--window-kernel", "["), 2, "--window-kernel [: not a regular expression"),
        (("--kernel", "["), 2, "--kernel [: not a regular expression"),
        (("--rank", "x"), 2, "--rank x: neither numbers nor ranges"),
        (("--agent", "big"), 2, "--agent big: not an agent"),
    ],
)
def test_what_cannot_be(words: Words, code: int, message: str, made: Job, cli: Cli, tmp_path: Path) -> None:
    commands: tuple[tuple[str | Path, ...], ...] = (
        ("query", "select 1", "-o", tmp_path / "out" / "x.csv"),
        ("summary", "kernels", "-f", "csv", "-d", tmp_path / "out"),
        ("convert", "-f", "json", "-d", tmp_path / "out"),
    )
    for command in sample(commands, 3, crc32(" ".join(words).encode()) % 3):
        said = cli(*command, made.folder, *words)
        if code:
            said = dataclasses.replace(said, err=re.sub(r"^rocpd: (?!error).*\n", "", said.err, flags=re.M))
            assert_one_error(said, code, message)
            assert list(tmp_path.iterdir()) == []
        else:
            assert said.code == 0, said.err


def test_where_nothing_is_divided_markers_of_steps_are_for_a_step(made: Job, cli: Cli) -> None:
    assert_one_error(cli("query", "select 1", made.folder, "--step-marker", "x"), 2, "--step-marker needs --step")
    assert cli("summary", "kernels", made.folder, "--step-marker", "x").code == 0


NOTHING: tuple[Words, ...] = (
    ("--kernel", "nothing"),
    ("--category", "ROCDECODE"),
    ("--agent", "9"),
    ("--agent", "GPU-7"),
    ("--stream", "77"),
    ("--rank", "9"),
    ("--host", "nowhere"),
    ("--start", "988ms", "--end", "989ms"),
    ("--start", "625ms", "--end", "630ms", "--inclusive", "False"),
    ("--end", "5%", "--kernel", "relu"),
)
COMMANDS: tuple[Words, ...] = (
    ("query", "select count(*) from regions"),
    ("query", "select count(*) from regions", "-f", "csv", "-o", "q.csv", "-d", "OUT"),
    ("summary",),
    ("summary", "--list-categories"),
    ("summary", "all"),
    ("summary", "--domain-summary", "-f", "csv", "-d", "OUT"),
    ("summary", "kernels", "-f", "parquet", "-d", "OUT"),
    ("summary", "api", "gpu-time", "-f", "html", "-o", "page", "-d", "OUT"),
    ("summary", "calls", "-f", "folded", "-d", "OUT"),
    ("shell",),
    *(("convert", "-f", form, "-d", "OUT") for form in ("csv", "pftrace", "otf2", "parquet", "arrow", "json")),
    ("convert", "-f", "csv", "json", "--split", "rank", "--gzip", "-d", "OUT"),
)


@pytest.mark.soak(10)
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_nothing_left(command: Words, made: Job, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message, exit code 1, no row and no file, not even the folder for it."""
    monkeypatch.chdir(tmp_path)
    for words in sample(NOTHING, 10, COMMANDS.index(command) % 10):
        monkeypatch.setattr(sys, "stdin", io.StringIO("select count(*) from regions;\n"))
        said = cli(*command, "-i", made.folder, *words)
        assert said.out == ""
        said = dataclasses.replace(said, err=re.sub(r"^rocpd: (?!error).*\n", "", said.err, flags=re.M))
        assert_one_error(said, 1)
        assert re.search(r"no event (passes|lies)|no rank", said.err), said.err
        assert list(tmp_path.iterdir()) == []


# --- laws, on simulated jobs, damaged ones too


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "damaged"])
def simulated(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    simulate(JobOptions(folder, ranks=3, nodes=2, events_per_rank=300, seed=5, faults=bool(request.param)))
    return folder


def numbers(cli: Cli, folder: Path, sql: str, *words: str) -> list[int]:
    """Run a statement of one row of numbers; a selection without events yields zeros."""
    said = cli("query", sql, folder, "-f", "json", "--align", "none", *words)
    if said.code == 1 and "no event " in said.err:
        return [0] * sql.count(" AS ")
    assert said.code == 0, said.err
    return [int(value or 0) for value in json.loads(said.out)[0].values()]


COUNTS = ", ".join(
    f"(SELECT COUNT(*) FROM {name}) AS {name}"
    for name in ("kernels", "memory_copies", "memory_allocations", "regions", "samples", "graph_launches")
)


@pytest.mark.parametrize("regex", ["Cijk_A", "nccl", "(?i)ELEMENTWISE", "k"])
def test_kernels_that_match_and_those_that_do_not_are_all(regex: str, simulated: Path, cli: Cli) -> None:
    """Dispatches whose kernel is unknown match nothing, so they are among those that do not."""
    values = "(SELECT COUNT(*) FROM pmc_events WHERE dispatch_id IS NOT NULL) AS v"
    sql = f"SELECT COUNT(*) AS n, TOTAL(duration) AS t, {values} FROM kernels"
    everything = numbers(cli, simulated, sql)
    matching, others = (numbers(cli, simulated, sql, option, regex) for option in ("--kernel", "--exclude-kernel"))
    assert matching[0] * others[0] > 0
    assert [a + b for a, b in zip(matching, others, strict=True)] == everything
    assert numbers(cli, simulated, sql, "--kernel", regex, "--exclude-kernel", regex)[0] == 0


def test_ranks_and_hosts_split_the_job(simulated: Path, cli: Cli) -> None:
    sql = f"SELECT {COUNTS}"
    everything = numbers(cli, simulated, sql)
    hosts = cli("info", simulated, "--only", "ranks", "-f", "csv").out
    names = sorted({row["host"] for row in csv.DictReader(hosts.splitlines())})
    assert len(names) == 2
    for parts in ([("--rank", "0"), ("--rank", "1-2")], [("--host", name) for name in names]):
        actual = [numbers(cli, simulated, sql, *words) for words in parts]
        assert [sum(column) for column in zip(*actual, strict=True)] == everything


def categories(cli: Cli, folder: Path, *words: str) -> dict[tuple[str, str], int]:
    said = cli("summary", "--list-categories", folder, *words)
    assert said.code == 0, said.err
    lines = said.out.splitlines()[2:]
    return {(domain, category): int(n) for domain, category, n in map(str.split, lines)}


def test_what_is_listed_can_be_asked_for(simulated: Path, cli: Cli) -> None:
    """`--category` with a domain or category of the list gives as many events as the list says, and no others."""
    listed = categories(cli, simulated)
    assert sum(listed.values()) == sum(numbers(cli, simulated, f"SELECT {COUNTS}"))
    domains = [domain for domain, _ in listed]
    for domain in set(domains):
        of_domain = {key: n for key, n in listed.items() if key[0] == domain}
        assert categories(cli, simulated, "--category", domain.lower()) == of_domain
    calls = {key: n for key, n in listed.items() if key[0] in ("HIP", "HSA", "MARKERS")}
    assert len(calls) > 4
    for (domain, category), n in calls.items():
        assert categories(cli, simulated, "--category", category) == {(domain, category): n}
    assert categories(cli, simulated, "--category", ",".join(domains)) == listed


def test_categories_of_other_tools(cli: Cli, tmp_path: Path) -> None:
    """rocprofiler-systems calls its kernels `rocm_kernel_dispatch`: in the list, so it can be asked for."""
    trace = TraceBuilder().kernel("k", 10, 20).kernel("other", 20, 30).region("f", 1, 2).alloc(3, 4)
    trace.string("rocm_kernel_dispatch")
    trace.sql(
        "UPDATE rocpd_event{uuid} SET category_id = (SELECT id FROM rocpd_string{uuid} WHERE string LIKE 'rocm_%')"
        " WHERE id = 1"
    )
    trace.write(tmp_path / "0.db")
    listed = categories(cli, tmp_path)
    assert listed["KERNELS", "rocm_kernel_dispatch"] == listed["KERNELS", "KERNEL_DISPATCH"] == 1
    chosen = cli("query", "select name from kernels", tmp_path, "--category", "ROCM_kernel_dispatch", "-f", "csv")
    assert chosen.out.split() == ["name", "k"]
    assert len(categories(cli, tmp_path, "--category", "rocm_kernel_dispatch,HIP")) == 2


def raw(folder: Path, copies: Path) -> dict[str, list[tuple[int, int]]]:
    """Times of kernels and regions of all ranks, as Python's own sqlite3 reads copies of the files."""
    shutil.copytree(folder, copies)  # a killed writer's journal would be played back
    actual: dict[str, list[tuple[int, int]]] = {"kernels": [], "regions": []}
    for path in copies.glob("*.db"):
        with contextlib.closing(sqlite3.connect(path)) as connection:
            tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            for view_name, base in (("kernels", "rocpd_kernel_dispatch_"), ("regions", "rocpd_region_")):
                (table,) = (name for name in tables if name.startswith(base))
                actual[view_name] += connection.execute(f'SELECT start, "end" FROM "{table}"').fetchall()
    return actual


def counted(cli: Cli, monkeypatch: pytest.MonkeyPatch, folder: Path, *words: str) -> dict[str, list[tuple[int, int]]]:
    """Number and time of kernels and regions, as each command has them."""
    sound = 'start > 0 AND "end" >= start'
    sql = " UNION ALL ".join(
        f"SELECT COUNT(*) AS n, SUM(duration) FILTER (WHERE {sound}) AS ns FROM {name}"
        for name in ("kernels", "regions")
    )
    asked = cli("query", sql, folder, "-f", "json", *words)
    monkeypatch.setattr(sys, "stdin", io.StringIO(f".mode json\n{sql};\n"))
    typed = cli("shell", folder, *words)
    summed = cli("summary", "kernels", "domains", "-f", "json", folder, *words)
    assert [asked.code, typed.code, summed.code] == [0, 0, 0]
    tables = json.loads(summed.out)
    kernels = [(row["calls"], row["total_ns"]) for row in tables["kernels"]]
    assert kernels_of_domains(tables["domains"]) == [(sum(n for n, _ in kernels), sum(ns for _, ns in kernels))]
    return {
        "query": [(row["n"], row["ns"]) for row in json.loads(asked.out)],
        "shell": [(row["n"], row["ns"]) for row in json.loads(typed.out)],
        "summary": kernels_of_domains(tables["domains"]),
    }


def kernels_of_domains(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["calls"], row["total_ns"]) for row in rows if row["domain"] == "KERNELS"]


def test_adjoining_windows_are_the_whole(
    simulated: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event that crosses the border counts on both sides, with `--inclusive False` on none; cut, nothing is lost."""
    times = raw(simulated, tmp_path / "copies")
    starts = sorted(start for start, _ in times["kernels"])
    middle = starts[len(starts) // 2] + 1  # within a kernel
    crossing = [sum(start < middle < end for start, end in times[name]) for name in ("kernels", "regions")]
    assert min(crossing) > 0
    plain = ("--align", "none")
    everything = counted(cli, monkeypatch, simulated, *plain)
    assert [n for n, _ in everything["query"]] == [len(times[name]) for name in ("kernels", "regions")]
    for more, sign in (((), 1), (("--inclusive", "False"), -1), (("--clip",), 1)):
        halves = [
            counted(cli, monkeypatch, simulated, *plain, side, str(middle), *more) for side in ("--end", "--start")
        ]
        for command, rows in everything.items():
            for i, (calls, time) in enumerate(rows):
                assert sum(half[command][i][0] for half in halves) == calls + sign * crossing[i], (command, more)
                if more == ("--clip",):
                    assert sum(half[command][i][1] for half in halves) == time


def test_cut_events_lie_within_the_window_in_every_view(simulated: Path, cli: Cli) -> None:
    """Invalid times, start 0 or end before start, stay as they are."""
    low, high = numbers(
        cli, simulated, "SELECT MIN(start) + 5000000 AS low, MIN(start) + 9000000 AS high FROM regions WHERE start > 0"
    )
    timed = [name for name in VIEWS if {"start", "end"} <= {column.name.lower() for column in view(name).columns}]
    views = [name for name in timed if name != "processes"]
    assert len(views) > 8
    outside = f'start > 0 AND "end" >= start AND (start < {low} OR "end" > {high})'
    sql = ", ".join(
        f"(SELECT COUNT(*) FROM {name} WHERE {outside}) AS o{i}, (SELECT COUNT(*) FROM {name}) AS n{i}"
        for i, name in enumerate(views)
    )
    window = ("--start", str(low), "--end", str(high), "--clip")
    actual = numbers(cli, simulated, f"SELECT {sql}", *window)
    assert dict(zip(views, actual[::2], strict=True)) == dict.fromkeys(views, 0)
    assert sum(n > 0 for n in actual[1::2]) > 4
    assert (
        numbers(cli, simulated, "SELECT MAX(WallTime) AS w FROM busy WHERE WallTime < 1e12", *window)[0] <= high - low
    )


# --- real files: events read with sqlite3 and pandas


def test_real_files(real_files: tuple[Path, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    files = real_files[:2]
    job = real_job(files)
    assert Counter(e.kind for e in job.events) == {"kernels": 602, "regions": 1248}
    for words, spec in windows_of(job):
        chosen = spec.of(job.events)
        expected = Counter((e.kind, e.rank, e.name, e.start + e.offset, e.end + e.offset) for e in chosen)
        sql = f"{SHOWN['kernels']} UNION ALL {SHOWN['regions']}"
        said = cli("query", sql, *files, *words, "-f", "json")
        assert Counter(tuple(row.values()) for row in json.loads(said.out)) == expected, words
        monkeypatch.setattr(sys, "stdin", io.StringIO(f".mode json\n{sql};\n"))
        assert Counter(tuple(row.values()) for row in json.loads(cli("shell", *files, *words).out)) == expected, words
        said = cli("summary", "kernels", "api", "domains", "--by", "rank", "-f", "json", *files, *words)
        tables = json.loads(said.out)
        for table, rows in totals(chosen).items():
            calls = {
                (row["rank"], str(row["domain" if table == "domains" else "name"])): row["calls"]
                for row in tables[table]
            }
            assert calls == {(key[0], key[-1]): count for key, (count, _) in rows.items()}, (words, table)
            assert sum(row["total_ns"] for row in tables[table]) == sum(total for _, total in rows.values())


def test_a_kernel_gives_the_window_whatever_the_filters(made: Job, cli: Cli) -> None:
    """Filters say what counts, the kernels of --window-kernel only when."""
    words = ("query", "SELECT count(*) FROM regions", made.folder, "--window-kernel", "gemm", "--format", "csv")
    actual = cli(*words, "--category", "HIP")
    assert actual.code == 0, actual.err
    assert int(actual.out.split()[-1]) <= int(cli(*words).out.split()[-1])


def test_info_counts_the_selection(made: Job, cli: Cli) -> None:
    words = ("info", made.folder, "--only", "tables", "--format", "csv")
    everything, some = (
        dict(line.split(",") for line in cli(*words, *more).out.split()) for more in ((), ("--rank", "0"))
    )
    assert 0 < int(some["rocpd_kernel_dispatch"]) < int(everything["rocpd_kernel_dispatch"])
    none = dict(line.split(",") for line in cli(*words, "--category", "HIP").out.split())
    assert int(none["rocpd_kernel_dispatch"]) == 0 < int(none["rocpd_region"])
