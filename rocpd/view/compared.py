"""The viewer's questions for flame graphs and comparisons of a job. Derives nothing: flame graphs come from analyses,
comparisons from `rocpd diff`.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any

from rocpd.base import InputError, RocpdError, UsageError, frozen
from rocpd.chart.model import Flames
from rocpd.compare.options import DiffOptions
from rocpd.compare.run import Comparing
from rocpd.compare.tables import tables_of
from rocpd.facts.rank import Options
from rocpd.report.build import ReportOptions, base_of, build, inputs_of
from rocpd.report.contents import COMPARED
from rocpd.report.material import Material
from rocpd.report.model import Section
from rocpd.report.sections import comparison
from rocpd.report.writers.html import body
from rocpd.session import Session
from rocpd.summary.host.calls import Charts, charts, charts_of_stacks
from rocpd.summary.reading import Reading
from rocpd.table.palette import colour_of
from rocpd.view.desk import ViewedJob
from rocpd.view.questions import TakenPart

_FLAMES: Mapping[str, Charts] = {"calls": charts, "stacks": charts_of_stacks}


@frozen
class FlameGraphs:
    """Flame graphs of a part: of `calls`, or of recorded `stacks`.

    The answer has `missing`: the reason why there are none; and `graphs`: `title`, `unit`, `total`, `colour`, `frames`
    (name, depth, start, value, own) and `functions` (name, value, own) of each.
    """

    source: str
    part: TakenPart

    def of(self, session: Session) -> dict[str, Any]:
        """Return the answer for a job.

        Raises:
            UsageError: the source is unknown.
            InputError: a file is damaged.
        """
        if self.source not in _FLAMES:
            raise UsageError(f"no flame graph is of {self.source}", f"one of {', '.join(_FLAMES)}")
        try:
            graphs = list(map(self._graph, _FLAMES[self.source](Reading(self.part.of(session)))))
        except InputError:
            raise
        except RocpdError as error:
            return {"graphs": [], "missing": error.message}
        return {"graphs": graphs, "missing": ""}

    def _graph(self, chart: Flames) -> dict[str, Any]:
        return {
            "title": f"{self.source}, {chart.title}",
            "unit": chart.unit,
            "total": chart.total,
            "colour": colour_of("compute" if chart.is_gpu else "HIP").hex,
            "frames": [[each.name, each.depth, each.start, each.value, each.own_value] for each in chart.frames],
            "functions": chart.functions,
        }


@frozen
class ComparedSteps:
    """The differences between a step of a job and another one, or `others`."""

    step: str
    against: str

    def of(self, session: Session) -> str:
        """Return HTML for a page; errors as `Comparing.compare_steps`."""
        comparing = Comparing(DiffOptions(), lambda _: nullcontext(session))
        compared = comparing.compare_steps([inputs_of(session)], self.step, self.against)
        tables = {table.name: table for table in tables_of(compared)}
        material = Material(session, Options(), {COMPARED: tables}, {}, inputs_of(session))
        return body([Section("comparison", "What differs", tuple(comparison(material)))])


@frozen
class ComparedJobs:
    """The differences between a job and a base."""

    base: ViewedJob

    def of(self, session: Session) -> str:
        """Return HTML for a page; errors as `rocpd.compare.run.profiles_of`."""
        with self.base.connect() as base:
            compared = base_of(base, Options())
        return body(build(session, ReportOptions(("comparison",), base=compared)).sections)
