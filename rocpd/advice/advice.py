"""The result of `Session.advise` and its forms: text for consoles, Markdown, HTML, JSON, in `FORMS`."""

from __future__ import annotations

import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from rocpd.base import amount, attributes, by_key, frozen
from rocpd.base.texts import visible
from rocpd.table import CONSOLE
from rocpd.table.cell import one_line
from rocpd.table.html import PAGE_END, page_head, quoted
from rocpd.table.markdown import inline

if TYPE_CHECKING:
    from rocpd.advice.case import JobFacts
    from rocpd.summary.findings import Finding


class Explained(NamedTuple):
    """A finding that another finding causes."""

    finding: Finding
    cause: Finding


@frozen
class Advice:
    """Causes of lost time, and what to do about each; `str` shows it as the console does, notebooks as a page.

    Args:
        job: facts of the job; gains are shares of a step of its critical rank.
        findings: first the gaps of the recording, then findings by gain.
        explained: findings that one of `findings` causes.
        silent: ids of the rules that looked and found nothing.
        unable: for each rule that could not look the reason (`text`), with its id (`rule`).
        slight: findings of rules that found only gains too small to be reported.
        least_percent: smallest gain that is reported, a share of a step [%].
    """

    job: JobFacts
    findings: tuple[Finding, ...]
    explained: tuple[Explained, ...]
    silent: tuple[str, ...]
    unable: tuple[Finding, ...]
    slight: tuple[Finding, ...] = ()
    least_percent: float = 0.0

    def effects(self, cause: Finding) -> Sequence[Finding]:
        """Return the findings that a finding explains."""
        return [explained.finding for explained in self.explained if explained.cause is cause]

    def document(self) -> dict[str, Any]:
        """Return it as dictionaries, lists and values of JSON, which `--format json` writes."""
        job = self.job
        return {
            "version": VERSION,
            "job": {
                "text": job.text,
                "ranks": list(job.ranks),
                "runs": job.runs,
                "critical_rank": job.critical,
                **attributes(job, "step_ns has_steps"),
            },
            "findings": [
                {**_finding_fields(finding), "explains": [_finding_fields(other) for other in self.effects(finding)]}
                for finding in self.findings
            ],
            "gains_little": list(map(_finding_fields, self.slight)),
            "found_nothing": list(self.silent),
            "could_not_look": [{"rule": finding.rule, "reason": finding.text} for finding in self.unable],
        }

    def __str__(self) -> str:
        """Return it as the console shows it."""
        return "\n".join(console_lines(self))

    def _repr_html_(self) -> str:
        return "\n".join(html_lines(self))


def gain(finding: Finding) -> str:
    """Return the gain of a finding: `26 %`; its bounds where it may be nothing, or is open; a dash without a gain."""
    if finding.gain_percent is None:
        return "-"
    least, most = finding.gain_bounds or (0.0, finding.gain_percent)
    if finding.is_open:
        return bounds(finding)
    said = f"{finding.gain_percent:.0f}" if round(least) > 0 else f"up to {max(0.0, most):.0f}"
    return f"{said} %"


def bounds(finding: Finding) -> str:
    """Return the bounds of a gain, such as `14 to 18 %`, or `up to 18 %`; nothing where it is not replayed."""
    if not finding.gain_bounds:
        return ""
    least, most = (f"{max(0.0, bound):.0f}" for bound in finding.gain_bounds)
    return f"{most if least == most else f'up to {most}' if least == '0' else f'{least} to {most}'} %"


def _replayed(finding: Finding) -> str:
    """Return the command that shows the gain, and its bounds; nothing where it is not replayed."""
    more = " more than without the last one" if "hidden_by" in finding.evidence else ""
    return f"{finding.regained_by} ({bounds(finding)} of a step{more})" if finding.gain_bounds else ""


def _sureness(advice: Advice, finding: Finding) -> str:
    """Return the confidence of a finding, and its gain."""
    least = "" if finding.gain_percent is None else f", {gain(finding)} of the {advice.job.unit}"
    return f"{finding.confidence}{least}"


