"""Versions and suffixes: files are recognised by structure, not by number."""

from __future__ import annotations

import pytest

from rocpd.schema.versions import as_tuple, declared_version, foreign_kind, split_suffix

SUFFIX = "_00003fdc_92cb_72cb_9169_c7e541b1fcdf"


@pytest.mark.parametrize(
    ("table", "known", "expected"),
    [
        (f"rocpd_region{SUFFIX}", (), ("rocpd_region", SUFFIX)),
        (f"rocpd_info_kernel_symbol{SUFFIX.upper()}", (), ("rocpd_info_kernel_symbol", SUFFIX.upper())),
        (f"rocpd_tomorrow{SUFFIX}", (), ("rocpd_tomorrow", SUFFIX)),
        ("rocpd_region", (), None),
        ("rocpd_region_short", (), None),
        ("rocpd_region_short", ("_short",), ("rocpd_region", "_short")),
        (f"roc_optiq_state{SUFFIX}", (), None),
        (f"roc_optiq_state{SUFFIX}", (SUFFIX,), None),
        ("rocpd_region", ("",), None),
    ],
)
def test_split_suffix(table: str, known: tuple[str, ...], expected: tuple[str, str] | None) -> None:
    assert split_suffix(table, known) == expected


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ([("schema_version", "3")], "3.0.0"),
        ([("schema_version", "3.0.2")], "3.0.2"),
        ([], "3.0.0"),
        ([("schema_version", "3"), ("schema_version_major", "3"), ("schema_version_minor", "1")], "3.1.0"),
        ([("schema_version", "4.0.0")], "4.0.0"),
    ],
)
def test_declared_version(metadata: list[tuple[str, str]], expected: str) -> None:
    assert declared_version(metadata) == expected


def test_versions_compare_as_numbers() -> None:
    assert as_tuple("3.0.10") > as_tuple("3.0.9") > as_tuple("3") == (3, 0, 0)
    assert as_tuple("not a version") == (0, 0, 0)


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (["rocpd_api", "rocpd_string", "rocpd_metadata"], "rocmProfileData schema 1"),
        (["rocpd_api", "rocpd_kernelapi"], "rocmProfileData schema 2"),
        (["rocpd_api", "rocpd_kernelapi", "rocpd_ustring"], "rocmProfileData schema 3"),
        ([f"rocpd_timestamp{SUFFIX}", f"rocpd_region{SUFFIX}"], "schema 4"),
    ],
)
def test_foreign_files_are_named(tables: list[str], expected: str) -> None:
    assert expected in (foreign_kind(tables) or "")


def test_our_own_files_are_not_foreign() -> None:
    assert foreign_kind([f"rocpd_region{SUFFIX}", f"rocpd_string{SUFFIX}", "roc_optiq_state"]) is None
