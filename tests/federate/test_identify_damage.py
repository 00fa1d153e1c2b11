"""Damage in what identifies a rank: one line that names the file, exit code 3, or the value counts as not given."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocpd
from rocpd.base import InputError
from tests.build import TraceBuilder, guid_of
from tests.conftest import Cli

DIGITS = "9" * 5000
NESTED = "[" * 100_000
METADATA = 'INSERT INTO "rocpd_metadata{uuid}" (tag, value) VALUES '


def process(column: str, text: str) -> str:
    return f"""UPDATE "rocpd_info_process{{uuid}}" SET {column} = '{text}'"""


def trace(*statements: str) -> TraceBuilder:
    built = TraceBuilder(0).region("hipFree", 1, 2).kernel("gemm", 10, 20)
    for statement in statements:
        built.sql(statement)
    return built


NOT_GIVEN = {
    "extdata: mpi_rank of 5000 digits": (
        process("extdata", f'{{"mpi_rank":"{DIGITS}"}}'),
        f"mpi_rank {'9' * 20}… of the process is no rank number",
    ),
    "extdata: mpi_rank as a number of 5000 digits": (
        process("extdata", f'{{"mpi_rank":{DIGITS}}}'),
        f"mpi_rank {'9' * 20}… of the process is no rank number",
    ),
    "environment: beyond 64 bits": (
        process("environment", '{"PMI_RANK":"99999999999999999999"}'),
        "PMI_RANK 99999999999999999999… of the process is no rank number",
    ),
    "environment: beyond an int": (
        process("environment", '{"SLURM_PROCID":2147483648}'),
        "SLURM_PROCID 2147483648… of the process is no rank number",
    ),
    "environment: nested": (process("environment", NESTED), "the environment of the process is nested too deeply"),
    "extdata: nested": (process("extdata", NESTED), "the extdata of the process is nested too deeply"),
}


@pytest.mark.parametrize("name", NOT_GIVEN)
def test_a_bad_value_counts_as_not_given(name: str, tmp_path: Path, cli: Cli) -> None:
    statement, why = NOT_GIVEN[name]
    path = trace(statement).write(tmp_path / "a.db")
    with rocpd.connect(path) as session:
        assert [(rank.number, rank.mpi_rank) for rank in session.ranks] == [(0, None)]
        assert session.notes == [f"{path}: {why}: counts as not given"]
    for words in (("info",), ("summary",), ("convert", "-f", "pftrace", "-d", tmp_path / "out", "--force")):
        said = cli(*words, path)
        assert said.code == 0
        assert said.err.count("counts as not given") == 1
        assert "bug" not in said.err


def test_the_largest_rank_that_mpi_has_is_a_rank(tmp_path: Path) -> None:
    path = trace(process("extdata", '{"mpi_rank":2147483647}')).write(tmp_path / "a.db")
    with rocpd.connect(path) as session:
        assert [rank.number for rank in session.ranks] == [2**31 - 1]
        assert session.notes == []


def test_metadata_that_is_not_utf8_changes_nothing(tmp_path: Path) -> None:
    path = trace(METADATA + "('x', CAST(x'ff' AS TEXT)), (CAST(x'fe' AS TEXT), 1), ('guid', CAST(x'ff' AS TEXT))")
    with rocpd.connect(path.write(tmp_path / "a.db")) as session:
        assert [rank.guid for rank in session.ranks] == [guid_of(0)]
        assert session.execute("SELECT COUNT(*) FROM kernels").fetchall() == [(1,)]


REFUSED = {
    "version of 5000 digits": (METADATA + f"('schema_version', '{DIGITS}')", "rocpd schema "),
    "major version of 5000 digits": (METADATA + f"('schema_version_major', '{DIGITS}')", "rocpd schema 999999999"),
    "uuid that is not UTF-8": (METADATA + "('uuid', CAST(x'5fff' AS TEXT))", "metadata names the suffix _\\xff, but"),
}
NOT_UTF8 = "damaged: the schema holds text that is not UTF-8"
SCHEMA = {
    "name of a view": (b"viewkernels", b"viewkern\xffls", "damaged: malformed database schema"),
    "text of a table": (b"-- HIP stream", b"-- HIP s\xffream", NOT_UTF8),
    "column of a view": (b'AS "duration"', b'AS "dur\xfftion"', NOT_UTF8),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_cannot_be_identified_is_named(name: str, tmp_path: Path, cli: Cli) -> None:
    statement, why = REFUSED[name]
    path = trace("""DELETE FROM "rocpd_metadata{uuid}" WHERE tag LIKE 'schema%'""", statement).write(
        tmp_path / "bad.db"
    )
    assert_refused(path, why, tmp_path, cli)


def assert_refused(path: Path, why: str, folder: Path, cli: Cli) -> None:
    with pytest.raises(InputError) as error:
        rocpd.connect(path)
    assert error.value.message.startswith(f"{path}: {why}")
    assert len(error.value.message) < 300
    fine = TraceBuilder(1).kernel("gemm", 1, 2).write(folder / "good.db")
    for words in (
        ("info",),
        ("query", "SELECT COUNT(*) FROM kernels"),
        ("merge", "-o", folder / "merged.sqlite", "--force"),
        ("convert", "-f", "csv", "-d", folder / "out", "--force"),
    ):
        said = cli(*words, path, fine)
        assert (said.code, said.err.count("\n") <= 2, "bug" in said.err) == (3, True, False), said.err
        said = cli(*words, path, fine, "--skip-bad")
        assert (said.code, f"left out: {path}: {why}" in said.err) == (0, True), said.err


@pytest.mark.parametrize("name", SCHEMA)
def test_schema_text_that_is_not_utf8_is_damage(name: str, tmp_path: Path, cli: Cli) -> None:
    """Bytes of the file are changed, as flipped bits would."""
    path = tmp_path / "bad.db"
    content = trace().write(path, views=True).read_bytes()
    old, new, why = SCHEMA[name]
    assert old in content
    path.write_bytes(content.replace(old, new))
    assert_refused(path, why, tmp_path, cli)