def where(finding: Finding) -> str:
    """Return the place of a finding: rank, agent, step and window, as far as they are known."""
    words = [f"rank {finding.rank}" if finding.rank is not None else ""]
    words += [f"agent {finding.agent}" if finding.agent is not None else "", finding.step or ""]
    return ", ".join(filter(None, [*words, window_options(finding)]))


def window_options(finding: Finding) -> str:
    """Return the options that select the time of a finding; nothing where it has none."""
    if not finding.window:
        return ""
    start, end = finding.window
    return f"--start {start / 1e6:.3f}ms --end {end / 1e6:.3f}ms"


def parts(advice: Advice, finding: Finding) -> Iterator[tuple[str, str]]:
    """Yield the lines below a finding, as far as they are known: (word, text); then its effects."""
    effects = [("hence", f"{effect.rule}: {effect.text}") for effect in advice.effects(finding)]
    known = [("do", finding.action), ("gain", _replayed(finding)), ("see", finding.shown_by), ("where", where(finding))]
    yield from ((word, text) for word, text in [*known, *effects, ("read", finding.reference)] if text)


def unable(advice: Advice) -> list[tuple[str, str]]:
    """Return a pair for each reason why rules could not look: their ids, and the reason."""
    reasons = by_key((finding.text, finding.rule) for finding in advice.unable)
    return [(", ".join(rules), reason) for reason, rules in reasons.items()]


def without_problem(advice: Advice) -> Iterator[tuple[str, str]]:
    """Yield the rules whose findings gain too little to be reported, then those that found nothing: words, and rules.

    Gains are cut, not rounded, so that none reads as the least share that is reported.
    """
    gains = (f"{each.rule} ({math.floor((each.gain_percent or 0.0) * 10) / 10} %)" for each in advice.slight)
    if advice.slight:
        yield f"Found, but gains less than {advice.least_percent:g} % of the {advice.job.unit}: ", ", ".join(gains)
    if advice.silent:
        yield "Found nothing: ", ", ".join(advice.silent)


def looked(advice: Advice) -> str:
    """Return a sentence on how many rules looked, and how many could not."""
    rules = {finding.rule for finding in advice.findings} | {each.finding.rule for each in advice.explained}
    count = len(rules | {each.rule for each in advice.slight}) + len(advice.silent)
    by = "it" if len(advice.findings) == 1 else "these"
    explained = f", {len(advice.explained)} more explained by {by}" if advice.explained else ""
    order = " by gain (changes of the program count half)" if len(advice.findings) > 1 else ""
    text = f"{amount(count, 'rule')} looked: {amount(len(advice.findings), 'finding')}{order}{explained}"
    if not advice.findings:
        nothing = f"nothing that gains {advice.least_percent:g} %" if advice.slight else "nothing"
        text = f"{amount(count, 'rule')} looked and found {nothing}: that is not to say that nothing is wrong"
    could_not = len(advice.unable)
    text += f"; {could_not} could not look" if could_not else ""
    if advice.job.runs > 1:
        text += f"; of {advice.job.runs} separate runs that with most GPU time is judged, rank {advice.job.critical}"
        text += " (another: --rank N)"
    return text


_WIDTH = 110
_LINES = 8  # findings in the list that comes first


def console_lines(advice: Advice, width: int | None = None) -> Iterator[str]:
    """Yield the lines; `width` is the width of the terminal [characters]."""
    wide, line = min(width or _WIDTH, _WIDTH), width or sys.maxsize  # `line`: of commands, a line each
    yield from _wrapped("", advice.job.text, line)
    yield from _list(advice.findings, line)
    yield from _wrapped("", looked(advice), line)
    for number, finding in enumerate(advice.findings, 1):
        yield ""
        yield f"{number}  {finding.rule} ({_sureness(advice, finding)})"
        for name, text in (("what", finding.text), *parts(advice, finding)):
            yield from _wrapped(f"   {name:<6} ", text, wide)
    if advice.silent or advice.unable or advice.slight:
        yield ""
    for words, rules in without_problem(advice):
        yield from _wrapped(words, rules, wide)
    if advice.unable:
        yield "Could not look:"
        for rules, reason in unable(advice):
            yield from _wrapped("  ", f"{rules}: {reason}", wide)


