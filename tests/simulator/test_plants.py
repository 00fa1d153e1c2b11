"""Each planted fact can be found in the files where it should be, and changes nothing else of the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from rocpd.base import UsageError
from rocpd.simulator import JobOptions, plan, simulate
from rocpd.simulator.hardware import MEMORY_BYTES
from rocpd.simulator.job_plan import JobPlan
from rocpd.simulator.options import Plant, parse
from tests.simulator.jobs import read, rows
from tests.soak import sample

STEPS = 6


@dataclass
class Job:
    """A job of three ranks and its truth; `files` by rank."""

    facts: JobPlan
    files: dict[int, apsw.Connection]

    def values(self, sql: str) -> dict[int, Any]:
        """Return the first value that a query gives, by rank."""
        return {rank: rows(connection, sql)[0][0] for rank, connection in self.files.items()}

    def total(self, sql: str) -> Any:
        """Return the sum of the first value over all ranks."""
        return sum(self.values(sql).values())

    def ends(self, rank: int, step: int) -> tuple[int, int]:
        """Return start and end of a step on the clock of a rank."""
        anchors = self.facts.timing.anchors[[step + 1, step + 2], rank, 0]
        start, end = self.facts.nodes[self.facts.ranks[rank].node].local(anchors).tolist()
        return start, end

    def computing(self, rank: int, steps: Sequence[int]) -> float:
        """Return the mean duration of the kernels that compute in some steps [ns]."""
        found: list[int] = []
        for step in steps:
            start, end = self.ends(rank, step)
            sql = f"""SELECT duration FROM kernels
                WHERE name NOT GLOB 'nccl*' AND start >= {start} AND start < {end}"""
            found += [duration for (duration,) in rows(self.files[rank], sql)]
        return float(np.mean(found))


def simulated(folder: Path, plant: str) -> Job:
    options = JobOptions(folder, ranks=3, nodes=2, steps=STEPS, seed=9, noise=0.5, plant=plant)
    return Job(plan(options), {int(path.stem[4:]): read(path) for path in simulate(options)})


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A job without any planted fact."""
    return simulated(tmp_path_factory.mktemp("clean"), "none")


def struck(job: Job, plant: Plant) -> tuple[int, list[int]]:
    """Return the rank that a plant strikes, and the others."""
    fact = job.facts.fact(plant)
    assert fact is not None
    assert fact.rank is not None
    return fact.rank, [rank for rank in job.files if rank != fact.rank]


def steps_of(job: Job, plant: Plant) -> tuple[list[int], list[int]]:
    fact = job.facts.fact(plant)
    assert fact is not None
    return list(fact.steps), [step for step in range(1, STEPS) if step not in fact.steps]


def slower(job: Job, plant: Plant, steps: Sequence[int]) -> list[float]:
    """Return how much longer kernels of the rank that is struck take in some steps than those of the others."""
    rank, others = struck(job, plant)
    return [job.computing(rank, steps) / job.computing(other, steps) for other in others]


def nearly(factor: float) -> Any:
    return pytest.approx(factor, rel=0.04)


def straggler(job: Job, clean: Job) -> None:
    assert all(factor == nearly(1.35) for factor in slower(job, Plant.STRAGGLER, range(STEPS)))


def intermittent(job: Job, clean: Job) -> None:
    often, seldom = steps_of(job, Plant.INTERMITTENT)
    assert all(factor == nearly(1.6) for factor in slower(job, Plant.INTERMITTENT, often))
    assert all(factor == nearly(1.0) for factor in slower(job, Plant.INTERMITTENT, seldom))


def slowdown(job: Job, clean: Job) -> None:
    late, early = steps_of(job, Plant.SLOWDOWN)
    assert min(late) > max(early)
    assert all(factor == nearly(1.35) for factor in slower(job, Plant.SLOWDOWN, late))
    assert all(factor == nearly(1.0) for factor in slower(job, Plant.SLOWDOWN, early))


def slow_node(job: Job, clean: Job) -> None:
    fact = job.facts.fact(Plant.SLOW_NODE)
    assert fact is not None
    for rank in job.facts.ranks:
        factor = job.computing(rank.number, range(STEPS)) / clean.computing(rank.number, range(STEPS))
        assert factor == pytest.approx(1.1 if rank.node == fact.node else 1.0, rel=0.02)


def slow_step(job: Job, clean: Job) -> None:
    (step,), others = steps_of(job, Plant.SLOW_STEP)
    for rank in job.files:
        assert job.computing(rank, [step]) / job.computing(rank, others) == nearly(1.9)


