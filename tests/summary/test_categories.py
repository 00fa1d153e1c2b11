"""Categories of kernels: the file that comes along, RAPTOR's form, what no pattern knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocpd.base import UsageError
from rocpd.schema.rules.kernel_categories import load
from tests.build import TraceBuilder
from tests.conftest import OpenJob
from tests.summary.cells import cells


@pytest.mark.parametrize(
    "name",
    [
        "AllReduceKernel<float, FuncSum>",  # NCCL 1
        "ncclAllReduceRingLLKernel_sum_f16(ncclColl)",
        "ncclAllReduceRingKernel_sum_f32",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_AllReduce_RING_LL_Sum_float",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic",
        "ncclDevKernelDebug_Generic(ncclDevComm*)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclSymDevKernel_AllReduce_RSxLD_AGxST",
        "ncclSymkDevKernel_AllGather_LL",
        "_Z23ncclDevKernel_Generic_124ncclDevKernelArgsStorageILm4096EE",
        "rcclGenericKernel",
        "mscclKernel_Sum_half_Simple",
        "void vllm::cross_device_reduce_1stage<__half, 8>",
        "void ReduceKernel<512, 8, FuncSum<float>, float>(KernelArgs<float>)",  # NCCL 1
        "BroadcastKernel<16, 0, FuncNull<char>, char>",
        "void allreduce_fusion_kernel_oneshot_lamport",
        "void deep_ep::intranode::dispatch<8>",
    ],
)
def test_communication_of_every_generation(name: str) -> None:
    assert load(None).of(name) == "communication"


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV", "GEMM"),
        ("void batched_matrix_multiplication_matrix_core<128u>", "GEMM"),
        ("ck_tile::kentry<ck_tile::FmhaFwdKernel<…>>", "attention"),
        ("paged_attention_ll4mi_QKV_kernel", "attention"),
        ("attn_fwd.kd", "attention"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add>", "elementwise"),
        ("void at::native::reduce_kernel<512, 1, ReduceOp>", "reduction"),
        ("__amd_rocclr_fillBufferAligned", "copy"),
        ("__amd_rocclr_copyBuffer", "copy"),
        ("void small_gather_kernel", "copy"),
        ("void small_reduce(float*)", "reduction"),
        ("callToAllocate", "other"),
        ("void ReduceKernel<float>(float*)", "reduction"),
        ("hipMemcpyKernel", "copy"),
        ("void vllm::rotary_embedding_kernel", "elementwise"),
        ("fused_moe_kernel", "GEMM"),
        ("my_stencil", "other"),
        (None, "other"),
    ],
)
def test_what_kernels_do(name: str | None, category: str) -> None:
    assert load(None).of(name) == category


def test_time_by_category_and_unmatched(open_job: OpenJob) -> None:
    trace = TraceBuilder().kernel("Cijk_A", 1, 31).kernel("Cijk_B", 1, 31).kernel("stencil", 1, 21).kernel("odd", 1, 21)
    session = open_job(trace)
    assert cells(session, "categories", "category kernels calls total_ns percent") == [
        ("GEMM", 2, 2, 60, 60.0),
        ("other", 2, 2, 40, 40.0),
    ]
    assert cells(session, "unmatched", "name total_ns percent") == [("odd", 20, 20.0), ("stencil", 20, 20.0)]
    assert session.notes == ["no communication kernels found"]


def test_raptors_file(tmp_path: Path, open_job: OpenJob) -> None:
    """The last match wins, names with _ are built in; the same as TOML."""
    words = {"_GPU_Idle": ["^GAP "], "aten": ["at::"], "_COMM": ["nccl"], "topk": ["topk"]}
    file = tmp_path / "categories.json"
    file.write_text(json.dumps(words))
    toml = tmp_path / "categories.toml"
    toml.write_text("[categories]\n" + "".join(f"{name} = {json.dumps(texts)}\n" for name, texts in words.items()))
    names = ("at::topk", "at::add", "ncclX", "plain")
    for path in (file, toml):
        known = load(path)
        assert [known.of(name) for name in names] == ["topk", "aten", "_COMM", "_Other"]
    trace = TraceBuilder().kernel("ncclX", 1, 5)
    session = open_job(trace)
    assert cells(session, "categories", "category", categories=file) == ["_COMM"]
    assert session.notes == []


def test_communication_is_known_whatever_the_file_says(tmp_path: Path) -> None:
    """A file without such a category has it in front of its own; RAPTOR's name when the file is one of RAPTOR's."""
    file = tmp_path / "categories.json"
    file.write_text("\ufeff" + json.dumps({"mine": ["X$"]}), encoding="utf-8")  # as Windows' editors begin files
    assert [load(file).of(name) for name in ("ncclDevKernel", "ncclX", "plain")] == ["communication", "mine", "other"]
    file.write_text(json.dumps({"mine": ["X$"], "_GPU_Idle": ["^GAP "]}))
    assert [load(file).of(name) for name in ("ncclDevKernel", "ncclX", "plain")] == ["_COMM", "mine", "_Other"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no categories can be read"),
        ("[]", "not of the form"),
        ('{"a": 1}', "not a list"),
        ('{"a": ["("]}', "not a regular expression"),
    ],
)
def test_files_that_cannot_be_used(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(UsageError, match=reason):
        load(file)
