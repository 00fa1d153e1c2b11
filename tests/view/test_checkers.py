"""The pages of the viewer, checked by axe and Nu: as they are served, and as they are once filled."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from rocpd.view.server import ViewServer
from tests.checkers import of_axe, of_nu

_FILLED = {"": "#report[aria-busy=false] h2", "flame": "#flames[data-ready]", "diff": "#report[aria-busy=false] li"}


@pytest.mark.parametrize("where", _FILLED)
@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_nothing_is_found(
    browser: Browser, server: ViewServer, where: str, scheme: str, width: int, tmp_path: Path
) -> None:
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(f"{server.address}{where}")
    page.wait_for_selector(_FILLED[where])
    files = tmp_path / "served.html", tmp_path / "filled.html"
    files[0].write_text(context.request.get(f"{server.address}{where}").text(), encoding="utf-8")
    files[1].write_text(f"<!doctype html>\n{page.evaluate('document.documentElement.outerHTML')}", encoding="utf-8")
    try:
        assert of_axe(page) == []
        assert of_nu(files) == []
    finally:
        context.close()
