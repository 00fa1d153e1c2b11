"""Drawings name what is in them, and no more; names cover no line."""

from __future__ import annotations

import re

from rocpd.chart.draw import NARROW, WIDTH, Dot, Drawing, Stroke, Word, draw, svg
from rocpd.chart.model import BarPart, Bars, Columns, Lines, MarkedPoint, Series, Timeline
from rocpd.table.palette import BLUE, GREEN, ORANGE, RED


def words(drawing: Drawing) -> list[str]:
    return [shape.text for shape in drawing.shapes if isinstance(shape, Word)]


def test_a_legend_names_the_parts_that_occur() -> None:
    parts = (
        BarPart("compute", BLUE, (60.0, 50.0)),
        BarPart("copies", ORANGE, (0.0, 0.0)),
        BarPart("idle", RED, (40.0, 0.0)),
    )
    shown = words(draw(Bars("", ("rank 0", "rank 1"), parts, "%")))
    assert {"compute", "idle"} <= {*shown}
    assert "copies" not in shown


def test_a_legend_names_the_states_that_occur() -> None:
    states = (((0.5, 0.0), (0.0, 0.0), (0.0, 0.2), (0.0, 0.0)),)
    shown = words(draw(Timeline("", ("rank 0",), 0, 10, states)))
    assert {"compute", "exposed communication", "idle"} <= {*shown}
    assert not {"hidden communication", "exposed copies"} & {*shown}


def test_columns_of_one_rank_have_no_legend() -> None:
    legend = "mean of ranks", "longest rank"
    assert legend[0] not in words(draw(Columns("", ("0", "1"), (1.0, 2.0), (), "ns", "step", legend)))
    assert {*legend} <= {*words(draw(Columns("", ("0", "1"), (1.0, 2.0), (1.5, 2.0), "ns", "step", legend)))}


def test_kernels_under_roofs_have_numbers_and_their_names_stand_below_the_axis() -> None:
    marks = tuple(MarkedPoint(x, x, f"kernel {x}", weight) for x, weight in ((1.0, 5.0), (100.0, 9.0), (110.0, 1.0)))
    roofs = Series("HBM", GREEN, ((0.1, 0.1), (1000.0, 1000.0))), Series("kernels", RED, (), marks)
    for width in (WIDTH, NARROW):
        drawing = draw(Lines("Roofline", roofs, "FLOP/byte", "GFLOP/s", is_log=True), width)
        lowest = max(y for shape in drawing.shapes if isinstance(shape, Stroke) for _, y in shape.points)
        below = [shape.text for shape in drawing.shapes if isinstance(shape, Word) and shape.y > lowest]
        assert below[-3:] == ["1 kernel 100.0", "2 kernel 1.0", "3 kernel 110.0"]  # most time first
        last_dot = max(place for place, shape in enumerate(drawing.shapes) if isinstance(shape, Dot))
        numbers = {shape.text: place for place, shape in enumerate(drawing.shapes) if isinstance(shape, Word)}
        assert min(numbers[text] for text in "123") > last_dot  # no dot covers a number


def test_a_chart_that_stands_alone_has_its_title_and_an_edge() -> None:
    drawing = draw(Bars("", ("rank 0",), (BarPart("time", BLUE, (1.0,)),), "ns"))
    alone, inside = svg(drawing, "Time by <rank>"), svg(drawing, "Time by <rank>", shown="broad")
    assert ">Time by &lt;rank&gt;</text>" in alone
    assert ">Time by &lt;rank&gt;</text>" not in inside
    x, y, width, height = map(float, re.findall(r'viewBox="([^"]*)"', alone)[0].split())
    assert x < 0
    assert y < x
    assert (width + x, height + y) > (drawing.width, drawing.height)


def test_a_line_of_a_host_crosses_no_name_of_a_rank() -> None:
    ranks = tuple(f"rank {number}" for number in range(64))
    states = (((0.5, 0.5), (0.0, 0.0), (0.0, 0.0), (0.0, 0.0)),) * 64
    hosts = tuple(f"node-{number // 8}" for number in range(64))
    drawing = draw(Timeline("", ranks, 0, 10, states, hosts))
    names = [shape for shape in drawing.shapes if isinstance(shape, Word) and shape.text.startswith("rank")]
    lines = [shape.points for shape in drawing.shapes if isinstance(shape, Stroke)]
    assert names
    assert lines
    for (start, _), (end, _) in lines:
        assert all(end <= name.x - 30 or start >= name.x for name in names)
