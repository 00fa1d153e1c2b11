"""Tells each cause once: what another finding is the reason of becomes part of that finding. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocpd.advice.answers import Explained
from rocpd.advice.rule import Rule
from rocpd.summary.findings import Finding


def report_once(
    findings: Sequence[Finding], rules: Mapping[str, Rule]
) -> tuple[tuple[Finding, ...], tuple[Explained, ...]]:
    """Divide findings into those that stand for themselves and those that one of these explains, in their order.

    Args:
        findings: problems.
        rules: by id; they say what explains what.
    """
    causes = [_cause_of(finding, findings, rules) for finding in findings]
    reported, explained = [], []
    for finding, cause in zip(findings, causes, strict=True):
        seen = [id(finding)]
        root = finding
        while cause is not None and id(cause) not in seen:
            root = cause
            seen.append(id(root))
            cause = causes[next(index for index, other in enumerate(findings) if other is root)]
        if root is finding or cause is not None:  # a circle explains nothing
            reported.append(finding)
        else:
            explained.append(Explained(finding, root))
    return tuple(reported), tuple(explained)


def _cause_of(finding: Finding, findings: Sequence[Finding], rules: Mapping[str, Rule]) -> Finding | None:
    others = (other for other in findings if other is not finding and other.rule != finding.rule)
    return next((other for other in others if rules[other.rule].explains(other, finding)), None)
