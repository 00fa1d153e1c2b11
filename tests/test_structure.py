"""How the package may grow: one subject a file, small functions, one meaning per class name, no circles of imports."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "rocpd").rglob("*.py"))
}
MODULES = {path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in SOURCES}

MOST_LINES_OF_A_FILE = 800
MOST_LINES_OF_A_FUNCTION = 50


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.Module]:
    return {path: ast.parse(text) for path, text in SOURCES.items()}


def test_a_file_is_one_subject() -> None:
    """A longer file has several; a shorter one is no reason to divide a subject."""
    lines = {path: text.count("\n") for path, text in SOURCES.items()}
    assert {path: count for path, count in lines.items() if count > MOST_LINES_OF_A_FILE} == {}


def test_functions_are_short(trees: dict[str, ast.Module]) -> None:
    """The signature of a command is left out: it lists the options."""
    long = []
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0].lineno if path.startswith("rocpd/cli/") else node.lineno
                if (node.end_lineno or first) - first >= MOST_LINES_OF_A_FUNCTION:
                    long.append(f"{path}:{node.name}")
    assert long == []


def test_a_class_name_means_one_thing(trees: dict[str, ast.Module]) -> None:
    names = Counter(
        node.name
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_imports_make_no_circles(trees: dict[str, ast.Module]) -> None:
    """Imports inside of functions and for type checkers count. The facade `rocpd` may name everything."""
    imports = {name: set(_imported(trees[path])) - {"rocpd"} for name, path in MODULES.items() if name != "rocpd"}
    assert [name for name in imports if name in _reached(name, imports)] == []


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module in MODULES:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in MODULES else node.module


def _reached(start: str, imports: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        new = imports[ahead.pop()] - reached
        reached |= new
        ahead += new
    return reached


def test_only_facts_choose_between_all_rows_and_selected_ones(trees: dict[str, ast.Module]) -> None:
    """Columns of facts say what a window does to them; an analysis that chose for itself could contradict another."""
    choosing = [
        f"{path}:{node.lineno}"
        for path, tree in trees.items()
        if path.startswith(("rocpd/summary/", "rocpd/advice/", "rocpd/report/", "rocpd/chart/"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.args
        if node.func.attr in ("whole", "unwindowed")
    ]
    assert choosing == []


def test_values_are_made_by_frozen() -> None:
    """`dataclasses` takes four times as long to make them, in each process."""
    made = [path for path, text in SOURCES.items() if "@dataclass(frozen" in text]
    assert made == []


def test_lines_of_the_recorder_are_as_long_as_those_of_the_package() -> None:
    """120 columns, which ruff says of Python alone."""
    paths = [path for ending in ("cpp", "h", "c", "S") for path in (ROOT / "sdk_tool").glob(f"[!b]*/**/*.{ending}")]
    assert len(paths) > 100
    long = [
        f"{path}:{number}"
        for path in paths
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if len(line) > 120
    ]
    assert long == []
