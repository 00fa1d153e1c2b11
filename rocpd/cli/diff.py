"""`rocpd diff`: whether one job is slower than another, and why; a gate for CI by its exit code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from rocpd.base.amount import amount
from rocpd.base.errors import Exit, UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.base.visible import as_data
from rocpd.cli import tables
from rocpd.cli.analyses import Delivery
from rocpd.cli.diagnostics import ReaderGoneError, note, progress
from rocpd.cli.options import Execution, Inputs, PlaceOptions, SelectionOptions, SpanOptions, TableOptions
from rocpd.cli.terminal import screen_of
from rocpd.compare.options import STEP, DiffOptions
from rocpd.table import find_format

if TYPE_CHECKING:
    from rocpd.compare.comparison import Comparison
    from rocpd.compare.run import Comparing
    from rocpd.compare.run_profile import RunProfile
    from rocpd.session import Session

_JSON = "json"


@frozen
class DiffInputs:
    """The two sides."""

    HEADING: ClassVar = Heading.INPUTS

    words: Annotated[
        tuple[str, ...],
        Option(
            "Base and other side, each a file, folder or package; the base may be one of --save-baseline.",
            "[BASE] [NEW]",
            is_positional=True,
            is_plain=True,
        ),
    ] = ()
    base: Annotated[
        tuple[str, ...],
        Option("Runs of the base, several after one flag, or a file of --save-baseline.", "RUN...", is_plain=True),
    ] = ()
    new: Annotated[tuple[str, ...], Option("Runs of the other side.", "RUN...", is_plain=True)] = ()
    history: Annotated[
        Path | None,
        Option(
            "The base is the newest level of this history, and runs deviate as they do there.", "STORE", is_plain=True
        ),
    ] = None
    against: Annotated[
        str | None,
        Option("Steps or ranks of one job to compare with: numbers, or others (the default).", "LIST", is_plain=True),
    ] = None
    skip_bad: Annotated[bool, Option("Leave out files that cannot be read, and report them.")] = False

    @property
    def is_one_job(self) -> bool:
        """Whether one job is named: two words are two sides, unless --against says otherwise."""
        return not (self.base or self.new or self.history) and (len(self.words) != 2 or self.against is not None)

    def sides(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the inputs of the base and of the other side.

        Raises:
            UsageError: they are not two.
        """
        base, left = (self.base, self.words) if self.base else (self.words[:1], self.words[1:])
        new, left = (self.new, left) if self.new else (left[:1], left[1:])
        if not base or not new or left:
            count = amount(len(self.words) + len(self.base) + len(self.new), "input")
            several = "several runs a side: --base a1 a2 --new b1 b2; within a job: --step N, --rank N"
            raise UsageError(f"{count}: not a base and another side", f"rocpd diff BASE NEW; {several}")
        return base, new


@frozen
class DiffSelection(SpanOptions, PlaceOptions):
    """The part of both sides that counts; of one job the steps or ranks that are compared with its others."""

    step: Annotated[
        str | None,
        Option(
            "Of one job: compare these steps with --against. Of two sides: only these steps.", "LIST", is_plain=True
        ),
    ] = None
    rank: Annotated[
        str | None,
        Option(
            "Of one job: compare these ranks with --against. Of two sides: only these ranks.",
            "LIST",
            heading=Heading.FILTERS,
            complete_from="ranks",
            is_plain=True,
        ),
    ] = None

    def selected(self, *, has_rank: bool) -> SelectionOptions:
        """Return it as other commands have it; `has_rank`: whether ranks are filtered. Steps are `Comparing`'s."""
        chosen = {field.name: getattr(self, field.name) for field in fields(self)}
        return SelectionOptions(**{**chosen, "step": None, "rank": self.rank if has_rank else None})

    @property
    def is_within(self) -> bool:
        """Whether steps or ranks are named."""
        return self.step is not None or self.rank is not None

    @property
    def text(self) -> str:
        """The selection, as a command has it; empty: everything."""
        values = [(field, getattr(self, field.name)) for field in fields(self)]
        given = ((field.name.replace("_", "-"), value) for field, value in values if value != field.default)
        return " ".join(f"--{name} {value}" for name, value in given)


