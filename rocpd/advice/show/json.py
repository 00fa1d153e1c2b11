"""Owns advice as JSON: its schema is documented in docs/advise.md, `version` counts changes that break readers."""

from __future__ import annotations

import json
from typing import Any

from rocpd.advice.answers import Answers
from rocpd.summary.findings import Finding

VERSION = 1


def as_json(advice: Answers, width: int | None = None) -> str:
    """Return the document; `width` is not looked at."""
    return json.dumps(document(advice), indent=1, ensure_ascii=False) + "\n"


def document(advice: Answers) -> dict[str, Any]:
    """Return it as dictionaries, lists and values of JSON."""
    job = advice.job
    return {
        "version": VERSION,
        "job": {
            "text": job.text,
            "ranks": list(job.ranks),
            "runs": job.runs,
            "critical_rank": job.critical,
            "step_ns": job.step_ns,
            "has_steps": job.has_steps,
        },
        "findings": [
            {**_finding(finding), "explains": [_finding(other) for other in advice.effects(finding)]}
            for finding in advice.findings
        ],
        "found_nothing": list(advice.silent),
        "could_not_look": [{"rule": finding.rule, "reason": finding.text} for finding in advice.unable],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    start, end = finding.window or (None, None)
    return {
        "rule": finding.rule,
        "text": finding.text,
        "confidence": finding.confidence.value,
        "gain_percent": finding.gain_percent,
        "rank": finding.rank,
        "agent": finding.agent,
        "step": finding.step,
        "start_ns": start,
        "end_ns": end,
        "evidence": dict(finding.evidence),
        "shown_by": finding.shown_by,
        "action": finding.action,
        "reference": finding.reference,
    }
