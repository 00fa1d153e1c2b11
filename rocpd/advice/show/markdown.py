"""Owns advice as Markdown, such as for an issue or a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.answers import Answers
from rocpd.advice.show.text import gain, looked, parts, unable
from rocpd.summary.findings import Finding
from rocpd.table.markdown import inline

_FORMS = {"see": "`{}`", "read": "<{}>"}


def as_markdown(advice: Answers, width: int | None = None) -> str:
    """Return the page; `width` is not looked at."""
    return "".join(f"{line}\n" for line in _lines(advice))


def _lines(advice: Answers) -> Iterator[str]:
    yield f"**{inline(advice.job.text)}**"
    yield ""
    yield f"{inline(looked(advice))}."
    if advice.findings:
        yield ""
        yield "| | rule | gain | finding |"
        yield "|---:|---|---:|---|"
        for number, finding in enumerate(advice.findings, 1):
            yield f"| {number} | {finding.rule} | {gain(finding)} | {inline(finding.text)} |"
    for number, finding in enumerate(advice.findings, 1):
        yield from ("", f"### {number}. {finding.rule}", "")
        yield from _finding(advice, finding)
    if advice.silent:
        yield from ("", f"Found nothing: {', '.join(advice.silent)}.")
    if advice.unable:
        yield from ("", "Could not look:", "")
        yield from (f"- {', '.join(rules)}: {inline(reason)}" for reason, rules in unable(advice).items())


def _finding(advice: Answers, finding: Finding) -> Iterator[str]:
    yield f"{inline(finding.text)} ({finding.confidence})."
    yield ""
    for word, text in parts(finding, advice.effect_texts(finding)):
        yield f"- {word}: {_FORMS.get(word, '{}').format(text if word in _FORMS else inline(text))}"
