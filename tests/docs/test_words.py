"""Sentences that an editor would rewrite stay out of pages; `tests/test_structure.py` reads docstrings."""

from __future__ import annotations

import re

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

_PAGES = [path for path in content() if path.suffix == ".md" and path.name != "CHANGELOG.md"]


@pytest.mark.parametrize("pattern", NOWHERE.values(), ids=NOWHERE)
def test_pages(pattern: str) -> None:
    lines = ((page, line) for page in _PAGES for line in (ROOT / page).read_text(encoding="utf-8").splitlines())
    assert [f"{page}: {line}" for page, line in lines if re.search(pattern, line)] == []


@pytest.mark.parametrize("sentence", ["Owns the rows.", "as a thread that is none", "# Whom others wait for"])
def test_they_are_found(sentence: str) -> None:
    assert any(re.search(pattern, sentence) for pattern in NOWHERE.values())
