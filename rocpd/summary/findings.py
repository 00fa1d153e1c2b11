"""The conclusions of an analysis: one sentence each, with the numbers it rests on. Never reads events."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from rocpd.base import frozen

JOB = "job"
"""The rule of the finding that describes the job."""

_FAR_MORE = 2.0  # times the gain, of its upper bound


class Verdict(enum.StrEnum):
    """The answer to a question: a problem, a fact, nothing found, or not known for lack of data.

    `NOTE`: a fact that is neither good nor bad by itself.
    """

    PROBLEM = "problem"
    NOTE = "note"
    NONE = "none"
    UNKNOWN = "unknown"


class Confidence(enum.StrEnum):
    """The certainty of a finding.

    `CERTAIN`: it follows from what was recorded. `LIKELY`: chance explains it in less than one case of a hundred.
    `HINT`: something else may explain it as well.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    HINT = "hint"


@frozen
class Finding:
    """A conclusion of an analysis.

    Tables of `rocpd summary` carry findings (`Summary.findings`): people see them above the table; with CSV, JSON and
    Parquet they go to stderr.

    Args:
        text: one sentence for a person in a hurry, with the numbers that matter; no full stop.
        rule: the question that it answers, such as `comm.straggler`: a word that stays the same.
        verdict: `PROBLEM`, `NOTE`, `NONE`, or `UNKNOWN` where data for an answer is missing: the text says which.
        confidence: how certain it is.
        rank: the rank concerned; None: the job, or several ranks.
        step: text of the marker of the step concerned.
        window: part of the time line concerned, from its start [ns].
        evidence: the numbers that it rests on: name, ending in its unit as columns do, -> value.
        agent: id of the agent concerned, in the file of the rank.
        shown_by: command that shows it.
        gain_percent: share of a step that is saved without the problem: of a step of the job, where `regained_by` names
            the replay; else an upper bound, of a step of the critical rank. None: it costs no time, or it is not known.
        gain_bounds: lower and upper bound of the gain, where it is replayed [%].
        regained_by: command that replays the job without the problem.
        action: advice on what to do, in a sentence or two.
        reference: page that explains the action.
    """

    text: str
    rule: str
    verdict: Verdict = Verdict.PROBLEM
    confidence: Confidence = Confidence.LIKELY
    rank: int | None = None
    step: str | None = None
    window: tuple[int, int] | None = None
    evidence: Mapping[str, object] = field(default_factory=dict)
    agent: int | None = None
    shown_by: str | None = None
    gain_percent: float | None = None
    gain_bounds: tuple[float, float] | None = None
    regained_by: str | None = None
    action: str | None = None
    reference: str | None = None

    @property
    def is_open(self) -> bool:
        """Whether a replay leaves open what it gains: it may be far more, as where partners are not known."""
        gain = self.gain_percent or 0.0
        return self.gain_bounds is not None and self.gain_bounds[1] >= max(_FAR_MORE * gain, gain + 1)

    @property
    def expected_percent(self) -> float:
        """The gain by which findings are put in order [%]: the middle of the bounds where it is open."""
        return sum(self.gain_bounds) / 2 if self.is_open and self.gain_bounds else self.gain_percent or 0.0

    @property
    def most_percent(self) -> float:
        """The most that it may gain [%]; more than `gain_percent` only where that is open."""
        return self.gain_bounds[1] if self.is_open and self.gain_bounds else self.gain_percent or 0.0
