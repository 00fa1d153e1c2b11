"""Real files: runs of one build do not differ, other work is not faster, other names are matched."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocpd.compare.attribution import MatchLevel
from rocpd.compare.comparison import Comparison, compare
from rocpd.compare.options import DiffOptions
from tests.compare.test_diff import profile_of
from tests.conftest import Cli, private

SAME_BUILD = [
    ("bmm_20251223_0902_15", "bmm_20251223_0929_45", 1.029),
    ("bmm_20251230_0556_163", "bmm_20251230_0608_16", 1.125),
]


def between(files: tuple[Path, ...], base: str, new: str) -> Comparison:
    found = {file.name.removesuffix("_results.db"): file for file in files}
    return compare([profile_of(found[base])], [profile_of(found[new])], DiffOptions())


@pytest.mark.parametrize(("base", "new", "ratio"), SAME_BUILD)
def test_runs_of_one_build_are_never_slower(base: str, new: str, ratio: float, real_files: tuple[Path, ...]) -> None:
    """A kernel differs by 12.5 % though nothing changed but the run."""
    for sides in ((base, new), (new, base)):
        found = between(real_files, *sides)
        assert found.verdict == "unclear"
        assert found.comparability.score == 1.0
        assert {kernel.launched for kernel in found.attribution.kernels} == {""}
    (kernel,) = (k for k in between(real_files, base, new).attribution.kernels if "batched" in k.pair.base[0].name)
    assert kernel.ratio == pytest.approx(ratio, abs=0.001)


def test_a_quarter_of_the_work_is_not_faster(real_files: tuple[Path, ...]) -> None:
    found = between(real_files, "bmm_20251215_0933_22", "bmm_20251230_0556_163")
    assert found.verdict == "unclear"
    assert found.decision.reason.startswith("work changed: ")
    (kernel,) = (k for k in found.attribution.kernels if "batched" in k.pair.base[0].name)
    assert kernel.is_other_work
    assert kernel.change == kernel.work
    assert "grid 1024x1x128/256x1x1 -> 1024x1x32/256x1x1; VGPR 116 -> 64" in kernel.launched
    assert "LDS 16384 -> 20480" in kernel.launched


def test_another_version_is_matched_by_its_family(real_files: tuple[Path, ...]) -> None:
    found = between(real_files, "bmm_20251215_0933_22", "bmmIGLP_20251215_0933_14")
    (kernel,) = (k for k in found.attribution.kernels if k.pair.level is MatchLevel.FAMILY)
    assert kernel.ratio == pytest.approx(1.187, abs=0.001)
    assert not kernel.is_other_work
    assert "_IGLP<" in kernel.pair.new[0].name
    assert "_IGLP<" not in kernel.pair.base[0].name


def test_all_pairs_add_up(real_files: tuple[Path, ...]) -> None:
    profiles = [profile_of(file) for file in real_files]
    for base in profiles:
        for new in profiles[::5]:
            found = compare([base], [new], DiffOptions()).attribution
            assert sum(kernel.change for kernel in found.kernels) == found.unit.change
            assert sum(part.change for part in found.parts.values()) == found.unit.change


def test_what_two_gpus_did_before_and_after() -> None:
    """Traces of Nsight Systems, without steps: between two transfers the host takes longer to launch, nothing else."""
    before, after = (private(f"nsys/mfu_2gpu_{name}.sqlite", 1)[0] for name in ("before", "after"))
    found = compare([profile_of(before)], [profile_of(after)], DiffOptions())
    assert (found.unit, found.verdict) == ("interval between collectives", "unclear")
    parts = found.attribution.parts
    assert max(parts, key=lambda part: parts[part].change) == "idle: launching"
    assert sum(part.change for part in parts.values()) == found.attribution.unit.change
    assert abs(parts["compute"].change) < 0.01 * parts["compute"].base
    assert {kernel.pair.level for kernel in found.attribution.kernels} == {MatchLevel.MANGLED}


def test_one_model_on_gpus_of_two_vendors() -> None:
    """Calls of CUDA are to one what those of HIP are to the other; kernels meet in the operators that launch them."""
    names = ("kineto/h100_qwen1.5_0.5b.json.gz", "kineto/mi300_qwen1.5_0.5b.json.gz")
    base, new = (profile_of(private(name, 1)[0]) for name in names)
    found = compare([base], [new], DiffOptions())
    assert found.verdict == "unclear"
    assert found.comparability.score == pytest.approx(0.6, abs=0.01)
    assert [text[:5] for text in found.comparability.sentences] == ["GPUs:"]
    by_operator = {
        kernel.pair.base[0].name: kernel for kernel in found.attribution.kernels if kernel.pair.level == "operator"
    }
    (attention,) = (kernel for name, kernel in by_operator.items() if "flash_fwd" in name)
    assert [kernel.name for kernel in attention.pair.new] == ["attn_fwd"]
    operators = found.attribution.operators
    assert sum(row.change for row in operators.values()) == sum(kernel.change for kernel in found.attribution.kernels)
    assert operators["aten::_flash_attention_forward"].change == pytest.approx(869_590, abs=100)
    recorded = {row.base for row in operators.values()}
    assert len(recorded) > 15
    assert "diff.speed" not in {finding.rule for finding in found.findings}  # 2 us of 47 ms are no news


def test_operators_of_rpd() -> None:
    profile = profile_of(private("rpd/mytrace.rpd.gz", 1)[0])
    found = compare([profile], [profile], DiffOptions()).attribution.operators
    assert sum(row.base for row in found.values()) == sum(sum(use.exposed.values()) for use in profile.uses)
    assert any(name.startswith("aten::") for name in found)


def test_traces_of_other_profilers_are_runs_unless_they_are_ranks(cli: Cli) -> None:
    """Two exports of Nsight Systems are two runs of two ranks; two traces of PyTorch that know their ranks are one."""
    before, after = (str(private(f"nsys/mfu_2gpu_{name}.sqlite", 1)[0]) for name in ("before", "after"))
    document = json.loads(cli("diff", "--base", before, after, "--new", after, "--json").out)
    assert (document["base"]["runs"], document["new"]["runs"]) == ([before, after], [after])
    assert document["unit"] == "interval between collectives"
    ranks = [str(private(f"kineto/hta_sampled_rank-{rank}.json.gz", 1)[0]) for rank in (0, 1)]
    document = json.loads(cli("diff", "--base", *ranks, "--new", *ranks, "--json").out)
    assert document["base"]["runs"] == [f"{ranks[0]} and 1 more"]
    assert [row["rank"] for row in document["ranks"]] == [0, 1]
