"""OpenMetrics text, https://prometheus.io/docs/specs/om/open_metrics_spec/: gauges, nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

END = "# EOF\n"
"""The last line; readers take a text without it for an incomplete one."""

KIND = "application/openmetrics-text; version=1.0.0; charset=utf-8"
"""Content type."""


class MetricSample(NamedTuple):
    """A value of a gauge; None: unknown, so that there is no sample. `at`: its time [s since 1970]."""

    labels: Mapping[str, str]
    value: float | None
    at: float | None = None


def family(name: str, unit: str, meaning: str, samples: Iterable[MetricSample]) -> Iterator[str]:
    """Yield the lines of a gauge; none without a sample.

    Args:
        name: name of the gauge; it ends in the unit.
        unit: `seconds`, `bytes`, `joules`, `ratio` or empty.
        meaning: one sentence.
        samples: its values.

    >>> print(*family("step_seconds", "seconds", "Of a step.", [MetricSample({"job": "1"}, 0.5, 12.0)]), sep="", end="")
    # TYPE step_seconds gauge
    # UNIT step_seconds seconds
    # HELP step_seconds Of a step.
    step_seconds{job="1"} 0.5 12.000
    """
    if known := [sample for sample in samples if sample.value is not None]:
        yield f"# TYPE {name} gauge\n" + (f"# UNIT {name} {unit}\n" if unit else "") + f"# HELP {name} {meaning}\n"
    for labels, value, at in known:
        quoted = ",".join(f'{label}="{escaped(text)}"' for label, text in labels.items())
        when = "" if at is None else f" {at:.3f}"
        yield f"{name}{f'{{{quoted}}}' if quoted else ''} {value:.15g}{when}\n"


def escaped(text: str) -> str:
    """Return a text in the form between the quotes of a label."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
