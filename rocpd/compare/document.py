"""Owns the JSON of a comparison: `VERSION` says which form it has. Keys are added, and never change their meaning."""

from __future__ import annotations

from typing import Any

from rocpd.compare.comparison import Comparison
from rocpd.compare.tables import percent, tables_of

VERSION = 1
"""Of the form of the document; a change of a meaning makes it another one."""

_TABLES = {
    "parts": "diff-parts",
    "kernels": "diff-kernels",
    "categories": "diff-categories",
    "markers": "diff-markers",
    "operators": "diff-operators",
    "ranks": "diff-ranks",
}


def document_of(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as a JSON document."""
    decision, ratio = comparison.decision, comparison.decision.ratio
    tables = {table.name: table for table in tables_of(comparison)}
    rows = {
        key: [dict(zip(tables[name].columns, row, strict=True)) for row in tables[name]] if name in tables else []
        for key, name in _TABLES.items()
    }
    return {
        "rocpd_diff": VERSION,
        "verdict": decision.verdict.value,
        "confidence": decision.confidence.value,
        "reason": decision.reason or None,
        "runs_needed": decision.needed,
        "metric": comparison.metric.name,
        "metric_unit": comparison.metric.unit,
        "unit": comparison.unit,
        "base": {"runs": list(comparison.base), "median": decision.medians[0]},
        "new": {"runs": list(comparison.new), "median": decision.medians[1]},
        "change_percent": percent(ratio.estimate) if ratio else None,
        "low_percent": percent(ratio.low) if ratio else None,
        "high_percent": percent(ratio.high) if ratio else None,
        "margin_percent": decision.margin * 100,
        "p": decision.p,
        "comparable": {
            "score": comparison.comparability.score,
            "is_enough": comparison.comparability.is_enough,
            "differences": list(comparison.comparability.sentences),
        },
        "unit_ns": {
            "base": comparison.attribution.unit.base,
            "new": comparison.attribution.unit.new,
            "change": comparison.attribution.unit.change,
        },
        **rows,
        "findings": [
            {"rule": finding.rule, "verdict": finding.verdict.value, "text": finding.text}
            for finding in comparison.findings
        ],
    }
