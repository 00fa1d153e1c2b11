"""The page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from rocpd.view.server import ViewServer
from tests.waiting import PATIENCE

_READY = "#report[aria-busy=false] h2"
_DRAWN = "#strip[data-ready]"


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
    opened.wait_for_selector(_DRAWN)
    yield opened
    context.close()
    assert wrong == []


def test_no_request_leaves_the_machine(page: Page, server: ViewServer, requests: list[str]) -> None:
    page.click("#ask button")
    page.wait_for_selector("#rows td")
    assert [url for url in requests if not url.startswith((server.address, "data:"))] == []
    assert server.address in requests


def place_of_strip(page: Page) -> tuple[float, float, float]:
    """Return left edge, top and width of the canvas."""
    page.locator("#strip").scroll_into_view_if_needed()
    box = page.locator("#strip").bounding_box()
    assert box
    return box["x"], box["y"], box["width"]


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
    left, top, width = place_of_strip(page)
    page.mouse.move(left + 0.4 * width, top + 70)
    page.mouse.down()
    page.mouse.move(left + 0.6 * width, top + 75, steps=4)
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
    for key in ("Shift+ArrowRight", "Shift+ArrowRight"):
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
    page.focus("#strip")
    page.keyboard.press("ArrowDown")
    with page.expect_response("**/rows?rank=1&*"):
        page.keyboard.press("Space")
    page.wait_for_url("**#*open=1*")
    page.keyboard.press("Space")
    page.wait_for_url(lambda url: "open" not in url)
    page.fill("#statement", "select 41 + 1")
    page.focus("#statement")
    page.keyboard.press("Control+Enter")
    page.wait_for_selector("#rows td:has-text('42')")
    assert page.inner_text("#rows td") == "42"


_SHOWN = "() => { const line = document.querySelector('#strip').timeLine; return [line.from, line.to]; }"


def test_the_wheel_zooms_around_the_pointer(page: Page) -> None:
    left, top, width = place_of_strip(page)
    page.evaluate("() => { const line = document.querySelector('#strip').timeLine; line.move(...line.whole); }")
    start, end = page.evaluate(_SHOWN)
    page.mouse.move(left + 0.5 * width, top + 70)
    under = "() => { const line = document.querySelector('#strip').timeLine; return line.ns(line.at.x); }"
    before = page.evaluate(under)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"(whole) => (({_SHOWN})()[1] - ({_SHOWN})()[0]) < whole / 2", arg=end - start)
    assert page.evaluate(under) == pytest.approx(before, abs=(end - start) / 1e6)
    page.wait_for_url("**#*at=*")
    page.wait_for_selector(_DRAWN)
    page.click("#everything")
    page.wait_for_url(lambda url: "at=" not in url)


def test_a_click_on_a_slice_shows_all_of_it_and_the_address_keeps_it(page: Page) -> None:
    page.evaluate(
        "() => { const line = document.querySelector('#strip').timeLine; line.open.add(0); line.lay(); line.look(); }"
    )
    page.wait_for_function("() => document.querySelector('#strip').timeLine.rows.get(0)")
    left, top, _ = place_of_strip(page)
    x, y = page.evaluate(
        """() => {
            const line = document.querySelector('#strip').timeLine;
            const of = line.lines.find((each) => each.row?.kind === "stream" && each.row.start.length > 3);
            line.reveal(of);
            return [line.x((of.row.start[3] + of.row.end[3]) / 2), of.y + 6 + line.head - line.scroller.scrollTop];
        }"""
    )
    page.mouse.click(left + x, top + y)
    page.wait_for_selector("#picked:not([hidden]) dt:has-text('duration')")
    said = page.inner_text("#picked dl")
    assert "launched by" in said
    assert re.search(r"step\t?\n?.*\d", said)
    page.wait_for_url("**#*pick=0.*")
    page.get_by_role("button", name="SQL", exact=True).click()
    page.wait_for_selector("#rows td")
    page.reload()
    page.wait_for_selector("#picked:not([hidden]) dt:has-text('duration')")
    assert page.inner_text("#picked dl") == said
    page.wait_for_selector(_READY)


def test_on_a_phone_nothing_is_wider_than_the_page(page: Page) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.wait_for_selector(_DRAWN)
    assert page.evaluate("() => document.querySelector('#strip').getBoundingClientRect().right") <= 400
    assert page.evaluate("() => document.querySelector('#timeline').scrollWidth") <= 400
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_finding_is_shown_on_the_time_line(page: Page) -> None:
    place = page.locator("li[data-start]").first
    start, end = (int(place.get_attribute(f"data-{part}") or 0) for part in ("start", "end"))
    place.get_by_role("button", name="Show on the time line").click()
    low, high = page.evaluate(_SHOWN)
    assert low < start < end < high < low + 3 * (end - start)
    page.wait_for_url("**#*at=*")


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
