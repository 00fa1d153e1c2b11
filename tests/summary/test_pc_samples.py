"""Samples of program counters: every value against a plain loop, from each kind of input, and the laws of a job."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import RocpdError
from rocpd.facts.pc_sampling import STALL_REASONS
from rocpd.summary.grouping import Sums
from tests.build import TraceBuilder
from tests.conftest import Cli, OpenJob
from tests.pc_sampling import CODE, KERNELS, Sampled, as_csv, as_json, as_rows, made
from tests.summary.cells import cells

TABLES = ("hot-spots", "pc-lines", "pc-samples", "stall-reasons")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Path], list[Sampled]]:
    folder = tmp_path_factory.mktemp("sampled")
    processes = [made(seed) for seed in (4, 5, 6)]
    return [as_rows(each, n).write(folder / f"{n}.db") for n, each in enumerate(processes)], processes


def by_instruction(processes: list[Sampled]) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return (kernel, offset) -> samples, share, margin, time, share issued, top reason and its share, lanes."""
    time: Counter[str] = Counter()
    groups: dict[tuple[str, int], list[Any]] = {}
    for process in processes:
        kernel_of = {each.number: KERNELS[each.kernel] for each in process.dispatches}
        for each in process.dispatches:
            time[KERNELS[each.kernel]] += each.end - each.start
        for sample in process.samples:
            groups.setdefault((kernel_of[sample.dispatch], sample.offset), []).append(sample)
    expected = {}
    for (kernel, offset), samples in groups.items():
        of_kernel = sum(len(others) for (name, _), others in groups.items() if name == kernel)
        share = len(samples) / of_kernel
        waits = Counter(STALL_REASONS[each.reason] for each in samples if each.issued == 0)
        reason = min(waits, key=lambda name: (-waits[name], name), default=None)
        expected[kernel, offset] = (
            len(samples),
            100 * share,
            196 * (share * (1 - share) / of_kernel) ** 0.5,
            round(share * time[kernel]),
            100 * sum(each.issued == 1 for each in samples) / len(samples),
            reason,
            100 * waits[reason] / len(samples) if reason else None,
            sum(bin(each.mask).count("1") for each in samples) / len(samples),
        )
    return expected


def instructions(session: rocpd.Session) -> dict[tuple[str, int], tuple[Any, ...]]:
    columns = "kernel offset samples percent margin_percent time_ns issued_percent stall_reason stall_percent lanes"
    return {(row[0], row[1]): row[2:] for row in cells(session, "pc-samples", columns)}


def same(got: dict[Any, Any], expected: dict[Any, Any]) -> None:
    assert got.keys() == expected.keys()
    for key, values in expected.items():
        assert [pytest.approx(value) if isinstance(value, float) else value for value in values] == list(got[key]), key


def tables(*paths: Path, **selection: Any) -> dict[str, list[tuple[object, ...]]]:
    with rocpd.connect(list(paths), **selection) as session:
        return {name: session.summary(name).fetchall() for name in TABLES}


def test_every_instruction_of_a_job(job: tuple[list[Path], list[Sampled]]) -> None:
    paths, processes = job
    with rocpd.connect(paths) as session:
        same(instructions(session), by_instruction(processes))


def test_lines_and_reasons_add_up_to_instructions(job: tuple[list[Path], list[Sampled]]) -> None:
    paths, processes = job
    lines: Counter[Any] = Counter()
    for (kernel, offset), values in by_instruction(processes).items():
        lines[kernel, CODE[offset][1] or None] += values[0]
    with rocpd.connect(paths) as session:
        assert dict(lines) == {(k, s): n for k, s, n in cells(session, "pc-lines", "kernel source samples")}
        waits = Counter(
            (KERNELS[next(d.kernel for d in p.dispatches if d.number == s.dispatch)], STALL_REASONS[s.reason or 0])
            for p in processes
            for s in p.samples
            if s.issued == 0
        )
        assert dict(waits) == {(k, r): n for k, r, n in cells(session, "stall-reasons", "kernel stall_reason samples")}
        spots = cells(session, "hot-spots", "kernel samples source source_percent instruction")
        for kernel, samples, source, percent, instruction in spots:
            of_lines = {place: n for (name, place), n in lines.items() if name == kernel}
            assert samples == sum(of_lines.values())
            assert of_lines[source] == max(of_lines.values())
            assert percent == pytest.approx(100 * of_lines[source] / samples)
            assert instruction in {text for text, _ in CODE.values()}
        assert [samples for _, samples, *_ in spots] == sorted((samples for _, samples, *_ in spots), reverse=True)


