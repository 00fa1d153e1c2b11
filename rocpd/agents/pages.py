"""Pages of the package: the glossary, and questions with the commands that answer them. Imports nothing heavy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources

USUAL, FURTHER = "questions", "more-questions"
"""Pages of questions: the usual ones, and all others."""

PAGES = ("glossary", USUAL, FURTHER)
"""Their names; `docs/` has copies."""


def page(name: str) -> str:
    """Return the Markdown of one of `PAGES`."""
    return resources.files("rocpd.agents").joinpath("data", f"{name}.md").read_text(encoding="utf-8")


def rows_of_questions(*pages: str) -> Iterator[tuple[str, str, str]]:
    """Yield question, command, and the place to look at in the answer; without names, from all pages of questions."""
    for line in "\n".join(map(page, pages or (USUAL, FURTHER))).splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[0] not in ("question", "---"):
            question, command, look = (_plain(cell) for cell in cells)
            yield question, command, look


def _plain(cell: str) -> str:
    """Return a cell without marks of Markdown.

    >>> _plain("`rocpd diff before job`"), _plain("[a gate](compare.md)")
    ('rocpd diff before job', 'a gate')
    """
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("`", "").replace("\\|", "|")
