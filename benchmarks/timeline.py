"""The time line of `rocpd view`, 64 ranks of 300k events: until it is drawn, scripted draws, an open rank, the page."""

from __future__ import annotations

import math
import shutil
import time

from playwright.sync_api import CDPSession, Page, sync_playwright

from benchmarks.measure import job, scaled
from rocpd.view.desk import ViewedJob
from rocpd.view.server import ViewLimits, ViewServer, find_ui

DRAWS = 200
_READY = "#strip[data-ready]"
_LINE = "document.querySelector('#strip').timeLine"
_PATIENCE_MS = 600_000


def run() -> None:
    """Print wall seconds until ranks and an open one are drawn, CPU of draws at p95 [ms], and the page's memory."""
    files = tuple(map(str, job(64, 300_000)))
    viewer = ViewServer(ViewedJob(files), find_ui("online"), ViewLimits())
    with viewer as server, server.serving(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.route("**/report*", lambda route: route.abort())  # it is measured elsewhere
        measure(page, server.address, len(files))
        browser.close()


def measure(page: Page, address: str, ranks: int) -> None:
    """Draw a job, then with a rank open, and print what it took."""
    start = time.perf_counter()
    page.goto(address)
    page.wait_for_selector(_READY, timeout=_PATIENCE_MS)
    print(f"{ranks} ranks, none read before: drawn after {time.perf_counter() - start:.1f} s")
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    print(f"draws at p95: {_p95(page, devtools):.1f} ms CPU (bar: 33)")
    start = time.perf_counter()
    page.evaluate(f"() => {{ const line = {_LINE}; line.open.add(0); line.lay(); line.look(); }}")
    page.wait_for_function(f"() => {_LINE}.rows.get(0)", timeout=_PATIENCE_MS)
    print(f"a rank opened after {time.perf_counter() - start:.1f} s")
    print(f"draws at p95 with it: {_p95(page, devtools):.1f} ms CPU (bar: 33)")
    print(f"memory of scripts: {_metric(devtools, 'JSHeapUsedSize') / 1e6:.0f} MB (bar: 300)")


def _p95(page: Page, devtools: CDPSession) -> float:
    """Pan and zoom by a script, and return the CPU time of a draw [ms]: wall time is that of others, too."""
    times = []
    for number in range(scaled(DRAWS)):
        middle, span = 0.5 + 0.4 * math.sin(number / 9), 2 ** (-6 * abs(math.sin(number / 40)))
        move = f"line.move(({middle} - {span / 2}) * line.whole[1], ({middle} + {span / 2}) * line.whole[1])"
        page.evaluate(f"() => {{ const line = {_LINE}; {move}; }}")
        page.wait_for_timeout(20)
        before = _metric(devtools, "ScriptDuration")
        page.evaluate(f"() => {_LINE}.draw()")
        times.append(_metric(devtools, "ScriptDuration") - before)
    return sorted(times)[int(0.95 * (len(times) - 1))] * 1e3


def _metric(devtools: CDPSession, name: str) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == name))
