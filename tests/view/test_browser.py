"""The page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from rocpd.view.server import ViewServer
from tests.waiting import PATIENCE

_READY = "#report[aria-busy=false] h2"


@pytest.fixture(scope="module")
def requests() -> list[str]:
    """Addresses that the page asked for."""
    return []


@pytest.fixture(scope="module")
def page(browser: Browser, server: ViewServer, requests: list[str]) -> Iterator[Page]:
    """The first page, with its report; what goes wrong in it fails the last test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.on("request", lambda request: requests.append(request.url))
    opened = context.new_page()
    wrong: list[str] = []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.goto(server.address)
    opened.wait_for_selector(_READY)
    yield opened
    context.close()
    assert wrong == []


def test_no_request_leaves_the_machine(page: Page, server: ViewServer, requests: list[str]) -> None:
    page.click("#ask button")
    page.wait_for_selector("#rows td")
    assert [url for url in requests if not url.startswith((server.address, "data:"))] == []
    assert server.address in requests


def test_a_part_of_the_time_line_is_taken_by_dragging(page: Page) -> None:
    kernels = "select count(*) from kernels"

    def counted() -> int:
        page.fill("#statement", kernels)
        page.check("#of-part")
        with page.expect_response("**/sql"):
            page.click("#ask button")
        page.wait_for_selector("#asked:has-text('1 row,')")
        return int(page.inner_text("#rows td"))

    whole, report = counted(), page.inner_text("#report")
    page.locator("#strip").scroll_into_view_if_needed()
    box = page.locator("#strip").bounding_box()
    assert box
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 5)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 8, steps=4)
    with page.expect_response("**/report?*"):
        page.mouse.up()
    page.wait_for_selector(_READY)
    assert re.search(r"#start=\d+&end=\d+$", page.url)
    assert 0 < counted() < whole
    part = page.inner_text("#report")
    assert part != report
    taken = page.url
    with page.expect_response("**/report?*"):
        page.click("#window button[type=submit]")
    assert page.url == taken  # the fields hold every nanosecond
    page.wait_for_selector(_READY)
    page.reload()
    page.wait_for_selector(_READY)
    assert page.inner_text("#report") == part  # the address holds the part
    with page.expect_response("**/report"):
        page.click("#everything")
    page.wait_for_selector(_READY)
    assert page.inner_text("#report") == report
    page.uncheck("#of-part")


def test_the_keyboard_is_enough(page: Page) -> None:
    page.focus("#strip")
    for key in ("ArrowRight", "ArrowRight", "Shift+ArrowRight"):
        page.keyboard.press(key)
    with page.expect_response("**/report?*"):
        page.keyboard.press("Enter")
    page.wait_for_selector(_READY)
    assert page.input_value("#from") != ""
    assert "taken:" in (page.get_attribute("#strip", "aria-label") or "")
    page.focus("#strip")
    with page.expect_response("**/report"):
        page.keyboard.press("Escape")
    page.wait_for_selector(_READY)
    assert page.input_value("#from") == ""
    page.fill("#statement", "select 41 + 1")
    page.focus("#statement")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#rows td:has-text('42')")
    assert page.inner_text("#rows td") == "42"


def test_names_from_files_are_texts(page: Page) -> None:
    page.fill("#statement", "select '<img src=x onerror=alert(1)>' as \"<b>x</b>\"")
    with page.expect_response("**/sql"):
        page.click("#ask button")
    page.wait_for_selector("#rows td:has-text('onerror')")
    assert page.inner_text("#rows td") == "<img src=x onerror=alert(1)>"
    assert page.inner_text("#rows th") == "<b>x</b>"


def test_mistakes_are_shown(page: Page) -> None:
    page.fill("#from", "7")
    page.fill("#to", "3")
    page.click("#window button[type=submit]")
    assert "earlier to a later" in page.inner_text("#status")


def test_everything_has_a_name(page: Page) -> None:
    """What people who do not see the page go by: names of all controls, one heading of the first level, a language."""
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("a, button, input, textarea, select, [role=img], [tabindex]")]
        .filter(e => e.checkVisibility() && !(e.labels?.length || e.ariaLabel || e.textContent.trim()
            || e.getAttribute("aria-labelledby") || e.title || e.id === "report"))
        .map(e => e.outerHTML.slice(0, 200))"""
    )
    assert unnamed == []
    assert page.locator("h1").count() == 1
    assert page.get_attribute("html", "lang") == "en"


def test_dark_and_light(page: Page) -> None:
    colours = set()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        colours.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2


def test_perfetto_opens_the_part(page: Page) -> None:
    with page.context.expect_page() as opened:
        page.click("#perfetto")
    ui = opened.value
    page.wait_for_selector("#status:has-text('in Perfetto')")
    ui.wait_for_selector("text=rank 0", timeout=PATIENCE * 1000)
    ui.close()


def test_a_finding_opens_its_place_in_perfetto(page: Page) -> None:
    place = page.locator("li[data-start]").first
    start, end, rank = (int(place.get_attribute(f"data-{part}") or 0) for part in ("start", "end", "rank"))
    with page.context.expect_page() as opened:
        place.get_by_role("button", name="Open in Perfetto").click()
    ui = opened.value
    ui.wait_for_selector("text=rank 0", timeout=PATIENCE * 1000)
    ui.wait_for_function("() => self.app.trace?.workspace.pinnedTracks.length", timeout=PATIENCE * 1000)
    pinned = ui.evaluate("() => self.app.trace.workspace.pinnedTracks.map((track) => track.name)")
    assert [name.partition(" · ")[0] for name in pinned] == [f"rank {rank}"]
    shown = "() => Math.round(Number(self.app.trace.timeline.visibleWindow.duration))"
    assert ui.evaluate(shown) == pytest.approx(end - start, rel=0.01)
    ui.close()
