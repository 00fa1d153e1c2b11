"""Omniprobe's and logduration's outputs: every value against a plain loop over what was written, joined to a trace."""

from __future__ import annotations

import io
import json
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import rocpd
from rocpd.base import InputError, RocpdError
from rocpd.importers.omniprobe import objects
from tests import omniprobe
from tests.build import TraceBuilder
from tests.conftest import Cli
from tests.omniprobe import KERNELS, ORDER, dispatches
from tests.summary.cells import cells


def durations(rank: int) -> list[int]:
    return [100 * (number + 1) + rank for number in range(len(ORDER))]


def trace(path: Path, rank: int = 0) -> Path:
    """Write a run of the same program, which has other dispatches in between."""
    built = TraceBuilder(rank, pid=50 + rank)
    for number, (kernel, duration) in enumerate(zip(ORDER, durations(rank), strict=True)):
        start = 10_000 * (number + 1)
        built.kernel("memset", start - 50, start - 20, dispatch_id=2 * number)
        built.kernel(f"{KERNELS[kernel]} [clone .kd]", start, start + duration, dispatch_id=2 * number + 1)
    return built.write(path)


def kernel_time(kernel: str, ranks: int) -> int:
    """Return the time of the dispatches of a kernel, the mean over ranks of each."""
    per_dispatch = zip(*(durations(rank) for rank in range(ranks)), strict=True)
    means = [round(sum(times) / ranks) for times in per_dispatch]
    return sum(mean for mean, of in zip(means, ORDER, strict=True) if KERNELS[of] == kernel)


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "omniprobe.out"
    path.write_text(text)
    return path


def accesses_of(path: Path, *traces: Path, **selection: Any) -> list[tuple[Any, ...]]:
    columns = "kernel kernel_time_ns source access executions bytes lines_needed lines_used bank_conflicts dispatches"
    with rocpd.connect([path, *traces], **selection) as session:
        rows: list[tuple[Any, ...]] = cells(session, "memory-access", columns)
        return rows


