"""The pages of the documentation site, checked by axe and Nu as a web server hands them out."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from tests.checkers import of_axe, of_nu
from tests.soak import sample

_LOOKS = [("light", 1280), ("dark", 400), ("dark", 1280), ("light", 400)]


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def address(site: Path) -> Iterator[str]:
    """The address of a server of the site; paths that lead nowhere there would be found too late from a disk."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def looks(browser: Browser) -> Iterator[list[BrowserContext]]:
    """Browsers of both schemes and widths."""
    contexts = [
        browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,  # type: ignore[arg-type]
            bypass_csp=True,
        )
        for scheme, width in _LOOKS
    ]
    yield contexts
    for context in contexts:
        context.close()


@pytest.mark.soak(23)
def test_axe_finds_nothing(site: Path, address: str, looks: list[BrowserContext]) -> None:
    """Pages in one of the four looks, in turn: those of a kind stand one after the other."""
    findings = {}
    for path, context in zip(sample(sorted(site.rglob("*.html")), 23), cycle(looks), strict=False):
        page = context.new_page()
        page.goto(f"{address}/{path.relative_to(site)}")
        found = of_axe(page)
        if found:
            findings[path.name] = found
        page.close()
    assert findings == {}


@pytest.mark.soak(2)
def test_nu_finds_nothing(site: Path) -> None:
    assert of_nu(sample(sorted(site.rglob("*.html")), 8)) == []
