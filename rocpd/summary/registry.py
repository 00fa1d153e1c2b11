"""The table of contents of analyses; imports nothing heavy, so that help is quick.

Adding an analysis touches its file, its row in `SUMMARIES` and its test. The row holds everything that is needed before
the file is loaded; the definitions of its tables are in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from rocpd.base import entries, frozen
from rocpd.base.option import Option, options_of, typed
from rocpd.counters.panels import PANELS
from rocpd.facts.rank import DIVISIONS_OF_TIME, GROUPS, LAUNCHES, WHERE_IT_RAN, By, Options
from rocpd.facts.recorders import Recordable

OVERVIEW = "overview"
"""The table that is shown when no analysis is named; it combines several others."""

REGION_DOMAINS = ("HIP", "HSA", "RCCL", "MARKERS", "ROCDECODE", "ROCJPEG", "OMPT", "KFD")
"""Domains of regions that `--region-categories` knows, besides those that a file holds."""

GPU_DOMAINS = {
    "KERNELS": "kernels_summary",
    "MEMORY_COPIES": "memory_copies_summary",
    "MEMORY_ALLOCATIONS": "memory_allocations_summary",
    "SCRATCH_MEMORY": "scratch_memory_summary",
}
"""Domains that are always summarised, with the name of their table; region domains are `<domain>_summary`."""

ENTRY_POINTS = "rocpd.summaries"
"""Entry point group; each one names an `Analysis`, or a function that takes a `Reading` and returns Summaries."""


_FLAME_GRAPHS = {"folded": "", "speedscope": ".json"}  # format -> further ending of its files, after its name


@frozen
class TextForm:
    """A format that only some analyses have, besides those of tables.

    Args:
        name: its value for `--format`.
        home: `module:function` that takes a `Reading` and yields texts.
        ending: the ending of its files.
    """

    name: str
    home: str
    ending: str


@frozen
class Analysis:
    """One row of the table of contents.

    Args:
        home: `module:function`, as `rocpd.summary.kernels.totals:kernels`; it takes a `Reading` and returns Summaries.
        tables: names of its tables; the first is the name of the analysis.
        help: one line.
        reads: options that it reads: names of fields of `Options`, or declarations of its own.
        texts: formats of its own.
        is_whole: whether all of its tables are wanted, whatever their names.
        by: divisions that it supports.
        by_launch: its tables that can be divided by `LAUNCHES`; none: all, if `by` has these.
        divided_by: division of all its tables by default; None: they have none, or not all the same.
        compares: its tables that compare the divisions of `by`, even where no column names them.
        reads_late: whether its rows are read only when they are used, rank by rank: they may not fit into memory.
        recordable: the data to record where it is missing; None: nothing in particular.
        of_one_job: its tables that compare the ranks of one job, or put them on one time line: for separate runs they
            do not exist.
        costly: its tables that reports leave out, unless a rule of advice reads them.
        is_total: whether `rocpd summary --by …` shows it when no analysis is named.
        in_overview: whether its findings are part of the overview, and of reports.
        alias_of: the analysis with options that replaces it, as a note says when it is asked for by name. Empty: none.
    """

    home: str
    tables: tuple[str, ...]
    help: str
    reads: tuple[str | Option, ...] = ()
    texts: tuple[TextForm, ...] = ()
    is_whole: bool = False
    by: tuple[By, ...] = WHERE_IT_RAN
    by_launch: tuple[str, ...] = ()
    divided_by: By | None = None
    compares: tuple[str, ...] = ()
    reads_late: bool = False
    recordable: Recordable | None = None
    of_one_job: tuple[str, ...] = ()
    costly: tuple[str, ...] = ()
    is_total: bool = False
    in_overview: bool = False
    alias_of: str = ""

    @property
    def options(self) -> tuple[Option, ...]:
        """The options that it reads."""
        return entries.declared(self.reads, Options)


def _flame_graphs(home: str) -> tuple[TextForm, ...]:
    """Return the formats of flame graphs; `{}` in their home stands for the name of the format."""
    return tuple(TextForm(name, home.format(name), f".{name}{json}") for name, json in _FLAME_GRAPHS.items())


_total = partial(Analysis, "kernels.totals", is_total=True)
_of_kernels = partial(Analysis, recordable=Recordable.KERNELS)
_of_copies = partial(Analysis, by=(By.RANK, By.HOST), recordable=Recordable.COPIES)
_of_allocations = partial(Analysis, recordable=Recordable.ALLOCATIONS)
_of_calls = partial(Analysis, recordable=Recordable.CALLS)

_MARKED, _STEADY = ("step_marker",), ("step_marker", "everything")
_GROUPED = (By.RANK, *GROUPS)
_PLACED = (By.RANK, By.HOST, By.AGENT)
_IN_PARTS = (*_GROUPED, By.AGENT, By.STEP, By.MARKER)
_MATCHED = ("collectives", "stragglers", "waits")
_COMPARED = ("imbalance", *_MATCHED)
_EXPOSED = ("exposed-communication", "exposed-parts")  # part of the tables of ranks
_OP_TRACE = "rocpd.summary.kernels.op_trace"


def _with_home(row: Analysis) -> Analysis:
    """Return a row with its home in full: without a function, that with the name of the first table."""
    module, _, function = row.home.partition(":")
    return replace(row, home=f"rocpd.summary.{module}:{function or row.tables[0].replace('-', '_')}")


SUMMARIES: dict[str, Analysis] = {
    row.tables[0]: _with_home(row)
    for row in (
        Analysis(
            "time.overview",
            (OVERVIEW, "top-kernels", "top-steps"),
            "what is wrong, what the time consists of, and what takes it",
            ("categories", "step_marker"),
            by=(),
        ),
        Analysis(
            "time.trace", ("trace",), "what the recording lacks, and so no analysis can see", by=(), in_overview=True
        ),
        _of_kernels(
            "kernels.totals",
            ("kernels",),
            "time by kernel, with median, p95 and p99",
            ("step_marker", "each_agent"),
            by=DIVISIONS_OF_TIME,
            is_total=True,
            in_overview=True,
        ),
        _of_kernels(
            "kernels.totals", ("kernel-shapes",), "kernels by grid and work-group, and how much of a GPU these can fill"
        ),
        _of_copies(
            "time.gpu_time",
            ("copies",),
            "copies by direction: time, bytes, bandwidth",
            _MARKED,
            by=DIVISIONS_OF_TIME,
            is_total=True,
        ),
        _of_copies(
            "memory.copies:copy_rates",
            ("copy-sizes", "copy-pairs", "slowest-copies"),
            "how fast copies are by size and between agents; the slowest",
            (*_STEADY, "top"),
        ),
        _of_copies(
            "memory.copies", ("copy-calls",), "the calls that copy, and whether asynchronous ones wait", _STEADY
        ),
        _total(("allocations",), "allocations and frees by operation and level", recordable=Recordable.ALLOCATIONS),
        _of_allocations(
            "memory.memory",
            ("memory", "memory-curve"),
            "memory held: peak per agent, and its course over time",
            ("step_marker", "bins"),
            divided_by=By.AGENT,
            of_one_job=("memory-curve",),
        ),
        _of_allocations(
            "memory.memory",
            ("allocation-sites", "memory-steps"),
            "who allocates, what steps leave behind, leak candidates",
            _MARKED,
            by=_PLACED,
            in_overview=True,
        ),
        _total(("scratch",), "scratch memory by operation", recordable=Recordable.SCRATCH),
        _total(("api",), "API calls by domain and function", recordable=Recordable.CALLS),
        _total(("markers",), "marker ranges by message", recordable=Recordable.STEPS),
        _total(("domains",), "time by domain: kernels, copies, HIP, HSA, RCCL …"),
        _of_kernels(
            "kernels.totals",
            ("categories", "unmatched"),
            "kernels by what they do: GEMM, communication, attention …; names that no pattern knows",
            ("categories", "step_marker"),
            by=DIVISIONS_OF_TIME,
        ),
        _of_kernels(
            "time.gpu_time",
            ("gpu-time", "gaps", "largest-gaps", "overlap"),
            "busy and idle time of agents, gaps, overlap of compute, communication and copies",
            ("categories", "top", *_STEADY),
            by=DIVISIONS_OF_TIME,
        ),
        _of_kernels(
            "time.gpu_time",
            ("budget", "counted"),
            "what a step consists of: compute, exposed communication and copies, idle",
            ("categories", *_STEADY),
            by=_IN_PARTS,
            in_overview=True,
        ),
        _of_kernels(
            "time.idle",
            ("idle", "idle-calls", "idle-stacks"),
            "why GPUs have nothing to do, by what their host does",
            _STEADY,
            by=_IN_PARTS,
            in_overview=True,
        ),
        _of_kernels(
            "communication.ranks",
            ("ranks", *_COMPARED, "causes", "communication", "transfers", *_EXPOSED, "steps", "phases", "heat"),
            "balance of ranks, who waits for whom in collectives, spread of steps, rank × time",
            ("categories", "step_marker", "bins", "everything"),
            by=DIVISIONS_OF_TIME,
            by_launch=_MATCHED,
            divided_by=By.RANK,
            compares=_COMPARED,
            of_one_job=(*_COMPARED, "causes", "communication", *_EXPOSED, "steps", "heat"),
            costly=("phases",),  # they match calls and operations once more
            in_overview=True,
        ),
        _of_calls(
            "host.launch",
            ("launch", "bottleneck", "queue-depth"),
            "delay from launch to start; how long GPUs wait for the CPU; how much waits on them",
            ("step_marker", "bins", "everything"),
            by=(*WHERE_IT_RAN, By.API),
            of_one_job=("queue-depth",),
        ),
        _of_calls(
            "host.calls",
            ("calls",),
            "tree of regions per thread with CPU time and the GPU time that they launched",
            ("flat",),
            texts=_flame_graphs("rocpd.summary.host.calls:{}"),
        ),
        Analysis(
            "host.graphs",
            ("graphs", "graph-launches", "graph-kernels", "graph-captures", "captured-kernels"),
            "launches of graphs: cost on the CPU, time on the GPU; their kernels, and what was captured",
            by=(),
        ),
        _of_calls(
            "host.calls",
            ("functions",),
            "calls and ranges by name, with CPU and GPU time of their own and of what runs inside",
            alias_of="calls --flat",
        ),
        Analysis(
            "host.stacks",
            ("stacks", "stack-lines"),
            "functions and lines of recorded call stacks: calls, samples of threads, functions of Python",
            texts=_flame_graphs("rocpd.summary.host.calls:{}_stacks"),
            by=(*_GROUPED, *LAUNCHES),
        ),
        Analysis(
            "host.operators",
            ("operators", "operator-shapes", "operator-phases"),
            "operators of PyTorch by name, sizes of inputs and phase: calls, CPU and GPU time, rates from sizes",
            by=_GROUPED,
        ),
        Analysis(
            "host.operators",
            ("autograd", "autograd-pairs"),
            "kernels by operator of PyTorch and sizes of its inputs; forward and backward operators",
            by=_GROUPED,
        ),
        Analysis("counters.counters", ("counters", "counters-wide"), "hardware counters per kernel"),
        Analysis(
            "counters.counters",
            ("collected", "passes", "to-collect"),
            "which counters were collected, in which passes, and what further ones are for",
            by=(),
        ),
        Analysis(
            "counters.metrics",
            ("roofline",),
            "how near kernels are to the highest rates of operations and memory",
            ("roofs",),
            by=_PLACED,
        ),
        Analysis(
            "counters.metrics",
            ("derived", "derived-missing"),
            "counters that are derived from others, by the file's formulas or rocprofv3's",
            by=(*_PLACED, By.DISPATCH),
        ),
        Analysis(
            "counters.metrics",
            ("panels", *PANELS),
            "metrics of hardware counters: rates, use, occupancy, instructions, caches, memory",
            ("per", "amd_compatible"),
            by=(*_PLACED, By.DISPATCH),
            costly=("panels", *PANELS),
        ),
        Analysis(
            "counters.samples",
            ("samples", "step-samples"),
            "sampled values: clocks, power, temperature, memory",
            _STEADY,
            by=(By.RANK, By.AGENT),
            recordable=Recordable.CLOCKS,
            costly=("step-samples",),
        ),
        Analysis(
            "counters.samples",
            ("kernel-samples",),
            "power, clocks and temperature while each kernel ran, and its energy",
            _STEADY,
            by=_PLACED,
        ),
        Analysis(
            "inside:pc_samples",
            ("hot-spots", "pc-lines", "pc-samples", "stall-reasons"),
            "where kernels spend their time inside: source lines, instructions, what waves wait for",
            texts=_flame_graphs("rocpd.summary.inside:{}"),
            by=(*_GROUPED, By.AGENT, By.DISPATCH),
        ),
        Analysis(
            "inside",
            ("memory-access", "memory-pages", "memory-addresses"),
            "cache lines and banks that source lines use, as Omniprobe counts them, beside the time of kernels",
            by=(),
        ),
        Analysis("inside", ("basic-blocks",), "basic blocks, as Omniprobe measures them", by=()),
        _of_kernels(
            "kernels.op_trace",
            ("op-trace",),
            "every GPU operation in order, with gaps",
            texts=(
                TextForm("raptor", f"{_OP_TRACE}:raptor", ".txt"),
                TextForm("logduration", f"{_OP_TRACE}:logduration", ".log"),
            ),
            reads_late=True,
        ),
        Analysis("kernels.variability", ("instances",), "how the n-th run of a kernel differs between GPUs", by=GROUPS),
        _of_kernels(
            "kernels.totals",
            ("marker-kernels",),
            "kernels by marker and agent",
            _MARKED,
            by=(),
            alias_of="kernels --by marker --each-agent",
        ),
        _of_kernels(
            "kernels.variability",
            ("variability", "variability-total", "durations"),
            "spread of each kernel, in the context of those before it; time above the fastest instance",
            ("categories", "sequence"),
        ),
    )
}
"""All built-in analyses, in the order in which `rocpd summary all` shows them."""

TABLES: dict[str, str] = {table: name for name, analysis in SUMMARIES.items() for table in analysis.tables}
"""Table -> the analysis that it belongs to."""

OF_ONE_JOB = frozenset(table for analysis in SUMMARIES.values() for table in analysis.of_one_job)
"""Tables that compare the ranks of one job."""

TOTALS = tuple(name for name, analysis in SUMMARIES.items() if analysis.is_total)
"""The tables that `rocpd summary --by …` shows when no analysis is named."""


def known_analyses() -> dict[str, Analysis]:
    """Return SUMMARIES and the analyses of installed packages, by name; a built-in name cannot be replaced."""
    others = entries.added(ENTRY_POINTS, Analysis, _plain)
    return {**SUMMARIES, **{name: analysis for name, analysis in others if name not in TABLES}}


def joined_analyses() -> dict[str, Analysis]:
    """Return the analyses that the overview combines, by name."""
    return {name: analysis for name, analysis in known_analyses().items() if analysis.in_overview}


def values_of(name: str, analysis: Analysis, asked: Mapping[str, object]) -> dict[str, object]:
    """Return the options that a Python caller gave for an analysis, each value of its option's type.

    Args:
        name: name of the analysis, for messages.
        analysis: its row.
        asked: name of an option -> its value.

    Raises:
        UsageError: an option that the analysis does not read, or a value of another type.
    """
    options = analysis.options
    known = {option.name: option for option in (*options_of(Options), *options)}
    values = {word: typed(known[word], value) for word, value in asked.items() if word in known}
    for word in asked.keys() - {option.name for option in options}:
        raise entries.no_option(word, {name: options})
    return values


def _plain(name: str, home: str, package: str) -> Analysis:
    """Return the row of an analysis that is only a function: it may read all options of the built-in ones."""
    names = tuple(option.name for option in options_of(Options))
    return Analysis(home, (name,), f"from {package}", names, is_whole=True, by=DIVISIONS_OF_TIME)


def tables_of(analyses: Mapping[str, Analysis]) -> dict[str, str]:
    """Return table -> the analysis that it belongs to; the name of an analysis is that of its first table."""
    return {table: name for name, analysis in analyses.items() for table in (name, *analysis.tables)}


def texts_of(analyses: Mapping[str, Analysis]) -> dict[str, dict[str, TextForm]]:
    """Return format -> analysis -> form, for the formats that only some analyses have."""
    texts: dict[str, dict[str, TextForm]] = {}
    for name, analysis in analyses.items():
        for form in analysis.texts:
            texts.setdefault(form.name, {})[name] = form
    return texts


def check_options(
    names: Iterable[str], given: Iterable[str], analyses: Mapping[str, Analysis]
) -> dict[str, tuple[Option, ...]]:
    """Return the options of each analysis that is asked for, if they include every given option.

    Args:
        names: analyses or tables.
        given: names of options.
        analyses: all known analyses.

    Raises:
        UsageError: an option that none of the analyses reads.
    """
    options = {name: analysis.options for name, analysis in analyses.items()}
    tables = tables_of(analyses)
    asked = {name: options[name] for name in sorted({tables[name] for name in names})}
    entries.unread(given, asked, options)
    return asked
