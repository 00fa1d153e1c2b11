"""Owns the shape of each profile: which phases a step has and what each runs. Never knows times or ids."""

from __future__ import annotations

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Layer:
    """Kernels launched one after the other, under a marker of their own unless `text` is empty.

    `work` names kernels by key; a key with `@2` goes to the second compute stream.
    """

    text: str
    work: tuple[str, ...]


@dataclass(frozen=True)
class StepPhase:
    """A marked part of a step, ending with a synchronisation.

    Args:
        text: marker text.
        thread: index of the thread that launches: 0 main, 1 autograd.
        layers: what runs.
        copies: (route, bytes) per copy; a route is source and target, H the host and D the device.
        reduce: bytes of the all-reduce that ends the phase, 0 for none.
        waits: whether the phase also waits for every all-reduce so far before it ends.
    """

    text: str
    thread: int
    layers: tuple[Layer, ...]
    copies: tuple[tuple[str, int], ...] = ()
    reduce: int = 0
    waits: bool = False


@dataclass(frozen=True)
class WorkProfile:
    """One shape of job.

    Args:
        command: command line of each process.
        phases: in order of a step.
        resident: bytes held from start to end, one allocation each.
        transient: bytes allocated at the start of each step and freed at its end, one allocation each.
    """

    command: str
    phases: tuple[StepPhase, ...]
    resident: tuple[int, ...]
    transient: tuple[int, ...]


_BLOCK = ("norm", "gemm_nt", "attention", "gemm_nt", "add", "norm", "gemm_nt", "silu", "gemm_nn", "add")
_MLP_BWD = ("gemm_nn", "gemm_tn@2", "silu", "gemm_nn", "gemm_tn@2", "norm_bwd", "add")
_ATTENTION_BWD = ("gemm_nn", "gemm_tn@2", "attention_bwd", "gemm_nn", "gemm_tn@2", "norm_bwd", "add")
_LAYERS = 3


def _llm() -> WorkProfile:
    forward = tuple(Layer(f"layer {i}", _BLOCK) for i in range(_LAYERS))
    block = (*_MLP_BWD, *_ATTENTION_BWD)
    backward = tuple(
        StepPhase("backward", 1, (Layer(f"layer {i} backward", block),), reduce=218 * MIB, waits=i == 0)
        for i in reversed(range(_LAYERS))
    )
    optimizer = StepPhase("optimizer", 0, (Layer("", ("adam", "adam", "fill", "sum")),), (("DD", 64 * MIB), ("DH", 4)))
    load = (("HD", 8 * MIB), ("HD", 32768))
    return WorkProfile(
        "python3 pretrain.py --model 8b --bf16 --micro-batch 2",
        (StepPhase("forward", 0, (*forward, Layer("loss", ("gemm_nt", "sum"))), load), *backward, optimizer),
        (1308 * MIB, 1308 * MIB, 2616 * MIB),
        (384 * MIB, 192 * MIB),
    )


def _gemm() -> WorkProfile:
    forward = Layer("products", ("bmm", "gemm_nt", "gemm_nn@2", "add") * 5)
    backward = Layer("gradients", ("gemm_tn", "gemm_nn@2", "bmm", "bmm@2") * 8)
    return WorkProfile(
        "./batched_gemm --batch 128 --repeat 5",
        (
            StepPhase("forward", 0, (forward,), (("HD", 48 * MIB), ("HD", 48 * MIB))),
            StepPhase("backward", 1, (backward,), reduce=256 * MIB, waits=True),
            StepPhase("optimizer", 0, (Layer("", ("add", "add", "fill")),), (("DD", 16 * MIB), ("DH", 16 * MIB))),
        ),
        (768 * MIB, 768 * MIB),
        (96 * MIB, 48 * MIB),
    )


def _hpc() -> WorkProfile:
    exchange = (("DH", 520192), ("DH", 520192), ("HD", 520192), ("HD", 520192))
    sweep = ("halo@2", "smooth", "spmv", "waxpby")
    return WorkProfile(
        "./xhpcg 104 104 104",
        (
            StepPhase("forward sweep", 0, tuple(Layer(f"grid {i}", sweep * 2) for i in range(4)), exchange),
            StepPhase("residual", 0, (Layer("", ("halo@2", "spmv", "dot")),), reduce=8, waits=True),
            StepPhase("backward sweep", 1, tuple(Layer(f"grid {i}", sweep * 2) for i in (3, 2, 1, 0)), exchange),
            StepPhase("norm", 1, (Layer("", ("waxpby", "waxpby@2", "dot")),), (("DD", 8998912),), 8, True),
            StepPhase("update", 0, (Layer("", ("waxpby", "waxpby", "fill")),), (("DH", 8),)),
        ),
        (243 * MIB, 35 * MIB, 18 * MIB),
        (16 * MIB, 2 * MIB),
    )


PROFILE_TABLE: dict[str, WorkProfile] = {"gemm": _gemm(), "llm": _llm(), "hpc": _hpc()}
