"""The OTF2 archive of a job: `<name>_otf2/<name>.otf2` and what belongs to it; `x.otf2/x.otf2` for `-o x.otf2`.

System tree: node > process (one per rank) > location: threads, agent streams, and one location per metric. Kernels,
copies, calls and markers are regions that are entered and left; counters and memory held are metrics. Times are
nanoseconds of the common time line.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from rocpd.convert.deliver.parts import split_outputs, write_parts
from rocpd.convert.deliver.placement import placements
from rocpd.convert.formats.otf2_rank import trace
from rocpd.convert.gather.context import Damage
from rocpd.convert.options import ConvertOptions
from rocpd.errors import UsageError
from rocpd.federate.federation import Federation
from rocpd.output import folder_complete_or_nothing
from rocpd.types import Progress


def write(session: Federation, options: ConvertOptions, progress: Progress | None = None) -> tuple[Path, ...]:
    """Write the folder `<name>_otf2`, or as the user named it; see `rocpd.convert.Format.write`.

    Raises:
        UsageError: the `otf2` wheel is not installed.
    """
    try:
        from rocpd.convert.formats.otf2_archive import Archive
    except ImportError as error:
        raise UsageError("otf2: the otf2 package is not installed", "pip install 'rocpd[otf2]'") from error
    outputs = split_outputs(placements(session), options.split)
    ending = options.ending_of("_otf2", ".otf2")
    folders = [options.path(output.infix + ending) for output in outputs]
    damage: list[Damage] = []
    written = []
    with contextlib.ExitStack() as stack:
        temporaries = [stack.enter_context(folder_complete_or_nothing(folder, options.force)) for folder in folders]
        traces = write_parts(trace, session, outputs, options.folder, options, progress)
        stack.callback(traces.close)
        for output, folder, temporary in zip(outputs, folders, temporaries, strict=True):
            name = f"{options.name}{output.infix}"
            archive = Archive(temporary, name)
            stack.callback(archive.abandon)
            for _ in output.ranks:
                _, rank = next(traces)
                archive.add(rank)
                damage.append(rank.damage)
                del rank  # before the next one comes
            archive.close()
            written.append(folder / f"{name}.otf2")
    Damage.report(damage, session.note)
    return tuple(written)