def imbalance(job: Job, clean: Job) -> None:
    rank, others = struck(job, Plant.IMBALANCE)
    assert all(factor == nearly(1.2) for factor in slower(job, Plant.IMBALANCE, range(STEPS)))
    grids = job.values("SELECT MAX(grid_size_x) FROM rocpd_kernel_dispatch")
    read = job.values("""SELECT AVG(P.value) FROM rocpd_pmc_event P JOIN rocpd_info_pmc I ON I.id = P.pmc_id
        WHERE I.name = 'FETCH_SIZE'""")
    assert all(grids[rank] / grids[other] == nearly(1.2) for other in others)
    assert all(read[rank] / read[other] == nearly(1.2) for other in others)


BETWEEN = """SELECT MIN(gap) FROM (SELECT start - LAG("end") OVER (ORDER BY start) AS gap FROM markers
    WHERE name GLOB 'step [0-9]*' AND duration)"""


def late_launch(job: Job, clean: Job) -> None:
    rank, others = struck(job, Plant.LATE_LAUNCH)
    gaps = job.values(BETWEEN)
    assert gaps[rank] > 400_000
    assert max(gaps[other] for other in others) < 100_000
    assert all(factor == nearly(1.0) for factor in slower(job, Plant.LATE_LAUNCH, range(STEPS)))


def late_node(job: Job, clean: Job) -> None:
    fact = job.facts.fact(Plant.LATE_NODE)
    assert fact is not None
    gaps, usual = job.values(BETWEEN), clean.values(BETWEEN)
    for rank in job.facts.ranks:
        late = 400_000 if rank.node == fact.node else 0
        assert gaps[rank.number] - usual[rank.number] == pytest.approx(late, abs=20_000)


STALLS = """SELECT COUNT(*) FROM (SELECT name, LEAD(start) OVER (PARTITION BY tid ORDER BY start) - "end" AS gap
    FROM regions) WHERE name = 'roctxMarkA' AND gap >= 8e6"""


def host_stall(job: Job, clean: Job) -> None:
    rank, others = struck(job, Plant.HOST_STALL)
    stalls = job.values(STALLS)
    assert (stalls[rank], {stalls[other] for other in others}) == (2, {0})
    lengths = {step: [job.ends(r, step)[1] - job.ends(r, step)[0] for r in job.files] for step in range(STEPS)}
    stalled, usual = steps_of(job, Plant.HOST_STALL)
    longest = max(max(lengths[step]) for step in usual)
    assert all(length > longest + 7_000_000 for step in stalled for length in lengths[step])
    assert all(factor == nearly(1.0) for factor in slower(job, Plant.HOST_STALL, range(STEPS)))


def throttled(job: Job, clean: Job) -> None:
    rank, others = struck(job, Plant.THROTTLED)
    hot, cool = steps_of(job, Plant.THROTTLED)
    clocks = job.values(
        """SELECT MIN(P.value) FROM rocpd_pmc_event P JOIN rocpd_info_pmc I ON I.id = P.pmc_id
        WHERE I.name = 'device_gfx_clock'"""
    )
    assert clocks[rank] < 0.9 * 2100
    assert min(clocks[other] for other in others) > 0.98 * 2100
    assert min(slower(job, Plant.THROTTLED, hot)) > 1.1
    assert all(factor == nearly(1.0) for factor in slower(job, Plant.THROTTLED, cool))


def slow_collectives(job: Job, clean: Job) -> None:
    slow, others = steps_of(job, Plant.SLOW_COLLECTIVES)
    large = [c for c in job.facts.collectives() if c.size > 2**20]
    times = {c.step: [min(d.ends) - max(d.starts) for d in large if d.step == c.step] for c in large}
    usual = max(times[step][0] for step in others)
    assert all(min(times[step]) > 3 * usual for step in slow)


def slow_link(job: Job, clean: Job) -> None:
    fact = job.facts.fact(Plant.SLOW_LINK)
    assert fact is not None
    large = [[c for c in j.facts.collectives() if c.size > 2**20] for j in (job, clean)]
    assert {c.group for c in large[0]} == {fact.group}
    slow, usual = ([min(c.ends) - max(c.starts) for c in each] for each in large)
    assert all(3 < a / b < 4 for a, b in zip(slow, usual, strict=True))


