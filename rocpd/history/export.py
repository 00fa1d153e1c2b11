"""A history for other tools: OpenMetrics text and CSV, which Grafana reads, and a dashboard of Grafana for it.

OpenMetrics has times in seconds, and one sample per run and metric, with the time of the run; `promtool tsdb
create-blocks-from openmetrics` loads it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rocpd.history.history import JobHistory, labels_text, names_of
from rocpd.history.series import MetricSeries
from rocpd.history.store import COMMAND, unit_of
from rocpd.table.openmetrics import END, MetricSample, escaped, family

_FAMILY = "rocpd_history"
_MEANING = {
    "value": "Of a run.",
    "level": "Of a run without noise.",
    "low": "Lower end of what 95 of 100 runs of the level take.",
    "high": "Upper end of it.",
}


def open_metrics(history: JobHistory) -> Iterator[str]:
    """Yield the lines of OpenMetrics text: values, levels and ends of bands of all metrics."""
    for unit, factor in (("seconds", 1e-9), ("bytes", 1.0), ("joules", 1.0)):
        chosen = [each for each in history.fitted.values() if _unit(each) == unit]
        for end, meaning in _MEANING.items():
            samples = (sample for each in chosen for sample in _samples(history, each, end, factor))
            yield from family(f"{_FAMILY}_{end}_{unit}", unit, meaning, samples)
    yield END


_GRAFANA = {"seconds": "s", "joules": "joule"}


def _unit(series: MetricSeries) -> str:
    return {"ns": "seconds", "J": "joules"}.get(unit := unit_of(series.name), unit)


def _columns(series: MetricSeries) -> Mapping[str, list[float]]:
    return dict(zip(_MEANING, (series.values.tolist(), *(end.tolist() for end in series.band())), strict=True))


def _samples(history: JobHistory, series: MetricSeries, end: str, factor: float) -> Iterator[MetricSample]:
    metric, of = names_of(series.name)
    labels = {"job": str(history.asked.job), "metric": metric, "name": of or ""}
    for place, value in zip(series.places.tolist(), _columns(series)[end], strict=True):
        yield MetricSample(labels, value * factor, history.entries[place].at / 1e9)


def as_csv(history: JobHistory) -> Iterator[str]:
    """Yield the lines of CSV: a row per run and metric, with the time in Grafana's form."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("time_ms", "run", "labels", "metric", "name", *_MEANING))
    for series in history.fitted.values():
        for place, *ends in zip(series.places.tolist(), *_columns(series).values(), strict=True):
            entry = history.entries[place]
            about = entry.at // 10**6, place + 1, labels_text(entry)
            writer.writerow((*about, *(text or "" for text in names_of(series.name)), *ends))
    yield out.getvalue()


def dashboard(history: JobHistory) -> Iterator[str]:
    """Yield a dashboard of Grafana over the OpenMetrics text: a panel per metric, with its band and level."""
    panels = [_panel(number, series) for number, series in enumerate(history.fitted.values())]
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    first, last = (history.entries[at].at // 10**6 for at in (0, -1))
    content = {
        "title": f"rocpd: {history.entries[-1].config.get(COMMAND) or history.entries[-1].name}",
        "uid": f"{_FAMILY}_{history.asked.job}",
        "schemaVersion": 39,
        "time": {"from": _at(first), "to": _at(last)},
        "templating": {"list": [source]},
        "panels": panels,
    }
    yield json.dumps(content, indent=1) + "\n"


def _at(milliseconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _panel(number: int, series: MetricSeries) -> dict[str, Any]:
    metric, of = names_of(series.name)
    chosen = f'{{metric="{metric}",name="{escaped(of or "")}"}}'
    unit = _unit(series)
    targets = [
        {"refId": end, "expr": f"{_FAMILY}_{end}_{unit}{chosen}", "legendFormat": end, "datasource": _SOURCE}
        for end in _MEANING
    ]
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": of or metric,
        "datasource": _SOURCE,
        "gridPos": {"x": number % 2 * 12, "y": number // 2 * 8, "w": 12, "h": 8},
        "fieldConfig": {"defaults": {"unit": _GRAFANA.get(unit, unit)}, "overrides": [_BAND]},
        "targets": targets,
    }


_SOURCE = {"type": "prometheus", "uid": "${source}"}
_BAND = {
    "matcher": {"id": "byName", "options": "high"},
    "properties": [{"id": "custom.fillBelowTo", "value": "low"}, {"id": "custom.lineWidth", "value": 0}],
}

EXPORTS: Mapping[str, Callable[[JobHistory], Iterator[str]]] = {
    ".prom": open_metrics,
    ".csv": as_csv,
    ".json": dashboard,
}
"""Ending of the file -> writer; the output of the first one goes to stdout by default."""
