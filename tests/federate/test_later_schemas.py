"""Files of later schemas: known by their tables, not by the number; further tables stop nothing, drafts are named."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

import rocpd
from rocpd.base import InputError
from rocpd.schema.versions import LATER_TABLES
from tests.build import TraceBuilder, guid_of
from tests.conftest import Cli

LZ4 = """CREATE VIEW "packed" AS SELECT CAST(lz4_decompress(extdata) AS TEXT) AS x FROM "rocpd_event{uuid}" """
VERSION = """DELETE FROM "rocpd_metadata{{uuid}}" WHERE tag GLOB 'schema_version_*';
UPDATE "rocpd_metadata{{uuid}}" SET value = '{}' WHERE tag = 'schema_version'"""
META = """INSERT INTO "rocpd_metadata{uuid}" (tag, value) VALUES """


def trace(number: int = 0) -> TraceBuilder:
    return TraceBuilder(number).region("hipLaunchKernel", 1, 5, stack=7).kernel("gemm", 10, 30, stack=7)


def with_tables(built: TraceBuilder, *bases: str) -> TraceBuilder:
    for base in bases:
        built.sql(f'CREATE TABLE "{base}{{uuid}}" (id INTEGER PRIMARY KEY, guid TEXT, start, "end", blob BLOB, "a b")')
        built.sql(f"""INSERT INTO "{base}{{uuid}}" VALUES (1, 'x', 'no time', x'ff', x'00ff', CAST(x'ff' AS TEXT))""")
    return built.sql('ALTER TABLE "rocpd_pmc_event{uuid}" ADD COLUMN shader_array')


@pytest.mark.parametrize("version", ["3.0.4", "3.0.5", "3.9"])
def test_tables_of_later_schemas_and_unknown_ones_stop_nothing(version: str, tmp_path: Path, cli: Cli) -> None:
    built = with_tables(trace(), *LATER_TABLES, "rocpd_tomorrow")
    built.sql(VERSION.format(version))
    paths = [built.write(tmp_path / "a.db", views=True), trace(1).write(tmp_path / "b.db", views=True)]
    merged = tmp_path / "all.sqlite"
    for words in (
        ("summary", "all"),
        ("convert", "-f", "pftrace", "csv", "json", "parquet", "otf2", "-d", tmp_path / "out"),
        ("merge", "-o", merged),
        ("package", "-d", tmp_path / "job.rpdb"),
        ("query", "SELECT COUNT(*) FROM rocpd_tomorrow JOIN rocpd_hip_event USING (guid)"),
        ("query", "SELECT * FROM kernels", "-f", "csv"),
        ("redact", "-d", tmp_path / "shared"),
        ("info",),
    ):
        said = cli(*words, *paths)
        assert said.code == 0, said.err
    for inputs in (paths, [merged], [tmp_path / "job.rpdb"]):
        with rocpd.connect(inputs) as session:
            for base in (*LATER_TABLES, "rocpd_tomorrow"):
                rows = session.execute(f"SELECT id, guid, hex(blob) FROM {base}").fetchall()
                assert rows == [(1, guid_of(0), "00FF")]
    problems = cli("info", *paths, "--only", "problems", "-f", "csv").out
    assert "tables beyond the schema: rocpd_tomorrow" in problems
    assert "tables of later schemas, in SQL only: rocpd_hip_event (HIP events), rocpd_info_blob" in problems


def test_streamed_counter_values_are_told(tmp_path: Path, cli: Cli) -> None:
    """They are in SQL, and a dispatch's own value is not mixed with them."""
    built = trace().counter("SQ_WAVES", 4).counter("SQ_WAVES", 100, sample_id=1).sample("spm", 20)
    path = built.write(tmp_path / "a.db", views=True)
    said = cli("info", path, "--only", "problems", "-f", "csv")
    assert said.code == 0
    assert "rocpd_pmc_event: 1 streamed (SPM) value, in pmc_events but not in" in said.out
    with rocpd.connect(path) as session:
        assert session.execute("SELECT value FROM rocpd_pmc_event ORDER BY 1").fetchall() == [(4,), (100,)]
        assert session.execute("SELECT value FROM counters_collection").fetchall() == [(4,)]
    problems = cli("info", trace(1).counter("SQ_WAVES", 4).write(tmp_path / "b.db"), "--only", "problems").out
    assert "SPM" not in problems


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (META + "('compression', 'lz4-frame-v1')", "is a rocpd database with compressed tables, LZ4 (lz4-frame-v1): a"),
        (META + "('compression', 'zstd')", "is a rocpd database with compressed tables, zstd: a draft that is not"),
        (LZ4, "is a rocpd database with compressed tables, LZ4: a draft that is not supported"),
        (VERSION.format("4.1.0"), "rocpd schema 4.1.0 is not supported, only 3.x is"),
        (
            f"{VERSION.format('4')}; {META}('compression', 'lz4-frame-v1')",
            "is a rocpd database with compressed tables, LZ4 (lz4-frame-v1): a draft that is not supported",
        ),
        ('CREATE TABLE "rocpd_timestamp{uuid}" (id)', "is a rocpd database of schema 4 (it has rocpd_timestamp)"),
        ('CREATE TABLE "rocpd_info_category{uuid}" (id)', "is a rocpd database of schema 4 (it has rocpd_info_categ"),
    ],
)
def test_drafts_are_named_in_one_line(statement: str, message: str, tmp_path: Path, cli: Cli) -> None:
    path = trace().write(tmp_path / "a.db")
    connection = apsw.Connection(str(path))
    connection.execute(statement.replace("{uuid}", "_" + guid_of(0).replace("-", "_")))
    connection.close()
    with pytest.raises(InputError) as error:
        rocpd.connect(path)
    assert error.value.message.startswith(f"{path}: {message}")
    said = cli("info", path, trace(1).write(tmp_path / "b.db"), "--skip-bad")
    assert (said.code, said.err.count(message)) == (0, 1)
