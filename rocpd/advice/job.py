"""Finds the facts of a job that gains are measured by. Never judges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rocpd.advice.case import JobFacts
from rocpd.federate.facts import importers_of
from rocpd.federate.federation import Federation
from rocpd.summary.findings import Finding, Verdict
from rocpd.summary.overview import job_finding
from rocpd.summary.result import Summary
from rocpd.summary.verdict import RULE as STRAGGLER
from rocpd.trace.recorders import recorder_of


def job_of(session: Federation, tables: Mapping[str, Summary]) -> JobFacts:
    """Return the facts of a job.

    Args:
        session: what was read.
        tables: `budget` by rank, `ranks` and `steps`, as far as they are known.
    """
    shares: dict[int, dict[str, float]] = {}
    times: Counter[int] = Counter()
    steps: dict[int, float] = {}
    for rank, part, time, per_step, percent in tables.get("budget", ()):
        shares.setdefault(rank, {})[part] = percent or 0.0
        times[rank] += time
        if per_step is not None:
            steps[rank] = steps.get(rank, 0.0) + per_step
    longest = max(times, key=lambda rank: (times[rank], -rank), default=None)
    critical = _critical(session, tables, shares) if session.runs == 1 else longest
    whole = 0.0 if critical is None else float(times[critical])
    return JobFacts(
        text=job_finding(session, tables).text,
        ranks=tuple(sorted(shares)),
        runs=session.runs,
        critical=critical,
        step_ns=whole if critical is None else steps.get(critical, whole),
        has_steps=critical in steps,
        times=times,
        shares=shares,
        recorder=recorder_of(importers_of(session)),
        is_part=session.is_part,
    )


def _critical(
    session: Federation, tables: Mapping[str, Summary], shares: Mapping[int, Mapping[str, float]]
) -> int | None:
    """Return the rank that holds the others up, or else the one that spends least time in exposed communication."""
    blamed = _blamed(tables["ranks"].findings if "ranks" in tables else ())
    if blamed:
        host = blamed.evidence.get("hostname")
        suspects = [
            rank.number for rank in session.ranks if blamed.rank == rank.number or (host and rank.hostname == host)
        ]
        shares = {rank: share for rank, share in shares.items() if rank in suspects} or shares
    return min(shares, key=lambda rank: (shares[rank].get("exposed communication", 0.0), rank), default=None)


def _blamed(findings: tuple[Finding, ...]) -> Finding | None:
    guilty = (each for each in findings if each.rule == STRAGGLER and each.verdict is Verdict.PROBLEM)
    return next(guilty, None)
