"""otf2: the archive as the wheel's reader and Debian's otf2-print read it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import _otf2
import pytest

import rocpd
from rocpd.convert import FORMATS
from rocpd.convert.formats import otf2_library as library
from rocpd.convert.options import ConvertOptions
from rocpd.simulator import JobOptions, simulate
from tests.build import TraceBuilder
from tests.conftest import OpenJob, private
from tests.convert.conftest import BASE
from tests.convert.small import small_job

otf2 = pytest.importorskip("otf2", reason="the otf2 wheel is not installed")

Printed: TypeAlias = Callable[..., str]


@pytest.fixture(scope="session")
def otf2_print() -> Printed:
    """Run Debian's otf2-print; it must not complain."""
    tool = shutil.which("otf2-print")
    if tool is None:
        pytest.skip("otf2-print is not installed (Debian: otf2-tools)")

    def run(path: Path, *options: str) -> str:
        done = subprocess.run([tool, *options, str(path)], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


def write(session: rocpd.Session, folder: Path, **options: object) -> Path:
    (path,) = FORMATS["otf2"].write(session, ConvertOptions(folder, **options))  # type: ignore[arg-type]
    return path


def slices(path: Path) -> list[tuple[str, str, str, int, int]]:
    """Return process, location, region, start and end of all that is entered and left; check order and balance."""
    written = []
    stacks: dict[Any, list[tuple[str, int]]] = {}
    last: dict[Any, int] = {}
    with otf2.reader.open(str(path)) as trace:
        for location, event in trace.events:
            assert event.time >= last.get(location, 0)
            last[location] = event.time
            if isinstance(event, otf2.events.Enter):
                stacks.setdefault(location, []).append((event.region.name, event.time))
            elif isinstance(event, otf2.events.Leave):
                name, start = stacks[location].pop()
                assert name == event.region.name
                written.append((location.group.name, location.name, name, start, event.time))
    assert not any(stacks.values())
    return written


def test_a_small_job_has_its_tree_regions_and_times(open_job: OpenJob, tmp_path: Path) -> None:
    path = write(open_job(*small_job()), tmp_path)

    assert path == tmp_path / "out_results.otf2"
    with otf2.reader.open(str(path)) as trace:
        definitions = trace.definitions
        groups = [
            (g.name, g.system_tree_parent.name, g.system_tree_parent.class_name, g.location_group_type)
            for g in definitions.location_groups
        ]
        process, accelerator = otf2.LocationGroupType.PROCESS, otf2.LocationGroupType.ACCELERATOR
        model = "AMD Instinct MI300X"
        assert groups == [
            ("rank 0 · node0 · ./app (16)", "node0", "node", process),
            ("rank 0 · node0 · ./app (16) · GPU 0", "GPU 0", model, accelerator),
            ("rank 1 · node1 · ./app (16)", "node1", "node", process),
            ("rank 1 · node1 · ./app (16) · GPU 0", "GPU 0", model, accelerator),
        ]
        assert [group.creating_location_group for group in definitions.location_groups][1::2] == [
            *definitions.location_groups
        ][::2]
        domains = definitions.system_tree_node_domains
        accelerator_device = otf2.SystemTreeDomain.ACCELERATOR_DEVICE
        gpus = [each.system_tree_node for each in domains if each.system_tree_node_domain == accelerator_device]
        assert [(node.name, node.class_name, node.parent.name) for node in gpus] == [
            ("GPU 0", model, "node0"), ("GPU 0", model, "node1"),
        ]  # fmt: skip
        kinds = {location.name: location.type for location in definitions.locations}
        assert kinds["rank 0 · thread 16"] == otf2.LocationType.CPU_THREAD
        assert kinds["rank 0 · GPU 0 · stream 0"] == otf2.LocationType.ACCELERATOR_STREAM
        assert kinds["rank 0 · Agent [1] PMC SQ_WAVES"] == otf2.LocationType.METRIC
        regions = {r.name: (r.paradigm, r.region_role) for r in definitions.regions}
        paradigm, role = otf2.Paradigm, otf2.RegionRole
        assert regions["gemm<float>"] == (paradigm.HIP, role.KERNEL)
        assert regions["MEMORY_COPY_HOST_TO_DEVICE"] == (paradigm.HIP, role.DATA_TRANSFER)
        assert regions['step "1", über'] == (paradigm.USER, role.CODE)
        assert regions["ALLOC REAL"] == (paradigm.HIP, role.ALLOCATE)
        clock = definitions.clock_properties
        assert (clock.timer_resolution, clock.global_offset, clock.trace_length) == (10**9, BASE, 901)
        for definition in (definitions.regions, definitions.locations, definitions.strings):
            assert len(list(definition)) > 0
        texts = [str(s) for s in definitions.strings]
        assert len(texts) == len(set(texts))
    written = slices(path)
    assert (
        "rank 0 · node0 · ./app (16) · GPU 0",
        "rank 0 · GPU 0 · stream 0",
        "gemm<float>",
        BASE + 100,
        BASE + 300,
    ) in written
    assert ("rank 1 · node1 · ./app (16)", "rank 1 · thread 16", 'step "1", über', BASE, BASE + 900) in written
    assert ("rank 0 · node0 · ./app (16)", "rank 0 · thread 16", "here", BASE + 800, BASE + 800) in written
    # Overlapping kernels of one stream lie on lanes of their own.
    assert (
        "rank 0 · node0 · ./app (16) · GPU 0",
        "rank 0 · GPU 0 · stream 0 (2)",
        "reduce",
        BASE + 250,
        BASE + 350,
    ) in written


def test_metrics_have_values_and_units(open_job: OpenJob, tmp_path: Path) -> None:
    path = write(open_job(*small_job()), tmp_path)

    written: dict[str, list[tuple[int, float]]] = {}
    with otf2.reader.open(str(path)) as trace:
        units = {member.name: member.unit for member in trace.definitions.metric_members}
        for location, event in trace.events:
            if isinstance(event, otf2.events.Metric) and location.group.name.startswith("rank 0"):
                written.setdefault(location.name, []).append((event.time - BASE, event.values[0]))
    assert written["rank 0 · Agent [1] PMC SQ_WAVES"] == [(100, 64.0), (300, 0.0)]
    assert written["rank 0 · GPU 0 · memory REAL held"] == [(439, 4096.0), (455, 0.0)]
    assert written["rank 0 · GPU power · watt"] == [(810, 300.5)]
    assert units["Agent [1] PMC GRBM_COUNT"] == "cycles"
    assert units["GPU 0 · memory REAL held"] == "bytes"


@pytest.fixture(scope="module", params=[False, True], ids=["sound", "faults"])
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[rocpd.Session]:
    folder = tmp_path_factory.mktemp("job")
    simulate(JobOptions(folder / "job", ranks=3, nodes=2, steps=2, faults=request.param))
    with rocpd.connect(folder / "job", skip_bad=True, align="none") as written:
        yield written


def test_all_slices_are_there_with_their_times(job: rocpd.Session, tmp_path: Path) -> None:
    written = slices(write(job, tmp_path))

    for view, kind in (("kernels", "stream"), ("memory_copies", "copies"), ("graph_launches", "graphs")):
        sql = f'SELECT start, MAX("end", start) FROM {view} WHERE start > 0'
        wanted = Counter(job.execute(sql).fetchall())
        counted = Counter(
            (start, end)
            for _, place, _, start, end in written
            if kind in place and (kind != "stream" or not ("copies" in place or "graphs" in place))
        )
        assert counted == wanted


def test_debians_tool_agrees_and_does_not_complain(job: rocpd.Session, tmp_path: Path, otf2_print: Printed) -> None:
    path = write(job, tmp_path)

    events = Counter(re.findall(r"^(\w+)\s+(\d+)\s+\d+\s", otf2_print(path), re.M))
    definitions = otf2_print(path, "-G")

    assert sum(n for (kind, _), n in events.items() if kind == "ENTER") == len(slices(path))
    per_location = Counter[str]()
    for (_, location), count in events.items():
        per_location[location] += count
    counts = dict(re.findall(r"^LOCATION +(\d+) .*# Events: (\d+)", definitions, re.M))
    assert {location: int(count) for location, count in counts.items() if int(count)} == dict(per_location)


def test_real_files(real_files: tuple[Path, ...], tmp_path: Path, otf2_print: Printed) -> None:
    with rocpd.connect(real_files) as session:
        path = write(session, tmp_path)
        wanted = session.execute("SELECT COUNT(*) FROM kernels UNION ALL SELECT COUNT(*) FROM regions").fetchall()

    assert otf2_print(path).count("\nENTER ") == sum(count for (count,) in wanted)
    with otf2.reader.open(str(path)) as trace:
        kinds = Counter(group.location_group_type for group in trace.definitions.location_groups)
    assert kinds == {otf2.LocationGroupType.PROCESS: 12, otf2.LocationGroupType.ACCELERATOR: 12}


def test_each_real_gpu_has_its_samples(tmp_path: Path, otf2_print: Printed) -> None:
    """Eight GPUs share a track and an event for each time; a counter of each belongs to its GPU."""
    (file,) = private("rocprofiler-systems/rocpd-484153.db", 1)
    with rocpd.connect(file) as session:
        path = write(session, tmp_path)
    values = re.findall(
        r'^METRIC\s+(\d+) .*\("GPU (\d) · device_power" <\d+>; DOUBLE; ([\d.]+)\)', otf2_print(path), re.M
    )
    groups = dict(re.findall(r'^LOCATION +(\d+) .*Type: METRIC.*· (GPU \d)" <\d+>$', otf2_print(path, "-G"), re.M))
    by_gpu: dict[str, list[float]] = {}
    for location, gpu, watts in values:
        assert groups[location] == f"GPU {gpu}"
        by_gpu.setdefault(gpu, []).append(float(watts))
    assert {gpu: len(some) for gpu, some in by_gpu.items()} == dict.fromkeys("01234567", 69)
    assert (max(by_gpu["0"]), max(map(max, by_gpu.values()))) == (380.0, 380.0)


@pytest.mark.parametrize(("options", "name"), [({}, "x"), ({"split": "rank"}, "x_rank0")])
def test_a_name_with_the_ending_names_the_archive(open_job: OpenJob, tmp_path: Path, options: Any, name: str) -> None:
    session = open_job(TraceBuilder().region("r", 1, 2))

    paths = session.convert("otf2", tmp_path / "x.otf2", **options)

    assert paths == (tmp_path / f"{name}.otf2",)
    assert sorted(path.name for path in tmp_path.glob("x*")) == [name, f"{name}.def", f"{name}.otf2"]
    assert [name for _, _, name, *_ in slices(paths[0])] == ["r"]


def test_one_archive_per_node(open_job: OpenJob, tmp_path: Path) -> None:
    from rocpd.convert.options import Split

    paths = FORMATS["otf2"].write(open_job(*small_job()), ConvertOptions(tmp_path, split=Split.NODE))

    assert paths == tuple(tmp_path / f"out_node-{host}_results.otf2" for host in ("node0", "node1"))
    rank = "rank 1 · node1 · ./app (16)"
    assert {group for group, *_ in slices(paths[1])} == {rank, f"{rank} · GPU 0"}


def test_every_enter_and_leave_has_its_category(open_job: OpenJob, tmp_path: Path) -> None:
    """As AMD's own tests count events: by the attribute `category`."""
    session = open_job(*small_job())
    counts = Counter[str]()
    with otf2.reader.open(str(write(session, tmp_path))) as trace:
        for _, event in trace.events:
            if isinstance(event, (otf2.events.Enter, otf2.events.Leave)):
                ((attribute, category),) = event.attributes.items()
                assert attribute.name == "category"
                counts[category] += 1
    for category, view in (("kernel_dispatch", "kernels"), ("memory_copy", "memory_copies")):
        ((number,),) = session.execute(f"SELECT COUNT(*) FROM {view}").fetchall()
        assert counts[category] == 2 * number > 0
    ((calls,),) = session.execute("SELECT COUNT(*) FROM regions WHERE category GLOB 'HIP_*'").fetchall()
    ((graphs,),) = session.execute("SELECT COUNT(*) FROM graph_launches").fetchall()
    assert counts["hip_api"] == 2 * (calls + graphs) > 0


def test_constants_are_those_of_the_wheel() -> None:
    kinds = {"PARADIGM": library.PARADIGMS, "REGION_ROLE": library.ROLES, "COLLECTIVE_OP": library.COLLECTIVES}
    for kind, numbers in kinds.items():
        assert numbers == {name: getattr(_otf2, f"{kind}_{name}").value for name in numbers}


def test_a_hint_without_the_wheel(open_job: OpenJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "_otf2", None)
    for name in ("otf2_archive", "otf2_library"):
        monkeypatch.delitem(sys.modules, f"rocpd.convert.formats.{name}", raising=False)
        monkeypatch.delattr(rocpd.convert.formats, name, raising=False)
    session = open_job(TraceBuilder().kernel("k", BASE, BASE + 1))

    with pytest.raises(rocpd.UsageError, match="otf2 package is not installed") as caught:
        write(session, tmp_path / "out")
    assert "rocpd[otf2]" in (caught.value.hint or "")
    assert not (tmp_path / "out").exists()


def test_nothing_is_left_when_it_is_stopped(open_job: OpenJob, tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        FORMATS["otf2"].write(open_job(*small_job()), ConvertOptions(tmp_path / "out"), stop)
    assert not (tmp_path / "out").exists()
