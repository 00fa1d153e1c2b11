"""Ranges, marks and events of every kind, right and wrong ones, and what becomes of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.record.build import Build
from tests.record.runs import CODE, check_closed, databases, metadata, probe, rows


def test_odd_ranges(built: Build, tmp_path: Path) -> None:
    done = probe(built, tmp_path / "out", "odd")
    assert done.returncode == CODE
    assert "904 events were lost" in done.stderr  # nested deeper than 4096
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert metadata(file)["recorder_lost_events"] == "904"
    assert metadata(file)["recorder_cut_texts"] == "2"
    recorded = [(name, json.loads(extdata)) for name, extdata in rows(
        file, "SELECT name, extdata FROM regions WHERE json_extract(extdata, '$.message') != 'deep'")]  # fmt: skip
    texts = {extdata["message"]: (name, extdata.get("unfinished", False)) for name, extdata in recorded}
    large = [name for name, extdata in recorded if extdata["message"] == "x" * 32768]
    assert sorted(large) == ["roctxProcessRangeA", "roctxThreadRangeA"]
    del texts["x" * 32768]
    assert texts == {
        "before pause": ("roctxThreadRangeA", False),
        "across threads": ("roctxProcessRangeA", False),
        "never stopped": ("roctxProcessRangeA", True),
        '"quotes" \\ \n \\xff\\xfe ünï': ("roctxThreadRangeA", False),
        "thread ended": ("roctxThreadRangeA", True),
    }


def test_every_kind_of_event(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "kinds").returncode == CODE
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert rows(file, "SELECT name, region, agent_abs_index, queue, stream, stack_id FROM kernels ORDER BY id") == [
        ("kernel", "", 1, "Queue 0", "Default Stream", 100),
        ("kernel", "step", 1, "Queue 0", "Default Stream", 100),
        ("kernel 78", "", 77, "Queue 79", "Stream 80", 100),
    ]
    assert rows(file, "SELECT name, category, stack_id, corr_id FROM regions") == [
        ("hipLaunchKernel", "HIP_RUNTIME_API_EXT", 100, 9)
    ]
    assert rows(file, "SELECT position, type, name, value FROM rocpd_arg ORDER BY id") == [
        (0, "int", "n", "42"), (1, "char*", "s", 'a"b'),
    ]  # fmt: skip
    assert rows(file, "SELECT name, tid, size, dst_agent_abs_index, src_agent_abs_index FROM memory_copies") == [
        ("MEMORY_COPY_HOST_TO_DEVICE", 4242, 1 << 20, 1, None)
    ]
    assert rows(file, "SELECT type, level, address, extdata FROM rocpd_memory_allocate") == [
        ("FREE", "VIRTUAL", -256, '{"flags":"FINE_GRAINED"}')
    ]
    assert rows(file, "SELECT dispatch_id, value FROM counters_collection ORDER BY 1") == [(1, 64.0), (2, 65.0)]
    assert rows(file, "SELECT name, timestamp FROM samples") == [("temperature", 5000)]
    assert metadata(file)["note"] == 'it\'s "quoted"'


def test_wrong_arguments_are_harmless(built: Build, tmp_path: Path) -> None:
    """What no column takes is left out; what nobody registered gets a plain name; sizes are bounded."""
    done = probe(built, tmp_path / "out", "wrong")
    assert done.returncode == CODE
    assert "1 events were lost" in done.stderr  # arguments of 2 MiB
    (file,) = databases(tmp_path / "out")
    check_closed(file)
    assert rows(file, "SELECT COUNT(*) FROM markers") == [(10,)]
    assert rows(file, "SELECT id, name, type FROM rocpd_info_agent") == [(0, "agent 0", None), (3, None, None)]
    assert rows(file, "SELECT storage_type FROM rocpd_info_code_object") == [(None,)]
    counters = "SELECT id, name, target_arch, value_type FROM rocpd_info_pmc ORDER BY id"
    assert rows(file, counters) == [(4, "", None, None), (901, "counter 901", None, None)]
    assert rows(file, "SELECT name, timestamp FROM samples") == [("track 900", 1)]
    assert rows(file, "SELECT position, length(value) FROM rocpd_arg ORDER BY 1") == [(0, 0), (1, 32768)]
    facts = rows(file, "SELECT tag, value FROM rocpd_metadata")
    assert len(dict(facts)) == len(facts)  # nothing is there twice
    assert metadata(file)["guid"] == rows(file, "SELECT guid FROM rocpd_info_process")[0][0]
    assert (metadata(file)["again"], metadata(file)["tag"]) == ("second", "")


def test_ranges_that_end_twice_take_no_memory(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "strays", "500000").returncode == CODE
    (file,) = databases(tmp_path / "out")
    assert rows(file, "SELECT COUNT(*) FROM markers WHERE name = 'twice'") == [(500000,)]
    ((grown,),) = rows(file, "SELECT CAST(name AS INTEGER) FROM markers ORDER BY id DESC LIMIT 1")
    assert grown < 13000  # [KiB]


def test_counters_of_long_runs(built: Build, tmp_path: Path) -> None:
    """No value is lost: one whose dispatch is not there, or has been forgotten among very many, has no event."""
    assert probe(built, tmp_path / "out", "many-counters", "600000").returncode == CODE
    (file,) = databases(tmp_path / "out")
    values = "SELECT value, COUNT(*), COUNT(event_id) FROM rocpd_pmc_event GROUP BY 1 ORDER BY 1"
    assert rows(file, values) == [(1.0, 600000, 0), (2.0, 1, 0), (3.0, 1, 1)]


def test_all_of_roctx(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "roctx").returncode == CODE
    (file,) = databases(tmp_path / "out")
    assert rows(file, "SELECT name, function FROM markers ORDER BY 1") == [
        ("", "roctxThreadRangeA"),
        ("mark", "MARKER_CORE_RANGE_API"),
        ("one", "roctxProcessRangeA"),
        ("outer", "roctxThreadRangeA"),
        ("two", "roctxProcessRangeA"),
    ]
    assert rows(file, "SELECT name FROM rocpd_info_thread") == [("thread",)]
    assert rows(file, "SELECT id, name FROM rocpd_info_stream") == [(0, "stream")]
    assert metadata(file)["hip_device_3"] == "device"


def test_external_correlation_ids(built: Build, tmp_path: Path) -> None:
    assert probe(built, tmp_path / "out", "correlated").returncode == CODE
    (file,) = databases(tmp_path / "out")
    assert rows(file, "SELECT name, corr_id FROM markers ORDER BY 1") == [
        ("mark", 42), ("none", 0), ("none again", 0), ("other thread", 0), ("outer", 41), ("process range", 42),
    ]  # fmt: skip


@pytest.mark.parametrize("records", [True, False])
def test_thread_that_was_named_while_recording_was_off(built: Build, tmp_path: Path, records: bool) -> None:
    arguments = ("named", "and records") if records else ("named",)
    assert probe(built, tmp_path / "out", *arguments, env={"ROCPD_START": "0"}).returncode == CODE
    if not records:
        assert not (tmp_path / "out").exists()
        return
    (file,) = databases(tmp_path / "out")
    assert rows(file, "SELECT name FROM rocpd_info_thread") == [("named while off",)]
