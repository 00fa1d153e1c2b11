"""Owns `rocpd summary`: where the time went, per kernel, copy, function, marker or domain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from rocpd.base import entries
from rocpd.base.errors import UsageError
from rocpd.base.frozen import frozen
from rocpd.base.option import Heading, Option
from rocpd.base.types import AmdVersion, Row
from rocpd.cli import tables
from rocpd.cli.analyses import Delivery, TextDelivery, amds_tables, run_analyses
from rocpd.cli.argv import split_names
from rocpd.cli.build import Asked, also_takes
from rocpd.cli.diagnostics import note
from rocpd.cli.options import Execution, Inputs, SelectionOptions, TableOptions
from rocpd.facts.rank import By, Options
from rocpd.schema.rules.kernel_names import KernelNames
from rocpd.summary.registry import (
    OVERVIEW,
    SUMMARIES,
    TOTALS,
    Analysis,
    check_options,
    known_analyses,
    tables_of,
    texts_of,
)
from rocpd.table import find_format, format_names

if TYPE_CHECKING:
    from rocpd.session import Session
    from rocpd.summary.summarize import SummaryOptions

ALL = "all"
"""Stands for every analysis that is built in; those that lack data say so."""


def _names() -> list[str]:
    return [*tables_of(known_analyses()), ALL]


def _formats() -> list[str]:
    return [*format_names(of_analyses=True), *texts_of(known_analyses())]


def _format_listing() -> str:
    texts = [
        f"of {name}: {', '.join(text.name for text in analysis.texts)}"
        for name, analysis in known_analyses().items()
        if analysis.texts
    ]
    return "; ".join([", ".join(format_names(of_analyses=True)), *texts])


@frozen
class NamesAndInputs(Inputs):
    """Names of analyses, and which files are read."""

    words: Annotated[
        tuple[str, ...],
        Option(
            "Names of summaries (--list), then files, globs, folders, *.rpdb packages.",
            "[NAMES] [INPUTS]...",
            is_positional=True,
            complete=_names,
        ),
    ] = ()


@frozen
class SummaryChoice:
    """What is summarised, and how it looks."""

    by: Annotated[By | None, Option("Divide named summaries.")] = None
    list: Annotated[bool, Option("List the names of summaries.")] = False
    list_categories: Annotated[bool, Option("List the domains and categories that the inputs hold.")] = False
    summary_by_rank: Annotated[bool, Option("Without names: also each table by rank.")] = False
    domain_summary: Annotated[bool, Option("Without names: also the time by domain.")] = False
    region_categories: Annotated[
        tuple[str, ...],
        Option("Without names: domains to show, HIP MARKERS KERNEL …, or NONE: no API domains.", "NAME..."),
    ] = ()
    amd: Annotated[bool, Option("The tables that AMD's users know, as without names.")] = False
    amd_version: Annotated[AmdVersion, Option("Heads and categories of AMD's tool of this year.")] = AmdVersion.V2025
    mangled_kernels: Annotated[bool, Option("Mangled kernel names.")] = False
    truncate_kernels: Annotated[bool, Option("Kernel names without signature and template.")] = False
    full_names: Annotated[bool, Option("Kernel names in full, which the console and pages show short.")] = False
    format: Annotated[
        str, tables.format_option("Format of the tables, else by the ending of -o:", _formats, _format_listing)
    ] = ""
    follow: Annotated[
        bool,
        Option("op-trace --format logduration: print kernels as files grow, until Ctrl-C.", heading=Heading.OUTPUT),
    ] = False
    limit: Annotated[int, Option("Rows per table on the console; 0 shows all.", heading=Heading.OUTPUT, least=0)] = 20

    @property
    def kernel_names(self) -> KernelNames:
        """Which name of a kernel counts.

        Raises:
            UsageError: two of them.
        """
        asked = [name for name, is_given in self._forms.items() if is_given]
        if len(asked) > 1:
            options = " and ".join(option for _, option in asked)
            raise UsageError(f"{options} contradict each other")
        return asked[0][0] if asked else KernelNames.DISPLAY

    @property
    def _forms(self) -> dict[tuple[KernelNames, str], bool]:
        return {
            (KernelNames.MANGLED, "--mangled-kernels"): self.mangled_kernels,
            (KernelNames.TRUNCATED, "--truncate-kernels"): self.truncate_kernels,
            (KernelNames.FULL, "--full-names"): self.full_names,
        }

    @property
    def is_amds(self) -> bool:
        """Whether an option of AMD's tables is given."""
        asked = self.amd or self.summary_by_rank or self.domain_summary or bool(self.region_categories)
        return asked or self.amd_version is not AmdVersion.V2025

    @property
    def amds_options(self) -> SummaryOptions:
        """What is asked of AMD's tables.

        Raises:
            UsageError: what should be a domain is no name.
        """
        from rocpd.summary.summarize import SummaryOptions

        names = self.region_categories
        for name in names:
            if not re.fullmatch(r"[\w-]+", name):
                raise UsageError(f"--region-categories {name}: not the name of a domain", "such as HIP MARKERS KERNEL")
        regions = [name for name in names if name.upper() != "NONE"] if names else None
        return SummaryOptions(self.summary_by_rank, self.domain_summary, regions, self.kernel_names, self.amd_version)


