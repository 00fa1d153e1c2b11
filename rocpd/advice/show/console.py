"""Owns advice as people read it: a line for each finding first, then what each means and what to do."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from rocpd.advice.answers import Answers
from rocpd.advice.show.text import gain, looked, parts, unable
from rocpd.summary.findings import Finding
from rocpd.visible import visible

_WIDTH = 110
_LINES = 8  # findings in the list that comes first


def as_text(advice: Answers, width: int | None = None) -> str:
    """Return the text; `width` is that of the terminal."""
    return "".join(f"{line}\n" for line in console_lines(advice, width))


def console_lines(advice: Answers, width: int | None = None) -> Iterator[str]:
    """Yield the lines; `width` is that of the terminal."""
    wide = min(width or _WIDTH, _WIDTH)
    yield advice.job.text
    yield from _list(advice.findings)
    yield looked(advice)
    for number, finding in enumerate(advice.findings, 1):
        yield ""
        yield from _finding(advice, number, finding, wide)
    if advice.silent or advice.unable:
        yield ""
    if advice.silent:
        yield from _wrapped("Found nothing: ", ", ".join(advice.silent), wide)
    if advice.unable:
        yield "Could not look:"
        for reason, rules in unable(advice).items():
            yield from _wrapped("  ", f"{', '.join(rules)}: {reason}", wide)


def _list(findings: Sequence[Finding]) -> Iterator[str]:
    shown = findings[: _LINES if len(findings) <= _LINES else _LINES - 1]
    longest = max((len(finding.rule) for finding in shown), default=0)
    for number, finding in enumerate(shown, 1):
        yield f"{number}  {gain(finding):>10}  {finding.rule:<{longest}}  {visible(finding.text)}"
    if len(shown) < len(findings):
        yield f"and {len(findings) - len(shown)} more, below"


def _finding(advice: Answers, number: int, finding: Finding, width: int) -> Iterator[str]:
    least = "" if finding.gain_percent is None else f", {gain(finding)} of the {advice.job.unit}"
    yield f"{number}  {finding.rule} ({finding.confidence}{least})"
    for name, text in (("what", finding.text), *parts(finding, advice.effect_texts(finding))):
        yield from _wrapped(f"   {name:<6} ", text, width)


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        visible(text),
        max(width, len(head) + 20),
        initial_indent=head,
        subsequent_indent=" " * max(4, min(len(head), 10)),
        break_long_words=False,
        break_on_hyphens=False,
    )
