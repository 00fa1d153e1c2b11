"""A simulated job: valid, complete, the same for the same options, and never over someone else's files."""

from __future__ import annotations

import dataclasses
import resource
from pathlib import Path

import pytest

from rocpd.base import OutputError, UsageError
from rocpd.schema.render import views_over
from rocpd.schema.versions import VERSIONS
from rocpd.schema.write import tables_of
from rocpd.simulator import PROFILES, JobOptions, plan, simulate
from tests.conftest import Shell
from tests.simulator.jobs import digests, read, rows

STORED = views_over(tables_of(VERSIONS[-1]))


@pytest.mark.parametrize("profile", PROFILES)
def test_same_options_give_the_same_rows(profile: str, tmp_path: Path) -> None:
    jobs = [simulate(JobOptions(tmp_path / n, ranks=2, nodes=2, steps=3, profile=profile)) for n in ("a", "b")]
    first, again = ([digests(read(path)) for path in job] for job in jobs)
    assert first == again
    assert not set(first[0]) & set(first[1]) - {"sqlite_sequence", "sqlite_master"}


def test_another_seed_gives_other_rows(tmp_path: Path) -> None:
    paths = [simulate(JobOptions(tmp_path / str(seed), ranks=1, steps=2, seed=seed))[0] for seed in (1, 2)]
    assert rows(read(paths[0]), "SELECT * FROM rocpd_region") != rows(read(paths[1]), "SELECT * FROM rocpd_region")


@pytest.mark.parametrize("profile", PROFILES)
def test_default_job_is_valid_and_fills_every_view(profile: str, tmp_path: Path, sqlite3_shell: Shell) -> None:
    for path in simulate(JobOptions(tmp_path, profile=profile)):
        connection = read(path)
        assert connection.pragma("integrity_check") == "ok"
        assert rows(connection, "PRAGMA foreign_key_check") == []
        counts = ", ".join(f"(SELECT COUNT(*) FROM {view})" for view in STORED)
        shown = sqlite3_shell(path, f"SELECT {counts}").strip().split("|")
        assert {view: n for view, n in zip(STORED, shown, strict=True) if n == "0"} == {}


def test_smallest_job_fills_every_view(tmp_path: Path) -> None:
    connection = read(simulate(JobOptions(tmp_path, ranks=1, steps=1))[0])
    assert [view for view in STORED if not rows(connection, f"SELECT 1 FROM {view} LIMIT 1")] == []


def test_a_job_of_which_no_call_is_recorded_has_kernels_and_markers(tmp_path: Path) -> None:
    (path,) = simulate(JobOptions(tmp_path, ranks=1, steps=1, rccl="none", plant="no-hip-trace"))
    connection = read(path)
    filled = [bool(rows(connection, f"SELECT 1 FROM {view}")) for view in ("rocpd_arg", "kernels", "regions")]
    assert filled == [False, True, True]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_schema_version(version: str, tmp_path: Path) -> None:
    connection = read(simulate(JobOptions(tmp_path, ranks=1, steps=2, version=version))[0])
    assert rows(connection, "PRAGMA foreign_key_check") == []
    for table, columns in tables_of(version).items():
        cursor = connection.cursor().execute(f"SELECT * FROM {table}")
        assert tuple(c[0] for c in cursor.get_description()) == columns


@pytest.mark.parametrize(("profile", "wanted"), [("llm", 4000), ("gemm", 9000), ("hpc", 6000)])
def test_events_per_rank_sets_the_size(profile: str, wanted: int, tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=1, profile=profile, events_per_rank=wanted)
    connection = read(simulate(options)[0])
    (events,) = rows(connection, "SELECT (SELECT COUNT(*) FROM rocpd_region) + (SELECT COUNT(*) FROM kernels)")[0]
    assert events == pytest.approx(wanted, rel=0.06)


def test_file_names_and_progress(tmp_path: Path) -> None:
    progress: list[tuple[int, int]] = []
    paths = simulate(JobOptions(tmp_path, ranks=11, steps=1, profile="gemm"), lambda *done: progress.append(done))
    assert [path.name for path in paths] == [f"rank{rank:02d}.db" for rank in range(11)]
    assert progress == [(rank, 11) for rank in range(1, 12)]
    assert sorted(tmp_path.iterdir()) == list(paths)


def test_identity_follows_the_plan(tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=4, nodes=2, steps=1, profile="gemm")
    job = plan(options)
    identities = []
    for path in simulate(options):
        sql = (
            "SELECT P.guid, pid, P.hostname, Q.environment ->> 'OMPI_COMM_WORLD_RANK', "
            "Q.environment ->> 'OMPI_COMM_WORLD_LOCAL_RANK' FROM processes P JOIN rocpd_info_process Q USING (pid)"
        )
        identities += rows(read(path), sql)
    expected = [(p.guid, p.pid, job.nodes[p.node].hostname, str(p.number), str(p.local_rank)) for p in job.ranks]
    assert identities == expected
    assert len({guid for guid, *_ in identities}) == 4
    assert identities[0][1] == identities[2][1] != identities[1][1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"ranks": 0}, "ranks: 0"),
        ({"nodes": 0}, "nodes: 0"),
        ({"nodes": 5}, "5 nodes for 4 ranks"),
        ({"steps": 0}, "steps: 0"),
        ({"events_per_rank": 0}, "events per rank: 0"),
        ({"seed": -1}, "seed -1"),
        ({"profile": "mpi"}, "profile mpi"),
        ({"version": "2.0"}, "schema version 2.0"),
        ({"faults": True, "kineto": Path("traces")}, "kineto: it would be read from damaged files"),
    ],
)
def test_impossible_options_are_refused(change: dict[str, object], words: str, tmp_path: Path) -> None:
    options = dataclasses.replace(JobOptions(tmp_path / "new"), **change)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=words) as caught:
        simulate(options)
    assert caught.value.hint
    assert not (tmp_path / "new").exists()


def test_existing_files_are_kept_without_force(tmp_path: Path) -> None:
    options = JobOptions(tmp_path, ranks=2, steps=1)
    (tmp_path / "rank1.db").write_text("mine")
    with pytest.raises(OutputError, match=r"rank1\.db: exists"):
        simulate(options)
    assert [path.name for path in tmp_path.iterdir()] == ["rank1.db"]
    simulate(dataclasses.replace(options, force=True))
    assert rows(read(tmp_path / "rank1.db"), "SELECT COUNT(*) FROM processes") == [(1,)]


def test_output_below_a_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be written"):
        simulate(JobOptions(tmp_path / "file", ranks=1, steps=1))


def test_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, before[1]))
    try:
        with pytest.raises(OutputError, match=r"rank0\.db: cannot be written"):
            simulate(JobOptions(tmp_path / "new", ranks=1, events_per_rank=30_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not (tmp_path / "new").exists()


def test_leftovers_of_another_job(tmp_path: Path) -> None:
    simulate(JobOptions(tmp_path, ranks=4, steps=1, faults=True))
    with pytest.raises(OutputError, match=r"holds rank2\.db of another job"):
        simulate(JobOptions(tmp_path, ranks=2, steps=1, force=True))
    paths = simulate(JobOptions(tmp_path, ranks=4, steps=1, force=True))
    assert sorted(tmp_path.iterdir()) == list(paths)
    assert [read(path).pragma("integrity_check") for path in paths] == ["ok"] * 4
