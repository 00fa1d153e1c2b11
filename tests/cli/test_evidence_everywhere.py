"""No command with any option for outputs changes a recording or lays a file where it would be read with one."""

from __future__ import annotations

import gzip
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

import rocpd
from rocpd.base.identity import BESIDE
from rocpd.base.option import Heading
from rocpd.cli.commands import COMMANDS, command_of, function_of
from rocpd.compare.baseline import Baseline
from rocpd.compare.options import DiffOptions
from rocpd.compare.run import profiles_of
from rocpd.history.store import add
from rocpd.schema.live_state import StateWriter
from rocpd.simulator import JobOptions, simulate
from tests.conftest import Cli, state_of
from tests.hostile.traces import make_workload
from tests.importers.rpd import server
from tests.importers.test_nsight import export
from tests.soak import SOAK, sized

FILES: Mapping[str, Sequence[str]] = {
    "query": ("query", "select 1 as a", "{}", "-o"),
    "summary": ("summary", "kernels", "{}", "-f", "csv", "-o"),
    "convert": ("convert", "-f", "json", "{}", "-o"),
    "merge": ("merge", "{}", "-o"),
    "trim": ("trim", "{}", "--start", "10%", "-o"),
    "report": ("report", "{}", "-o"),
    "advise": ("advise", "{}", "-f", "json", "-o"),
    "diff": ("diff", "{}", "{}", "-f", "json", "-o"),
    "counters": ("counters", "{}", "-f", "csv", "-o"),
    "whatif": ("whatif", "{}", "-f", "json", "-o"),
    "hang": ("hang", "{}", "-f", "json", "-o"),
    "top": ("top", "{}", "--once", "-f", "json", "-o"),
    "info": ("info", "{}", "-f", "json", "-o"),
    "schema": ("schema", "-f", "csv", "-o"),
    "baseline": ("diff", "--base", "{}", "--save-baseline"),
    "history": ("history", "report", "store", "-o"),
    "metrics": ("history", "export", "store", "-o"),
    "level": ("history", "check", "store", "{}", "-f", "json", "-o"),
    "runs": ("history", "store", "runs", "-f", "csv", "-o"),
    "questions": ("questions", "-f", "csv", "-o"),
}
"""Commands that write a file, which is the last word."""

FOLDERS: Mapping[str, Sequence[str]] = {
    "convert": ("convert", "-f", "csv", "{}", "-d"),
    "parquet": ("convert", "-f", "parquet", "{}", "-d"),
    "summary": ("summary", "kernels", "domains", "{}", "-f", "csv", "-d"),
    "plots": ("report", "{}", "-o", "new.html", "--force", "--plots"),
    "redact": ("redact", "{}", "-d"),
    "symbolize": ("symbolize", "{}", "--debug-dir", ".", "-d"),
    "import": ("import", "{}", "-d"),
    "package": ("package", "--copy", "{}", "-d"),
    "index": ("index", "{}", "-d"),
    "consolidate": ("package", "--consolidate", "{}", "-d"),
    "join": ("import", "job/a.db", "--join", "{}", "-d"),
    "simulate": ("simulate", "--ranks", "1", "--steps", "1", "-d"),
    "kineto": ("simulate", "--ranks", "1", "--steps", "1", "-d", "simulated", "--force", "--kineto"),
    "store": ("history", "add", "{target}", "{}"),
}
"""Commands that write a folder, which is the last word unless it says otherwise."""

ELSEWHERE = {("record", "--output-path"), ("doctor", "-o")}
"""What recorders write: files that did not exist, under names of their own (`tests/record`)."""
NO_OUTPUTS = frozenset({
    "--format", "--json", "--color", "--sections", "--split", "--history", "--alert", "--exec", "--metrics", "--join",
    "--perfetto-ui",
})  # fmt: skip
"""Options about output that name none: what they take is no path, or a file that is read."""

ADDS = ("index", "store")
"""Those that replace nothing, and know no --force."""

