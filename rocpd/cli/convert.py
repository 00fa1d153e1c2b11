"""`rocpd convert`: traces in the formats that other tools read."""

from __future__ import annotations

from rocpd.base import UsageError, entries, frozen
from rocpd.base.option import Heading, plain
from rocpd.cli.commands import Asked, also_takes
from rocpd.cli.diagnostics import note, progress, report_written, size_of
from rocpd.cli.options import JobChoice, OutputOptions, PassOptions
from rocpd.convert import Format, check_options, endings_of, find, known_formats
from rocpd.convert.options import GZIP, ConvertOptions


def _names() -> list[str]:
    return [name for entry in known_formats().values() for name in (entry.name, *entry.aliases)]


def _listing() -> str:
    formats = known_formats().values()
    aliases = [f"{alias} (= {entry.name})" for entry in formats for alias in entry.aliases]
    return ", ".join([*(entry.name for entry in formats), *aliases])


@frozen
class FormatChoice:
    """The formats to write."""

    formats: tuple[str, ...] = plain(
        (),
        "Formats, several after one flag; else by the ending of -o:",
        "FORMAT...",
        ("-f", "--output-format", "--format"),
        Heading.OUTPUT,
        complete=_names,
        listing=_listing,
    )


@also_takes(lambda: entries.shown({name: entry.options for name, entry in known_formats().items()}))
def convert(job: JobChoice, chosen: FormatChoice, passes: PassOptions, output: OutputOptions, asked: Asked) -> None:
    """Write traces and tables that other tools read.

    Nothing is dropped. Outputs are <DIR>/<NAME>_results.pftrace, <NAME>_results.otf2, <NAME>_kernel_trace.csv …,
    <NAME>.json, and the folder <NAME>_parquet.

    Examples:
        rocpd convert job/ --format pftrace
        rocpd convert job/ -o middle.pftrace --start 40% --end 60%
        rocpd convert a.db b.db --format csv parquet -d out
    """
    formats = _formats(chosen, output)
    asked.refuse_taken({name: entry.options for name, entry in formats.items()})
    if without_effect := check_options(formats.values(), asked.given):
        note(f"without effect on {', '.join(formats)}: {', '.join(without_effect)}")
    target = output.destination(endings_of(formats.values()))
    options = ConvertOptions.at(target, output.force, **asked.fields(ConvertOptions))
    with job.connect(all_passes=passes.all_passes) as opened:
        session = opened.in_rows
        for word, entry in formats.items():
            with progress(f"convert {word}", size=lambda: size_of(session)) as report:
                written = entry.write(session, options, report)
            for path in written:
                report_written(path, is_archive=entry.is_archive)


def _formats(chosen: FormatChoice, output: OutputOptions) -> dict[str, Format]:
    """Return the formats by the words that name them; without words, the format of the output's ending.

    Raises:
        UsageError: there is none, or a word is unknown.
    """
    if chosen.formats:
        named = [_find(word, is_first=not number) for number, word in enumerate(chosen.formats)]
        return {entry.name: entry for entry in named}
    name = (output.name or "").removesuffix(GZIP)
    formats = {entry.name: entry for entry in known_formats().values() if name.endswith(entry.endings or "/")}
    if not formats:
        raise UsageError("no output format given", f"-f {' | '.join(known_formats())}")
    return formats


def _find(word: str, *, is_first: bool) -> Format:
    """Return a format by name; an unknown word after the first is reported as a possible missing input."""
    try:
        return find(word)
    except UsageError as error:
        message = error.message if is_first else f"{word}: neither a format nor a file"
        raise UsageError(message, error.hint) from error
