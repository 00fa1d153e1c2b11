"""Command lines from AMD's documents run unchanged and write what AMD's own tool writes, under the same names."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rocpd.simulator import JobOptions, simulate
from tests.warm import shell_path

SUMMARY = ["Name", "Calls", "DURATION (nsec)", "AVERAGE (nsec)", "PERCENT (INC)", "MIN (nsec)", "MAX (nsec)", "STD_DEV"]
KERNELS = (
    "Guid,Kind,Agent_Id,Queue_Id,Stream_Id,Thread_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,"
    "End_Timestamp,LDS_Block_Size,Scratch_Size,VGPR_Count,Accum_VGPR_Count,SGPR_Count,Workgroup_Size_X,Workgroup_Size_Y,"
    "Workgroup_Size_Z,Grid_Size_X,Grid_Size_Y,Grid_Size_Z"
)
CSV_FILES = {
    "kernel_trace", "hip_api_trace", "hsa_api_trace", "marker_api_trace", "rccl_api_trace", "memory_copy_trace",
    "memory_allocation_trace", "scratch_memory_trace", "counter_collection", "agent_info",
}  # fmt: skip
OTF2 = importlib.util.find_spec("otf2") is not None


@pytest.fixture(scope="module")
def six(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with db0.db … db5.db, the ranks of one job."""
    folder = tmp_path_factory.mktemp("six")
    for number, file in enumerate(simulate(JobOptions(out=folder / "job", ranks=6, steps=1))):
        file.rename(folder / f"db{number}.db")
    shutil.rmtree(folder / "job")
    return folder


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command line as documents give it, in bash, which expands `db{0..3}.db`."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("ROCPD_")}
    env |= {"PATH": shell_path(), **environment}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture
def work(six: Path, tmp_path: Path) -> Path:
    """A fresh folder with the six files."""
    for file in six.glob("*.db"):
        (tmp_path / file.name).symlink_to(file)
    return tmp_path


def written(folder: Path) -> set[str]:
    """Files that a command made."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file() and not p.name.startswith("db")}


def header(path: Path) -> list[str]:
    """First line of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return next(csv.reader(file))


CONVERT = {
    "rocpd convert -i db1.db --output-format pftrace": {"rocpd-output-data/out_results.pftrace"},
    "rocpd convert -i db1.db db2.db --output-format pftrace -d ./output/ -o twoFileTraces --start 30% --end 100%": {
        "output/twoFileTraces_results.pftrace"
    },
    "rocpd convert -i db{0..5}.db --output-format csv pftrace -d out_folder/ -o sixFileTraces": {
        "out_folder/sixFileTraces_results.pftrace",
        *(f"out_folder/sixFileTraces_{name}.csv" for name in CSV_FILES),
    },
    "python -m rocpd convert -f csv -i db1.db": {f"rocpd-output-data/out_{name}.csv" for name in CSV_FILES},
    "python -m rocpd.csv -i db1.db -o m": {f"rocpd-output-data/m_{name}.csv" for name in CSV_FILES},
    "python -m rocpd.pftrace -i db1.db db2.db -o m": {"rocpd-output-data/m_results.pftrace"},
    "rocpd2csv -i db1.db": {f"rocpd-output-data/out_{name}.csv" for name in CSV_FILES},
    "rocpd2pftrace -i db1.db db2.db -o t": {"rocpd-output-data/t_results.pftrace"},
}


@pytest.mark.parametrize("command", CONVERT)
def test_convert(command: str, work: Path) -> None:
    done = shell(command, work)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert written(work) == CONVERT[command]
    for path in work.rglob("*_kernel_trace.csv"):
        assert ",".join(header(path)) == KERNELS


@pytest.mark.parametrize("module", ["csv", "pftrace", "otf2", "query", "summary", "merge", "package"])
def test_every_module_of_amds_package_has_its_own_main(module: str, work: Path) -> None:
    command = {"csv": "convert", "pftrace": "convert", "otf2": "convert"}.get(module, module)
    asked = shell(f"python -m rocpd.{module} --help", work)
    assert (asked.returncode, asked.stderr) == (0, "")
    assert asked.stdout == shell(f"rocpd {command} --help", work).stdout


