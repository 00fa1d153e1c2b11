"""Owns advice as HTML: a page that stands alone, or its body for notebooks and reports. No scripts, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rocpd.advice.answers import Answers
from rocpd.advice.show.text import gain, looked, unable, where
from rocpd.summary.findings import Finding
from rocpd.table.cell import one_line

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>rocpd advise</title><style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em }
h2 { font-size: 1.1em; margin: 1.5em 0 .25em }
dl { display: grid; grid-template-columns: 5em 1fr; margin: .25em 0 }
dt { color: #666 } dd { margin: 0 }
code { background: #f3f3f3; padding: 0 .25em }
</style></head><body>
"""


def as_html(advice: Answers, width: int | None = None) -> str:
    """Return a page; `width` is not looked at."""
    return _HEAD + "".join(f"{line}\n" for line in html_lines(advice)) + "</body></html>\n"


def html_lines(advice: Answers) -> Iterator[str]:
    """Yield the body."""
    yield f"<p><strong>{_text(advice.job.text)}</strong></p>"
    yield f"<p>{_text(looked(advice))}.</p>"
    for number, finding in enumerate(advice.findings, 1):
        least = "" if finding.gain_percent is None else f", {gain(finding)} of the {advice.job.unit}"
        yield f"<h2>{number}. {_text(finding.text)}</h2>"
        yield f"<p>{_text(finding.rule)} ({finding.confidence}{least})</p>"
        yield from _finding(advice, finding)
    if advice.silent:
        yield f"<p>Found nothing: {_text(', '.join(advice.silent))}.</p>"
    if advice.unable:
        yield "<p>Could not look:</p><ul>"
        yield from (f"<li>{', '.join(rules)}: {_text(reason)}</li>" for reason, rules in unable(advice).items())
        yield "</ul>"


def _finding(advice: Answers, finding: Finding) -> Iterator[str]:
    parts = [("do", _text(finding.action or "")), ("see", _code(finding.shown_by)), ("where", _text(where(finding)))]
    parts += [("hence", _text(f"{other.rule}: {other.text}")) for other in advice.effects(finding)]
    parts += [
        ("read", f'<a href="{escape(finding.reference)}">{escape(finding.reference)}</a>' if finding.reference else "")
    ]
    yield "<dl>"
    yield from (f"<dt>{name}</dt><dd>{text}</dd>" for name, text in parts if text)
    yield "</dl>"


def _text(text: str) -> str:
    return escape(one_line(text))


def _code(text: str | None) -> str:
    return f"<code>{_text(text)}</code>" if text else ""