@pytest.mark.parametrize("method", ["stochastic", "host_trap"])
def test_files_of_rocprofv3_say_the_same(method: str, tmp_path: Path) -> None:
    sampled = made(9, method=method)
    rows = tables(as_rows(sampled).write(tmp_path / "rows.db"))
    assert tables(as_json(sampled, tmp_path / "a_results.json", method)) == rows
    texts = tables(as_csv(sampled, tmp_path / "csv", method))
    without_offset = [(*row[:2], *row[3:]) for row in rows["pc-samples"]]
    assert sorted([(*row[:2], *row[3:]) for row in texts["pc-samples"]], key=repr) == sorted(without_offset, key=repr)
    for name in ("pc-lines", "stall-reasons"):
        assert texts[name] == rows[name]
    assert (rows["stall-reasons"] == []) == (method == "host_trap")
    with rocpd.connect(tmp_path / "csv") as session:
        assert session.sql("SELECT DISTINCT method FROM pc_samples").fetchall() == [(method,)]


def test_how_a_job_is_split_changes_nothing(job: tuple[list[Path], list[Sampled]], tmp_path: Path, cli: Cli) -> None:
    paths, _ = job
    whole = tables(*paths)
    assert tables(*reversed(paths)) == whole
    assert cli("merge", *paths, "-o", tmp_path / "all.db").code == 0
    assert tables(tmp_path / "all.db") == whole
    part = tmp_path / "part.db"
    assert cli("merge", *paths, "--start", "2500", "--end", "4321", "-o", part).code == 0
    assert tables(part) == tables(*paths, window=rocpd.Window(2500, 4321))


@pytest.mark.parametrize("view", ["pc_samples", "pc_samples_by_offset", "rocpd_gpu_pc_sample"])
def test_sql_answers_the_same_planned_and_attached(view: str, job: tuple[list[Path], list[Sampled]]) -> None:
    paths, processes = job
    statements = (f"SELECT * FROM {view}", f"SELECT dispatch_id, exec_mask, COUNT(*) FROM {view} GROUP BY 1, 2")
    with rocpd.connect(paths) as session:
        for sql in statements:
            attached, planned = (
                session.execute(sql, strategy=strategy).fetchall() for strategy in ("attached", "auto")
            )
            assert sorted(attached, key=repr) == sorted(planned, key=repr)
            assert attached
        assert session.sql(f"SELECT COUNT(*) FROM {view}").fetchall() == [(sum(len(p.samples) for p in processes),)]


def test_adjoining_windows_add_up(job: tuple[list[Path], list[Sampled]]) -> None:
    """A border inside of a dispatch too: each sample is in one window."""
    paths, processes = job
    borders = (0, 2500, 4321, 9999)
    sums: Counter[Any] = Counter()
    with rocpd.connect(paths) as session:
        for start, end in itertools.pairwise(borders):
            window = rocpd.Window(start, end)
            for kernel, offset, samples in cells(session.within(window), "pc-samples", "kernel offset samples"):
                sums[kernel, offset] += samples
    assert dict(sums) == {key: values[0] for key, values in by_instruction(processes).items()}


