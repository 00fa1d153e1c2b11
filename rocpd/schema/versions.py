"""The schema versions that exist, and the kinds of other files, recognised by their structure.

Never refuses a 3.x version: a reader goes by the columns that a file holds.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection

LATEST = "3.0.3"
LATER_TABLES = {
    "rocpd_hip_event": "HIP events",
    "rocpd_info_blob_schema": "layouts of blobs",
    "rocpd_info_blob_field": "fields of blobs",
    "rocpd_blob_event": "blobs of events",
}
"""Tables of schemas after `LATEST` -> their content. SQL shows them, like every further table.

Two branches of ROCm call different schemas 3.0.4, so files are recognised by their tables, not by the number:
projects/rocprofiler-sdk/source/share/rocprofiler-sdk-rocpd/versions.yml of rocm-systems has the one with HIP events.
"""
VERSIONS: tuple[str, ...] = ("3.0.0", "3.0.1", "3.0.2", "3.0.3")
"""Versions that the writer can produce; rocprofv3 of ROCm 7.1 calls 3.0.0 `3`."""

_TABLES_OF_4 = ("rocpd_timestamp", "rocpd_info_category")  # of the drafts 4.0 and 4.1

# A UUID as rocprofv3 writes it, or 32 digits as in rocprofiler-systems; a number where a merge met a suffix twice.
_SUFFIX = r"_(?:[0-9A-Fa-f]{8}(?:_[0-9A-Fa-f]{4}){3}_[0-9A-Fa-f]{12}|[0-9A-Fa-f]{32})"
_NUMBERED = re.compile(rf"({_SUFFIX})_(\d{{1,4}})")
_SUFFIXED = re.compile(rf"^(rocpd_\w+?)({_SUFFIX}(?:_\d{{1,4}})?)$")


def split_suffix(table: str, suffixes: Collection[str] = ()) -> tuple[str, str] | None:
    """Split `rocpd_region_00003fdc_92cb_…` into (`rocpd_region`, `_00003fdc_92cb_…`).

    Args:
        table: name of a real table.
        suffixes: suffixes named by a file's metadata, which may not look like a UUID; a set if there are many.

    Returns:
        base name and suffix, or None for a table without suffix.
    """
    match = _SUFFIXED.match(table)
    if match and match[2] in suffixes:
        return match[1], match[2]
    for suffix in suffixes:
        if suffix and table.endswith(suffix) and table.startswith("rocpd_"):
            return table[: -len(suffix)], suffix
    return (match[1], match[2]) if match else None


def without_suffix(text: str, suffix: str) -> str:
    """Return the definition of a table without its suffix, also in the default of GUIDs: the same for all ranks.

    >>> without_suffix("CREATE TABLE rocpd_arg_0000_92cb (guid DEFAULT '0000-92cb')", "_0000_92cb")
    "CREATE TABLE rocpd_arg (guid DEFAULT '')"
    """
    return text.replace(suffix, "").replace(suffix[1:].replace("_", "-"), "")


def guid_of(suffix: str) -> str:
    """Return the GUID of a table suffix.

    >>> guid_of("_00003fdc_92cb_72cb_9169_c7e541b1fcdf_2"), guid_of("_1cf7d1f031340596bfab7b59c8d5f015")
    ('00003fdc-92cb-72cb-9169-c7e541b1fcdf#2', '1cf7d1f031340596bfab7b59c8d5f015')
    """
    match = _NUMBERED.fullmatch(suffix)
    text, number = (match[1], f"#{match[2]}") if match else (suffix, "")
    return text.lstrip("_").replace("_", "-") + number


def suffix_of(guid: str) -> str:
    """Return the table suffix of a GUID: `_` and the GUID with `_` in place of `-`, and of `#` before a number."""
    return "_" + guid.replace("-", "_").replace("#", "_")


@functools.lru_cache(64)  # rank after rank has the same version
def as_tuple(version: str) -> tuple[int, ...]:
    """Return `3.0.2` as (3, 0, 2): missing numbers are 0, and all are 0 if the text is no version."""
    numbers = [digits[:9] for digits in re.findall(r"\d+", version)[:3]]  # a damaged file may hold thousands
    return tuple(int(n) for n in [*numbers, "0", "0", "0"][:3])


def declared_version(metadata: Collection[tuple[str, str]]) -> str:
    """Return the schema version that metadata rows (tag, value) declare, as `major.minor.patch`."""
    tags = dict(metadata)
    if "schema_version_major" in tags:
        parts = (tags.get(f"schema_version_{part}", "0") for part in ("major", "minor", "patch"))
        return ".".join(str(as_tuple(part)[0]) for part in parts)
    return ".".join(str(n) for n in as_tuple(tags.get("schema_version", "3")))


def foreign_kind(tables: Collection[str]) -> str | None:
    """Return the kind of a SQLite file that is not of rocpd schema 3, by its base tables; None if unknown.

    RPD files also hold `rocpd_string` and `rocpd_metadata`, and RPD's own schema number 3 is not rocpd's: the base
    table `rocpd_api` identifies them.
    """
    if "rocpd_api" in tables:
        schema = 3 if "rocpd_ustring" in tables else 2 if "rocpd_kernelapi" in tables else 1
        return f"an RPD trace (rocmProfileData schema {schema})"
    bases = {split[0] for split in map(split_suffix, tables) if split}
    for mark in _TABLES_OF_4:
        if mark in bases or mark in tables:
            return f"a rocpd database of schema 4 (it has {mark})"
    return None


def compression_of(metadata: Collection[tuple[str, str]], views: Collection[str]) -> str | None:
    """Return the compression of a file's tables, None if they are not compressed.

    Args:
        metadata: rows of its metadata (tag, value).
        views: texts of its views.
    """
    named = dict(metadata).get("compression", "")
    if named or any("lz4_decompress(" in text for text in views):
        return f"LZ4 ({named[:40]})" if named and "lz4" in named.lower() else named[:40] or "LZ4"
    return None