@frozen
class Gate:
    """The exit code and the file of the base."""

    allow_unclear: Annotated[bool, Option("End with 0 where the verdict is unclear.")] = False
    save_baseline: Annotated[
        Path | None,
        Option(
            "Write what there is to compare of runs, and compare nothing.",
            "FILE",
            heading=Heading.OUTPUT,
            is_plain=True,
        ),
    ] = None
    accept: Annotated[bool, Option("Make the other side the base, in the file of the base; needs --reason.")] = False
    reason: Annotated[str | None, Option("Why a change is accepted.", "TEXT")] = None
    format: Annotated[str, tables.format_option("Format, else by the ending of -o:", tables.of_analyses)] = ""
    json: Annotated[bool, Option("The same as --format json.", heading=Heading.OUTPUT)] = False


def diff(
    inputs: DiffInputs,
    asked: DiffOptions,
    gate: Gate,
    selection: DiffSelection,
    output: TableOptions,
    execution: Execution,
) -> int:
    """Say whether a job is slower than another, and where.

    A side is one run or several. With one run a side most differences are unclear, because runs differ by themselves.
    Ends with 0 where the verdict is same or faster, 1 slower, 4 unclear; 2 is wrong usage, 3 any failure.

    Examples:
        rocpd diff before/ after/
        rocpd diff --base a1 a2 a3 --new b1 b2 b3
        rocpd diff job/ --step 16 --against 15
        rocpd diff job/ --rank 10
        rocpd diff --save-baseline main.json --base run1 run2 run3
        rocpd diff --base main.json --new run4 --format md -o comment.md
        rocpd diff after/ --history store/
    """
    from rocpd.compare.comparison import compare
    from rocpd.compare.options import metric_of
    from rocpd.compare.run import Comparing

    metric = metric_of(asked.metric)
    asked.pattern()
    is_within = _is_within(inputs, selection, gate, metric.name != STEP)
    opening = partial(_open, inputs=inputs, selection=selection.selected(has_rank=not is_within), execution=execution)
    steps, text = (None, "") if is_within else (selection.step, selection.text)
    comparing = Comparing(asked, metric, opening, partial(progress, "diff", "ranks"), steps, text, note)
    if gate.save_baseline:
        _save(comparing, inputs, gate.save_baseline, output)
        return Exit.GOOD
    if is_within:
        return show(_within(comparing, inputs, selection), gate, output)
    if inputs.history:
        return show(_with_history(comparing, inputs, gate), gate, output)
    base, new = inputs.sides()
    _check_acceptance(gate, base)
    runs = comparing.runs(new)
    comparison = compare(comparing.runs(base), runs, asked, metric)
    if gate.accept:
        _accept(Path(base[0]), comparison, runs, gate.reason or "")
    return show(comparison, gate, output)


def _is_within(inputs: DiffInputs, selection: DiffSelection, gate: Gate, has_metric: bool) -> bool:
    """Return whether steps or ranks of one job are compared.

    Raises:
        UsageError: they are, and something is asked for that they don't have; or --against where they are not.
    """
    is_within = inputs.is_one_job and selection.is_within and not gate.save_baseline
    if inputs.against is not None and not is_within:
        raise UsageError("--against needs one job, and --step or --rank", "rocpd diff JOB --step 16 --against 15")
    if is_within and selection.step is not None and selection.rank is not None:
        raise UsageError("--step and --rank: only one of them can be compared", "rocpd diff JOB --step 16")
    if is_within and selection.rank is not None and has_metric:
        raise UsageError("--metric: ranks are compared by their time without waiting", "--step takes other metrics")
    if is_within and gate.accept:
        raise UsageError("--accept changes a file of --save-baseline; steps and ranks of one job have none")
    return is_within


def _open(
    paths: Sequence[str], inputs: DiffInputs, selection: SelectionOptions, execution: Execution
) -> AbstractContextManager[Session]:
    return selection.connect(Inputs(tuple(paths), skip_bad=inputs.skip_bad), execution, has_analyses=True)