def exposed_communication(job: Job, clean: Job) -> None:
    sent = "SELECT MAX(CAST(value AS INT)) FROM rocpd_arg WHERE name = 'count'"
    assert job.total(sent) == 4 * clean.total(sent)
    waits = "SELECT SUM(duration) FROM kernels WHERE name GLOB 'nccl*'"
    assert job.total(waits) > 2 * clean.total(waits)


HIDDEN = """SELECT COALESCE(SUM(MIN(C."end", K."end") - MAX(C.start, K.start)), 0) FROM kernels C JOIN kernels K
    ON C.start < K."end" AND K.start < C."end" WHERE C.name GLOB 'nccl*' AND K.name NOT GLOB 'nccl*'"""


def lost_overlap(job: Job, clean: Job) -> None:
    assert clean.total(HIDDEN) > 1_000_000
    assert job.total(HIDDEN) < 0.02 * clean.total(HIDDEN)  # what a graph hides of the exchange of a few bytes


def same_stream(job: Job, clean: Job) -> None:
    streams = "SELECT COUNT(DISTINCT stream_id) FROM kernels WHERE name GLOB 'nccl*' AND stream_id != 1"
    assert job.total(streams) == 0
    assert clean.total(streams) == 3
    assert job.total(HIDDEN) == 0


LAUNCHES = "('hipExtModuleLaunchKernel', 'hipLaunchKernel', 'hipGraphLaunch')"


def launch_bound(job: Job, clean: Job) -> None:
    between = f"""SELECT MIN(gap) FROM (SELECT start - LAG("end") OVER (PARTITION BY tid ORDER BY start) AS gap
        FROM regions WHERE name IN {LAUNCHES} AND name != 'hipGraphLaunch')"""
    assert min(job.values(between).values()) >= 80_000
    assert max(clean.values(between).values()) < 10_000


def small_kernels(job: Job, clean: Job) -> None:
    share = "SELECT AVG(duration < 10000) FROM kernels WHERE name NOT GLOB 'nccl*'"
    assert min(job.values(share).values()) > 0.95
    assert max(clean.values(share).values()) < 0.5
    count = "SELECT COUNT(*) FROM kernels WHERE name GLOB 'Cijk*'"
    assert job.total(count) == 4 * clean.total(count)


def calls(name: str) -> str:
    return f"SELECT COUNT(*) FROM regions WHERE name = '{name}'"


def synchronous_calls(job: Job, clean: Job) -> None:
    assert job.total(calls("hipDeviceSynchronize")) > 20 * 3 * STEPS
    assert clean.total(calls("hipDeviceSynchronize")) == 0


def profiler_cost(job: Job, clean: Job) -> None:
    mean = f"SELECT AVG(duration) FROM regions WHERE name IN {LAUNCHES}"
    assert job.total(mean) / clean.total(mean) == pytest.approx(4, rel=0.1)


def slow_input(job: Job, clean: Job) -> None:
    loads = "SELECT COUNT(*) FROM markers WHERE name = 'load batch' AND duration >= 1500000"
    assert job.total(loads) == 3 * STEPS
    assert clean.total(loads) == 0


def pageable_copies(job: Job, clean: Job) -> None:
    waited = """SELECT COUNT(*) FROM memory_copies M JOIN regions R USING (stack_id)
        WHERE M.name GLOB '*HOST_TO_DEVICE' AND R."end" >= M."end" """
    assert job.total(waited) >= 2 * 3 * STEPS
    assert clean.total(waited) == 0


def small_copies(job: Job, clean: Job) -> None:
    copies = "SELECT COUNT(*) FROM memory_copies WHERE size = 16384"
    assert job.total(copies) == 120 * 3 * STEPS
    assert clean.total(copies) == 0


def steady_allocation(job: Job, clean: Job) -> None:
    assert job.total(calls("hipMalloc")) - clean.total(calls("hipMalloc")) == 2 * 3 * (STEPS - 1)
    assert job.total(calls("hipFree")) - clean.total(calls("hipFree")) == 2 * 3 * (STEPS - 1)


HELD = """SELECT SUM(CASE type WHEN 'ALLOC' THEN 1 ELSE -1 END) FROM rocpd_memory_allocate WHERE level = 'REAL'"""


def leak(job: Job, clean: Job) -> None:
    assert job.values(HELD) == dict.fromkeys(job.files, STEPS)
    assert set(clean.values(HELD).values()) == {0}
    addresses = "SELECT COUNT(DISTINCT address) FROM rocpd_memory_allocate WHERE size = 2 << 20"
    assert job.values(addresses) == dict.fromkeys(job.files, STEPS)


