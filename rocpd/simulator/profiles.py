"""The shape of each profile: which phases a step has and what each runs. Never knows times or ids."""

from __future__ import annotations

import functools
from typing import TypeAlias

from rocpd.base.frozen import frozen
from rocpd.simulator.layout import ExchangeKind, GroupKind


@frozen
class ExchangeRequest:
    """What a rank asks for.

    Args:
        kind: what is done.
        group: the kind of group that does it.
        size: bytes.
        blocks: whether the computation waits for it.
        peer: stages to the partner of a send or receive, -1 or 1.
        connects: whether the group sets up its connections first.
        members: ranks that an all-to-all sends to.
    """

    kind: ExchangeKind
    group: GroupKind
    size: int
    blocks: bool = False
    peer: int = 0
    connects: bool = False
    members: int = 0

    @property
    def receives(self) -> bool:
        """Whether it can start before anything is computed."""
        return self.kind is ExchangeKind.RECEIVE


MIB = 1 << 20

Work: TypeAlias = str | ExchangeRequest
"""A kernel by its key, with `@2` for the second compute stream, or an exchange with other ranks."""


@frozen
class Layer:
    """Work launched one after the other, under a marker of its own unless `text` is empty."""

    text: str
    work: tuple[Work, ...]


@frozen
class StepPhase:
    """A marked part of a step, ending with a synchronisation.

    Args:
        text: marker text.
        thread: index of the thread that launches: 0 main, 1 autograd.
        layers: what runs.
        copies: (route, bytes) per copy; a route is source and target, H the host and D the device.
        reduce: bytes of the all-reduce that ends the phase, 0 for none.
        waits: whether the phase also waits for every exchange so far before it ends.
        receives: stages to the one that it gets its input from, 0 for none.
        sends: stages to the one that its output goes to, 0 for none.
    """

    text: str
    thread: int
    layers: tuple[Layer, ...]
    copies: tuple[tuple[str, int], ...] = ()
    reduce: int = 0
    waits: bool = False
    receives: int = 0
    sends: int = 0


@frozen
class WorkProfile:
    """One shape of job.

    Args:
        command: command line of each process.
        phases: in order of a step.
        resident: bytes held from start to end, one allocation each.
        transient: bytes allocated at the start of a step and freed at its end, one allocation each.
    """

    command: str
    phases: tuple[StepPhase, ...]
    resident: tuple[int, ...]
    transient: tuple[int, ...]


_ACTIVATIONS = 8 * MIB
_GRADIENTS = 48 * MIB
_GATHER = ExchangeRequest(ExchangeKind.ALL_GATHER, GroupKind.TENSOR, _ACTIVATIONS, blocks=True)
_REDUCE = ExchangeRequest(ExchangeKind.ALL_REDUCE, GroupKind.TENSOR, _ACTIVATIONS, blocks=True)
_EXPERTS = ExchangeRequest(ExchangeKind.ALL_TO_ALL, GroupKind.EXPERT, _ACTIVATIONS, blocks=True)
_NORM = ExchangeRequest(ExchangeKind.ALL_REDUCE, GroupKind.WORLD, 8, blocks=True)
_LOSS = ExchangeRequest(ExchangeKind.ALL_REDUCE, GroupKind.WORLD, 4)

_ATTENTION: tuple[Work, ...] = ("norm", _GATHER, "gemm_nt", "attention", "gemm_nt", _REDUCE, "add")
_MLP: tuple[Work, ...] = (_EXPERTS, "gemm_nt", "silu", "gemm_nn", _EXPERTS)
_BLOCK: tuple[Work, ...] = (*_ATTENTION, "norm", *_MLP, _REDUCE, "add")
_MLP_BWD: tuple[Work, ...] = (
    *(_EXPERTS, "gemm_nn", "gemm_tn@2", "silu", "gemm_nn", "gemm_tn@2", _EXPERTS),
    *(_REDUCE, "norm_bwd", "add"),
)
_ATTENTION_BWD: tuple[Work, ...] = (
    *("gemm_nn", "gemm_tn@2", "attention_bwd", "gemm_nn", "gemm_tn@2"),
    *(_REDUCE, "norm_bwd", "add"),
)
_LAYERS = 3
_MICRO_BATCHES = 2  # in a pipeline, so that its stages have something to overlap


def _llm(stage: int, stages: int) -> WorkProfile:
    batches = _MICRO_BATCHES if stages > 1 else 1
    phases = [_forward(stage, stages) for _ in range(batches)]
    for batch in range(batches):
        phases += _backward(stage, stages, batch == batches - 1)
    update = Layer("", (_NORM, "adam", "adam", "fill", "sum", _LOSS))
    phases.append(StepPhase("optimizer", 0, (update,), (("DD", 64 * MIB), ("DH", 4)), waits=True))
    return WorkProfile(
        "python3 pretrain.py --model 8b --bf16 --micro-batch 2",
        tuple(phases),
        (1308 * MIB, 1308 * MIB, 2616 * MIB),
        (384 * MIB, 192 * MIB),
    )


def _forward(stage: int, stages: int) -> StepPhase:
    layers = [Layer(f"layer {i}", _BLOCK) for i in range(_LAYERS)]
    is_first, is_last = stage == 0, stage == stages - 1
    if is_last:
        layers.append(Layer("loss", ("gemm_nt", "sum")))
    load = (("HD", 8 * MIB), ("HD", 32768)) if is_first else ()
    return StepPhase("forward", 0, tuple(layers), load, receives=0 if is_first else -1, sends=0 if is_last else 1)


def _backward(stage: int, stages: int, is_last_batch: bool) -> list[StepPhase]:
    block = (*_MLP_BWD, *_ATTENTION_BWD)
    phases = []
    for i in reversed(range(_LAYERS)):
        phases.append(
            StepPhase(
                "backward",
                1,
                (Layer(f"layer {i} backward", block),),
                reduce=_GRADIENTS if is_last_batch else 0,
                waits=is_last_batch and i == 0,
                receives=1 if i == _LAYERS - 1 and stage < stages - 1 else 0,
                sends=-1 if i == 0 and stage > 0 else 0,
            )
        )
    return phases


def _gemm() -> WorkProfile:
    forward = Layer("products", ("bmm", "gemm_nt", "gemm_nn@2", "add") * 5)
    backward = Layer("gradients", ("gemm_tn", "gemm_nn@2", "bmm", "bmm@2") * 8)
    return WorkProfile(
        "./batched_gemm --batch 128 --repeat 5",
        (
            StepPhase("forward", 0, (forward,), (("HD", 8 * MIB), ("HD", 8 * MIB))),
            StepPhase("backward", 1, (backward,), reduce=32 * MIB, waits=True),
            StepPhase("optimizer", 0, (Layer("", ("add", "add", "fill")),), (("DD", 16 * MIB), ("DH", MIB))),
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


@functools.cache
def profile_of(name: str, stage: int = 0, stages: int = 1) -> WorkProfile:
    """Return the shape of the work of a pipeline stage; only `llm` has more than one."""
    if name == "llm":
        return _llm(stage, stages)
    return _gemm() if name == "gemm" else _hpc()
