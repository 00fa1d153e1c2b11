"""The OTF2 archive of a job: `<name>_results.otf2`, `.def` and a folder of events; `x.otf2` … for `-o x.otf2`.

System tree: node > process (one per rank) and node > GPU; locations of a process are threads, those of a GPU its
streams, and there is one per metric. Kernels, copies, calls and markers are regions that are entered and left, with
category as an attribute; counters and held memory are metrics. Ranks that are known to run a collective of RCCL
together form a communicator, and the collective begins and ends on the stream of its kernel on each of them. Times are
nanoseconds, as recorded if hosts have clocks of their own: records of the offsets of these clocks, with their standard
deviation, let readers lay them on the common time line, as the format defines it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rocpd.base import Progress, UsageError
from rocpd.base.output import complete_or_nothing, folder_complete_or_nothing, workplace
from rocpd.convert.deliver import Placement, placements, rank_parts, split_outputs
from rocpd.convert.formats.otf2_rank import ClockOffset, collectives, trace, within
from rocpd.convert.gather.context import Damage
from rocpd.convert.options import ConvertOptions
from rocpd.federate.federation import Federation

_DEVIATIONS = 1.4826  # standard deviation of a normal distribution by its median distance


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write `<name>_results.otf2` and its other files; see `rocpd.convert.Format.write`.

    Raises:
        UsageError: the `otf2` wheel is not installed.
    """
    try:
        from rocpd.convert.formats.otf2_archive import Archive
    except ImportError as error:
        raise UsageError("otf2: the otf2 package is not installed", "pip install 'rocpd[otf2]'") from error
    on_line = placements(session)
    clocks = _clocks(session, on_line)
    outputs = split_outputs([each.by_its_clock() for each in on_line] if clocks else on_line, options.split)
    ending = options.ending_of("_results.otf2", ".otf2")
    anchors = [options.path(output.infix + ending) for output in outputs]
    damage: list[Damage] = []
    with contextlib.ExitStack() as stack:
        places = [stack.enter_context(_place(anchor, options.force)) for anchor in anchors]
        folder = stack.enter_context(workplace(options.folder))
        ranks = [placement for output in outputs for placement in output.ranks]
        of_job = collectives(session, ranks, options.group_by_queue)
        traces = stack.enter_context(rank_parts(trace, session, outputs, options, progress))
        for output, anchor, take in zip(outputs, anchors, places, strict=True):
            inside = within(of_job, {placement.rank.number for placement in output.ranks})
            archive = Archive(folder, anchor.stem, inside, clocks)
            stack.callback(archive.abandon)
            for _ in output.ranks:
                _, rank = next(traces)
                archive.add(rank)
                damage.append(rank.damage)
                del rank  # before the next one comes
            archive.close()
            take(folder / anchor.stem)
    Damage.report(damage, session.note)
    return tuple(anchors)


def _clocks(session: Federation, ranks: Sequence[Placement]) -> dict[int, ClockOffset]:
    """Return rank number -> the offset of its clock; empty if times are written on the common time line."""
    clocks = {}
    for placement in ranks:
        number, clock = placement.rank.number, placement.clock
        if clock and number in session.spans:
            clocks[number] = ClockOffset(session.spans[number], clock.shift, _DEVIATIONS * (clock.likely_ns or 0))
    lasts = all(each.shift.to_line(each.span.start) > 0 for each in clocks.values())  # times have no sign
    return clocks if lasts else {}


@contextlib.contextmanager
def _place(anchor: Path, force: bool) -> Iterator[Callable[[Path], None]]:
    """Make room for an archive, and yield a function that moves a complete one there, by its path without endings.

    The anchor, through which readers find the other files, appears last.
    """
    path = anchor.with_name(anchor.stem)
    with (
        complete_or_nothing(anchor, force) as of_anchor,
        complete_or_nothing(path.with_name(f"{path.name}.def"), force) as definitions,
        folder_complete_or_nothing(path, force) as events,
    ):

        def take(archive: Path) -> None:
            Path(f"{archive}.otf2").replace(of_anchor)
            Path(f"{archive}.def").replace(definitions)
            archive.replace(events)  # which is empty

        yield take
