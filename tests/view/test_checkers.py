"""The pages of the viewer, checked by axe and Nu: as they are served, and as they are once filled."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from rocpd.view.server import ViewServer
from tests.checkers import of_axe, of_nu
from tests.soak import paired

_FILLED = {"": "#report[aria-busy=false] h2", "flame": "#flames[data-ready]", "diff": "#report[aria-busy=false] li"}


_LOOKS = [("light", 1280), ("dark", 400)]


@pytest.mark.soak(2)
def test_nothing_is_found(browser: Browser, server: ViewServer, tmp_path: Path) -> None:
    findings, files = {}, []
    for where, (scheme, width) in paired(_FILLED, _LOOKS):
        size = {"width": width, "height": 900}
        with browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True) as context:  # type: ignore[arg-type]
            page, name = context.new_page(), f"{where or 'view'}-{scheme}"
            page.goto(f"{server.address}{where}")
            page.wait_for_selector(_FILLED[where])
            served = context.request.get(f"{server.address}{where}").text()
            filled = f"<!doctype html>\n{page.evaluate('document.documentElement.outerHTML')}"
            findings[name] = of_axe(page)
        for kind, text in (("served", served), ("filled", filled)):
            files.append(tmp_path / f"{name}-{kind}.html")
            files[-1].write_text(text, encoding="utf-8")
    assert not any(findings.values()), findings
    assert of_nu(files) == []
