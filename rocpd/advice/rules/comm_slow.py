"""Collectives that are far slower than the best of the same size in the same job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocpd.advice import recording
from rocpd.advice.case import CannotLookError, Case, Row
from rocpd.advice.rule import Need, Rule, Threshold
from rocpd.summary.findings import Confidence, Finding
from rocpd.table.human import readable


def _look(case: Case) -> Iterator[Finding]:
    limits = case.limits
    rows = [row for row in case.rows("collectives") if row["bytes"] and row["bus_gb_per_s"]]
    if not rows:
        raise CannotLookError(recording.SIZES)
    large = [row for row in rows if row["bytes"] >= limits["least_mib"] * (1 << 20)]
    alike: dict[tuple[object, ...], list[Row]] = {}
    for row in large:
        alike.setdefault((row["name"], row["group"], row["bytes"]), []).append(row)
    compared = [some for some in alike.values() if len(some) >= limits["least_collectives"]]
    if not compared:
        raise CannotLookError(
            f"no collective of {limits['least_mib']:g} MiB or more is repeated {limits['least_collectives']:g} times"
        )
    for group in sorted({str(some[0]["group"]) for some in compared}):
        of_group = [some for some in compared if some[0]["group"] == group]
        slow = [_slow(some, limits["of_best_percent"] / 100) for some in of_group]
        if any(rows for rows, _ in slow):
            every = [row for rows, _ in slow for row in rows]
            yield _finding(case, group, every, sum(map(len, of_group)), sum(lost for _, lost in slow))


def _slow(alike: Sequence[Row], share: float) -> tuple[list[Row], int]:
    """Return the collectives that are slow among some that are alike, and the time that they take above the fastest."""
    best = max(float(row["bus_gb_per_s"]) for row in alike)
    fastest = min(int(row["min_ns"]) for row in alike)
    slow = [row for row in alike if row["bus_gb_per_s"] < share * best]
    return slow, sum(int(row["min_ns"]) - fastest for row in slow)


def _finding(case: Case, group: str, slow: Sequence[Row], count: int, lost: int) -> Finding:
    worst = min(slow, key=lambda row: float(row["bus_gb_per_s"]))
    text = (
        f"{len(slow)} of {count} large collectives of ranks {group} are slow: {worst['bus_gb_per_s']:.0f} GB/s on "
        f"the bus where the best of the same size ({readable(worst['bytes'], 'bytes')}) have more than twice that"
    )
    return Finding(
        text,
        RULE.id,
        confidence=Confidence.LIKELY,
        evidence={"slow": len(slow), "of": count, "bus_gb_per_s": worst["bus_gb_per_s"], "lost_ns": lost},
        shown_by="rocpd summary collectives JOB",
        gain_percent=case.job.share(lost),
        action="Look at what else uses the links at these times: other jobs on the switches, checkpoints, copies "
        "between hosts. NCCL_DEBUG=INFO says which network and how many channels RCCL takes; rccl-tests "
        "(`all_reduce_perf -b 8 -e 1G -f 2`) measures the links alone.",
        reference="https://rocm.docs.amd.com/projects/rccl/en/latest/how-to/troubleshooting-rccl.html",
    )


def _explains(cause: Finding, other: Finding) -> bool:
    """Whether it explains another finding: communication that is exposed for longer, or slow steps."""
    gain, other_gain = cause.gain_percent or 0.0, other.gain_percent or 0.0
    if other.rule == "comm.exposed":
        return gain * 3 >= other_gain
    return other.rule == "step.outlier" and other.rank is None and gain >= other_gain


RULE = Rule(
    id="comm.slow",
    asks="are collectives slower than others of the same size?",
    fires="collectives of {least_mib} MiB or more reach less than {of_best_percent} % of the bus bandwidth of the best "
    "one of the same size and group, of {least_collectives} or more. Gains the time above the fastest",
    look=_look,
    needs=(Need("collectives", recording.COLLECTIVES),),
    thresholds=(
        Threshold("of_best_percent", 40.0, "bus bandwidth by that of the best of the same size and group"),
        Threshold("least_mib", 1.0, "size of the result of collectives that are compared [MiB]"),
        Threshold("least_collectives", 5.0, "collectives of one size and group with which it looks"),
    ),
    explains=_explains,
)