@also_takes(lambda: entries.shown({name: analysis.options for name, analysis in known_analyses().items()}))
def summary(
    inputs: NamesAndInputs,
    chosen: SummaryChoice,
    selection: SelectionOptions,
    output: TableOptions,
    execution: Execution,
    asked: Asked,
) -> None:
    """Show where the time went, exact over all ranks.

    Without names: what is wrong, what the time consists of, and what takes it. With names: those summaries, with
    suitable units on the console and exact in files; `all` is every one.

    With --amd, another option of AMD's tables, or --format and no names: the tables that AMD's users know. Durations
    are nanoseconds, percentages are of the table (by rank: of the rank), STD_DEV is the sample deviation. On the
    console and without -o or -d they go to stdout; else one file each, <NAME>_<table>.<format>.

    Examples:
        rocpd summary
        rocpd summary job/*.db --summary-by-rank --format csv -d summaries
        rocpd summary -i a.db b.db --region-categories HIP MARKERS --domain-summary
        rocpd summary kernels gaps --by rank job/
        rocpd summary ranks job/ --auto-roi
    """
    analyses = known_analyses()
    if chosen.list:
        _write(("name", "more tables", "what"), _listing(analyses), output)
        return
    names, paths = _names_and_paths(chosen, inputs, output, analyses)
    if not chosen.list_categories:
        given = [name for name in asked.given if name != "step_marker" or selection.step is None]
        asked.refuse_taken(check_options(names or TOTALS, given, analyses))
    options = Options(chosen.by, chosen.kernel_names, **asked.fields(Options))
    delivery = _delivery(chosen, output, names, analyses)
    if chosen.follow:
        _follow(delivery, inputs.only(paths), selection, execution, options)
        return
    with selection.connect(inputs.only(paths), execution, has_analyses=True) as session:
        if chosen.list_categories:
            _list_categories(session, output)
        elif isinstance(delivery, TextDelivery):
            delivery.write(session, options)
        elif names:
            delivery.write(*run_analyses(session, names, options))
        else:
            delivery.write(*amds_tables(session, chosen.amds_options))


def _names_and_paths(
    chosen: SummaryChoice, inputs: NamesAndInputs, output: TableOptions, analyses: Mapping[str, Analysis]
) -> tuple[list[str], list[str]]:
    """Return the names of the analyses that are asked for, none for AMD's tables, and the files.

    Raises:
        UsageError: names, and options of AMD's tables.
    """
    certain = [word for word in inputs.named if os.path.lexists(word)]
    names, others = split_names([word for word in inputs.paths if word not in certain], [*tables_of(analyses), ALL])
    paths = [*certain, *others]
    for name in () if paths else filter(os.path.isdir, names):
        note(f"{name} is the summary; the folder of that name is ./{name}")
    names = [name for name in SUMMARIES if name != OVERVIEW] if ALL in names else list(dict.fromkeys(names))
    if chosen.by and not names:
        names = list(TOTALS)
    if not names and not chosen.is_amds and not chosen.format and not output.is_asked:
        names = [OVERVIEW]
    if names and chosen.is_amds:
        raise UsageError(
            "--summary-by-rank, --domain-summary, --region-categories and --amd are for summaries without names",
            "with names: --by rank, `domains`, --category",
        )
    return names, paths


def _follow(
    delivery: Delivery | TextDelivery,
    inputs: Inputs,
    selection: SelectionOptions,
    execution: Execution,
    options: Options,
) -> None:
    """Print kernels as files grow, and each note once.

    Raises:
        UsageError: something else was asked for, or a file to write.
    """
    from rocpd.cli.diagnostics import note
    from rocpd.cli.follow import follow
    from rocpd.federate.federation import Notes

    if not isinstance(delivery, TextDelivery) or delivery.text.name != "logduration":
        raise UsageError(
            "--follow: only op-trace in the format logduration can go on as files grow",
            "rocpd summary op-trace --format logduration --follow",
        )
    if delivery.target:
        raise UsageError("--follow: writes to stdout: a file appears when it is complete", "leave out -o and -d")
    notes = Notes(note)

    def connect() -> Session:
        return selection.connect(inputs, execution, has_analyses=True, on_note=notes.add)

    with tables.open_output(None, delivery.output) as out:
        follow(connect, inputs.paths, options, out, notes.add)


def _delivery(
    chosen: SummaryChoice, output: TableOptions, names: Sequence[str], analyses: Mapping[str, Analysis]
) -> Delivery | TextDelivery:
    """Return how the tables of analyses, or AMD's if none is named, are delivered.

    Raises:
        UsageError: an unknown format, or one that is for another analysis.
    """
    texts = texts_of(analyses)
    endings = {text.ending: name for name, forms in texts.items() for text in forms.values()} | tables.endings()
    name = chosen.format.lower() or tables.format_by_ending(output.name, endings)
    if name in texts:
        forms = texts[name]
        if len(names) != 1 or names[0] not in forms:
            which = " and ".join(forms)
            raise UsageError(
                f"--format {name} is a format of {which}", f"rocpd summary {next(iter(forms))} --format {name}"
            )
        text = forms[names[0]]
        target = output.destination([text.ending]) if output.is_asked else None
        return TextDelivery(names[0], text, target, output)
    form = find_format(name, of_analyses=True, further=texts)
    to_files = output.is_asked or (form is not None and (form.is_columnar or not names))
    target = output.destination([tables.ending_of(form)]) if to_files else None
    return Delivery(form, target, output, chosen.limit, is_split=not names)


def _write(columns: Sequence[str], rows: Iterator[Row], output: TableOptions) -> None:
    with tables.open_output(None, output) as out:
        tables.write_rows(columns, rows, out)


def _listing(analyses: Mapping[str, Analysis]) -> Iterator[Row]:
    """Yield (name, tables beside the one of that name, what it says) of every analysis."""
    return ((name, " ".join(analysis.tables[1:]), analysis.help) for name, analysis in analyses.items())


def _list_categories(session: Session, output: TableOptions) -> None:
    from rocpd.federate.select.filters import event_categories

    _write(("domain", "category", "events"), iter(event_categories(session.map_ranks)), output)
