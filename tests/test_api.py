"""What Python offers: verbs of a session, what is shown at a prompt and in a notebook."""

from __future__ import annotations

import inspect
import traceback
from pathlib import Path

import polars
import pytest

import rocpd
from rocpd.base import UsageError
from rocpd.summary.registry import SUMMARIES
from tests.build import TraceBuilder
from tests.conftest import OpenJob


@pytest.fixture
def session(open_job: OpenJob) -> rocpd.Session:
    return open_job(*(TraceBuilder(n, pid=10 + n).kernel("gemm", 1000, 1250 + n).region("f", 1, 2) for n in range(2)))


def test_a_session_shows_its_ranks(session: rocpd.Session) -> None:
    lines = repr(session).splitlines()
    assert lines[0].split() == ["rank", "host", "pid", "command", "file"]
    assert lines[2].split()[:3] == ["0", "node0", "10"]
    assert len(lines) == 4
    assert "<td>node0</td>" in session._repr_html_()


def test_a_result_shows_its_first_rows_and_keeps_them(session: rocpd.Session) -> None:
    result = session.sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60) SELECT i FROM n")
    assert repr(result).splitlines()[2:4] == [" 1", " 2"]
    assert repr(result).endswith("the first 10 rows; .show(0) writes all, .df() has all")
    assert "<p>the first 50 rows; .df() has all</p>" in result._repr_html_()
    assert [i for (i,) in result] == list(range(1, 61))


def test_a_closed_session_still_has_a_repr(session: rocpd.Session) -> None:
    result = session.sql("SELECT name FROM kernels")
    session.close()
    assert repr(result) == "<Result columns=['name']: the session is closed>"
    assert "node0" in repr(session)


def test_a_summary_shows_units(session: rocpd.Session) -> None:
    summary = session.summary("kernels")
    assert [cell.strip() for cell in repr(summary).splitlines()[2].split("  ") if cell.strip()][:3] == [
        "gemm",
        "2",
        "501 ns",
    ]
    assert '<td class="n">501 ns</td>' in summary._repr_html_()
    assert summary.fetchall()[0][:3] == ("gemm", 2, 501)


def test_data_frames(session: rocpd.Session) -> None:
    result = session.sql("SELECT rank, duration FROM kernels ORDER BY rank")
    assert isinstance(result.polars(), polars.DataFrame)
    assert result.polars().rows() == result.arrow().to_pandas().to_records(index=False).tolist() == [(0, 250), (1, 251)]


def test_a_merged_file_lies_where_it_was_asked_for(session: rocpd.Session, tmp_path: Path) -> None:
    path = session.where(rocpd.Filters(ranks="1")).merge(tmp_path / "one.db")
    assert path == tmp_path / "one.db"
    with rocpd.connect(path) as merged:
        assert merged.sql("SELECT rank, name, duration FROM kernels").fetchall() == [(0, "gemm", 251)]


@pytest.mark.parametrize(
    ("form", "path", "written"),
    [
        ("pftrace", "sub/x.pftrace", "sub/x.pftrace"),
        ("json", "x", "x.json"),
        ("pftrace", "x.pftrace.gz", "x.pftrace.gz"),
    ],
)
def test_outputs_lie_where_they_were_asked_for(
    form: str, path: str, written: str, session: rocpd.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROCPD_OUTPUT_PATH", str(tmp_path / "elsewhere"))
    assert session.convert(form, path) == (Path(written),)
    assert Path(written).stat().st_size > 100
    with pytest.raises(rocpd.OutputError, match="exists"):
        session.convert(form, path)
    assert session.convert(form, path, force=True) == (Path(written),)


def test_a_format_refuses_what_it_does_not_read(session: rocpd.Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--stats concerns none of pftrace"):
        session.convert("pftrace", tmp_path / "x.pftrace", stats=True)
    with pytest.raises(UsageError, match="split day: unknown"):
        session.convert("csv", tmp_path / "x", split="day")
    with pytest.raises(UsageError, match="format chrome: unknown"):
        session.convert("chrome", tmp_path / "x")
    with pytest.raises(UsageError, match="csv has no option least_us") as error:
        session.convert("csv", tmp_path / "x", least_us=3)
    assert error.value.hint == "it has agent_index_value, kernel_rename, split, gzip, stats, amd_version, with_rank"
    with pytest.raises(UsageError, match="gzip 'yes': not of type bool"):
        session.convert("csv", tmp_path / "x", gzip="yes")
    session.convert("csv", tmp_path / "x", annotate_args=True)
    assert "without effect on csv: --annotate-args" in session.notes


def test_an_analysis_refuses_what_it_does_not_read(session: rocpd.Session) -> None:
    with pytest.raises(UsageError, match="kernels has no option top") as error:
        session.summary("kernels", top=3)
    assert error.value.hint == "it has step_marker, each_agent"
    with pytest.raises(UsageError, match="gpu-time has no option bins") as error:
        session.summary("gaps", bins=3)
    assert error.value.hint == "it has categories, top, step_marker, everything"


def test_help_lists_the_options_of_the_rows() -> None:
    analyses, formats = inspect.getdoc(rocpd.Session.summary) or "", inspect.getdoc(rocpd.Session.convert) or ""
    top = "top: How many of the largest gaps, or slowest copies, to list. [copy-sizes, gpu-time] (default: 20)"
    assert f"\n    {top}\n" in analyses
    assert "\n    stats: Also write rocprofv3's statistics files. [csv]\n" in formats


def test_a_job_is_simulated_in_one_call(tmp_path: Path) -> None:
    files = rocpd.simulate(tmp_path / "job", ranks=2, steps=1, seed=5)
    assert [path.name for path in files] == ["rank0.db", "rank1.db"]
    with rocpd.connect(files) as job:
        assert len(job.ranks) == 2
    assert callable(rocpd.simulator.simulate)  # no module of that name takes its place


def test_info_is_tables_by_name(session: rocpd.Session) -> None:
    info = session.info()
    assert list(info)[:4] == ["job", "ranks", "agents", "tables"]
    assert ("rocpd_kernel_dispatch", 2) in info["tables"].fetchall()
    assert repr(info).startswith("JOB\n")
    assert info._repr_html_().startswith("<h4>job</h4>")


def test_analyses_are_listed(session: rocpd.Session) -> None:
    assert [row[0] for row in rocpd.analyses()][: len(SUMMARIES)] == list(SUMMARIES)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"by": "day"}, "by day: unknown"), ({"kernel_names": "loud"}, "kernel_names loud: unknown")],
)
def test_summaries_refuse_unknown_words(options: dict[str, str], message: str, session: rocpd.Session) -> None:
    with pytest.raises(UsageError, match=message):
        session.summary("kernels", **options)


def test_a_prompt_is_not_flooded(session: rocpd.Session) -> None:
    assert all(len(repr(rank)) < 200 for rank in session.ranks)
    long = session.sql("SELECT 'a' || hex(zeroblob(1000)) || column1 AS name, 1 AS x FROM (VALUES (1), (2))")
    head, _, *rows = repr(long).splitlines()
    assert max(map(len, rows)) < 80
    assert len(set(rows)) == 2
    assert [row.split()[1] for row in rows] == ["1", "1"]
    assert head.split() == ["name", "x"]


def test_hints_stand_in_tracebacks(session: rocpd.Session) -> None:
    with pytest.raises(rocpd.QueryError) as error:
        session.sql("SELECT * FROM kernals")
    assert "hint: `rocpd schema` lists" in "".join(traceback.format_exception(error.value))
