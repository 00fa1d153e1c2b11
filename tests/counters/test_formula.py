"""Formulas against Python's own arithmetic, and what they refuse."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocpd.counters.definitions import architecture, is_counter, needs
from rocpd.counters.formula import AbstainError, FormulaError, MissingError, evaluate, names_in, parse
from rocpd.counters.metrics import terms_of
from rocpd.counters.panels import PANELS

NAMES = ("A", "B_sum", "c", "D9")


def leaves(values: dict[str, float]) -> Callable[[str], float]:
    def leaf(name: str) -> float:
        if name not in values:
            raise MissingError(name)
        return values[name]

    return leaf


numbers = st.one_of(st.integers(0, 10**6), st.floats(0, 1e6, allow_subnormal=False)).map(
    lambda number: np.format_float_positional(number, trim="-") if isinstance(number, float) else str(number)
)
formulas = st.recursive(
    st.one_of(numbers, st.sampled_from(NAMES)),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join),
        inner.map("({})".format),
        st.tuples(inner, inner).map(lambda two: f"MAX({two[0]}, {two[1]})"),
    ),
    max_leaves=12,
)


@given(formulas, st.lists(st.integers(0, 10**9), min_size=4, max_size=4))
def test_arithmetic_is_pythons(text: str, numbers: list[int]) -> None:
    values = dict(zip(NAMES, map(float, numbers), strict=True))
    python = re.sub(r"(?<![\w.])(\d+\.?\d*)(?![\w.])", r"float(\1)", text.replace("MAX", "max"))
    try:
        expected = eval(python, {"max": max, "float": float}, values)
    except ZeroDivisionError:
        return  # missing, and so is what rests on it; Python has no word for that
    assert evaluate(parse(text), leaves(values)) == pytest.approx(expected, rel=1e-12, abs=1e-300)
    assert set(names_in(parse(text))) == set(re.findall(r"\b(?:A|B_sum|c|D9)\b", text))


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 10**6)), min_size=1, max_size=5), min_size=1, max_size=5))
def test_reductions_are_over_the_instances_that_are_there(rows: list[list[int | None]]) -> None:
    width = max(map(len, rows))
    matrix = np.array(
        [[math.nan if value is None else value for value in row] + [math.nan] * (width - len(row)) for row in rows]
    )
    for how, expected in {"sum": sum, "max": max, "min": min, "avr": lambda some: sum(some) / len(some)}.items():
        reduced = np.ravel(evaluate(parse(f"reduce(X, {how})"), {"X": matrix}.__getitem__))
        for value, row in zip(reduced, rows, strict=True):
            some = [number for number in row if number is not None]
            assert math.isnan(value) if not some else value == pytest.approx(expected(some))  # type: ignore[operator]


def test_what_divides_by_nothing_is_missing() -> None:
    values = evaluate(parse("1 + A / B"), {"A": np.array([1.0, 0.0]), "B": np.array([0.0, 2.0])}.get)
    assert math.isnan(values[0])
    assert values[1] == 1


@pytest.mark.parametrize("text", ["", "1 +", "(A", "A B", "sin(A)", "A $ B", "reduce(A)", "A)"])
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(FormulaError):
        parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("select(A, [DIMENSION_XCC=[0:3]])", "dimensions"),
        ("reduce(A, sum, [DIMENSION_XCC])", "dimensions"),
        ("reduce(A, avg)", "knows no avg"),
    ],
)
def test_what_files_do_not_hold_is_said(text: str, why: str) -> None:
    with pytest.raises(AbstainError, match=why):
        evaluate(parse(text), leaves({"A": 1.0}))


def test_a_name_that_stands_for_nothing_is_named() -> None:
    with pytest.raises(MissingError, match=r"^B$"):
        evaluate(parse("A + B"), leaves({"A": 1.0}))


@pytest.mark.parametrize("name", ["gfx908", "gfx90a", "gfx940", "gfx942", "gfx942:sramecc+:xnack-", "gfx950"])
def test_every_formula_needs_counters_and_what_is_known_of_gpus(name: str) -> None:
    known = architecture(name)
    assert known
    terms = terms_of(known)
    constants = {"cu", "xcc", "se", "wave_size", "waves_per_cu", "sclk", "banks", "pipes", "sqc", "l2ch", "hbm"}
    launch = {"grid_size", "workgroup_size", "lds_bytes", "scratch_bytes", "arch_vgpr", "accum_vgpr", "sgpr", "dur"}
    for table in known.tables:
        assert table.panel in (*PANELS, "roofline")
        for metric in table.metrics:
            needed = [name for name in needs(metric.value, terms) if not is_counter(name)]
            assert set(needed) <= constants | launch, metric.name
            assert metric.peak is None or set(needs(metric.peak, terms)) <= constants, metric.name
            counters = [name for name in needs(metric.value, terms) if is_counter(name)]
            block = r"(ACC\()?(SQC?|TA|TD|TCP|TCC|SPI|CPC|CPF|GRBM|FETCH|WRITE)_\w+\)?"
            assert all(re.fullmatch(block, name) for name in counters)


def test_derived_counters_are_formulas() -> None:
    text = (files("rocpd.counters") / "data" / "derived.toml").read_text(encoding="utf-8")
    for name, definitions in tomllib.loads(text).items():
        architectures = [kind for definition in definitions for kind in definition["architectures"]]
        assert len(architectures) == len(set(architectures)), name
        for definition in definitions:
            assert list(names_in(parse(definition["expression"])))