def test_the_modules_with_a_main_leave_the_package_as_it_is(work: Path) -> None:
    code = """
import sys
import rocpd
before = dir(rocpd), rocpd.connect, rocpd.simulate
import rocpd.csv, rocpd.merge, rocpd.otf2, rocpd.package, rocpd.pftrace, rocpd.query, rocpd.summary
assert (dir(rocpd), rocpd.connect, rocpd.simulate) == before
assert "rocpd.cli" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_modules_with_a_main_work(work: Path) -> None:
    summary = shell("python -m rocpd.summary -i db{0,1}.db --domain-summary", work)
    assert summary.returncode == 0
    assert "DOMAIN SUMMARY" in summary.stdout
    query = shell('python -m rocpd.query -i db0.db --query "SELECT COUNT(*) AS n FROM kernels" --format csv', work)
    assert query.stdout.splitlines()[0] == "n"
    assert shell("python -m rocpd.merge -i db{0,1}.db -o two -d there", work).returncode == 0
    assert (work / "there" / "two.db").is_file()
    assert shell("python -m rocpd.package -i db0.db -d one", work).returncode == 0
    assert (work / "one.rpdb" / "index.yaml").is_file()


@pytest.mark.skipif(not OTF2, reason="the otf2 wheel is not installed")
def test_convert_to_three_formats(work: Path) -> None:
    done = shell("rocpd convert -i db{3,4}.db --output-format csv otf2 pftrace", work)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    names = written(work)
    assert {"rocpd-output-data/out_results.pftrace", "rocpd-output-data/out_kernel_trace.csv"} < names
    assert {"rocpd-output-data/out_results.otf2", "rocpd-output-data/out_results.def"} < names
    assert (work / "rocpd-output-data" / "out_results").is_dir()
    assert shell("rocpd2otf2 -i db0.db -o again", work).returncode == 0


def test_query_of_a_base_table(work: Path) -> None:
    done = shell('rocpd query -i db0.db --query "SELECT * FROM rocpd_info_agent LIMIT 5"', work)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split()[:6] == ["id", "guid", "nid", "pid", "type", "absolute_index"]
    assert len(lines) == 2 + 5


def test_query_as_csv(work: Path) -> None:
    done = shell('rocpd query -i db{0..3}.db --query "SELECT * FROM top_kernels LIMIT 10" --format csv', work)
    assert (done.returncode, done.stderr) == (0, "")
    written_rows = list(csv.reader(done.stdout.splitlines()))
    assert written_rows[0] == ["name", "total_calls", "total_duration", "average", "percentage"]
    assert len(written_rows) == 11


def test_summary_of_domains(work: Path) -> None:
    done = shell("rocpd summary -i db1.db --domain-summary", work)
    assert (done.returncode, done.stderr) == (0, "")
    for title in ("KERNELS SUMMARY", "MEMORY COPIES SUMMARY", "HIP SUMMARY", "MARKERS SUMMARY", "DOMAIN SUMMARY"):
        assert title in done.stdout
    assert written(work) == set()


def test_summary_by_rank_as_csv(work: Path) -> None:
    done = shell("rocpd summary -i db{1..3}.db --summary-by-rank --format csv", work)
    assert (done.returncode, done.stdout) == (0, "")
    folder = work / "rocpd-output-data"
    names = {path.name for path in folder.iterdir()}
    base = {"kernels", "memory_copies", "memory_allocations", "hip", "hsa", "rccl", "markers"}
    assert names == {f"out_{n}_summary{by}.csv" for n in base for by in ("", "_by_rank")} | {
        f"out_scratch_memory_summary{by}.csv" for by in ("", "_by_rank")
    }
    assert header(folder / "out_kernels_summary.csv") == SUMMARY
    assert header(folder / "out_hip_summary_by_rank.csv") == ["ProcessID", "Hostname", *SUMMARY]


def test_summary_without_regions(work: Path) -> None:
    done = shell("rocpd summary -i db0.db --region-categories NONE", work)
    assert done.returncode == 0
    assert "KERNELS SUMMARY" in done.stdout
    assert "HIP SUMMARY" not in done.stdout


def test_summary_of_some_regions_as_html(work: Path) -> None:
    done = shell("rocpd summary -i db{0,1}.db --region-categories HIP MARKERS --domain-summary --format html", work)
    assert done.returncode == 0, done.stderr
    names = {name.removeprefix("rocpd-output-data/out_") for name in written(work)}
    gpu = {"kernels_summary", "memory_copies_summary", "memory_allocations_summary", "scratch_memory_summary"}
    assert names == {f"{n}.html" for n in (*gpu, "hip_summary", "markers_summary", "domain_summary")}


@pytest.mark.parametrize("categories", ["hip markers", "HIP MARKER", "Hip Markers"])
def test_region_categories_ignore_case(categories: str, work: Path) -> None:
    done = shell(f"rocpd summary -i db0.db --region-categories {categories}", work)
    assert [line for line in done.stdout.splitlines() if line in ("HIP SUMMARY", "MARKERS SUMMARY", "HSA SUMMARY")] == [
        *sorted(("HIP SUMMARY", "MARKERS SUMMARY"), key=done.stdout.index)
    ]


AUTOMERGE = {
    "convert": "rocpd convert -i db{0,1}.db -f pftrace --automerge-limit 1",
    "query": 'rocpd query -i db{0,1}.db --query "SELECT COUNT(*) FROM kernels" --automerge-limit 1',
    "summary": "rocpd summary -i db{0,1}.db --automerge-limit=1",
}


@pytest.mark.parametrize("command", AUTOMERGE)
def test_the_limit_of_automatic_merging_is_accepted(command: str, work: Path) -> None:
    done = shell(AUTOMERGE[command], work)
    assert done.returncode == 0, done.stderr
    assert "without effect here: --automerge-limit" in done.stderr


def test_a_package_as_in_amds_documents(work: Path) -> None:
    for number in range(3):
        (work / f"db{number}.db").rename(work / "link")
        shutil.copy(work / "link", work / f"db{number}.db")
        (work / "link").unlink()
    assert shell("rocpd package -i db0.db db1.db -d three --consolidate --copy", work).returncode == 0
    assert written(work) == {"three.rpdb/index.yaml", "three.rpdb/.rocpd-manifest.json"}
    assert sorted(file.name for file in (work / "three.rpdb").glob("*.db")) == ["db0.db", "db1.db"]
    assert shell("rocpd package -i db0.db db1.db db2.db", work).returncode == 0
    assert "index.yaml" in written(work)
    count = "rocpd query -i {} --query 'SELECT COUNT(DISTINCT guid) AS n FROM kernels' --format csv"
    assert shell(count.format("index.yaml"), work).stdout == "n\n3\n"
    assert shell(count.format("three.rpdb"), work).stdout == "n\n2\n"


def test_categories_of_the_gpu_can_be_chosen(work: Path) -> None:
    titles = {"HIP SUMMARY", "HSA SUMMARY", "KERNELS SUMMARY", "MEMORY COPIES SUMMARY"}
    for categories, shown in (
        ("HIP KERNEL", {"HIP SUMMARY", "KERNELS SUMMARY"}),
        ("MEMORY_COPY", {"MEMORY COPIES SUMMARY"}),
        ("HIP ROCR", titles - {"HSA SUMMARY"}),
    ):
        done = shell(f"rocpd summary --region-categories {categories} -i db0.db", work)
        assert (done.returncode, titles & set(done.stdout.splitlines())) == (0, shown), done.stderr
        assert ("no events of the category ROCR" in done.stderr) is ("ROCR" in categories)


def test_percentages_beyond_the_trace(work: Path) -> None:
    count = "rocpd query -i db0.db --query 'SELECT COUNT(*) AS n FROM kernels' --format csv"
    whole, half = shell(count, work).stdout, shell(f"{count} --start 50%", work).stdout
    beyond = shell(f"{count} --start -1% --end 101%", work)
    assert (beyond.returncode, beyond.stdout) == (0, whole)
    assert [line for line in beyond.stderr.splitlines() if "outside of the trace" in line] == [
        "rocpd: -1%: outside of the trace, taken as 0%",
        "rocpd: 101%: outside of the trace, taken as 100%",
    ]
    assert shell(f"{count} --start 5e1%", work).stdout == half != whole


DOCUMENTED = {
    "SELECT name, absolute_index FROM rocpd_info_agents LIMIT 5": ["name", "absolute_index"],
    "SELECT name, COUNT(*) AS n, AVG(duration), STDDEV(duration) AS s FROM kernels GROUP BY name": [
        "name", "n", "AVG(duration)", "s",
    ],
}  # fmt: skip


@pytest.mark.parametrize("sql", DOCUMENTED)
@pytest.mark.parametrize("files", ["db0.db", "db{0..5}.db"])
def test_documented_sql_that_fails_with_amds_own_tool(sql: str, files: str, work: Path) -> None:
    done = shell(f'rocpd query -i {files} --query "{sql}" --format csv', work)
    assert (done.returncode, next(csv.reader(done.stdout.splitlines()))) == (0, DOCUMENTED[sql]), done.stderr


def test_amds_tables_are_asked_for(work: Path) -> None:
    plain = shell("rocpd summary --amd -i db0.db", work)
    assert (plain.returncode, plain.stdout) == (0, shell("rocpd2summary -i db0.db", work).stdout)
    assert [word for word in SUMMARY if word in plain.stdout] == SUMMARY
    assert "are for summaries without names" in shell("rocpd summary kernels --amd -i db0.db", work).stderr


def test_files_of_2026(work: Path) -> None:
    done = shell("rocpd convert -f csv -i db0.db --amd-version 2026 --with-rank", work)
    assert done.returncode == 0, done.stderr
    assert {"rocpd-output-data/out_regions_trace.csv", "rocpd-output-data/out_counter_collection_trace.csv"} < written(
        work
    )
    assert header(work / "rocpd-output-data" / "out_kernel_trace.csv")[-3:] == ["Duration", "Rank", "Hostname"]
    assert shell("rocpd summary --truncate-kernels -i db0.db --format csv --amd-version 2026", work).returncode == 0
    assert header(work / "rocpd-output-data" / "out_kernels_summary.csv")[2] == "Duration (Nsec)"


def test_own_forms(work: Path) -> None:
    assert shell("rocpd merge db*.db --summary", work).returncode == 0
    assert (work / "rocpd-output-data" / "merged.db").is_file()
    assert shell("rocpd convert --format pftrace", work).returncode == 0
    done = shell('rocpd query "select * from top_kernels"', work)
    assert done.returncode == 0
    assert done.stdout.startswith("name")


def test_environment_names_outputs(work: Path) -> None:
    done = shell("rocpd convert -i db0.db -f pftrace", work, ROCPD_OUTPUT_NAME="mine", ROCPD_OUTPUT_PATH="there")
    assert done.returncode == 0, done.stderr
    assert written(work) == {"there/mine_results.pftrace"}


def test_options_of_the_ring_buffer_have_no_effect_and_say_so_once(work: Path) -> None:
    options = "--perfetto-buffer-size 1024 --perfetto-backend inprocess --perfetto-shmem-size-hint=64"
    options += " --perfetto-buffer-fill-policy discard --no-annotate-kfd"
    done = shell(f"rocpd convert -i db0.db -f perfetto {options}", work)
    assert done.returncode == 0, done.stderr
    notes = [line for line in done.stderr.splitlines() if "without effect" in line]
    assert len(notes) == 1
    assert "--perfetto-buffer-size" in notes[0]
    assert written(work) == {"rocpd-output-data/out_results.pftrace"}


@pytest.mark.parametrize(("inclusive", "counted"), [("True", 1), ("False", 0)])
def test_inclusive_does_what_is_documented(inclusive: str, counted: int, work: Path) -> None:
    """True: start or end in the window; False: both. The longest call, cut in the middle, tells them apart."""
    longest = "select id, start + duration / 2 as middle from regions order by duration desc limit 1"
    (row,) = json.loads(shell(f"rocpd query -i db0.db --query '{longest}' --format json", work).stdout)
    sql = f"select count(*) as n from regions where id = {row['id']}"
    window = f"--start {row['middle']} --inclusive {inclusive}"
    done = shell(f"rocpd query -i db0.db {window} --query '{sql}' --format json", work)
    assert json.loads(done.stdout) == [{"n": counted}], done.stderr


def test_code_for_the_other_package_keeps_working(work: Path) -> None:
    code = """
import rocpd
with rocpd.connect(["db0.db", "db1.db"]) as connection:
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) FROM rocpd_kernel_dispatch")
    (count,) = cursor.fetchone()
    assert count == connection.execute("SELECT COUNT(*) FROM kernels").fetchall()[0][0] > 0
    names = [column[0] for column in connection.execute("SELECT * FROM top_kernels").description]
    assert names[0] == "name"
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=work, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_beside_amds_package(work: Path) -> None:
    """What docs/amd.md says of a PYTHONPATH that names another package called rocpd."""
    other = work / "site-packages" / "rocpd"
    other.mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "__main__.py").write_text(
        "def main():\n    print('the other one')\n\nif __name__ == '__main__':\n    main()\n"
    )
    python = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    there = {"PYTHONPATH": str(other.parent), "PATH": python}
    assert shell("python -m rocpd --version", work, **there).stdout == "the other one\n"
    for command in ("python -I -m rocpd", "env -u PYTHONPATH rocpd"):
        assert shell(f"{command} --version", work, **there).stdout.startswith("rocpd ")
        done = shell(f"{command} convert -f csv -j 2 --force -i db0.db db1.db", work, **there)
        assert done.returncode == 0, done.stderr