INPUTS = (
    "a.db", "linked.db", "folder", "trace.json", "trace.json.gz", "csv", "a.rpd", "nsys", "workload", "job.rpdb",
    "base.json",
)  # fmt: skip
TARGETS = (
    "a.db", "b.db", "linked.db", "hard.db", "folder/../a.db", "a.db-wal", "b.db-journal", "folder/c.db", "trace.json",
    "a.db.live", "b.db.live", "linked.db.live", "a.db-wal/new",
    "trace.json.gz", "csv/out_kernel_trace.csv", "csv/out_marker_api_trace.csv", "a.rpd", "nsys", "nsys-wal",
    "workload/pmc_perf.csv", "workload/pmc_perf_2.csv", "job.rpdb/index.yaml", "job.rpdb/a.db", "linked.html",
    "hard.xlsx", "linked.pdf", "./folder/./../hard.xlsx",
)  # fmt: skip
FOLDER_TARGETS = (
    "", "folder", "csv", "workload", "job.rpdb", "linked_folder", "folder/../csv", "nsys", "a.db", "a.db-wal",
    "b.db-journal/new", "a.db.live", "b.db.live",
)  # fmt: skip


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of several kinds, none of which rocpd wrote as they lie there."""
    made, job = (tmp_path_factory.mktemp("recordings") / name for name in ("made", "job"))
    for folder in ("folder", "csv", "workload", "job.rpdb"):
        (job / folder).mkdir(parents=True)
    files = simulate(JobOptions(made, ranks=3, steps=2, seed=5))
    with rocpd.connect(files[0]) as session:
        session.convert("json", made / "trace")
        for path in map(Path, session.convert("csv", made / "csv" / "out")):
            (job / "csv" / path.name).write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))  # as no output of ours
    for path, name in zip(files, ("a.db", "b.db", "folder/c.db"), strict=True):
        shutil.copy(path, job / name)
    (job / "trace.json").write_bytes((made / "trace.json").read_bytes() + b"\n")
    (job / "trace.json.gz").write_bytes(gzip.compress((made / "trace.json").read_bytes(), mtime=0))
    StateWriter(job / "b.db.live", host="node1").close(remove=False)
    server(job / "a.rpd")
    export(job / "nsys")
    make_workload(job / "workload")
    shutil.copy(files[1], job / "job.rpdb" / "a.db")
    index = "rocprofiler-sdk: {rocpd: {path: ., files: [a.db]}}"
    (job / "job.rpdb" / "index.yaml").write_text(index, encoding="utf-8")
    (job / "base.json").write_text(baseline_of(files[2]), encoding="utf-8")
    with rocpd.connect(files[1]) as session:
        (run,) = profiles_of(session, DiffOptions())
    add(job.parent / "store", [run], {})
    return job


@pytest.fixture
def job(recordings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The recordings, with links to them."""
    job = Path(shutil.copytree(recordings, tmp_path / "job"))
    shutil.copytree(recordings.parent / "store", tmp_path / "store")
    for name, target in (("linked.db", "a.db"), ("linked.html", "a.rpd"), ("linked.pdf", "nsys")):
        (job / name).symlink_to(job / target)
    (job / "linked_folder").symlink_to(job / "folder")
    (job / "hard.db").hardlink_to(job / "a.db")
    (job / "hard.xlsx").hardlink_to(job / "trace.json")
    monkeypatch.chdir(tmp_path)
    return job


def baseline_of(path: Path) -> str:
    with rocpd.connect(path) as session:
        return Baseline(tuple(profiles_of(session, DiffOptions()))).text()


def source_of(number: int, command: str) -> Iterable[str]:
    """Return the inputs that stand beside the target of a number: one at every eighth, in a soak all at each.

    What takes no input is run for each target, or for every fourth where it simulates.
    """
    known = {**FILES, **FOLDERS}
    place = list(known).index(command)
    if "{}" not in known[command]:
        is_dear = known[command][0] == "simulate" and not SOAK
        return INPUTS[:1] if not is_dear or (number + place) % 4 == 0 else ()
    some = [INPUTS[(number + 3 * place) % len(INPUTS)]] if (number + place) % 8 == 0 else []
    return [name for name in sized(some, [*INPUTS]) if command in ("diff", "baseline") or name != "base.json"]


@pytest.mark.parametrize(("command", "known"), [*FILES.items(), *FOLDERS.items()])
def test_the_commands_of_these_laws_write(command: str, known: Sequence[str], cli: Cli, job: Path) -> None:
    """Else what they refuse would show nothing."""
    source = {"join": "trace.json", "import": "a.rpd"}.get(command, "a.db")
    target = {"report": "new.html", "history": "new.html", "metrics": "new.prom"}.get(command, "new")
    words = words_of(known, job / source, str(job.parent / target))
    said = cli(*words, *(["--yes"] if command == "consolidate" else []))
    assert said.code in ((0, 1, 4) if command in ("diff", "level") else (0,)), said
    assert list(job.parent.glob("new*")), said


def outputs_of(command: str) -> dict[str, str]:
    """Return the options of a command that say where something is written: spelling -> the longest one."""
    made = command_of(function_of(command), command)
    options = [each for each in made.params if getattr(each, "rich_help_panel", None) == Heading.OUTPUT]
    paths = [each for each in options if each.type.name in ("str", "path")]
    return {flag: max(each.opts, key=len) for each in paths for flag in each.opts if NO_OUTPUTS.isdisjoint(each.opts)}


def test_each_option_for_an_output_is_in_these_laws() -> None:
    tried = {(words[0], outputs_of(words[0]).get(words[-1])) for words in (*FILES.values(), *FOLDERS.values())}
    by_folder = {(words[0], "--output-path") for words in FILES.values() if words[-1] == "-o"}
    exist = {(command, flag) for command in COMMANDS for flag in outputs_of(command).values()}
    assert exist - tried - by_folder == ELSEWHERE


