"""Drawings name what is in them, and no more; names cover no line."""

from __future__ import annotations

from rocpd.chart.draw import NARROW, WIDTH, Dot, Drawing, Stroke, Word, draw
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
