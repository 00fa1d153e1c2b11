"""The table of contents: names, aliases, third parties, and what importing it costs."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import rocpd
from rocpd.base import entries
from rocpd.convert import FORMATS, find, known_formats
from rocpd.convert.options import ConvertOptions


def test_every_row_says_what_it_is() -> None:
    assert [entry.name for entry in FORMATS.values()] == list(FORMATS)
    assert all(entry.doc and "\n" not in entry.doc for entry in FORMATS.values())


def test_an_alias_and_an_unknown_name() -> None:
    assert find("perfetto") is FORMATS["pftrace"]
    with pytest.raises(rocpd.UsageError, match="format nope: unknown"):
        find("nope")


def test_a_third_party_adds_a_format_but_replaces_none(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        importlib.metadata.EntryPoint("mine", "no.such.module:write", "rocpd.formats"),
        importlib.metadata.EntryPoint("csv", "no.such.module:write", "rocpd.formats"),
    ]
    monkeypatch.setattr(entries, "points", lambda group: points)

    assert list(known_formats()) == [*FORMATS, "mine"]
    assert known_formats()["csv"] is FORMATS["csv"]
    with pytest.raises(rocpd.UsageError, match="format mine"):
        find("mine").write(None, ConvertOptions(Path()))  # type: ignore[arg-type]


def test_the_table_of_contents_imports_no_numpy() -> None:
    code = "import sys, rocpd.convert, rocpd.convert.options; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
