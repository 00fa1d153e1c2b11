"""Entry points of installed packages are found wherever `importlib.metadata` finds them, quickly without any."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
import zipfile
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from rocpd.base import entries
from rocpd.convert import ENTRY_POINTS as FORMATS
from rocpd.summary.registry import ENTRY_POINTS as ANALYSES

_DECLARED = "[console_scripts]\nrocpd-mine = mine:main\n\n  [rocpd.formats]  \nmine = mine:write\n"
_ABOUT = "Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n"


def _folder(name: str) -> Callable[[Path], Path]:
    def install(place: Path) -> Path:
        package = place / name
        package.mkdir(parents=True)
        (package / ("METADATA" if name.endswith(".dist-info") else "PKG-INFO")).write_text(_ABOUT)
        (package / "entry_points.txt").write_text(_DECLARED)
        return place

    return install


def _egg(place: Path) -> Path:
    return _folder("EGG-INFO")(place / "mine-1.0-py3.egg")


def _archive(place: Path) -> Path:
    path = place / "mine.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mine-1.0.dist-info/METADATA", _ABOUT)
        archive.writestr("mine-1.0.dist-info/entry_points.txt", _DECLARED)
    return path


@pytest.mark.parametrize("install", [_folder("mine-1.0.dist-info"), _folder("mine.egg-info"), _egg, _archive])
def test_every_kind_of_installed_package(
    install: Callable[[Path], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(install(tmp_path))
    (mine,) = (point for point in entries.points(FORMATS) if point.name == "mine")
    assert (mine.value, mine.dist and mine.dist.name) == ("mine:write", "mine")
    for group in (FORMATS, ANALYSES, "console_scripts", "no.such"):
        assert list(entries.points(group)) == list(importlib.metadata.entry_points(group=group))


def test_a_finder_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution(importlib.metadata.Distribution):
        def read_text(self, filename: str) -> str | None:
            return {"METADATA": _ABOUT, "entry_points.txt": _DECLARED}.get(filename)

        def locate_file(self, path: object) -> Path:
            return Path(str(path))

    class Finder:
        def find_spec(self, *_: object) -> None:
            return None

        def find_distributions(self, *_: object) -> list[Distribution]:
            return [Distribution()]

    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, Finder()])
    assert EntryPoint("mine", "mine:write", FORMATS) in list(entries.points(FORMATS))


def test_places_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine-1.0.dist-info" / "entry_points.txt").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", ["", str(tmp_path), str(tmp_path / "missing")])
    assert list(entries.points(FORMATS)) == []


def test_a_package_that_is_installed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    assert not any(point.name == "mine" for point in entries.points(FORMATS))
    _folder("mine-1.0.dist-info")(tmp_path)
    assert any(point.name == "mine" for point in entries.points(FORMATS))


def test_packages_without_entry_points_of_ours_are_not_read() -> None:
    code = "import sys, rocpd.base.entries as e; e.points('no.such'); sys.exit('importlib.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
