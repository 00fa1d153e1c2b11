"""The page in a real browser: by keyboard and mouse, light, dark and printed, without network and without script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

import rocpd
from rocpd.report.build import build
from rocpd.report.model import Report
from rocpd.report.writers.html import write_html
from rocpd.simulator import JobOptions, simulate
from tests.soak import sized

_CONTRASTS = """() => {
    const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((part) => part / 255)
        .map((part) => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4)
        .reduce((sum, part, at) => sum + part * [.2126, .7152, .0722][at], 0);
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const colour = parse(getComputedStyle(element).backgroundColor);
            if (colour.length === 3 || colour[3] > 0) return colour;
        }
        return [255, 255, 255];
    };
    const bad = [];
    for (const element of document.querySelectorAll("body *")) {
        if (![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim())) continue;
        if (["SCRIPT", "STYLE", "TITLE", "title", "desc"].includes(element.tagName)) continue;
        const style = getComputedStyle(element), ground = behind(element);
        const opacity = Number(element.getAttribute("opacity") || 1);
        const ink = parse(element.tagName === "text" ? style.fill : style.color).slice(0, 3)
            .map((part, at) => part * opacity + ground[at] * (1 - opacity));
        const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a);
        if ((high + .05) / (low + .05) < 4.5) bad.push(element.outerHTML.slice(0, 100));
    }
    return bad;
}"""


@pytest.fixture(scope="module")
def path(report: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(report, path)
    return path


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """One for all tests; what goes wrong in it, and whatever it asks for, fails the last one."""
    context = browser.new_context(viewport={"width": 1000, "height": 800})
    asked: list[str] = []
    wrong: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    opened = context.new_page()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert wrong == []
    assert [url for url in asked if not url.startswith(("data:", "file:"))] == []
    assert len({url for url in asked if url.startswith("file:")}) == 1


@pytest.fixture
def page(tab: Page, path: Path) -> Page:
    """The page, as it is when it was opened."""
    tab.emulate_media(color_scheme="light", media="screen")
    tab.goto(path.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    return tab


def column(page: Page, name: str, place: int) -> list[str]:
    """Return the texts of a column of the rows that are seen."""
    rows = page.locator(f".table.{name} tbody tr:not([hidden])")
    return rows.locator(f"td:nth-child({place})").all_inner_texts()


def test_tables_are_sorted_by_keyboard(page: Page) -> None:
    head = page.locator(".table.kernels th", has_text="calls")
    before = column(page, "kernels", 3)
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, "kernels", 3) == sorted(before, key=int, reverse=True) != before
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, "kernels", 3) == sorted(before, key=int)


def test_times_are_sorted_by_value(page: Page) -> None:
    """As texts 18 us would come after 1.2 ms."""
    head = page.locator(".table.kernels th", has_text="max")
    head.get_by_role("button").click()
    scale = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    values = [float(number) * scale[unit] for number, unit in map(str.split, column(page, "kernels", 10))]
    assert values == sorted(values, reverse=True)


def test_rows_are_filtered(page: Page) -> None:
    names = column(page, "kernels", 1)
    page.get_by_label("filter rows of Kernels, most time first").fill("gemm")
    assert column(page, "kernels", 1) == [name for name in names if "GEMM" in name] != names


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 23, 27)"}[scheme]
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate(_CONTRASTS) == []


def test_colours_can_be_chosen(page: Page) -> None:
    page.get_by_role("button", name="Dark colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 23, 27)"
    page.get_by_role("button", name="Light colours").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_printing_is_light(page: Page) -> None:
    page.emulate_media(color_scheme="dark", media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()


def test_the_time_line_is_zoomed(page: Page) -> None:
    page.evaluate("addEventListener('rocpd-window', (event) => { window.part = event.detail; })")
    line = page.locator("#time-line-figure > svg.broad")
    whole = page.locator("#time-line-figure text[data-tick]").first.text_content()
    line.scroll_into_view_if_needed()
    box = line.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "busy" in page.locator("#time-line-figure output").inner_text()
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + box["height"] / 2)
    page.mouse.up()
    part = page.evaluate("window.part")
    assert 0 < part["start"] < part["end"]
    assert page.locator("#time-line-figure text[data-tick]").first.text_content() != whole
    line.press("0")
    assert page.evaluate("window.part") is None


def test_on_a_telephone_text_is_large_and_nothing_is_cut(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    wide = (
        "() => [...document.querySelectorAll('body, .table')].filter((each) => each.scrollWidth > each.clientWidth + 1)"
    )
    assert page.evaluate(f"{wide}.map((each) => each.getAttribute('aria-label'))") == []
    sizes = page.evaluate(
        """() => [...document.querySelectorAll("figure > svg")].filter((each) => each.checkVisibility())
        .map((each) => 12 * each.getBoundingClientRect().width / each.viewBox.baseVal.width)"""
    )
    assert len(sizes) > 5
    assert min(sizes) >= 11
    page.set_viewport_size({"width": 1000, "height": 800})


def test_names_of_what_is_drawn(page: Page) -> None:
    for figure in page.locator("figure > svg").all():
        assert figure.get_attribute("role") in ("img", "group")
        assert figure.get_attribute("aria-label")
        assert figure.locator("desc").count() == 1


def test_without_script_all_is_there(browser: Browser, path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("figure svg").count() > 5
    assert page.locator(".table.kernels tbody tr").count() > 5
    context.close()


@pytest.mark.soak(2)
def test_a_job_of_many_ranks_is_short(browser: Browser, tmp_path: Path) -> None:
    simulate(
        JobOptions(tmp_path / "job", ranks=sized(24, 64), nodes=8, steps=4, seed=3, plant="straggler,slow-step,leak")
    )
    with rocpd.connect(tmp_path / "job") as session:
        write_html(build(session), tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 400_000
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((tmp_path / "report.html").as_uri())
    assert page.evaluate("document.documentElement.scrollHeight") <= 6050
    page.close()
