"""`rocpd top` shows a job while it runs, on the screen, as lines, or for programs; `rocpd hang` finds missing ranks."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rocpd.base import Exit, InputError, UsageError, entries, frozen
from rocpd.base.option import Heading, declare, plain
from rocpd.base.texts import as_data, visible
from rocpd.cli import tables
from rocpd.cli.commands import Asked, also_takes
from rocpd.cli.diagnostics import asking_to_end, clear_bars, note, standard_output, until_ctrl_c
from rocpd.cli.options import Inputs, TableOptions
from rocpd.cli.terminal import is_interactive, screen_of
from rocpd.facts.rank import Options
from rocpd.live import AFTER_S

if TYPE_CHECKING:
    from rocpd.top.glance import Glance
    from rocpd.top.watch import Watch


_PAUSE_S = 0.05  # between two checks whether to look; shorter than any interval


@frozen
class TopOptions:
    """The part of the job, and its presentation."""

    HEADING = Heading.OUTPUT

    once: bool = plain(False, "Print the present state, and end.")
    follow: bool = plain(False, "Print a line each time, until the job or Ctrl-C ends it.")
    interval: float = plain(1.0, "At most so often.", "S", least=0.1)
    steps: int = plain(20, "Conclusions are about so many of the last steps.", "N", least=1)
    seconds: float = declare(30.0, "Without steps: about so many of the last seconds.", "S", least=0.1)
    alert: str = plain("", "Say so when this is exceeded.", "straggler=5%,silent=30s,step=1.5,hang=30s")
    exec: str = plain("", "Run this for alerts, without a shell; $ROCPD_ALERT, … say why.", "PROGRAM")
    metrics: str = plain("", "Answer scrapes of OpenMetrics, such as Prometheus'.", "127.0.0.1:PORT")
    redact: bool = declare(False, "Leave out where and by whom the job runs.")
    format: str = tables.format_option("Format of --once and --follow:", tables.TEXT_OR_JSON.keys)


@also_takes(lambda: entries.declared(("categories", "step_marker"), Options))
def top(inputs: Inputs, shown: TopOptions, output: TableOptions, asked: Asked) -> None:
    """Show a job while it runs: steps, ranks that cost time, who is silent.

    Files may appear, grow, and end meanwhile; only new rows are read, and nothing is written beside them. Conclusions
    are those of rocpd summary, on the last steps that are finished on all ranks, or on all of a finished job.
    Keys: q ends, h or ? shows the others.

    Examples:
        rocpd top
        rocpd top job/ --once --format json
        rocpd top job/ --follow --alert straggler=5%,silent=30s --exec ./page-me
        rocpd top job/ --follow --metrics 127.0.0.1:9400 --redact
    """
    from rocpd.top.alerts import Bell, Bounds, bounds_of
    from rocpd.top.watch import Watch, WatchOptions

    if shown.once and shown.follow:
        raise UsageError("--once and --follow contradict each other")
    if shown.exec and not shown.alert:
        raise UsageError("--exec needs --alert", "such as --alert straggler=5%,silent=30s,step=1.5,hang=30s")
    form, path = tables.form_and_path(shown.format, output, tables.TEXT_OR_JSON)
    if not shown.once and (path or (form == tables.JSON and not shown.follow)):
        raise UsageError("-o and --format are for --once and --follow", "rocpd top job/ --once --format json")
    bell = Bell(bounds_of(shown.alert) if shown.alert else Bounds(), shown.exec, note)
    of_analyses = Options(**asked.fields(Options))
    options = WatchOptions(shown.steps, shown.seconds, rows_first=not shown.once, asked=of_analyses)
    with Watch(inputs.paths, options) as watch, _scraped(shown.metrics) as scraped:

        def look() -> Glance:
            glance = watch.look()
            bell.ring(glance)
            glance = glance.without_names() if shown.redact else glance
            scraped(glance)
            return glance

        if shown.once:
            _print(look(), form, output)
        elif shown.follow:
            with until_ctrl_c():
                _follow(look, watch, form, shown.interval)
        else:
            _show(look, watch, shown.interval)


@contextlib.contextmanager
def _scraped(address: str) -> Iterator[Callable[[Glance], None]]:
    """Yield a callback that serves each glance to scrapers."""
    if not address:
        yield lambda _: None
        return
    from rocpd.top.metrics import MetricsServer, address_of

    with MetricsServer(*address_of(address)) as server:
        note(f"metrics: {server.address}")
        yield server.show


def _print(glance: Glance, form: str, output: TableOptions) -> None:
    from rocpd.top.glance import JobState

    if glance.state is JobState.WAITING and not glance.ranks:
        raise InputError("; ".join(glance.problems), "without --once it is waited for")
    with tables.open_output(output.path(tables.TEXT_OR_JSON[form]), output) as out:
        tables.write_answer(glance.document(), glance.lines(screen_of(out)), out, form)


def _follow(look: Callable[[], Glance], watch: Watch, form: str, interval: float) -> None:
    from rocpd.top.glance import JobState

    with standard_output() as out:
        while True:
            due = time.monotonic() + interval
            glance = look()
            if form == tables.JSON:
                as_data(out).write(json.dumps(glance.document(), ensure_ascii=False) + "\n")
            else:
                out.write(f"{time.strftime('%H:%M:%S', time.localtime(glance.at_s))}  {visible(glance.line())}\n")
            out.flush()
            if glance.state is JobState.ENDED:
                return
            while time.monotonic() < due and not watch.can_conclude():
                time.sleep(_PAUSE_S)


def _show(look: Callable[[], Glance], watch: Watch, interval: float) -> None:
    """Show the job on the screen.

    Raises:
        UsageError: there is no terminal, or the package that draws is not installed.
    """
    if importlib.util.find_spec("textual") is None:
        hint = "pip install 'rocpd[top]'; without it: rocpd top --once, or --follow"
        raise UsageError("the package textual is not installed", hint)
    if not is_interactive():
        raise UsageError("no terminal to show it on", "rocpd top --once, or --follow")
    from rocpd.top.screen import TopScreen

    screen = TopScreen(look, watch, interval, has_colours=not os.environ.get("NO_COLOR"))
    with asking_to_end(screen.end):
        screen.run()


@frozen
class HangOptions:
    """When a job hangs."""

    after: float = plain(AFTER_S, "Seconds without progress after which a group is stuck.", "S", least=0, most=86_400)
    format: str = tables.format_option("Format:", tables.TEXT_OR_JSON.keys)


def hang(inputs: Inputs, asked: HangOptions, output: TableOptions) -> int:
    """Say whether a job hangs, which rank is missing, and who waits.

    For a running or killed job whose recorder keeps the unfinished work beside each database. Ends with 1 if the job
    hangs, and with 4 if that is not recorded.

    Examples:
        rocpd hang job/
        rocpd hang job/ --format json
    """
    from rocpd.live.hang import Hanging
    from rocpd.live.hang import hang as answer_of
    from rocpd.session import connect

    form, path = tables.form_and_path(asked.format, output, tables.TEXT_OR_JSON)
    with connect(inputs.paths or None, skip_bad=inputs.skip_bad, on_note=note) as session:
        answer = answer_of(session, asked.after)
    clear_bars()
    with tables.open_output(path, output) as out:
        tables.write_answer(answer.document(), answer.lines, out, form)
    codes = {Hanging.YES: Exit.FAILED, Hanging.UNKNOWN: Exit.UNCLEAR}
    return codes.get(answer.verdict, Exit.GOOD)
