"""Owns `rocpd counters`: what was counted, what it suffices for, and what to collect."""

from __future__ import annotations

from typing import Annotated

from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.cli import tables
from rocpd.cli.analyses import Delivery, run_analyses
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.facts.rank import Options
from rocpd.table import find_format

_TABLES = ("collected", "passes", "panels", "to-collect")


@frozen
class CountersChoice:
    """How it looks."""

    format: Annotated[str, tables.FORMAT] = ""
    limit: Annotated[int, Option("Rows per table on the console; 0 shows all.", heading=Heading.OUTPUT, least=0)] = 0


def counters(
    inputs: Inputs, chosen: CountersChoice, selection: SelectionOptions, output: TableOptions, execution: Execution
) -> None:
    """Show which hardware counters were collected, and for what.

    Which counters, in which passes of the program, for how many dispatches; how much the times of passes differ; how
    many metrics of each panel have all their counters, and the options of rocprofv3 that collect the others. The panels
    themselves are analyses: `rocpd summary speed-of-light job/`.

    Examples:
        rocpd counters job/
        rocpd counters job/ --format csv -d counters
    """
    name = chosen.format.lower() or tables.format_by_ending(output.name, tables.endings())
    form = find_format(name, of_analyses=True)
    to_files = output.is_asked or (form is not None and form.is_columnar)
    target = output.destination([tables.ending_of(form)]) if to_files else None
    delivery = Delivery(form, target, output, chosen.limit)
    with selection.connect(inputs, execution, has_analyses=True) as session:
        summaries, _ = run_analyses(session, _TABLES, Options())
        known = {summary.name: summary for summary in summaries}
        shown = [known[name] for name in _TABLES if name in known]
        delivery.write(shown, [summary.name for summary in shown])