def _within(comparing: Comparing, inputs: DiffInputs, selection: DiffSelection) -> Comparison:
    """Compare steps or ranks of one job."""
    against = inputs.against or "others"
    if selection.step is not None:
        return comparing.compare_steps(inputs.words, selection.step, against)
    return comparing.compare_ranks(inputs.words, selection.rank or "", against)


def _with_history(comparing: Comparing, inputs: DiffInputs, gate: Gate) -> Comparison:
    """Compare runs with the newest level of a history.

    Raises:
        UsageError: a base is named too, or no run.
    """
    from rocpd.history.history import history_of

    named = (*inputs.words, *inputs.new)
    if inputs.base or gate.accept or not named or inputs.history is None:
        raise UsageError("--history is the base, and runs are compared with it", "rocpd diff NEW --history STORE")
    runs = comparing.runs(named)
    return history_of(inputs.history, runs[0]).against(runs, comparing.options)


def show(comparison: Comparison, gate: Gate, output: TableOptions) -> Exit:
    """Write a comparison and return what it means, also where its reader has seen enough."""
    code = _code(comparison, gate)
    try:
        _write(comparison, gate, output)
    except ReaderGoneError as gone:
        gone.code = code
        raise
    return code


def _code(comparison: Comparison, gate: Gate) -> Exit:
    from rocpd.compare.decision import ChangeVerdict

    if gate.accept:
        return Exit.GOOD
    if comparison.verdict is ChangeVerdict.SLOWER:
        return Exit.FAILED
    if comparison.verdict is ChangeVerdict.UNCLEAR and not gate.allow_unclear:
        return Exit.UNCLEAR
    return Exit.GOOD


def _write(comparison: Comparison, gate: Gate, output: TableOptions) -> None:
    """Write a comparison in the format that was asked for."""
    from rocpd.compare.tables import TABLES, document_of, sheets_of, tables_of, write_text

    name = _JSON if gate.json else gate.format or tables.format_by_ending(output.name, tables.endings())
    form = find_format(name, of_analyses=True)
    if form and not form.is_page and form.name != _JSON:
        Delivery.of(form, output).write(tables_of(comparison), list(TABLES))
        return
    with tables.open_output(output.path(tables.ending_of(form)), output) as out:
        if form is None:
            write_text(comparison, out, screen_of(out))
        elif form.is_page:
            form.write_page(sheets_of(comparison), as_data(out))
        else:
            json.dump(document_of(comparison), out, indent=1)
            out.write("\n")


def _save(comparing: Comparing, inputs: DiffInputs, path: Path, output: TableOptions) -> None:
    """Write a baseline of all runs that are named.

    Raises:
        UsageError: no run is named.
    """
    from rocpd.compare.run_profile import Baseline

    named = [*inputs.base, *inputs.words, *inputs.new]
    if not named:
        raise UsageError("--save-baseline: no runs are named", "rocpd diff --save-baseline main.json --base run1 run2")
    runs = comparing.runs(named)
    with tables.open_output(path, output) as out:
        out.write(Baseline(tuple(runs)).text())


def _check_acceptance(gate: Gate, base: Sequence[str]) -> None:
    """Refuse early what can't be accepted.

    Raises:
        UsageError: the base is no file of `--save-baseline`, or no reason is given.
    """
    if not gate.accept:
        if gate.reason is not None:
            raise UsageError("--reason says why a change is accepted: it needs --accept")
        return
    if not gate.reason:
        raise UsageError("--accept needs a reason", '--reason "larger model"')
    from rocpd.compare.run_profile import is_baseline

    if len(base) != 1 or not is_baseline(base[0]):
        raise UsageError("--accept changes a file of --save-baseline, and the base is a recording", "--base main.json")


def _accept(path: Path, comparison: Comparison, runs: Sequence[RunProfile], reason: str) -> None:
    """Make the other side the base, with a record of why."""
    from datetime import UTC, datetime

    from rocpd.base.evidence import renewing
    from rocpd.compare.run_profile import accepted, load_baseline

    text, *_ = (finding.text for finding in comparison.findings)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    record = {"at": at, "reason": reason, "verdict": comparison.verdict.value, "text": text, "runs": comparison.new}
    renewing(path)
    with tables.open_output(path, TableOptions(force=True)) as out:
        out.write(accepted(load_baseline(path), runs, record).text())
