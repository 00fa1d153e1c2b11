"""What to do: the findings of the rules of advice by what they may gain, and which rules could not look."""

from __future__ import annotations

from collections.abc import Iterator

from rocpd.advice.judge import judge
from rocpd.advice.registry import known_rules
from rocpd.advice.show.text import looked, unable
from rocpd.advice.thresholds import thresholds
from rocpd.report.contents import ADVISED
from rocpd.report.material import Material
from rocpd.report.model import Block, Column, Table, Text
from rocpd.summary.findings import Finding
from rocpd.summary.result import Summary
from rocpd.trace.kernel_categories import load
from rocpd.types import Row

_COLUMNS = (
    Column("rule", "", "what `rocpd advise --explain` takes", False),
    Column("at most", "%", "share of a step of the critical rank that it may gain; nothing: it costs no time", True),
    Column("finding", "", "what was found", False),
    Column("what to do", "", "in a sentence or two", False),
    Column("see", "", "command that shows it", False),
)


def advice(material: Material) -> Iterator[Block]:
    """Yield what `rocpd advise` says."""
    tables: dict[str, Summary] = {}
    for question in ADVISED:
        tables |= material.tables(question.analysis, question.by)
    rules = known_rules()
    categories = load(material.reading.options.categories)
    answers = judge(material.session, tables, rules, thresholds(rules), categories, material.inputs)
    yield Text(f"{looked(answers)}.")
    if answers.findings:
        rows = tuple(map(_row, answers.findings))
        about = "What costs time or hides it, by what it may gain at most; gains do not add up."
        yield Table("advice", "Findings", about, _COLUMNS, rows, len(rows), f"rocpd advise {material.inputs}")
    for reason, ids in unable(answers).items():
        yield Text(f"Could not look: {', '.join(ids)}: {reason}.")


def _row(finding: Finding) -> Row:
    return finding.rule, finding.gain_percent, finding.text, finding.action, finding.shown_by
