"""Sentences that an editor would rewrite stay out: of docstrings, of pages and of what commands say."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.site import ROOT, content

NOWHERE = {
    "an owner where a subject does": r"\bOwns\b",
    "a clause as a subject": r"\b[Ww]hat … is\b|\bthat is none\b|\bthat are none\b|\bwhat is none\b",
    "a title in the accusative": r"^#+ Whom\b",
    "exposed communication, described": r"communication that nothing hides|copies that nothing hides",
    "a host described": r"host works for itself",
}
"""What is wrong with it -> pattern, for a line."""

_CLAUSE = re.compile(r"What (?!if\b)[^?]*$")  # in place of a noun
_PAGES = [path for path in content() if path.suffix == ".md" and path.name != "CHANGELOG.md"]
_MODULES = sorted((ROOT / "rocpd").rglob("*.py"))


@functools.cache
def docstrings(module: Path) -> list[tuple[int, str]]:
    """Return line and text of each docstring of a module, those of constants included."""
    return list(_docstrings(module))


def _docstrings(module: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        match node:
            case ast.Module() | ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text


@pytest.mark.parametrize("pattern", NOWHERE.values(), ids=NOWHERE)
def test_pages(pattern: str) -> None:
    lines = ((page, line) for page in _PAGES for line in (ROOT / page).read_text(encoding="utf-8").splitlines())
    assert [f"{page}: {line}" for page, line in lines if re.search(pattern, line)] == []


def test_docstrings() -> None:
    known = re.compile("|".join(NOWHERE.values()))
    texts = ((module, line, text) for module in _MODULES for line, text in docstrings(module))
    assert [f"{module}:{line}" for module, line, text in texts if any(map(known.search, text.splitlines()))] == []


def test_docstrings_begin_with_a_noun_or_verb() -> None:
    texts = ((module, line, text.partition("\n")[0]) for module in _MODULES for line, text in docstrings(module))
    assert [f"{module}:{line}: {first}" for module, line, first in texts if _CLAUSE.match(first)] == []


@pytest.mark.parametrize("text", ["What a file holds.", "What is read:\nrows"])
def test_clauses_are_found(text: str, tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(f'ROWS = 1\n"""{text}"""\n')
    assert [text for _, text in docstrings(module) if _CLAUSE.match(text.partition("\n")[0])] == [text]


@pytest.mark.parametrize("sentence", ["Owns the rows.", "as a thread that is none", "# Whom others wait for"])
def test_they_are_found(sentence: str) -> None:
    assert any(re.search(pattern, sentence) for pattern in NOWHERE.values())