def expected_accesses(made: dict[int, Any], ranks: int) -> dict[tuple[str, str], tuple[Any, ...]]:
    """Return (kernel, place) -> time, access, executions, bytes, lines needed and used, conflicts, dispatches."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for number, kernel, _ in dispatches():
        for each in made[number]["cache"]:
            groups[kernel, f"/src/gemm.cpp:{each['line']}:7"].append({**each, "bytes": 16})
        for each in made[number]["banks"]:
            groups[kernel, f"/src/gemm.cpp:{each['line']}:3"].append({**each, "bytes": 4})
    return {
        (kernel, place): (
            kernel_time(kernel, ranks) if ranks else None,
            group[0]["type"],
            sum(each["executions"] for each in group),
            group[0]["bytes"],
            *(
                sum(each[name] for each in group) if name in group[0] else None
                for name in ("needed", "used", "conflicts")
            ),
            len(group),
        )
        for (kernel, place), group in groups.items()
    }


@pytest.mark.parametrize("ranks", [0, 1, 3])
@pytest.mark.parametrize("console", [False, True])
def test_memory_analysis_beside_the_time_of_kernels(ranks: int, console: bool, tmp_path: Path, cli: Cli) -> None:
    made = omniprobe.accesses(3)
    path = written(tmp_path, omniprobe.memory_analysis(made, console=console))
    traces = [trace(tmp_path / f"{rank}.db", rank) for rank in range(ranks)]
    rows = accesses_of(path, *traces)
    assert {(row[0], row[2]): (row[1], *row[3:]) for row in rows} == expected_accesses(made, ranks)
    assert accesses_of(*reversed([path, *traces])) == rows
    assert cli("merge", path, *traces, "-o", tmp_path / "all.db").code == 0
    assert accesses_of(tmp_path / "all.db") == rows
    times = [row[1] or 0 for row in rows]
    assert times == sorted(times, reverse=True)


def test_what_is_shown_of_lines_and_banks(tmp_path: Path) -> None:
    path = written(tmp_path, omniprobe.memory_analysis(omniprobe.accesses(4)))
    with rocpd.connect(path) as session:
        rows = cells(session, "memory-access", "lines_needed lines_used line_use_percent bank_conflicts executions")
        ratios = cells(session, "memory-access", "conflicts_per_execution")
        assert session.sql("SELECT COUNT(*), COUNT(DISTINCT ordinal), MIN(code) FROM memory_accesses").fetchall() == [
            (18, 3, "lds[t]")
        ]
    for (needed, used, percent, conflicts, executions), ratio in zip(rows, ratios, strict=True):
        assert percent == (None if used is None else pytest.approx(100 * needed / used))
        assert ratio == (None if conflicts is None else pytest.approx(conflicts / executions))


def test_a_window_takes_the_accesses_of_its_dispatches(tmp_path: Path) -> None:
    """Which dispatch of its kernel one is does not depend on the window."""
    made = omniprobe.accesses(5)
    path, run = written(tmp_path, omniprobe.memory_analysis(made)), trace(tmp_path / "a.db")
    sums: Counter[tuple[str, str]] = Counter()
    time: Counter[str] = Counter()
    for start, end in ((0, 25_000), (25_000, 45_000), (45_000, 99_000)):
        rows = accesses_of(path, run, window=rocpd.Window(start, end))
        for kernel, kernel_ns in {(row[0], row[1]) for row in rows}:
            time[kernel] += kernel_ns
        for row in rows:
            sums[row[0], row[2]] += row[4]
    assert dict(sums) == {key: values[2] for key, values in expected_accesses(made, 1).items()}
    assert dict(time) == {kernel: kernel_time(kernel, 1) for kernel in KERNELS}


def test_dispatches_without_valid_times_and_merged_windows(tmp_path: Path, cli: Cli) -> None:
    """An access counts with or without a time; of a merged window nobody knows which dispatch of its kernel one is."""
    made = omniprobe.accesses(5)
    path = written(tmp_path, omniprobe.memory_analysis(made))
    kernel = f"{KERNELS[2]} [clone .kd]"
    (number,) = (n for n, of in enumerate(ORDER) if of == 2)
    run = TraceBuilder().kernel(kernel, 0, 0, dispatch_id=2 * number + 1).write(tmp_path / "a.db")
    copies = [row for row in accesses_of(path, run) if row[0] == KERNELS[2]]
    assert [row[1] for row in copies] == [None] * 3
    part = tmp_path / "part.db"
    assert cli("merge", trace(tmp_path / "b.db"), "--start", "25000", "--end", "45000", "-o", part).code == 0
    assert {row[1] for row in accesses_of(path, part)} == {None}


@pytest.mark.parametrize("level", ["share", "strict"])
def test_redacted_files_give_the_same_numbers_and_no_names(level: str, tmp_path: Path, cli: Cli) -> None:
    files = [written(tmp_path, omniprobe.memory_analysis(omniprobe.accesses(8))), trace(tmp_path / "a.db")]
    assert cli("redact", *files, "-d", tmp_path / "shared", "--level", level).code == 0
    shared = sorted((tmp_path / "shared").glob("*.db"))
    rows, redacted = accesses_of(*files), accesses_of(*shared)
    numbers = [(*row[1:2], *row[3:]) for row in rows]
    assert sorted(numbers, key=repr) == sorted(((*row[1:2], *row[3:]) for row in redacted), key=repr)
    content = b"".join(path.read_bytes() for path in shared)
    assert b'y["a, b"]' not in content
    assert (b"gemm(" in content) == (level == "share")


def test_pages(tmp_path: Path) -> None:
    made = omniprobe.pages(6)
    expected: Counter[tuple[str, str]] = Counter()
    for record in made:
        for page in record["pages"]:
            expected[KERNELS[ORDER[record["dispatch_id"] - 1]], hex(page["start_address"])] += page["accesses"]
    run = trace(tmp_path / "a.db")
    for path in (
        omniprobe.json_lines(tmp_path / "pages.json", made),
        written(tmp_path, omniprobe.heatmap_text(made)),
    ):
        with rocpd.connect([path, run]) as session:
            rows = cells(session, "memory-pages", "kernel page accesses bytes kernel_time_ns percent")
        assert {(kernel, page): accesses for kernel, page, accesses, *_ in rows} == dict(expected)
        assert {(row[0], row[3], row[4]) for row in rows} == {(k, 4096, kernel_time(k, 1)) for k in KERNELS}
        assert sum(row[5] for row in rows) == pytest.approx(100 * len(KERNELS))


@pytest.mark.parametrize("form", ["json", "csv", "both"])
def test_addresses(form: str, tmp_path: Path) -> None:
    made = omniprobe.messages(7)
    groups: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for each in made:
        groups[KERNELS[ORDER[each["dispatch_id"] - 1]], each["dwarf_line"]].append(each)
    text = "".join(f"{omniprobe.unescaped(each)}\n" for each in made)
    if form != "json":
        text = omniprobe.address_csv(made, with_json=form == "both")
    with rocpd.connect(written(tmp_path, text)) as session:
        rows = cells(session, "memory-addresses", "kernel line access messages lanes lines")
        masks = session.sql("SELECT exec_mask FROM memory_messages ORDER BY id").fetchall()
    assert [(mask,) for mask in (each["exec"] for each in made)] == [(mask & (1 << 64) - 1,) for (mask,) in masks]
    assert {(kernel, line): values for kernel, line, *values in map(list, rows)} == {
        key: [
            "read",
            len(group),
            pytest.approx(sum(len(each["addresses"]) for each in group) / len(group)),
            pytest.approx(sum(len({a // 128 for a in each["addresses"]}) for each in group) / len(group)),
        ]
        for key, group in groups.items()
    }


def test_basic_blocks(tmp_path: Path) -> None:
    made = omniprobe.blocks(8)
    resources = {"kernel": "gemm", "dispatch": 1, "resources": [{"xcc_0": [{"se_0": [{"cu_0": ["(0,0,0)"]}]}]}]}
    path = omniprobe.json_lines(tmp_path / "blocks.json", [resources, *made])
    with rocpd.connect([path, trace(tmp_path / "a.db")]) as session:
        columns = "kernel source executions ticks percent time_ns idle_lanes_percent instructions dispatches"
        rows = cells(session, "basic-blocks", columns)

    def of(each: dict[str, Any]) -> str:
        return KERNELS[ORDER[each["dispatch_id"] - 1]]

    for kernel, source, *values in rows:
        start = int(source.rpartition(":")[2].partition("-")[0])
        group = [each for each in made if of(each) == kernel and each["block_start_line"] == start]
        share = sum(e["block_duration"] for e in group) / sum(e["block_duration"] for e in made if of(e) == kernel)
        count = sum(each["block_count"] for each in group)
        idle = sum(each["block_branchiness"] * each["block_count"] for each in group) / count
        assert values == [
            count, sum(e["block_duration"] for e in group), pytest.approx(100 * share),
            round(share * kernel_time(kernel, 1)), pytest.approx(100 * idle), "3 v_add_f32, 3 v_mul_f32, 1 s_cbranch",
            len(group),
        ]  # fmt: skip
    assert len(rows) == 2 * len(KERNELS)


def test_basic_blocks_as_csv(tmp_path: Path) -> None:
    text = "\n".join((
        "Kernel: foo(int, float) [clone .kd]", "Dispatch: 4", "Branchiness: 0.5",
        "Start Line, End Line, Duration, FileName, Branchiness, Overhead, Count",
        "3, 9, 1200, /src/a,b.cpp, 0.25, 0.75, 8", "10, 12, 400, /src/a.cpp, 0, 0.25, 8", "13, 14, nan",
    ))  # fmt: skip
    with rocpd.connect(written(tmp_path, text)) as session:
        assert cells(session, "basic-blocks", "kernel source ticks percent idle_lanes_percent executions") == [
            ("foo(int, float)", "/src/a,b.cpp:3-9", 1200, 75.0, 25.0, 8),
            ("foo(int, float)", "/src/a.cpp:10-12", 400, 25.0, 0.0, 8),
        ]


def test_a_log_of_logduration_holds_the_kernels_of_the_trace(tmp_path: Path, cli: Cli) -> None:
    """What `op-trace --format logduration` writes is read back, names with quotes and commas too."""
    run = trace(tmp_path / "a.db")
    log = written(tmp_path, cli("summary", "op-trace", run, "--format", "logduration").out)
    select = "SELECT name, start, end FROM kernels ORDER BY start"
    with rocpd.connect(run) as session, rocpd.connect(log) as other:
        rows = session.sql(select).fetchall()
        assert other.sql(select).fetchall() == rows
        launches = other.sql("SELECT json_extract(extdata, '$.launch_ns') FROM rocpd_event ORDER BY 1").fetchall()
        assert launches == [(start,) for _, start, _ in rows]
    log.write_text(log.read_text()[:-9] + '\nnoise\n"a",1,2\n"b",1,-5,7\n')
    assert "4 lines that say no kernel" in cli("import", log, "-d", tmp_path / "out").err
    with rocpd.connect(log) as other:
        assert len(other.sql(select).fetchall()) == len(rows) - 1


def test_without_data_it_is_said_what_measures_it(tmp_path: Path, cli: Cli) -> None:
    run = trace(tmp_path / "a.db")
    for name, handler in (("memory-access", "MemoryAnalysis"), ("basic-blocks", "BasicBlockAnalysis")):
        said = cli("summary", name, run)
        assert said.code == 1
        assert f"omniprobe -i -a {handler}" in said.err


def test_kernels_that_no_trace_has_are_noted(tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path, omniprobe.memory_analysis(omniprobe.accesses(1)))
    said = cli("summary", "memory-access", path)
    assert "open a trace of the same program with it" in said.err
    assert said.code == 0


def test_blocks_in_which_an_output_is_read_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, omniprobe.memory_analysis(omniprobe.accesses(9)))
    rows = accesses_of(path)
    for size in (40, 333, 1500):
        monkeypatch.setattr("rocpd.importers.omniprobe._BLOCK", size)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / str(size)))
        assert accesses_of(path) == rows


# --- damage


@pytest.mark.parametrize("seed", range(10))
def test_a_cut_output_keeps_its_whole_dispatches(seed: int, tmp_path: Path) -> None:
    made = omniprobe.accesses(seed)
    text = omniprobe.memory_analysis(made)
    end = 40 + seed * (len(text) - 40) // 10
    path = written(tmp_path, text[:end])
    starts = [at for at in range(len(text)) if text.startswith('{\n  "kernel_analysis"', at)]
    whole = sum(after is not None and after <= end for after in [*(text.find("\n}", at) + 2 for at in starts)])
    if whole:
        with rocpd.connect(path) as session:
            assert session.sql("SELECT COUNT(DISTINCT dispatch_id) FROM memory_accesses").fetchall() == [(whole,)]
    else:
        with pytest.raises(InputError) as error:
            rocpd.connect(path)
        assert str(path) in error.value.message


def test_counts_that_are_none_are_null(tmp_path: Path) -> None:
    text = omniprobe.memory_analysis(omniprobe.accesses(2))
    for old, new in (('"ir_bytes": 4', '"ir_bytes": NaN'), ('"isa_bytes": 16', '"isa_bytes": -16'), (
        '"column": 7', '"column": 1e999'), ('"cache_line_size": 128', f'"cache_line_size": {1 << 90}')):  # fmt: skip
        text = text.replace(old, new)
    with rocpd.connect(written(tmp_path, text)) as session:
        rows = session.sql("SELECT ir_bytes, isa_bytes, line_size FROM memory_accesses").fetchall()
        assert set(rows) == {(None, None, None)}
        assert {row[0] for row in session.sql("SELECT source_column FROM memory_accesses").fetchall()} == {None, 3}
        assert len(session.summary("memory-access").fetchall()) == 9


HOSTILE = (
    '{"kernel_analysis": 5}', '{"kernel_analysis": {"kernel_info": {"name": 5, "dispatch_id": "x"}}}',
    '{"kernel_analysis": {"kernel_info": [' + "[" * 5000, '[\n{"kernel_analysis": {"kernel_info"',
    "=== L2 cache line use report ===\ngemm.cpp:3:5\n", "ADDRESS_MESSAGE,timestamp,kernel\nADDRESS_MESSAGE,x,y\n",
    'memory heatmap report(k[x])\npage[0xzz:1] 5 accesses\n', "kernel,dispatch,startNs,endNs\nx\n",
    '{"kernel": "a", "block_start_line": 1}', "Start Line, End Line, Duration, FileName\n1,2,3,4,5,6,7\n",
)  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_what_cannot_be_read_is_one_error(text: str, tmp_path: Path, cli: Cli) -> None:
    path = written(tmp_path, text)
    said = cli("summary", "memory-access", path)
    assert said.code != 0
    assert said.err.startswith(f"rocpd: error: {path}: ")
    assert "Traceback" not in said.err
    assert "hint: " in said.err


def test_a_csv_of_another_kind_is_not_taken_for_one(tmp_path: Path) -> None:
    with pytest.raises(RocpdError):
        rocpd.connect(written(tmp_path, "kernel,dispatch,time\n1,2,3\n"))


def test_sql_numbers_the_dispatches_of_a_kernel(tmp_path: Path) -> None:
    path = omniprobe.json_lines(tmp_path / "blocks.json", reversed(omniprobe.blocks(1)))
    with rocpd.connect(path) as session:
        rows = session.sql("SELECT DISTINCT dispatch_id, kernel, ordinal FROM basic_blocks ORDER BY 1").fetchall()
        mnemonics = session.sql("SELECT instructions FROM basic_blocks LIMIT 1").fetchall()
    assert rows == dispatches()
    assert json.loads(mnemonics[0][0])["v_add_f32"] == 3


@pytest.mark.parametrize("block", [7, 64, 1 << 20])
def test_objects_are_read_in_blocks_of_any_size(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A character may lie in two blocks, an object in many; one that never ends is given up."""
    monkeypatch.setattr("rocpd.importers.omniprobe._BLOCK", block)
    monkeypatch.setattr("rocpd.importers.omniprobe._MOST", 200)
    good = [json.dumps({"k": f"größe→{number}", "n": number}, ensure_ascii=False) for number in range(40)]
    text = "noise\n".join([*good[:20], '{"k": "' + "x" * 500, *good[20:]])
    read = list(objects(io.BytesIO(text.encode()), "k"))
    assert [record for record in read if record] == [json.loads(each) for each in good]
    assert read.count(None) == 1


@pytest.mark.parametrize("member", ["kernel", "kernel_name"])
def test_a_file_of_many_starts_is_looked_at_quickly(member: str, tmp_path: Path) -> None:
    start = time.process_time()
    with pytest.raises(InputError):
        rocpd.connect(written(tmp_path, f'{{"{member}":' * 100_000))
    assert time.process_time() - start < 5