@pytest.mark.parametrize("clip", [False, True])
def test_samples_without_a_known_dispatch_are_in_one_window_each_too(open_job: OpenJob, clip: bool) -> None:
    """The second sample comes long after its dispatch; of those of the third and the last nothing is known."""
    trace = TraceBuilder().kernel("gemm", 1000, 2000, dispatch_id=1).kernel("scan", 3000, 4000, dispatch_id=2)
    for time, dispatch in ((1500, 1), (2600, 1), (2700, 7), (3500, 2), (3600, None)):
        trace.row("rocpd_gpu_pc_sample", timestamp=time, dispatch_id=dispatch, exec_mask=1)
    session = open_job(trace)
    edges = itertools.pairwise((None, 2100, 3200, None))
    parts = [session.within(rocpd.Window(start, end, clip=clip)) for start, end in edges]
    samples = [dict(cells(part, "hot-spots", "kernel samples")) for part in parts]
    assert samples == [{"gemm": 1}, {None: 2}, {"scan": 1, None: 1}]
    filters = rocpd.Filters(kernel="gemm")
    assert cells(session.where(filters), "hot-spots", "kernel samples") == [("gemm", 2)]
    assert cells(parts[0].where(filters), "hot-spots", "kernel samples") == [("gemm", 1)]


def test_filters_take_the_samples_of_their_dispatches(job: tuple[list[Path], list[Sampled]]) -> None:
    paths, processes = job
    with rocpd.connect(paths) as session:
        chosen = session.where(rocpd.Filters(kernel="scan"))
        assert {kernel for kernel, *_ in cells(chosen, "pc-lines", "kernel samples")} == {"scan<int>"}
        assert cells(session, "hot-spots", "samples", by="rank")
        assert len({row[0] for row in session.summary("hot-spots", by="rank")}) == len(processes)
        by_dispatch = cells(session, "hot-spots", "rank dispatch samples", by="dispatch")
    expected = Counter((rank, s.dispatch) for rank, p in enumerate(processes) for s in p.samples)
    assert {(rank, number): n for rank, number, n in by_dispatch} == dict(expected)


def test_stacks_hold_every_sample(job: tuple[list[Path], list[Sampled]], cli: Cli) -> None:
    paths, processes = job
    folded = cli("summary", "hot-spots", *paths, "-f", "folded").out
    counts = [int(line.rpartition(" ")[2]) for line in folded.splitlines()]
    assert sum(counts) == sum(len(each.samples) for each in processes)
    assert any(line.startswith("gemm(float*);gemm.cpp:10;s_waitcnt vmcnt(0);") for line in folded.splitlines())
    assert all(line.count(";") in (2, 3) for line in folded.splitlines())
    profile = json.loads(cli("summary", "hot-spots", *paths, "-f", "speedscope").out)["profiles"][0]
    assert (profile["unit"], sum(profile["weights"])) == ("none", sum(counts))


def test_without_samples_it_says_what_records_them(tmp_path: Path, cli: Cli) -> None:
    said = cli("summary", "hot-spots", TraceBuilder().kernel("gemm", 1, 5).write(tmp_path / "a.db"))
    assert said.code != 0
    assert "no program counters are sampled in the selection" in said.err
    assert "rocprofv3 --pc-sampling-beta-enabled" in said.err


