"""The view texts that a real file stores, on files of ours that hold everything: copies, samples, counters …"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.schema.versions import VERSIONS, suffix_of
from tests.build import CPU, GPU, GPU2, TraceBuilder
from tests.real.rows import STORED, multiset, select, stored

AGENT_OF_COPY = f"CASE WHEN dst_agent_id IN ({GPU}, {GPU2}) THEN dst_agent_id ELSE src_agent_id END"
"""A copy belongs to the GPU that it reaches, else to the one that it leaves; the stored `busy` has the destination."""


def everything(number: int = 0) -> TraceBuilder:
    """Several rows of every kind, each reference found, as the stored views need it."""
    trace = TraceBuilder(number, pid=40 + number)
    for step in range(6):
        begin, stack = 1000 * (step + 1), 10 * step + 1
        trace.region("roctxRangePushA", begin, begin + 900, message=f"step {step % 2}", tid=50 + step % 2, stack=stack)
        trace.region("hipLaunchKernel", begin + 10, begin + 30, stack=stack + 1, parent=stack, correlation=step)
        trace.arg("function_address", "0x208ac0").arg("stream", "0x7", extdata='{"stream_id":7}').arg("empty", None)
        shape = {"stream": 7 * (step % 2), "queue": 1 + step % 2, "grid": (1024, 2, step + 1), "workgroup": (64, 2, 1)}
        trace.kernel(f"gemm<{step % 3}>", begin + 50, begin + 60 + step, agent=1 + step % 2, stack=stack + 1, **shape)  # type: ignore[arg-type]
        trace.counter("SQ_WAVES", 1.5 * step).counter("SQ_WAVES", 2.0).counter("GRBM_COUNT", 7, units="cycles")
        trace.copy(begin + 100, begin + 150, size=1 << step, dst=GPU2, region="copying", stack=stack + 3)
        trace.copy(begin + 160, begin + 170, name="MEMORY_COPY_DEVICE_TO_HOST", src=GPU, dst=CPU, stream=7)
        trace.alloc(begin + 200, begin + 210, size=100 + step).alloc(begin + 220, begin + 230, kind="FREE", size=0)
        trace.alloc(begin + 240, begin + 250, level="SCRATCH", agent=GPU2, address=0, queue=2)
        trace.sample("roctxMarkA", begin + 5, message=f"mark {step}").counter("load", step, units="%")
    return trace


def with_texts_of(real: Path, path: Path, trace: TraceBuilder, version: str) -> Path:
    """Make a file of ours whose views are those that `real` stores."""
    with stored(real) as source:
        ((suffix,),) = source.execute("SELECT value FROM rocpd_metadata WHERE tag = 'uuid'").fetchall()
        views = source.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall()
    connection = apsw.Connection(str(trace.write(path, version)))
    with connection:
        for _, text in views:
            text = str(text).replace("dst_agent_id AS agent_id", f"{AGENT_OF_COPY} AS agent_id")  # in `busy`
            connection.execute(text.replace(str(suffix), suffix_of(trace.guid)))
    connection.close()
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_stored_texts_agree_with_ours_on_everything(version: str, real_files: tuple[Path, ...], tmp_path: Path) -> None:
    check(STORED, everything(), version, real_files[0], tmp_path)


def test_stored_row_views_agree_on_invalid_times(real_files: tuple[Path, ...], tmp_path: Path) -> None:
    """Those that add times up count such rows as time in AMD's texts, as calls alone in ours."""
    damaged = everything().kernel("relu", 20, 10).region("hipFree", 0, 0)
    check(
        [name for name in STORED if name not in ("busy", "top", "top_kernels")],
        damaged,
        "3.0.3",
        real_files[0],
        tmp_path,
    )


def check(names: Iterable[str], trace: TraceBuilder, version: str, real: Path, folder: Path) -> None:
    """Check that ours, queried and as stored, give the rows of AMD's texts."""
    theirs = with_texts_of(real, folder / "theirs.db", trace, version)
    ours = trace.write(folder / "ours.db", version, views=True)
    with rocpd.connect(ours) as session, stored(theirs) as amds, stored(ours) as written:
        for name in names:
            # A counter value of a sample has no dispatch: the stored view drops it, ours keeps it.
            where = " WHERE dispatch_id IS NOT NULL" if name == "pmc_events" else ""
            expected = multiset(amds.execute(select(name)))
            assert expected, f"{name}: nothing to compare"
            assert multiset(session.sql(select(name) + where)) == expected, name
            assert multiset(written.execute(select(name) + where)) == expected, f"{name} as our writer stores it"


def test_the_average_differs_by_its_fraction(real_files: tuple[Path, ...], tmp_path: Path) -> None:
    trace = TraceBuilder().kernel("gemm", 1, 2).kernel("gemm", 1, 3)
    theirs = with_texts_of(real_files[0], tmp_path / "theirs.db", trace, "3.0.0")
    with rocpd.connect(theirs) as session, stored(theirs) as amds:
        for name in ("top", "top_kernels"):
            assert amds.execute(f"SELECT average FROM {name}").fetchall() == [(0.001,)]
            assert session.sql(f"SELECT average FROM {name}").fetchall() == [(0.0015,)]


def test_counter_values_of_samples_are_kept(tmp_path: Path) -> None:
    with rocpd.connect(everything().write(tmp_path / "a.db", views=True)) as session:
        counts = "SELECT count(*), count(dispatch_id) FROM pmc_events"
        assert session.sql(counts).fetchall() == [(24, 18)]


def test_a_file_with_foreign_views_answers_with_ours(real_files: tuple[Path, ...], tmp_path: Path) -> None:
    paths = [with_texts_of(real_files[0], tmp_path / f"{n}.db", everything(n), "3.0.0") for n in range(2)]
    with rocpd.connect(paths) as session:
        for name in ("threads", "memory_allocations", "kernels"):
            counts = [stored_count(path, name) for path in paths]
            assert session.sql(f"SELECT count(*) FROM {name}").fetchall() == [(sum(counts),)]


def stored_count(path: Path, name: str) -> int:
    with stored(path) as amds:
        return len(amds.execute(f"SELECT * FROM {name}").fetchall())
