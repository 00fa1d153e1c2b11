"""Owns what rules answered: what was found, what that explains, and which rules looked or could not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rocpd.advice.case import JobFacts
from rocpd.frozen import frozen
from rocpd.summary.findings import Finding


class Explained(NamedTuple):
    """A finding that another one is the cause of."""

    finding: Finding
    cause: Finding


@frozen
class Answers:
    """What the rules of a job answered.

    Args:
        job: facts of the job; gains are shares of a step of its critical rank.
        findings: what was found; what the recording lacks first, then by what it may gain.
        explained: findings that have one of these as their cause.
        silent: rules that looked and found nothing that matters, by their ids.
        unable: for each rule that could not look the reason (`text`), with its id (`rule`).
    """

    job: JobFacts
    findings: tuple[Finding, ...]
    explained: tuple[Explained, ...]
    silent: tuple[str, ...]
    unable: tuple[Finding, ...]

    def effects(self, cause: Finding) -> Sequence[Finding]:
        """Return the findings that one explains."""
        return [explained.finding for explained in self.explained if explained.cause is cause]

    def effect_texts(self, cause: Finding) -> list[str]:
        """Return the same as people read them, each with its rule."""
        return [f"{effect.rule}: {effect.text}" for effect in self.effects(cause)]
