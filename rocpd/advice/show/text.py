"""Owns the words that all forms of advice share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rocpd.advice.answers import Answers
from rocpd.amount import amount
from rocpd.summary.findings import Finding


def gain(finding: Finding) -> str:
    """Return how much a finding may gain: `up to 26 %`; a dash where it costs no time."""
    return "-" if finding.gain_percent is None else f"up to {finding.gain_percent:.0f} %"


def where(finding: Finding) -> str:
    """Return where a finding is to be seen: rank, agent, step and window, as far as they are known."""
    words = [
        f"{name} {value}" for name, value in (("rank", finding.rank), ("agent", finding.agent)) if value is not None
    ]
    words += [str(finding.step)] if finding.step else []
    return ", ".join(filter(None, [*words, window_options(finding)]))


def window_options(finding: Finding) -> str:
    """Return the options that select the time of a finding; nothing where it has none."""
    if not finding.window:
        return ""
    start, end = finding.window
    return f"--start {start / 1e6:.3f}ms --end {end / 1e6:.3f}ms"


def parts(finding: Finding, effects: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield what is said below a finding, as far as it is known: (word, text).

    Args:
        finding: what was found.
        effects: what it explains, in sentences.
    """
    yield from _known(("do", finding.action), ("see", finding.shown_by), ("where", where(finding)))
    yield from (("hence", effect) for effect in effects)
    yield from _known(("read", finding.reference))


def _known(*pairs: tuple[str, str | None]) -> Iterator[tuple[str, str]]:
    return ((word, text) for word, text in pairs if text)


def unable(advice: Answers) -> dict[str, list[str]]:
    """Return why rules could not look -> their ids."""
    reasons: dict[str, list[str]] = {}
    for finding in advice.unable:
        reasons.setdefault(finding.text, []).append(finding.rule)
    return reasons


def looked(advice: Answers) -> str:
    """Return what was and was not looked at, in a sentence."""
    reported = {finding.rule for finding in advice.findings} | {each.finding.rule for each in advice.explained}
    count = len(reported) + len(advice.silent)
    text = f"{amount(count, 'rule')} looked, {len(reported)} of them found something"
    if not reported:
        text = f"{amount(count, 'rule')} looked and found nothing: that is not to say that nothing is wrong"
    could_not = len(advice.unable)
    text += f"; {could_not} could not look" if could_not else ""
    if advice.job.runs > 1:
        text += f"; of {advice.job.runs} separate runs that with most GPU time is judged, rank {advice.job.critical}"
        text += " (another: --rank N)"
    return text
