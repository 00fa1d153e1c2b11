"""The report, checked by axe and Nu."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from rocpd.report.model import Report
from rocpd.report.writers.html import write_html
from tests.checkers import of_axe, of_nu


@pytest.fixture(scope="module")
def path(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checked") / "report.html"
    write_html(report, path)
    return path


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 400)])
def test_axe_finds_nothing(browser: Browser, path: Path, scheme: str, width: int) -> None:
    size = {"width": width, "height": 900}
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)  # type: ignore[arg-type]
    page = context.new_page()
    page.goto(path.as_uri())
    try:
        assert of_axe(page) == []
    finally:
        context.close()


def test_nu_finds_what_is_wrong_and_nothing_else(path: Path, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.html"
    wrong.write_text("<!doctype html><title>x</title><p><img src=x>", encoding="utf-8")
    findings = of_nu([path, wrong])
    assert any("alt" in line for line in findings)
    assert [line for line in findings if str(wrong) not in line] == []
