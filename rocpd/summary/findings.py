"""The conclusions of an analysis: one sentence each, with the numbers it rests on. Never reads events."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import field

from rocpd.base import frozen

JOB = "job"
"""The rule of the finding that says what the job is."""


class Verdict(enum.StrEnum):
    """The answer to a question. That nothing was found is one thing, that it could not be looked for another.

    `NOTE`: a fact that is neither good nor bad by itself.
    """

    PROBLEM = "problem"
    NOTE = "note"
    NONE = "none"
    UNKNOWN = "unknown"


class Confidence(enum.StrEnum):
    """How sure a finding is.

    `CERTAIN`: it follows from what was recorded. `LIKELY`: chance explains it in less than one case of a hundred.
    `HINT`: something else may explain it as well.
    """

    CERTAIN = "certain"
    LIKELY = "likely"
    HINT = "hint"


@frozen
class Finding:
    """A conclusion of an analysis.

    Tables of `rocpd summary` carry findings (`Summary.findings`): people see them above the table, with CSV, JSON and
    Parquet on stderr.

    Args:
        text: one sentence for a person in a hurry, with the numbers that matter; no full stop.
        rule: which question it answers, such as `comm.straggler`: a word that stays the same.
        verdict: `PROBLEM`, `NOTE`, `NONE`, or `UNKNOWN` where the data for an answer is missing: the text says which.
        confidence: how sure it is.
        rank: whom it concerns; None: the job, or several ranks.
        step: text of the marker of the step that it concerns.
        window: part of the time line that it concerns, from its start [ns].
        evidence: what it rests on: name, ending in its unit as columns do, -> value.
        agent: id of the agent that it concerns, in the file of the rank.
        shown_by: command that shows it.
        gain_percent: so much of a step of the job goes when the problem does, where `regained_by` says how that is
            replayed; else at most so much of a step of the critical rank. None: it costs no time, or nobody can say.
        gain_bounds: between which it is, where it is replayed [%].
        regained_by: command that replays the job without the problem.
        action: what to do, in a sentence or two.
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
