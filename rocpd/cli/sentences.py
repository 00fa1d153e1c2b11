"""Owns how findings look on a terminal: a sign and a colour for the verdict, lines that end between words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import wrap

from rocpd.summary.findings import JOB, Finding, Verdict
from rocpd.table.palette import GREEN, ORANGE, RED, SKY, Colour
from rocpd.table.screen import Screen
from rocpd.visible import visible

_SIGNS: Mapping[Verdict, tuple[str, Colour]] = {
    Verdict.PROBLEM: ("✗", RED),
    Verdict.NOTE: ("•", SKY),
    Verdict.NONE: ("✓", GREEN),
    Verdict.UNKNOWN: ("?", ORANGE),
}


def sentences(findings: Iterable[Finding], screen: Screen) -> list[str]:
    """Return the lines of findings; what the job is has no sign, and stands out."""
    return [line for finding in findings for line in _lines(finding, screen)]


def _lines(finding: Finding, screen: Screen) -> Iterator[str]:
    text = visible(finding.text)
    if finding.rule == JOB:
        yield from map(screen.bold, wrap(text, screen.width, subsequent_indent="  "))
        return
    sign, colour = _SIGNS[finding.verdict]
    first, *more = wrap(text, max(screen.width - 2, 1)) or [""]
    yield f"{screen.paint(sign, colour)} {first}"
    yield from (f"  {line}" for line in more)