def memory_peak(job: Job, clean: Job) -> None:
    held = "SELECT SUM(size) FROM rocpd_memory_allocate WHERE level = 'REAL'"
    assert min(job.values(held).values()) >= 0.95 * MEMORY_BYTES - 1
    assert max(job.values(held).values()) < MEMORY_BYTES
    assert max(clean.values(held).values()) < 0.1 * MEMORY_BYTES
    assert set(job.values(HELD).values()) == {0}


def module_loads(job: Job, clean: Job) -> None:
    assert job.total(calls("hipModuleLoadData")) == 3 * STEPS
    assert clean.total(calls("hipModuleLoadData")) == 0


FEW = """SELECT COUNT(*) FROM rocpd_kernel_dispatch D JOIN rocpd_info_kernel_symbol S ON S.id = D.kernel_id
    WHERE S.kernel_name GLOB 'Cijk*' AND grid_size_x / workgroup_size_x * grid_size_y * grid_size_z < 304"""


def small_grids(job: Job, clean: Job) -> None:
    assert job.total(FEW) > 3 * STEPS
    assert clean.total(FEW) == 0


def low_occupancy(job: Job, clean: Job) -> None:
    symbols = """SELECT COUNT(*) FROM rocpd_info_kernel_symbol
        WHERE arch_vgpr_count + accum_vgpr_count = 512 AND private_segment_size > 0"""
    assert job.total(symbols) == 3
    assert clean.total(symbols) == 0


def clock_step(job: Job, clean: Job) -> None:
    fact = job.facts.fact(Plant.CLOCK_STEP)
    assert fact is not None
    shown = "SELECT MAX(start) FROM kernels WHERE name GLOB 'nccl*'"
    first = "SELECT MIN(start) FROM kernels WHERE name GLOB 'nccl*'"
    for rank in job.facts.ranks:
        later, earlier = (job.values(sql)[rank.number] - clean.values(sql)[rank.number] for sql in (shown, first))
        assert (later, earlier) == (2_000_000 if rank.node == fact.node else 0, 0)


ORPHANS = f"""SELECT COUNT(*) FROM regions R LEFT JOIN kernels K USING (stack_id)
    WHERE R.name IN {LAUNCHES} AND K.stack_id IS NULL"""
COUNT = "SELECT COUNT(*) FROM kernels"


def lost_dispatches(job: Job, clean: Job) -> None:
    assert clean.total(ORPHANS) == 0
    assert job.total(ORPHANS) == clean.total(COUNT) - job.total(COUNT)
    assert job.total(COUNT) / clean.total(COUNT) == pytest.approx(1 - 1 / 40, abs=0.01)


def lost_launches(job: Job, clean: Job) -> None:
    unlaunched = "SELECT SUM(NOT stack_id) FROM kernels"
    assert job.total(COUNT) == clean.total(COUNT)
    assert clean.total(unlaunched) == 0
    assert job.total(unlaunched) / job.total(COUNT) == pytest.approx(1 / 20, rel=0.3)


def lost_graph_kernels(job: Job, clean: Job) -> None:
    assert job.total(calls("hipGraphLaunch")) == 3 * 3 * STEPS
    assert job.total(ORPHANS) == 3 * 3 * STEPS


def lost_rank(job: Job, clean: Job) -> None:
    fact = job.facts.fact(Plant.LOST_RANK)
    assert fact is not None
    assert set(clean.files) - set(job.files) == {fact.rank}
    worlds = "SELECT environment ->> 'WORLD_SIZE' FROM rocpd_info_process"
    assert set(job.values(worlds).values()) == {"3"}


def lost_events(job: Job, clean: Job) -> None:
    said = "SELECT MAX(value) FROM rocpd_metadata WHERE tag = 'recorder_lost_events'"
    assert set(job.values(said).values()) == {"500"}
    assert set(clean.values(said).values()) == {None}


def no_hip_trace(job: Job, clean: Job) -> None:
    hip = "SELECT COUNT(*) FROM regions WHERE category GLOB 'HIP*'"
    others = "SELECT COUNT(*) FROM regions WHERE category NOT GLOB 'HIP*'"
    assert job.total(hip) == 0
    assert clean.total(hip) > 1000
    assert job.values(others) == clean.values(others)
    assert job.values(COUNT) == clean.values(COUNT)
    assert job.total("SELECT SUM(stack_id) FROM kernels") == 0


HOT = "name GLOB 'Cijk_Alik_Bljk*'"