def _list(findings: Sequence[Finding], width: int) -> Iterator[str]:
    shown = findings[: _LINES if len(findings) <= _LINES else _LINES - 1]
    longest = max((len(finding.rule) for finding in shown), default=0)
    for number, finding in enumerate(shown, 1):
        yield from _wrapped(f"{number}  {gain(finding):>10}  {finding.rule:<{longest}}  ", finding.text, width)
    if len(shown) < len(findings):
        yield f"and {len(findings) - len(shown)} more, below"


def _wrapped(head: str, text: str, width: int) -> list[str]:
    return textwrap.wrap(
        visible(text),
        max(width, len(head) + 20),
        initial_indent=head,
        subsequent_indent=" " * max(4, min(len(head), 10)),
        break_long_words=False,
        break_on_hyphens=False,
    )


_IN_MARKDOWN = {"see": "`{}`", "read": "<{}>"}


def markdown_lines(advice: Advice) -> Iterator[str]:
    """Yield the lines of a page, such as for an issue or a pull request."""
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
        yield from ("", f"### {number}. {finding.rule}", "", f"{inline(finding.text)} ({finding.confidence}).", "")
        for word, text in parts(advice, finding):
            is_marked = word in _IN_MARKDOWN and "`" not in text
            yield f"- {word}: {_IN_MARKDOWN[word].format(visible(text)) if is_marked else inline(text)}"
    for words, rules in without_problem(advice):
        yield from ("", f"{words}{rules}.")
    if advice.unable:
        yield from ("", "Could not look:", "")
        yield from (f"- {rules}: {inline(reason)}" for rules, reason in unable(advice))


_IN_HTML = {"see": "<code>{}</code>", "read": '<a href="{0}">{0}</a>'}


def html_lines(advice: Advice) -> Iterator[str]:
    """Yield the body of a page, for notebooks and reports too. It has no scripts and loads nothing."""
    yield f"<p><strong>{_text(advice.job.text)}</strong></p>"
    yield f"<p>{_text(looked(advice))}.</p>"
    for number, finding in enumerate(advice.findings, 1):
        yield f"<h2>{number}. {_text(finding.text)}</h2>"
        yield f"<p>{_text(finding.rule)} ({_sureness(advice, finding)})</p>"
        yield '<dl class="parts">'
        for word, text in parts(advice, finding):
            yield f"<dt>{word}</dt><dd>{_IN_HTML.get(word, '{}').format(quoted(_text(text)))}</dd>"
        yield "</dl>"
    for words, rules in without_problem(advice):
        yield f"<p>{_text(words + rules)}.</p>"
    if advice.unable:
        yield "<p>Could not look:</p><ul>"
        yield from (f"<li>{rules}: {_text(reason)}</li>" for rules, reason in unable(advice))
        yield "</ul>"


def _text(text: str) -> str:
    return escape(one_line(text))


VERSION = 1
"""Version of the JSON, which docs/advise.md describes; counts changes that break readers."""


def _finding_fields(finding: Finding) -> dict[str, Any]:
    gain = dict(zip(("gain_low_percent", "gain_high_percent"), finding.gain_bounds or (None, None), strict=True))
    window = dict(zip(("start_ns", "end_ns"), finding.window or (None, None), strict=True))
    return {
        **attributes(finding, "rule text confidence gain_percent"),
        **gain,
        **attributes(finding, "regained_by rank agent step"),
        **window,
        "evidence": dict(finding.evidence),
        **attributes(finding, "shown_by action reference"),
    }


class Form(NamedTuple):
    """A form of advice.

    Args:
        ending: the ending of its files.
        text: returns the text for (advice, width of the terminal or None).
    """

    ending: str
    text: Callable[[Advice, int | None], str]


def _joined(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _page(advice: Advice) -> str:
    return f"{page_head('rocpd advise')}<main>\n{_joined(html_lines(advice))}{PAGE_END}"


FORMS: Mapping[str, Form] = {
    CONSOLE: Form(".txt", lambda advice, width: _joined(console_lines(advice, width))),
    "json": Form(".json", lambda advice, _: json.dumps(advice.document(), indent=1, ensure_ascii=False) + "\n"),
    "md": Form(".md", lambda advice, _: _joined(markdown_lines(advice))),
    "html": Form(".html", lambda advice, _: _page(advice)),
}
"""Name -> form."""
