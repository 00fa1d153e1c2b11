"""CSV files of the first rocprof against their own lines."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

import rocpd
from tests.conftest import Cli

# Lines as rocprof of ROCm 5.3 wrote them, and with the columns of older versions.
COUNTED = """Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,\
wave_size,sig,obj,Wavefronts,VALUUtilization,TCC_HIT[0],TCC_HIT[1],L2CacheHit,DispatchNs,BeginNs,EndNs,CompleteNs
0,"bodyForce(Body*, float, int) [clone .kd]",1,0,0,36,37,65536,256,512,16,20,4,16,64,0x0,0x7f2b4d282500,\
2048.0000000000,100.0000000000,7,5,96.5684331443,1594244102859719,1594244111978746,1594244138305243,1594244138330792
1,"bodyForce(Body*, float, int) [clone .kd]",0,1,2,36,37,65536,256,512,16,20,4,16,64,0x0,0x7f2b4d282500,\
2048.0000000000,,6,4,96.5,1594244202859719,1594244211978746,1594244238305243,1594244238330792
2,"cut",0,1
"""
PLAIN = """"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds","scr","vgpr","sgpr"

0,"__omp_offloading_2a_d4ce97d__Z4copyPdS__l13.kd",0,0,0,136496,136496, 16777216, 512, 512,0,40,48
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    (tmp_path / "results.csv").write_text(COUNTED)
    return tmp_path / "results.csv"


def test_each_line_is_a_dispatch_with_its_counters(job: Path) -> None:
    with rocpd.connect(job) as session:
        assert session.sql(
            "SELECT dispatch_id, name, start, duration, grid_x, workgroup_x, lds_size, scratch_size, vgpr_count, pid,"
            " tid FROM kernels ORDER BY 1"
        ).fetchall() == [
            (0, "bodyForce(Body*, float, int)", 1594244111978746, 26326497, 65536, 256, 512, 16, 20, 36, 37),
            (1, "bodyForce(Body*, float, int)", 1594244211978746, 26326497, 65536, 256, 512, 16, 20, 36, 37),
        ]
        values = "SELECT dispatch_id, counter_name, value FROM counters_collection ORDER BY 1, 2"
        assert session.sql(values).fetchall() == [
            (0, "L2CacheHit", 96.5684331443), (0, "TCC_HIT[0]", 7.0), (0, "TCC_HIT[1]", 5.0),
            (0, "VALUUtilization", 100.0), (0, "Wavefronts", 2048.0),
            (1, "L2CacheHit", 96.5), (1, "TCC_HIT[0]", 6.0), (1, "TCC_HIT[1]", 4.0), (1, "Wavefronts", 2048.0),
        ]  # fmt: skip
        assert session.sql("SELECT COUNT(DISTINCT agent_id) FROM rocpd_kernel_dispatch").fetchall() == [(2,)]
        assert session.notes[-1] == "results.csv: not imported: 1 lines of CSV files that are cut or damaged"


def test_old_columns_without_times(tmp_path: Path, cli: Cli) -> None:
    path = tmp_path / "old.csv.gz"
    path.write_bytes(gzip.compress(PLAIN.encode()))
    with rocpd.connect(path) as session:
        rows = session.sql("SELECT name, start, vgpr_count, grid_x FROM kernels").fetchall()
    assert rows == [("__omp_offloading_2a_d4ce97d__Z4copyPdS__l13", 0, 40, 16777216)]
    assert cli("import", path, "-d", tmp_path / "out").code == 0


def test_values_that_are_no_numbers_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("Index,KernelName,gpu-id,grd,wgr,C,Note\n0,k,0,64,64,5,slow\n1,k,0,64,64,6,²\n")
    with rocpd.connect(tmp_path / "a.csv") as session:
        assert session.sql("SELECT counter_name, value FROM counters_collection ORDER BY 2").fetchall() == [
            ("C", 5.0), ("C", 6.0)
        ]  # fmt: skip
        assert session.notes[-1] == "a.csv: not imported: 2 values of counters that are no numbers"


@pytest.mark.parametrize("text", ["Name,Calls\nk,1\n", '"' + "x" * 200_000, COUNTED.replace("cut", "k" * 200_000)])
def test_other_and_odd_csv_files_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(rocpd.base.InputError):
        rocpd.connect(tmp_path / "a.csv")
