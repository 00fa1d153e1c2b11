"""Owns advice as HTML: a page that stands alone, or its body for notebooks and reports. No scripts, nothing loaded."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from rocpd.advice.answers import Answers
from rocpd.advice.show.text import gain, looked, parts, unable
from rocpd.summary.findings import Finding
from rocpd.table.cell import one_line
from rocpd.table.html import PAGE_END, page_head, quoted

_FORMS = {"see": "<code>{}</code>", "read": '<a href="{0}">{0}</a>'}


def as_html(advice: Answers, width: int | None = None) -> str:
    """Return a page; `width` is not looked at."""
    return "".join([page_head("rocpd advise"), "<main>\n", *(f"{line}\n" for line in html_lines(advice)), PAGE_END])


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
    yield '<dl class="parts">'
    for word, text in parts(finding, advice.effect_texts(finding)):
        yield f"<dt>{word}</dt><dd>{_FORMS.get(word, '{}').format(quoted(_text(text)))}</dd>"
    yield "</dl>"


def _text(text: str) -> str:
    return escape(one_line(text))