def words_of(command: Sequence[str], source: Path, target: str) -> list[str]:
    """Return a command line with its input and its output."""
    words = [word.format(source, target=target) for word in command]
    return words if "{target}" in command else [*words, target]


def by_folder(words: Sequence[str]) -> list[str]:
    """Return a command line that names folder and name of its output apart."""
    *others, flag, target = words
    folder, _, name = target.rpartition("/")
    return [*others, "-d", folder, flag, name] if "-d" in outputs_of(words[0]) and flag == "-o" else [*words]


@pytest.mark.soak(80)
@pytest.mark.parametrize("command", FILES)
def test_no_recording_changes(command: str, cli: Cli, job: Path) -> None:
    """Each input comes with some of the targets; a file of another ending lies beside the one that was named."""
    before = state_of(job)
    seen = set(before)
    for number, target in enumerate(TARGETS):
        for source in source_of(number, command):
            words = words_of(FILES[command], job / source, f"{job}/{target}")
            said = cli(*(by_folder(words) if number % 2 else words), "--force")
            after = state_of(job)
            assert {name: after.get(name) for name in before} == before, (words, target, said)
            for name in after.keys() - seen:
                assert Path(name).name.startswith(Path(target).stem), (words, target, name)
                assert not name.endswith(BESIDE), (words, target, name)
            seen |= after.keys()


@pytest.mark.soak(80)
@pytest.mark.parametrize("command", FOLDERS)
def test_no_recording_changes_in_a_folder(command: str, cli: Cli, job: Path) -> None:
    """What a folder holds stays, and nothing that comes into it is read with it."""
    before = state_of(job)
    answers = {name: rows_of(job / name) for name in ("folder", "csv", "workload", "job.rpdb")}
    for number, target in enumerate(FOLDER_TARGETS):
        for source in source_of(number, command):
            words = words_of(FOLDERS[command], job / source, f"{job}/{target}")
            said = cli(*words, *(["--force"] if command not in ADDS else []))
            after = state_of(job)
            assert {name: after.get(name) for name in before} == before, (words, target, said)
            for name in after.keys() - before.keys():
                assert not name.endswith(BESIDE), (words, target, name)
    assert {name: rows_of(job / name) for name in answers} == answers


def rows_of(folder: Path) -> list[tuple[object, ...]]:
    with rocpd.connect(folder) as session:
        return session.sql("select name, start, duration from kernels order by 2, 1 limit 50").fetchall()


def test_an_input_is_held_to_the_end_of_the_command(cli: Cli, job: Path) -> None:
    """Also one that is read and closed before the output is written, and one that the working folder names."""
    shutil.copy(job / "trace.json", job / "other.json")
    raw = (job / "trace.json").read_bytes()
    for words in (("diff", "trace.json", "other.json"), ("advise", "trace.json", "-f", "json")):
        said = cli(
            *(job / word if word.endswith(".json") else word for word in words), "-o", job / "trace.json", "--force"
        )
        assert "is an input" in said.err
    assert (job / "trace.json").read_bytes() == raw


def test_what_rocpd_wrote_is_replaced(cli: Cli, job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(job)
    for words in (
        ("query", "select 1 as a", "a.db", "-o", "x.csv"),
        ("convert", "-f", "csv", "a.db", "-d", "out"),
        ("convert", "-f", "json", "a.db", "-o", "x.json"),
        ("merge", "a.db", "b.db", "-o", "m.db"),
    ):
        for _ in range(2):
            said = cli(*words, "--force")
            assert said.code == 0, said
    (job / "m.db").rename(job / "moved.db")
    assert cli("merge", "a.db", "b.db", "-o", "moved.db", "--force").code == 0
    (job / "x.json").rename(job / "y.json")
    assert cli("query", "select 1 as a", ".", "-o", "y.json", "--force").code == 0
    (job / "x.csv").write_text("mine", encoding="utf-8")
    assert cli("query", "select 1 as a", "-i", "a.db", "-o", "x.csv", "--force").code == 0
    (job / "x.csv").write_text("mine", encoding="utf-8")
    said = cli("query", "select 1 as a", ".", "-o", "x.csv", "--force")
    assert "rocpd did not write it" in said.err


def test_stdout_is_an_output(cli: Cli, job: Path) -> None:
    said = cli("query", "select 1 as a", job / "a.db", "-f", "csv", "-o", "-")
    assert (said.code, said.out) == (0, "a\n1\n")
    assert "goes to files, not to stdout" in cli("merge", job / "a.db", "-o", "-").err
    for words in (("history", "report", job.parent / "store"), ("report", job / "a.db"), ("package", job / "a.db"),
                  ("simulate",)):  # fmt: skip
        for name in ("-", "/dev/stdout"):
            said = cli(*words, "-o", name)
            assert said.code == 2
            assert "goes to files, not to stdout" in said.err
    assert "goes to files, not to stdout" in cli("redact", job / "a.db", "-d", "-").err
    assert "goes to files, not to stdout" in cli("report", job / "a.db", "--plots", "-").err
