"""Gains of findings: the job replayed without what they are about. Reads nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import replace

from rocpd.advice.rule import Rule
from rocpd.base.errors import RocpdError
from rocpd.replay.whatif import Replays
from rocpd.summary.findings import Finding


def replayed(finding: Finding, rule: Rule, replays: Callable[[], Replays]) -> Finding:
    """Return a finding with what it gains by a replay; as it is where none can say that."""
    changes = rule.without(finding)
    if not changes:
        return finding
    try:
        predicted = replays().predict(changes)
    except RocpdError:  # nothing of that in the steps that count
        return finding
    least, most = predicted.gains
    words = shlex.join(word for change in predicted.changes for word in str(change).split(" ", 1))
    return replace(
        finding,
        gain_percent=predicted.gain * 100,
        gain_bounds=(least * 100, most * 100),
        regained_by=f"rocpd whatif JOB {words}",
    )