def test_a_kernel_of_many_instructions_takes_time_by_their_number(
    open_job: OpenJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 instructions: the samples of one are added up as often as there are tables, and not for each row."""
    trace, number = TraceBuilder().kernel("gemm", 1000, 2000, dispatch_id=1), 300
    for offset in range(number):
        trace.row("rocpd_gpu_pc_sample", timestamp=1500, dispatch_id=1, code_object_id=1, code_object_offset=offset)
    session, added, add = open_job(trace), Counter[str](), Sums.__add__

    def counted(left: Sums, right: Sums) -> Sums:
        added["times"] += 1
        return add(left, right)

    monkeypatch.setattr(Sums, "__add__", counted)
    assert cells(session, "pc-samples", "samples") == [1] * number
    assert added["times"] < 10 * number


def test_few_samples_are_said(tmp_path: Path, cli: Cli) -> None:
    said = cli("summary", "hot-spots", as_rows(made(1, count=5)).write(tmp_path / "a.db"))
    assert "too few to say where its time goes" in said.out + said.err


DAMAGED: list[Any] = [
    None, {}, {"record": None}, {"record": {"timestamp": "soon"}}, {"record": {"timestamp": 1 << 65}},
    {"record": {"timestamp": 2100, "dispatch_id": -5, "pc": [1], "exec_mask": 1 << 70, "snapshot": "x"}},
    {"record": {"timestamp": 2100, "dispatch_id": 2, "pc": {"code_object_id": {}, "code_object_offset": 1.5}},
     "inst_index": 99},
    {"record": {"timestamp": 2100, "inst_type": "NEW", "snapshot": {"stall_reason": -1}}, "inst_index": -1},
]  # fmt: skip


def test_damaged_samples_are_counted_or_read_as_far_as_they_go(tmp_path: Path, cli: Cli) -> None:
    path = as_json(made(2, count=40), tmp_path / "a_results.json")
    content = json.loads(path.read_text())
    content["rocprofiler-sdk-tool"][0]["buffer_records"]["pc_sample_stochastic"] += DAMAGED
    path.write_text(json.dumps(content))
    with rocpd.connect(path) as session:
        assert sum(cells(session, "pc-samples", "samples")) == 40 + 3
    assert "5 damaged samples of program counters" in cli("import", path, "-d", tmp_path / "out").err
    path.write_text(path.read_text()[:-2000])
    with pytest.raises(RocpdError, match="damaged"), rocpd.connect(path):
        pass


def test_damaged_lines_of_csv_are_counted(tmp_path: Path, cli: Cli) -> None:
    folder = as_csv(made(3, count=30), tmp_path / "csv")
    file = folder / "100_pc_sampling_stochastic.csv"
    lines = file.read_text().splitlines()
    more = ['"NaN",' + lines[1].partition(",")[2], "1,2", str(1 << 70) + "," + lines[1].partition(",")[2]]
    file.write_text("\n".join([*lines, *more, lines[1][:20]]))
    with rocpd.connect(folder) as session:
        assert sum(cells(session, "pc-samples", "samples")) == 30
    assert "4 lines of CSV files that are cut or damaged" in cli("import", folder, "-d", tmp_path / "out").err


def test_samples_without_a_trace_of_kernels_and_a_file_of_another_kind(tmp_path: Path, cli: Cli) -> None:
    folder = as_csv(made(3, count=30), tmp_path / "csv")
    (folder / "100_kernel_trace.csv").unlink()
    with rocpd.connect(folder) as session:
        assert cells(session, "hot-spots", "kernel samples kernel_time_ns") == [(None, 30, None)]
    (folder / "100_pc_sampling_host_trap.csv").write_text("Name,Calls\na,1\nb,2\n")
    assert "2 lines of CSV files that are cut or damaged" in cli("import", folder, "-d", tmp_path / "out").err


def test_damaged_cells_of_a_file(tmp_path: Path) -> None:
    trace = as_rows(made(3, count=30))
    for column in ("exec_mask", "wave_issued", "inst_type", "stall_reason", "code_object_offset", "dispatch_id"):
        for value in ("'text'", "x'ff'", "NULL", "0.5", "9e99"):
            trace.sql(f"""UPDATE "rocpd_gpu_pc_sample{{uuid}}" SET {column} = {value} WHERE id =
                          (SELECT MAX(id) FROM "rocpd_gpu_pc_sample{{uuid}}" WHERE id % 5 = length('{column}') % 5)""")
    with rocpd.connect(trace.write(tmp_path / "a.db")) as session:
        assert sum(cells(session, "pc-samples", "samples")) == 30
