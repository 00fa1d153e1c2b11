"""`rocpd advise`: what to do about what costs time; `rocpd whatif`: how long a step would take without it."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

from rocpd.base import UsageError, entries, frozen
from rocpd.base.option import plain
from rocpd.base.texts import as_data
from rocpd.cli import tables
from rocpd.cli.commands import Asked, also_takes
from rocpd.cli.diagnostics import clear_bars, index_hint, job_text, progress
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.cli.terminal import screen_of
from rocpd.facts.rank import Options
from rocpd.table import CONSOLE

_FEW = 3  # inputs that commands name one by one


def _forms() -> tuple[str, ...]:
    from rocpd.advice.advice import FORMS

    return tuple(FORMS)


@frozen
class AdviceChoice:
    """The question to the rules."""

    thresholds: Path | None = plain(None, "Other thresholds, TOML: [rule] name = number.", "FILE")
    explain: str | None = plain(None, "Only explain a rule: what it needs and when it fires.", "RULE")
    list: bool = plain(False, "List the rules.")
    format: str = tables.format_option("Format:", _forms)


@also_takes(lambda: entries.declared(("categories", "step_marker"), Options))
def advise(
    inputs: Inputs,
    chosen: AdviceChoice,
    selection: SelectionOptions,
    output: TableOptions,
    execution: Execution,
    asked: Asked,
) -> None:
    """Say what costs time, and what to do about it.

    Rules look at the job one after the other. What they find comes in the order of what it gains: by how much a step
    gets shorter when the job is replayed without it; gains do not add up. A rule without its data says what to record.
    The exit code is 0 whether anything is found or not.

    Examples:
        rocpd advise job/
        rocpd advise job/ --format json -o advice.json
        rocpd advise --explain gpu.starved
    """
    from rocpd.advice.advice import FORMS
    from rocpd.advice.judge import advise as ask

    if chosen.list or chosen.explain:
        _write_rules(chosen.explain, output)
        return
    name, path = tables.form_and_path(chosen.format, output, {name: form.ending for name, form in FORMS.items()})
    with (
        selection.connect(inputs, execution, has_analyses=True) as session,
        index_hint(session.lacks_index),
        progress(f"advice on {job_text(session)}", "") as report,
    ):
        words = shlex.join(inputs.paths) if len(inputs.paths) <= _FEW else None
        advice = ask(session, Options(**asked.fields(Options)), chosen.thresholds, report, words)
    clear_bars()
    with tables.open_output(path, output) as out:
        screen = screen_of(out)
        shown = out if name == CONSOLE else as_data(out)
        shown.write(FORMS[name].text(advice, screen.width if screen else None))


def _write_rules(name: str | None, output: TableOptions) -> None:
    """Write what one rule is, None: the list of all."""
    from rocpd.advice.registry import explained, listed

    lines = list(explained(name) if name else listed())
    with tables.open_output(None, output) as out:
        out.writelines(f"{line}\n" for line in lines)


def _kinds(verb: str) -> list[str]:
    from rocpd.replay.changes import KINDS, Verb

    named = KINDS[Verb(verb)]
    return [f"{kind}:" if name and name[0] != "[" else kind for kind, name in named.items()]


@frozen
class Changed:
    """The changes."""

    without: tuple[str, ...] = plain(
        (),
        "What something takes beyond what is usual goes: straggler, rank:6, host:NAME, link:0-3, step:7; or all of "
        "call:REGEX with its waits for the GPU, or of the longest gap of the host, gap:1.",
        "KIND:NAME",
        several=True,
        complete=partial(_kinds, "without"),
    )
    scale: tuple[str, ...] = plain(
        (),
        "Times are multiplied: kernel:REGEX=0.7, call:REGEX=0 (but for its waits), collective:all-reduce=0.8, "
        "link:0-3=0.5, rank:6=0.9, launch=0.5, compute=0.9, copies=0, host=0.5.",
        "KIND[:NAME]=FACTOR",
        several=True,
        complete=partial(_kinds, "scale"),
    )
    overlap: tuple[str, ...] = plain(
        (),
        "comm, comm:RANKS or copies: they hold up no more than what needs all of them.",
        "KIND",
        several=True,
        complete=partial(_kinds, "overlap"),
    )
    format: str = tables.format_option("Format:", tables.TEXT_OR_JSON.keys)


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
    with all of them, and without copies, communication or host work where a step waits long for these. Between what
    and what the answer lies comes with it, and what a step then waits for.

    Examples:
        rocpd whatif job/
        rocpd whatif job/ --without straggler
        rocpd whatif job/ --scale launch=0.5 --overlap comm --format json
    """
    from rocpd.replay.changes import changes
    from rocpd.replay.whatif import what_if
    from rocpd.schema.rules.kernel_categories import load

    form, path = tables.form_and_path(changed.format, output, tables.TEXT_OR_JSON)
    wanted = changes(changed.without, changed.scale, changed.overlap)
    if selection.window():
        raise UsageError("whatif replays whole jobs: a window has no effect", "rocpd trim writes the part of a window")
    options = Options(**asked.fields(Options))
    with (
        selection.connect(inputs, execution, has_analyses=True) as session,
        progress(f"replays of {job_text(session)}", "") as report,
    ):
        answer = what_if(session, wanted, load(options.categories), options.step_marker, report)
    clear_bars()
    with tables.open_output(path, output) as out:
        tables.write_answer(answer.document(), str(answer).splitlines(), out, form)