def slow_gpus(job: Job, clean: Job) -> None:
    for rank in job.files:
        assert job.computing(rank, range(STEPS)) / clean.computing(rank, range(STEPS)) == pytest.approx(1.03, rel=0.01)


def slow_kernel(job: Job, clean: Job) -> None:
    hot, others = (
        f"SELECT AVG(duration) FROM kernels WHERE {which}" for which in (HOT, f"NOT {HOT} AND name NOT GLOB 'nccl*'")
    )
    assert job.total(hot) / clean.total(hot) == pytest.approx(1.07, rel=0.005)
    assert job.total(others) == pytest.approx(clean.total(others), rel=0.005)


def larger_grids(job: Job, clean: Job) -> None:
    for column in ("duration", "grid_x"):
        sql = f"SELECT AVG({column}) FROM kernels WHERE {HOT}"
        assert job.total(sql) / clean.total(sql) == pytest.approx(1.5, rel=0.01)


def more_calls(job: Job, clean: Job) -> None:
    assert job.total(f"SELECT COUNT(*) FROM kernels WHERE {HOT}") == 2 * clean.total(
        f"SELECT COUNT(*) FROM kernels WHERE {HOT}"
    )


def other_tile(job: Job, clean: Job) -> None:
    names = [each.values(f"SELECT DISTINCT name FROM kernels WHERE {HOT}")[0] for each in (clean, job)]
    assert names[0].replace("MT256x", "MT512x") == names[1] != names[0]
    assert job.values(COUNT) == clean.values(COUNT)


def new_kernel(job: Job, clean: Job) -> None:
    foreign, hot = (f"SELECT COUNT(*) FROM kernels WHERE {which}" for which in ("name GLOB '*SpMV*'", HOT))
    assert job.total(foreign) == job.total(hot) == clean.total(hot)
    assert clean.total(foreign) == 0


LEFT_BEHIND = """SELECT COUNT(*) FROM regions S JOIN regions L ON L."end" <= S.start JOIN kernels K
    ON K.stack_id = L.stack_id AND K."end" > S."end" AND K.name NOT GLOB 'nccl*'
    WHERE S.name IN ('hipStreamSynchronize', 'hipDeviceSynchronize')"""

EFFECTS: dict[Plant, Callable[[Job, Job], None]] = {plant: globals()[plant.replace("-", "_")] for plant in Plant}

TOUCHED = {
    Plant.STRAGGLER: {"stretch"},
    Plant.INTERMITTENT: {"stretch"},
    Plant.SLOW_NODE: {"stretch"},
    Plant.SLOW_STEP: {"stretch"},
    Plant.IMBALANCE: {"stretch", "work"},
    Plant.LATE_LAUNCH: {"delay"},
    Plant.LATE_NODE: {"delay"},
    Plant.HOST_STALL: {"stall"},
    Plant.THROTTLED: {"stretch", "clock"},
    Plant.SLOWDOWN: {"stretch"},
    Plant.SLOW_COLLECTIVES: {"transfer"},
    Plant.SLOW_LINK: {"slow_link"},
    Plant.SLOW_GPUS: {"stretch"},
}


@pytest.mark.soak
@pytest.mark.parametrize("plant", sample([*Plant], 3))
def test_planted_fact_is_there_and_nothing_else(plant: Plant, clean: Job, tmp_path: Path) -> None:
    job = simulated(tmp_path, plant)
    assert [fact.plant for fact in job.facts.facts] == [plant]
    EFFECTS[plant](job, clean)
    truth, usual = job.facts, clean.facts
    assert (truth.layout, truth.steps, truth.groups) == (usual.layout, usual.steps, usual.groups)
    now, before = vars(truth.conditions), vars(usual.conditions)
    changed = {name for name in now if not np.array_equal(now[name], before[name])}
    assert changed == TOUCHED.get(plant, set())
    if plant is not Plant.CLOCK_STEP:
        assert truth.nodes == usual.nodes
    if plant is not Plant.LOST_RANK:
        assert truth.ranks == usual.ranks
    met = [[(c.kind, c.group, c.step) for c in j.collectives()] for j in (truth, usual)]
    assert met[0] == met[1]
    assert job.total(LEFT_BEHIND) == 0
    for connection in job.files.values():
        assert connection.pragma("integrity_check") == "ok"
        assert rows(connection, "PRAGMA foreign_key_check") == []


