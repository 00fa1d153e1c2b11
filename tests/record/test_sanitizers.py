"""The recorder under AddressSanitizer with UndefinedBehaviorSanitizer, and under ThreadSanitizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.record.build import build
from tests.record.runs import databases, probe

_SCENARIOS = (
    ("threads", "4", "4000"),
    ("finalize",),
    ("odd",),
    ("kinds",),
    ("burst", "30000"),
    ("ends", "exit"),
    ("ends", "_exit"),
    ("closes", "own"),
)
_OPTIONS = {
    "ASAN_OPTIONS": "exitcode=99:detect_leaks=1:abort_on_error=0",
    "UBSAN_OPTIONS": "halt_on_error=1:exitcode=99",
    "TSAN_OPTIONS": "exitcode=99:halt_on_error=1",
    "ROCPD_FLUSH_MS": "20",
}


@pytest.mark.parametrize("sanitizer", ["address,undefined", "thread"])
def test_clean(tmp_path: Path, sanitizer: str) -> None:
    chosen = build(sanitizer)
    for number, scenario in enumerate(_SCENARIOS):
        folder = tmp_path / str(number)
        arguments = [str(tmp_path / a) if a == "own" else a for a in scenario]
        done = probe(chosen, folder, *arguments, env=_OPTIONS)
        assert done.returncode == 7, (scenario, done.stderr)
        assert "Sanitizer" not in done.stderr
        assert databases(folder)


def test_forks_under_address_sanitizer(tmp_path: Path) -> None:
    """Not under ThreadSanitizer, which forbids threads in such children, and without its search for leaks, which hangs."""
    options = _OPTIONS | {"ASAN_OPTIONS": "exitcode=99:detect_leaks=0"}
    done = probe(build("address,undefined"), tmp_path, "forks", env=options)
    assert done.returncode == 7, done.stderr
    assert len(databases(tmp_path)) == 5
