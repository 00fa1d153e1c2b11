"""The table of contents of analyses; imports nothing heavy, so that help is quick.

Adding an analysis touches its file, its row in `SUMMARIES` and its test. The row holds everything that is needed before
the file is loaded; the definitions of its tables are in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


def _totals(name: str, summary: str, recordable: Recordable | None = None) -> Analysis:
    """Return the row of an analysis with a table of all events of a kind."""
    return Analysis(f"rocpd.summary.kernels.totals:{name}", (name,), summary, recordable=recordable, is_total=True)


_MATCHED = ("collectives", "stragglers", "waits")
_COMPARED = ("imbalance", *_MATCHED)
_EXPOSED = ("exposed-communication", "exposed-parts")  # part of the tables of ranks

SUMMARIES: dict[str, Analysis] = {
    analysis.tables[0]: analysis
    for analysis in (
        Analysis(
            "rocpd.summary.time.overview:overview",
            ("overview", "top-kernels", "top-steps"),
            "what is wrong, what the time consists of, and what takes it",
            ("categories", "step_marker"),
            by=(),
        ),
        Analysis(
            "rocpd.summary.time.trace:trace",
            ("trace",),
            "what the recording lacks, and so no analysis can see",
            by=(),
            in_overview=True,
        ),
        Analysis(
            "rocpd.summary.kernels.totals:kernels",
            ("kernels",),
            "time by kernel, with median, p95 and p99",
            ("step_marker", "each_agent"),
            by=DIVISIONS_OF_TIME,
            recordable=Recordable.KERNELS,
            is_total=True,
            in_overview=True,
        ),
        Analysis(
            "rocpd.summary.kernels.totals:kernel_shapes",
            ("kernel-shapes",),
            "kernels by grid and work-group, and how much of a GPU these can fill",
            recordable=Recordable.KERNELS,
        ),
        Analysis(
            "rocpd.summary.time.gpu_time:copies",
            ("copies",),
            "copies by direction: time, bytes, bandwidth",
            ("step_marker",),
            by=DIVISIONS_OF_TIME,
            recordable=Recordable.COPIES,
            is_total=True,
        ),
        Analysis(
            "rocpd.summary.memory.copies:copy_rates",
            ("copy-sizes", "copy-pairs", "slowest-copies"),
            "how fast copies are by size and between agents; the slowest",
            ("step_marker", "everything", "top"),
            by=(By.RANK, By.HOST),
            recordable=Recordable.COPIES,
        ),
        Analysis(
            "rocpd.summary.memory.copies:copy_calls",
            ("copy-calls",),
            "the calls that copy, and whether asynchronous ones wait",
            ("step_marker", "everything"),
            by=(By.RANK, By.HOST),
            recordable=Recordable.COPIES,
        ),
        _totals("allocations", "allocations and frees by operation and level", Recordable.ALLOCATIONS),
        Analysis(
            "rocpd.summary.memory.memory:memory",
            ("memory", "memory-curve"),
            "memory held: peak per agent, and its course over time",
            ("step_marker", "bins"),
            divided_by=By.AGENT,
            recordable=Recordable.ALLOCATIONS,
            of_one_job=("memory-curve",),
        ),
        Analysis(
            "rocpd.summary.memory.memory:allocation_sites",
            ("allocation-sites", "memory-steps"),
            "who allocates, what steps leave behind, leak candidates",
            ("step_marker",),
            by=(By.RANK, By.HOST, By.AGENT),
            recordable=Recordable.ALLOCATIONS,
            in_overview=True,
        ),
        _totals("scratch", "scratch memory by operation", Recordable.SCRATCH),
        _totals("api", "API calls by domain and function", Recordable.CALLS),
        _totals("markers", "marker ranges by message", Recordable.STEPS),
        _totals("domains", "time by domain: kernels, copies, HIP, HSA, RCCL …"),
        Analysis(
            "rocpd.summary.kernels.totals:categories",
            ("categories", "unmatched"),
            "kernels by what they do: GEMM, communication, attention …; names that no pattern knows",
            ("categories", "step_marker"),
            by=DIVISIONS_OF_TIME,
            recordable=Recordable.KERNELS,
        ),
        Analysis(
            "rocpd.summary.time.gpu_time:gpu_time",
            ("gpu-time", "gaps", "largest-gaps", "overlap"),
            "busy and idle time of agents, gaps, overlap of compute, communication and copies",
            ("categories", "top", "step_marker", "everything"),
            by=DIVISIONS_OF_TIME,
            recordable=Recordable.KERNELS,
        ),
        Analysis(
            "rocpd.summary.time.gpu_time:budget",
            ("budget", "counted"),
            "what a step consists of: compute, exposed communication and copies, idle",
            ("categories", "step_marker", "everything"),
            by=(By.RANK, By.HOST, By.RUN, By.COMMAND, By.AGENT, By.STEP, By.MARKER),
            recordable=Recordable.KERNELS,
            in_overview=True,
        ),
        Analysis(
            "rocpd.summary.time.idle:idle",
            ("idle", "idle-calls", "idle-stacks"),
            "why GPUs have nothing to do, by what their host does",
            ("step_marker", "everything"),
            by=(By.RANK, By.HOST, By.RUN, By.COMMAND, By.AGENT, By.STEP, By.MARKER),
            recordable=Recordable.KERNELS,
            in_overview=True,
        ),
        Analysis(
            "rocpd.summary.communication.ranks:ranks",
            ("ranks", *_COMPARED, "causes", "communication", "transfers", *_EXPOSED, "steps", "phases", "heat"),
            "balance of ranks, who waits for whom in collectives, spread of steps, rank × time",
            ("categories", "step_marker", "bins", "everything"),
            by=DIVISIONS_OF_TIME,
            by_launch=_MATCHED,
            divided_by=By.RANK,
            compares=_COMPARED,
            recordable=Recordable.KERNELS,
            of_one_job=(*_COMPARED, "causes", "communication", *_EXPOSED, "steps", "heat"),
            costly=("phases",),  # they match calls and operations once more
            in_overview=True,
        ),
        Analysis(
            "rocpd.summary.host.launch:launch",
            ("launch", "bottleneck", "queue-depth"),
            "delay from launch to start; how long GPUs wait for the CPU; how much waits on them",
            ("step_marker", "bins", "everything"),
            by=(*WHERE_IT_RAN, By.API),
            recordable=Recordable.CALLS,
            of_one_job=("queue-depth",),
        ),
        Analysis(
            "rocpd.summary.host.calls:calls",
            ("calls",),
            "tree of regions per thread with CPU time and the GPU time that they launched",
            ("flat",),
            texts=_flame_graphs("rocpd.summary.host.calls:{}"),
            recordable=Recordable.CALLS,
        ),
        Analysis(
            "rocpd.summary.host.graphs:graphs",
            ("graphs", "graph-launches", "graph-kernels", "graph-captures", "captured-kernels"),
            "launches of graphs: cost on the CPU, time on the GPU; their kernels, and what was captured",
            by=(),
        ),
        Analysis(
            "rocpd.summary.host.calls:functions",
            ("functions",),
            "calls and ranges by name, with CPU and GPU time of their own and of what runs inside",
            recordable=Recordable.CALLS,
            alias_of="calls --flat",
        ),
        Analysis(
            "rocpd.summary.host.stacks:stacks",
            ("stacks", "stack-lines"),
            "functions and lines of recorded call stacks: calls, samples of threads, functions of Python",
            texts=_flame_graphs("rocpd.summary.host.calls:{}_stacks"),
            by=(By.RANK, *GROUPS, *LAUNCHES),
        ),
        Analysis(
            "rocpd.summary.host.operators:operators",
            ("operators", "operator-shapes", "operator-phases"),
            "operators of PyTorch by name, sizes of inputs and phase: calls, CPU and GPU time, rates from sizes",
            by=(By.RANK, *GROUPS),
        ),
        Analysis(
            "rocpd.summary.host.operators:autograd",
            ("autograd", "autograd-pairs"),
            "kernels by operator of PyTorch and sizes of its inputs; forward and backward operators",
            by=(By.RANK, *GROUPS),
        ),
        Analysis(
            "rocpd.summary.counters.counters:counters", ("counters", "counters-wide"), "hardware counters per kernel"
        ),
        Analysis(
            "rocpd.summary.counters.counters:collected",
            ("collected", "passes", "to-collect"),
            "which counters were collected, in which passes, and what further ones are for",
            by=(),
        ),
        Analysis(
            "rocpd.summary.counters.metrics:roofline",
            ("roofline",),
            "how near kernels are to the highest rates of operations and memory",
            ("roofs",),
            by=(By.RANK, By.HOST, By.AGENT),
        ),
        Analysis(
            "rocpd.summary.counters.metrics:derived",
            ("derived", "derived-missing"),
            "counters that are derived from others, by the file's formulas or rocprofv3's",
            by=(By.RANK, By.HOST, By.AGENT, By.DISPATCH),
        ),
        Analysis(
            "rocpd.summary.counters.metrics:panels",
            ("panels", *PANELS),
            "metrics of hardware counters: rates, use, occupancy, instructions, caches, memory",
            ("per", "amd_compatible"),
            by=(By.RANK, By.HOST, By.AGENT, By.DISPATCH),
            costly=("panels", *PANELS),
        ),
        Analysis(
            "rocpd.summary.counters.samples:samples",
            ("samples", "step-samples"),
            "sampled values: clocks, power, temperature, memory",
            ("step_marker", "everything"),
            by=(By.RANK, By.AGENT),
            recordable=Recordable.CLOCKS,
            costly=("step-samples",),
        ),
        Analysis(
            "rocpd.summary.counters.samples:kernel_samples",
            ("kernel-samples",),
            "power, clocks and temperature while each kernel ran, and its energy",
            ("step_marker", "everything"),
            by=(By.RANK, By.HOST, By.AGENT),
        ),
        Analysis(
            "rocpd.summary.inside:pc_samples",
            ("hot-spots", "pc-lines", "pc-samples", "stall-reasons"),
            "where kernels spend their time inside: source lines, instructions, what waves wait for",
            texts=_flame_graphs("rocpd.summary.inside:{}"),
            by=(By.RANK, *GROUPS, By.AGENT, By.DISPATCH),
        ),
        Analysis(
            "rocpd.summary.inside:memory_access",
            ("memory-access", "memory-pages", "memory-addresses"),
            "cache lines and banks that source lines use, as Omniprobe counts them, beside the time of kernels",
            by=(),
        ),
        Analysis(
            "rocpd.summary.inside:basic_blocks", ("basic-blocks",), "basic blocks, as Omniprobe measures them", by=()
        ),
        Analysis(
            "rocpd.summary.kernels.op_trace:op_trace",
            ("op-trace",),
            "every GPU operation in order, with gaps",
            texts=(
                TextForm("raptor", "rocpd.summary.kernels.op_trace:raptor", ".txt"),
                TextForm("logduration", "rocpd.summary.kernels.op_trace:logduration", ".log"),
            ),
            reads_late=True,
            recordable=Recordable.KERNELS,
        ),
        Analysis(
            "rocpd.summary.kernels.variability:instances",
            ("instances",),
            "how the n-th run of a kernel differs between GPUs",
            by=GROUPS,
        ),
        Analysis(
            "rocpd.summary.kernels.totals:marker_kernels",
            ("marker-kernels",),
            "kernels by marker and agent",
            ("step_marker",),
            by=(),
            recordable=Recordable.KERNELS,
            alias_of="kernels --by marker --each-agent",
        ),
        Analysis(
            "rocpd.summary.kernels.variability:variability",
            ("variability", "variability-total", "durations"),
            "spread of each kernel, in the context of those before it; time above the fastest instance",
            ("categories", "sequence"),
            recordable=Recordable.KERNELS,
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