def test_whom_a_fact_strikes_does_not_depend_on_the_others() -> None:
    alone = {}
    for plant in Plant:
        (alone[plant],) = plan(JobOptions(Path("job"), ranks=8, nodes=2, steps=9, plant=plant)).facts
    together = plan(JobOptions(Path("job"), ranks=8, nodes=2, steps=9, plant=",".join(Plant))).facts
    assert {fact.plant: fact for fact in together} == alone
    ranks = [fact.rank for fact in together if fact.rank is not None]
    assert len(ranks) == len(set(ranks)) == 8


@pytest.mark.parametrize(
    ("tp", "pp", "ep", "kind"), [(1, 1, 1, "world"), (4, 1, 1, "dp"), (1, 2, 1, "pp"), (1, 1, 8, "ep"), (1, 1, 4, "ep")]
)
def test_slow_link_is_that_of_one_group(tp: int, pp: int, ep: int, kind: str) -> None:
    """One that spans nodes, where any does; its transfers take longer, and those of no other group of its kind."""
    options = JobOptions(Path("job"), ranks=8, nodes=2, steps=3, tp=tp, pp=pp, ep=ep, noise=0, jitter=0)
    slow, usual = (plan(dataclasses.replace(options, plant=plant)) for plant in ("slow-link", "none"))
    (fact,) = slow.facts
    assert fact.group is not None
    assert fact.group.kind == kind
    spans = len({slow.ranks[member].node for member in fact.group.members}) == 2
    assert spans or ep == 4
    longer = set()
    for now, before in zip(_moved(slow), _moved(usual), strict=True):
        if now[:2] != before[:2]:
            longer.add(now[2] <= set(fact.group.members) and now[3] == kind)
    assert longer == {True}


def _moved(job: JobPlan) -> list[tuple[int, int, set[int], str]]:
    """Return how long each collective and transfer took after the last arrival, its size, and who took part."""
    met = [(min(c.ends) - max(c.starts), c.size, set(c.group.members), c.group.kind) for c in job.collectives()]
    sent = [(t.sent[1] - max(t.sent[0], t.received[0]), t.size, {t.sender, t.receiver}) for t in job.transfers()]
    return [*met, *((*each, "pp") for each in sent)]


def test_nothing_strikes_one_of_one() -> None:
    facts = plan(
        JobOptions(Path("job"), ranks=1, steps=1, plant="straggler,slow-step,throttled,slow-node,slow-link")
    ).facts
    assert facts == ()


@pytest.mark.parametrize("plant", ["straggler", "slow-step=20,straggler=5"])
def test_sizes(plant: str) -> None:
    job = plan(JobOptions(Path("job"), plant=plant))
    assert job.factor(Plant.STRAGGLER) == (1.35 if plant == "straggler" else 1.05)
    assert job.factor(Plant.SLOW_STEP) == (1.0 if plant == "straggler" else 1.2)


def test_planted_facts_of_the_default() -> None:
    job = plan(JobOptions(Path("job")))
    assert [fact.plant for fact in job.facts] == [Plant.STRAGGLER, Plant.SLOW_STEP]
    assert (job.factor(Plant.STRAGGLER), job.factor(Plant.SLOW_STEP)) == (1.35, 1.9)
    nothing = plan(JobOptions(Path("job"), plant="none"))
    assert (nothing.facts, nothing.straggler_rank, nothing.slow_step) == ((), None, None)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stragler", "plant stragler: unknown"),
        ("none,straggler", "plant: none, and others"),
        ("straggler,straggler=3", "given twice"),
        ("straggler=much", "plant straggler=much: not a size"),
        ("straggler=-3", "not a size"),
        ("straggler=nan", "not a size"),
        ("throttled=95", "not a size"),
        ("lost-overlap=3", "lost-overlap has no size"),
        ("", "nothing is named"),
    ],
)
def test_senseless_plants_are_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        parse(text)
    assert caught.value.hint


@pytest.mark.parametrize("plant", Plant)
def test_every_plant_says_what_it_does(plant: Plant) -> None:
    assert ("{}" in plant.meaning) == bool(plant.usual)
    assert plant.usual <= plant.most


@pytest.mark.parametrize("plant", Plant)
def test_every_plant_is_in_the_documents(plant: Plant) -> None:
    page = (Path(__file__).parents[2] / "docs" / "simulate.md").read_text(encoding="utf-8")
    size = f"{plant.usual:g}" if plant.usual else ""
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| `")]
    assert [f"`{plant}`", size, plant.meaning.replace("{}", "N")] in cells
