"""What is in a file, and which rank is which."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import ForeignError, InputError
from rocpd.federate.open.identify import MPI_VARIABLES, identify, numbered, without_duplicates
from rocpd.federate.open.opening import opening_of
from rocpd.schema.load import VIEWS
from rocpd.schema.versions import VERSIONS, suffix_of
from rocpd.schema.write import Writer
from tests.build import TraceBuilder, guid_of
from tests.conftest import OpenJob

UUID = suffix_of(guid_of(0))
OTHER = suffix_of(guid_of(9))


def merged(path: Path, *builders: TraceBuilder) -> Path:
    """Make one file that holds the tables of several ranks."""
    connection = apsw.Connection(str(path))
    for builder in builders:
        writer = Writer(connection, builder.guid, "3.0.3")
        writer.create_tables()
        builder.write_into(writer)
    connection.close()
    return path


def sqlite_file(path: Path, *statements: str) -> Path:
    connection = apsw.Connection(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


# Numbering.


@pytest.mark.parametrize("variable", MPI_VARIABLES)
def test_ranks_are_mpi_ranks(variable: str, open_job: OpenJob) -> None:
    session = open_job(*(TraceBuilder(n, environment={variable: str(3 - n), "PATH": "/bin"}) for n in range(3)))
    assert [(rank.number, rank.guid) for rank in session.ranks] == [(1, guid_of(2)), (2, guid_of(1)), (3, guid_of(0))]
    assert session.sql("SELECT rank, guid FROM processes ORDER BY rank").fetchall() == [
        (rank.number, rank.guid) for rank in session.ranks
    ]


@pytest.mark.parametrize(
    ("environments", "expected"),
    [
        ([{}, {}, {}], [0, 1, 2]),
        ([{"PMI_RANK": "1"}, {"PMI_RANK": "0"}, {}], [0, 1, 2]),
        ([{"PMI_RANK": "1"}, {"PMI_RANK": "1"}, {"PMI_RANK": "0"}], [0, 1, 2]),
        ([{"PMI_RANK": "-1"}, {"PMI_RANK": "x"}, {"PMI_RANK": ""}], [0, 1, 2]),
        ([{"PMI_RANK": "2"}, {"OMPI_COMM_WORLD_RANK": "1"}, {"SLURM_PROCID": "0"}], [2, 1, 0]),
        ([{"SLURM_PROCID": "0", "PMI_RANK": "2"}, {"PMI_RANK": "1"}, {"PMI_RANK": "0"}], [2, 1, 0]),
    ],
)
def test_mpi_ranks_count_only_when_all_have_distinct_ones(
    environments: list[Mapping[str, str]], expected: list[int], open_job: OpenJob
) -> None:
    session = open_job(*(TraceBuilder(n, environment=environment) for n, environment in enumerate(environments)))
    assert {rank.guid: rank.number for rank in session.ranks} == {guid_of(n): rank for n, rank in enumerate(expected)}


def process(number: int, rank: int | None, pid: int, parent: int, start: int = 1, machine: str = "m") -> TraceBuilder:
    extdata = {} if rank is None else {"mpi_rank": rank}
    return TraceBuilder(number, pid=pid, parent=parent, machine=machine, life=(start, 900), extdata=extdata)


LAUNCHER, FIRST, SECOND = process(0, None, 10, 1), process(1, 0, 11, 10), process(2, 1, 12, 10)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ([LAUNCHER, FIRST, SECOND], [2, 0, 1]),
        ([LAUNCHER, FIRST, SECOND, process(3, None, 13, 10)], [2, 0, 1, 3]),  # what the launcher started besides
        ([LAUNCHER, FIRST, SECOND, process(3, None, 13, 99)], [0, 1, 2, 3]),  # what nobody knows
        ([FIRST, SECOND, process(3, 0, 13, 11), process(4, 1, 14, 12)], [0, 1, 2, 3]),
        ([process(1, 0, 21, 10), SECOND, process(3, 0, 13, 21)], [0, 1, 2]),  # pids start again
        ([process(1, 0, 21, 10), SECOND, process(3, 0, 13, 20, start=5)], [0, 1, 2]),  # its parent records nothing
        ([process(1, 0, 21, 10), SECOND, process(3, 0, 13, 20)], [2, 0, 1]),  # nobody knows which was first
        ([process(1, 0, 21, 10), SECOND, process(3, 0, 13, 20, start=5, machine="n")], [2, 0, 1]),
        ([process(1, 3, 11, 10), process(2, 2, 12, 10), LAUNCHER], [3, 2, 4]),
        ([process(1, 0, 5, 6), process(2, 0, 6, 5)], [0, 1]),
    ],
)
def test_launchers_and_what_ranks_start_follow_the_ranks(
    job: list[TraceBuilder], expected: list[int], open_job: OpenJob
) -> None:
    for order in (job, job[::-1]):
        numbers = {rank.guid: rank.number for rank in open_job(*order).ranks}
        assert [numbers[each.guid] for each in job] == expected


def test_one_machine_id_of_several_boots_is_several_machines(open_job: OpenJob) -> None:
    """The image of a container may bring its machine id to every node that runs it."""
    boots = enumerate(["a", "a", "b", None])
    job = [TraceBuilder(n, machine="image", extdata={"boot_id": boot}).kernel("k", 5, 9) for n, boot in boots]
    with_all, with_one = open_job(*job), open_job(*job[:2])
    assert [rank.machine_id for rank in with_all.ranks] == ["image/a", "image/a", "image/b", "image"]
    assert [rank.machine_id for rank in with_one.ranks] == ["image", "image"]
    assert [row[-3] for row in with_all.info()["ranks"]] == [0, 0, 1, 2]


def test_one_pid_in_two_namespaces_is_two_processes(open_job: OpenJob) -> None:
    for namespaces, problems in (((1, 1), 1), ((1, 2), 0)):
        of_each = [{"pid_namespace": namespace} for namespace in namespaces]
        session = open_job(*(TraceBuilder(n, extdata=each).kernel("k", 5, 9) for n, each in enumerate(of_each)))
        assert ["same host and pid" in text for _, text in session.info()["problems"]].count(True) == problems


def test_extdata_of_the_process_comes_before_its_environment(open_job: OpenJob) -> None:
    session = open_job(
        TraceBuilder(0, extdata={"mpi_rank": 1, "mpi_size": 2}, environment={"PMI_RANK": "0"}),
        TraceBuilder(1, extdata={"mpi_rank": 0, "mpi_size": 2}, environment={"PMI_RANK": "1"}),
    )
    assert [(rank.number, rank.guid, rank.mpi_rank) for rank in session.ranks] == [
        (0, guid_of(1), 0),
        (1, guid_of(0), 1),
    ]


def test_else_order_of_host_pid_and_guid(open_job: OpenJob) -> None:
    builders = [
        TraceBuilder(4, host="a", pid=9),
        TraceBuilder(3, host="a", pid=10),
        TraceBuilder(0, host="b", pid=1),
        TraceBuilder(1, host="b", pid=2),
        TraceBuilder(2, host="b", pid=2),
    ]
    for order in itertools.islice(itertools.permutations(builders), 0, None, 31):
        session = open_job(*order)
        assert [rank.guid for rank in session.ranks] == [builder.guid for builder in builders]
        assert [rank.number for rank in session.ranks] == [0, 1, 2, 3, 4]


def test_what_a_rank_knows_of_itself(tmp_path: Path) -> None:
    trace = TraceBuilder(5, host="n1", pid=42, machine="m", command="/usr/bin/my app", environment={"PMI_RANK": "7"})
    path = trace.write(tmp_path / "a.db", "3.0.1")
    (rank,) = numbered(identify(opening_of(path)))
    assert (rank.guid, rank.suffix, rank.version) == (guid_of(5), suffix_of(guid_of(5)), "3.0.1")
    assert (rank.hostname, rank.machine_id, rank.pid, rank.command) == ("n1", "m", 42, "/usr/bin/my app")
    assert (rank.mpi_rank, rank.opening.path) == (7, path)
    assert rank.label == "rank 7 · n1 · /usr/bin/my (42)"
    assert "graph_exec_id" not in rank.tables["rocpd_kernel_dispatch"]
    assert "rocpd_graph_launch" not in rank.tables


# The same GUID twice.


def test_a_guid_given_twice_counts_once_with_a_note(tmp_path: Path) -> None:
    first, second = (TraceBuilder(n).kernel("gemm", 1, 2 + n).write(tmp_path / f"{n}.db", views=True) for n in (0, 1))
    both = merged(tmp_path / "merged.db", *(TraceBuilder(n).kernel("gemm", 1, 2 + n) for n in (0, 1)))
    (tmp_path / "copy.db").write_bytes(first.read_bytes())
    notes: list[str] = []
    with rocpd.connect([first, tmp_path / "copy.db", second, both], on_note=notes.append) as session:
        assert session.sql("SELECT guid, duration FROM kernels").fetchall() == [(guid_of(0), 1), (guid_of(1), 2)]
        assert notes == session.notes
        assert notes == [
            f"{tmp_path}/copy.db: GUID {guid_of(0)} counts once, it is also in {first}",
            f"{both}: GUID {guid_of(0)} counts once, it is also in {first}",
            f"{both}: GUID {guid_of(1)} counts once, it is also in {second}",
        ]


def test_the_first_rank_of_a_guid_is_kept(tmp_path: Path) -> None:
    ranks = [rank for name in "ab" for rank in identify(opening_of(TraceBuilder().write(tmp_path / f"{name}.db")))]
    remaining, notes = without_duplicates(ranks)
    assert [rank.opening.path.name for rank in remaining] == ["a.db"]
    assert len(notes) == 1


# Merged files, versions, additions.


def test_a_merged_file_holds_several_ranks(tmp_path: Path) -> None:
    path = merged(tmp_path / "m.db", *(TraceBuilder(n, host=f"h{n}").kernel(f"k{n}", 1, 2) for n in range(3)))
    with rocpd.connect(path) as session:
        assert [(r.guid, r.hostname, r.opening.path) for r in session.ranks] == [
            (guid_of(n), f"h{n}", path) for n in range(3)
        ]
        assert session.sql("SELECT rank, hostname, name FROM kernels").fetchall() == [
            (n, f"h{n}", f"k{n}") for n in range(3)
        ]


def test_versions_mix(tmp_path: Path) -> None:
    paths = [
        TraceBuilder(n).kernel("gemm", 1, 2).write(tmp_path / f"{n}.db", v, views=True) for n, v in enumerate(VERSIONS)
    ]
    with rocpd.connect(paths) as session:
        assert [rank.version for rank in session.ranks] == list(VERSIONS)
        for name in VIEWS:
            session.sql(f"SELECT * FROM {name}").fetchall()
        assert session.sql("SELECT rank, graph_exec_id FROM kernels NATURAL JOIN rocpd_kernel_dispatch").fetchall() == [
            (n, None) for n in range(4)
        ]


def test_columns_that_a_file_lacks_are_null(tmp_path: Path) -> None:
    trace = (
        TraceBuilder()
        .kernel("gemm", 1, 2, region="step")
        .sql('ALTER TABLE "rocpd_kernel_dispatch{uuid}" DROP COLUMN "group_segment_size"')
    )
    trace.sql('DROP TABLE "rocpd_info_stream{uuid}"')
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    writer = Writer(connection, trace.guid, "3.0.0")
    writer.create_tables()
    trace.write_into(writer)
    connection.close()
    with rocpd.connect(path) as session:
        row = session.sql("SELECT name, region, lds_size, stream_id, stream FROM kernels").fetchall()
        assert row == [("gemm", "step", None, 0, None)]
        assert session.sql("SELECT group_segment_size FROM rocpd_kernel_dispatch").fetchall() == [(None,)]


def test_added_columns_and_tables_are_carried_along(open_job: OpenJob) -> None:
    tomorrow = (
        TraceBuilder(1).kernel("gemm", 1, 2).sql('ALTER TABLE "rocpd_kernel_dispatch{uuid}" ADD COLUMN replay_pass')
    )
    tomorrow.sql('CREATE TABLE "rocpd_hip_event{uuid}" (id INTEGER PRIMARY KEY, what TEXT)')
    tomorrow.sql("""INSERT INTO "rocpd_hip_event{uuid}" VALUES (1, 'recorded')""")
    tomorrow.sql('UPDATE "rocpd_kernel_dispatch{uuid}" SET replay_pass = 3')
    tomorrow.sql("CREATE TABLE roc_optiq_state (a)").sql('CREATE INDEX roc_optiq_i ON "rocpd_event{uuid}" (stack_id)')
    session = open_job(TraceBuilder(0).kernel("gemm", 1, 2), tomorrow)
    assert session.sql("SELECT guid, replay_pass FROM rocpd_kernel_dispatch").fetchall() == [
        (guid_of(0), None),
        (guid_of(1), 3),
    ]
    assert session.sql("SELECT * FROM rocpd_hip_event").fetchall() == [(1, "recorded")]
    assert "rocpd_hip_event" in session.tables


@pytest.mark.parametrize("strategy", ["attached", "rows"])
def test_added_columns_have_the_order_of_the_job_in_every_rank(strategy: str, open_job: OpenJob) -> None:
    first, second = TraceBuilder(0).kernel("gemm", 1, 2), TraceBuilder(1).kernel("gemm", 1, 2)
    first.sql('ALTER TABLE "rocpd_kernel_dispatch{uuid}" ADD COLUMN a DEFAULT 1')
    for column, value in (("b", 2), ("a", 3)):
        second.sql(f'ALTER TABLE "rocpd_kernel_dispatch{{uuid}}" ADD COLUMN {column} DEFAULT {value}')
    rows = open_job(first, second).execute("SELECT * FROM rocpd_kernel_dispatch", strategy=strategy)
    assert rows.columns[-2:] == ("a", "b")
    assert [row[-2:] for row in rows] == [(1, None), (3, 2)]


def test_a_suffix_need_not_look_like_a_uuid(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    connection = apsw.Connection(str(path))
    for guid in ("mine", "yours"):
        writer = Writer(connection, guid, "3.0.3")
        writer.create_tables()
        TraceBuilder().kernel(guid, 1, 2).write_into(writer)
    connection.close()
    with rocpd.connect(path) as session:
        assert session.sql("SELECT guid, name FROM kernels").fetchall() == [("mine", "mine"), ("yours", "yours")]


# Refusals: one line that names the file and what it is.

RPD = "CREATE TABLE rocpd_api (id)", "CREATE TABLE rocpd_string (id)", "CREATE TABLE rocpd_metadata (tag, value)"
PLAIN_META = "CREATE TABLE rocpd_metadata (id, tag, value)"
META = f"CREATE TABLE rocpd_metadata{UUID} (id, tag, value)"
REGION = f"CREATE TABLE rocpd_region{UUID} (id, start)"


def fact(tag: str, value: str) -> str:
    return f"INSERT INTO rocpd_metadata{UUID} VALUES (1, '{tag}', '{value}')"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        ((f"CREATE TABLE rocpd_timestamp{UUID} (id)", META, REGION), "is a rocpd database of schema 4"),
        ((META, REGION, fact("schema_version", "4.0.0"), fact("uuid", UUID)), "rocpd schema 4.0.0 is not supported"),
        ((META, REGION, fact("schema_version_major", "5")), "rocpd schema 5.0.0 is not supported"),
        ((PLAIN_META, "CREATE TABLE rocpd_region (id)"), "table rocpd_region has no UUID suffix"),
        ((PLAIN_META,), "no table has a UUID suffix, and metadata names none"),
        (
            (META, REGION, fact("uuid", UUID), fact("uuid", "_lost")),
            "metadata names the suffix _lost, but no table has it",
        ),
        (
            (META, REGION, fact("uuid", UUID), fact("uuid", OTHER)),
            f"metadata names the suffix {OTHER}, but no table has it",
        ),
        (
            (META, REGION, fact("uuid", UUID), f"CREATE VIEW regions AS SELECT * FROM rocpd_event{UUID}"),
            f"damaged: view regions names a missing table, rocpd_event{UUID}",
        ),
        (
            (
                *(META, REGION, fact("uuid", UUID), fact("uuid", OTHER), f"CREATE TABLE rocpd_event{OTHER} (id)"),
                f"CREATE VIEW events AS SELECT id FROM rocpd_event{OTHER} UNION ALL SELECT id FROM rocpd_event{UUID}",
            ),
            f"damaged: view events names a missing table, rocpd_event{UUID}",
        ),
        (("CREATE TABLE songs (id)",), "a SQLite file, but not a rocpd database"),
        (("PRAGMA user_version = 1",), "a SQLite file, but not a rocpd database"),
    ],
)
def test_foreign_and_damaged_files_are_refused(statements: tuple[str, ...], message: str, tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "bad.db", *statements)
    with pytest.raises(InputError) as error:
        rocpd.connect(path)
    assert error.value.message.startswith(f"{path}: {message}")
    assert "\n" not in error.value.message
    assert error.value.exit_code == 3
    good = TraceBuilder().write(tmp_path / "good.db")
    with rocpd.connect([path, good], skip_bad=True) as session:
        assert session.notes == [f"left out: {error.value.message}"]
        assert len(session.ranks) == 1
    with pytest.raises(InputError, match="every input was left out: "):
        rocpd.connect(path, skip_bad=True)


@pytest.mark.parametrize(
    ("statements", "schema"),
    [
        (RPD, 1),
        ((*RPD, "CREATE TABLE rocpd_kernelapi (id)"), 2),
        ((*RPD, "CREATE TABLE rocpd_ustring (id)"), 3),
    ],
)
def test_rpd_files_are_known_as_such(statements: tuple[str, ...], schema: int, tmp_path: Path) -> None:
    path = sqlite_file(tmp_path / "x.db", *statements)
    with pytest.raises(ForeignError, match=rf"x\.db: is an RPD trace \(rocmProfileData schema {schema}\), not"):
        identify(opening_of(path))


def test_a_process_without_facts_is_a_rank_all_the_same(open_job: OpenJob) -> None:
    bare = TraceBuilder(0).kernel("gemm", 1, 2).sql('DELETE FROM "rocpd_info_process{uuid}"')
    odd = TraceBuilder(1, host="h").sql(
        """UPDATE "rocpd_info_process{uuid}" SET environment = 'no json', extdata = '[1]'"""
    )
    session = open_job(bare, odd)
    assert [(r.hostname, r.pid, r.command, r.mpi_rank) for r in session.ranks] == [
        ("h", 16, "./app --steps 3", None),
        ("node0", None, None, None),
    ]
    assert session.sql("SELECT name, pid FROM kernels").fetchall() == [("gemm", None)]
