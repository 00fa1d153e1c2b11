"""Texts that programs read beside asking: the verdict, the report, the glossary, and which command answers what."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rocpd.agents.document import MOST_BYTES
from rocpd.agents.pages import FURTHER, USUAL, page
from rocpd.base import UsageError, frozen
from rocpd.base.visible import visible, visible_lines

if TYPE_CHECKING:
    from rocpd.session import Session

_SCHEME = "rocpd://"


@frozen
class ResourceText:
    """A resource as a question: its text, at most `MOST_BYTES` as UTF-8."""

    uri: str

    def of(self, session: Session) -> str:
        """Return the text.

        Raises:
            UsageError: there is no such resource.
        """
        name = self.uri.removeprefix(_SCHEME).rstrip("/")
        if not self.uri.startswith(_SCHEME) or name not in RESOURCES:
            raise UsageError(f"{visible(self.uri)}: no such resource", f"{_SCHEME}{', '.join(RESOURCES)}")
        return _fitted(RESOURCES[name][1](session))


def _fitted(text: str) -> str:
    """Return whole lines of a text, at most `MOST_BYTES`, with a word on what was cut."""
    if len(text.encode()) <= MOST_BYTES:
        return text
    lines, room = [], MOST_BYTES - 200
    every = text.splitlines()
    for line in every:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join([*lines, "", f"(cut: {len(every) - len(lines)} more lines; tools answer parts of it)"])


def _verdict(session: Session) -> str:
    from rocpd.summary.run import run

    lines = [finding.text for table in run(session, "overview") for finding in table.findings]
    return "\n".join(f"- {visible(line)}" for line in dict.fromkeys(lines))


def _report(session: Session) -> str:
    with tempfile.TemporaryDirectory(prefix="rocpd-report-") as folder:
        path = session.report(Path(folder) / "report.md")
        return visible_lines(path.read_text(encoding="utf-8"))


RESOURCES: dict[str, tuple[str, Callable[[Session], str]]] = {
    "verdict": ("What is slow, on which rank, in which step and why: the first screen of `rocpd summary`.", _verdict),
    "report": ("The report of the job as Markdown, what explains most first; cut to fit.", _report),
    "glossary": ("What the words of answers mean.", lambda _: page("glossary")),
    "questions": (
        "Which command answers which question, and where to look.",
        lambda _: "\n".join(map(page, (USUAL, FURTHER))),
    ),
}
"""Name -> its description, and the function that returns its text."""
