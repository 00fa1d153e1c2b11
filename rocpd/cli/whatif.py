"""`rocpd whatif`: how long a step would take, had something been different."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from rocpd.base import entries
from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Option
from rocpd.base.visible import as_data, visible
from rocpd.cli import tables
from rocpd.cli.build import Asked, also_takes
from rocpd.cli.diagnostics import clear_bars
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.facts.rank import Options
from rocpd.table import CONSOLE

_JSON = "json"


def _kinds(verb: str) -> list[str]:
    from rocpd.replay.changes import KINDS, Verb

    named = KINDS[Verb(verb)]
    return [f"{kind}:" if name and name[0] != "[" else kind for kind, name in named.items()]


_FORMS = {CONSOLE: ".txt", _JSON: ".json"}


@frozen
class Changed:
    """The changes."""

    without: Annotated[
        tuple[str, ...],
        Option(
            "What something takes beyond what is usual goes: straggler, rank:6, host:NAME, link:0-3, step:7; or all of "
            "call:REGEX, or of the longest gap of the host, gap:1.",
            "KIND:NAME",
            several=True,
            complete=partial(_kinds, "without"),
            is_plain=True,
        ),
    ] = ()
    scale: Annotated[
        tuple[str, ...],
        Option(
            "Times are multiplied: kernel:REGEX=0.7, call:REGEX=0, collective:all-reduce=0.8, link:0-3=0.5, "
            "rank:6=0.9, launch=0.5, compute=0.9, copies=0, host=0.5.",
            "KIND[:NAME]=FACTOR",
            several=True,
            complete=partial(_kinds, "scale"),
            is_plain=True,
        ),
    ] = ()
    overlap: Annotated[
        tuple[str, ...],
        Option(
            "comm, comm:RANKS or copies: they hold up no more than what needs all of them.",
            "KIND",
            several=True,
            complete=partial(_kinds, "overlap"),
            is_plain=True,
        ),
    ] = ()
    format: Annotated[str, tables.format_option("Format:", _FORMS.keys)] = ""


@also_takes(lambda: entries.declared(("categories", "step_marker"), Options))
def whatif(
    inputs: Inputs,
    changed: Changed,
    selection: SelectionOptions,
    output: TableOptions,
    execution: Execution,
    asked: Asked,
) -> None:
    """Predict how long a step would take, had something been different.

    The job is replayed, who waits for whom, with the changes; without any, with each cause that was found taken away,
    and with all of them. Between what and what the answer lies comes with it, and what a step then waits for.

    Examples:
        rocpd whatif job/
        rocpd whatif job/ --without straggler
        rocpd whatif job/ --scale launch=0.5 --overlap comm --format json
    """
    from rocpd.replay.changes import changes
    from rocpd.replay.whatif import what_if
    from rocpd.schema.rules.kernel_categories import load

    form, path = tables.form_and_path(changed.format, output, _FORMS)
    wanted = changes(changed.without, changed.scale, changed.overlap)
    if selection.window():
        raise UsageError("whatif replays whole jobs: a window has no effect", "rocpd trim writes the part of a window")
    options = Options(**asked.fields(Options))
    with selection.connect(inputs, execution, has_analyses=True) as session:
        answer = what_if(session, wanted, load(options.categories), options.step_marker)
    clear_bars()
    with tables.open_output(path, output) as out:
        if form == _JSON:
            as_data(out).write(json.dumps(answer.document(), indent=1, ensure_ascii=False) + "\n")
        else:
            out.writelines(f"{visible(line)}\n" for line in str(answer).splitlines())
