"""Owns the kernels that simulated jobs run: names as compilers and libraries give them, sizes, durations.

A table of facts; never decides when a kernel runs.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kernel:
    """One kernel.

    Args:
        key: short name within the simulator.
        mangled: symbol name without `.kd`.
        display: demangled name.
        micros: typical duration [us].
        grid: work-items in x, y and z.
        block: work-items per work-group in x, y and z.
        lds: static LDS per work-group [bytes].
        scratch: static scratch per work-item [bytes].
        registers: scalar, vector and accumulation registers.
        module: loaded as a module by a library, launched without a call configuration.
    """

    key: str
    mangled: str
    display: str
    micros: float
    grid: tuple[int, int, int]
    block: tuple[int, int, int] = (256, 1, 1)
    lds: int = 0
    scratch: int = 0
    registers: tuple[int, int, int] = (32, 16, 0)
    module: bool = False

    @property
    def truncated(self) -> str:
        """Name without return type, namespaces, template arguments and parameters."""
        head = self.display.split("<", 1)[0].split("(", 1)[0]
        return head.split()[-1].split("::")[-1]


_TENSILE = "MI16x16x1_CMS_SN_LDSB1_AFC1_GRVWA8_GRVWB8_GSUAMB_IU1_K1_LBSPPA1024_LBSPPB1024_LPA16_LPB16_MIAV0"
_NT = f"Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x64_{_TENSILE}_MIWT8_8_PGR2_PLR1_SK3_WS64_WG32_8_1"
_NN = f"Cijk_Ailk_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_{_TENSILE}_MIWT8_6_PGR2_PLR1_SK3_WS64_WG32_8_1"
_TN = f"Cijk_Ailk_Bjlk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT128x256x64_{_TENSILE}_MIWT4_8_PGR2_PLR1_SK3_WS64_WG32_8_1"

_NORM = (
    "transformer_engine::normalization::Kernel_traits"
    "<__hip_bfloat16, __hip_bfloat16, __hip_bfloat16, float, unsigned int, 8192u, 1u, 1u, 4u, 16u>"
)
_SILU = (
    "at::native::(anonymous namespace)::silu_kernel(at::TensorIteratorBase&)::{lambda()#1}::operator()() const"
    "::{lambda()#4}::operator()() const::{lambda(c10::BFloat16)#1}"
)
_FMHA = (
    "ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync<__hip_bfloat16, 128, 128, true>, "
    "ck_tile::Default2DEpilogue<float, __hip_bfloat16, true> >"
)
_FMHA_BWD = (
    "ck_tile::FmhaBwdDQDKDVKernel<ck_tile::BlockFmhaBwdDQDKDVPipelineKRKTRVR<__hip_bfloat16, 128, 128, true>, "
    "ck_tile::Default2DEpilogue<float, __hip_bfloat16, true> >"
)
_ADAM = (
    "at::native::(anonymous namespace)::TensorListMetadata<4>, "
    "at::native::(anonymous namespace)::FusedAdamMathFunctor<float, 4, false>, float, double, double, double"
)
_REDUCE = (
    "at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float> >, unsigned int, float, 4>"
)

KERNELS: tuple[Kernel, ...] = (
    Kernel("fill", "__amd_rocclr_fillBufferAligned", "__amd_rocclr_fillBufferAligned", 4.0, (77824, 1, 1)),
    Kernel(
        "nccl",
        "_Z23ncclDevKernel_Generic_124ncclDevKernelArgsStorageILm4096EE",
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        90.0,
        (28672, 1, 1),
        (512, 1, 1),
        lds=29024,
        scratch=160,
        registers=(112, 128, 128),
    ),
    Kernel("gemm_nt", _NT, _NT, 88.0, (77824, 1, 1), lds=133120, registers=(96, 256, 256), module=True),
    Kernel("gemm_nn", _NN, _NN, 74.0, (77824, 1, 1), lds=116736, registers=(96, 240, 192), module=True),
    Kernel("gemm_tn", _TN, _TN, 81.0, (77824, 1, 1), lds=101376, registers=(96, 224, 128), module=True),
    Kernel(
        "bmm",
        "_Z41batched_matrix_multiplication_matrix_coreILj128ELj128ELj16EEvjjjjPK14__hip_bfloat16S2_PS0_4dim3S4_S4_i",
        "void batched_matrix_multiplication_matrix_core<128u, 128u, 16u>(unsigned int, unsigned int, unsigned int, "
        "unsigned int, __hip_bfloat16 const*, __hip_bfloat16 const*, __hip_bfloat16*, dim3, dim3, dim3, int)",
        24.0,
        (1024, 1, 128),
        lds=16384,
        registers=(48, 120, 0),
    ),
    Kernel(
        "add",
        "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIN3c108BFloat16EEE"
        "St5arrayIPcLm3EEEEviT0_T1_",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
        "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
        11.0,
        (4194304, 1, 1),
        registers=(32, 24, 0),
    ),
    Kernel(
        "silu",
        "_ZN2at6native29vectorized_elementwise_kernelILi8EZZZNS0_12_GLOBAL__N_111silu_kernelERNS_18TensorIteratorBase"
        "EENKUlvE_clEvENKUlvE2_clEvEUlN3c108BFloat16EE_St5arrayIPcLm2EEEEviT0_T1_",
        f"void at::native::vectorized_elementwise_kernel<8, {_SILU}, std::array<char*, 2ul> >"
        f"(int, {_SILU}, std::array<char*, 2ul>)",
        15.0,
        (7340032, 1, 1),
        registers=(32, 32, 0),
    ),
    Kernel(
        "norm",
        "_ZN18transformer_engine13normalization24rmsnorm_fwd_tuned_kernelINS0_13Kernel_traitsI14__hip_bfloat16S3_S3_fj"
        "Lj8192ELj1ELj1ELj4ELj16EEEEEvNS0_19ForwardKernelParamsE",
        f"void transformer_engine::normalization::rmsnorm_fwd_tuned_kernel<{_NORM} >"
        "(transformer_engine::normalization::ForwardKernelParams)",
        13.0,
        (1048576, 1, 1),
        lds=64,
        registers=(48, 64, 0),
        module=True,
    ),
    Kernel(
        "norm_bwd",
        "_ZN18transformer_engine13normalization24rmsnorm_bwd_tuned_kernelINS0_13Kernel_traitsI14__hip_bfloat16S3_S3_fj"
        "Lj8192ELj1ELj1ELj4ELj16EEEEEvNS0_20BackwardKernelParamsE",
        f"void transformer_engine::normalization::rmsnorm_bwd_tuned_kernel<{_NORM} >"
        "(transformer_engine::normalization::BackwardKernelParams)",
        27.0,
        (155648, 1, 1),
        lds=256,
        registers=(64, 128, 0),
        module=True,
    ),
    Kernel(
        "attention",
        "_ZN7ck_tile6kentryILi256ELi2ENS_13FmhaFwdKernelINS_28BlockFmhaPipelineQRKSVSAsyncI14__hip_bfloat16Li128ELi128E"
        "Lb1EEENS_17Default2DEpilogueIfS3_Lb1EEEEEEEvT1_",
        f"void ck_tile::kentry<256, 2, {_FMHA} >({_FMHA})",
        62.0,
        (8192, 16, 2),
        lds=32768,
        registers=(96, 256, 0),
        module=True,
    ),
    Kernel(
        "attention_bwd",
        "_ZN7ck_tile6kentryILi256ELi1ENS_19FmhaBwdDQDKDVKernelINS_33BlockFmhaBwdDQDKDVPipelineKRKTRVRI14__hip_bfloat16"
        "Li128ELi128ELb1EEENS_17Default2DEpilogueIfS3_Lb1EEEEEEEvT1_",
        f"void ck_tile::kentry<256, 1, {_FMHA_BWD} >({_FMHA_BWD})",
        151.0,
        (8192, 16, 2),
        lds=65536,
        scratch=48,
        registers=(112, 256, 256),
        module=True,
    ),
    Kernel(
        "adam",
        "_ZN2at6native12_GLOBAL__N_125multi_tensor_apply_kernelINS1_18TensorListMetadataILi4EEENS1_20FusedAdamMathFunctor"
        "IfLi4ELb0EEEJfdddEEEvT_T0_DpT1_",
        f"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<{_ADAM}>({_ADAM})",
        46.0,
        (163840, 1, 1),
        (512, 1, 1),
        registers=(80, 96, 0),
    ),
    Kernel(
        "sum",
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfNS0_11sum_functorIfffEEEE"
        "jfLi4EEEEEvT1_",
        f"void at::native::reduce_kernel<512, 1, {_REDUCE} >({_REDUCE})",
        8.0,
        (65536, 1, 1),
        (512, 1, 1),
        lds=16,
        registers=(48, 40, 0),
    ),
    Kernel(
        "smooth",
        "_ZN4hpcg11SymGSKernelILi256ELi27EdiEEvPKT1_PKT2_PS1_i",
        "void hpcg::SymGSKernel<256, 27, double, int>(double const*, int const*, double*, int)",
        34.0,
        (1124864, 1, 1),
        registers=(32, 36, 0),
    ),
    Kernel(
        "spmv",
        "_ZN4hpcg13SpMVEllKernelILi256ELi27EdiEEvPKT1_PKT2_PS1_i",
        "void hpcg::SpMVEllKernel<256, 27, double, int>(double const*, int const*, double*, int)",
        21.0,
        (1124864, 1, 1),
        registers=(32, 28, 0),
    ),
    Kernel(
        "dot",
        "_ZN4hpcg14DotBlockReduceILi1024EdEEvPKT0_S3_PS1_l",
        "void hpcg::DotBlockReduce<1024, double>(double const*, double const*, double*, long)",
        5.0,
        (262144, 1, 1),
        (1024, 1, 1),
        lds=8192,
    ),
    Kernel(
        "waxpby",
        "_ZN4hpcg12WAXPBYKernelILi512EdEEvT0_PKS1_S1_S3_PS1_l",
        "void hpcg::WAXPBYKernel<512, double>(double, double const*, double, double const*, double*, long)",
        6.0,
        (1124864, 1, 1),
        (512, 1, 1),
    ),
    Kernel(
        "halo",
        "_ZN4hpcg16GatherHaloKernelILi128EdiEEvPKT0_PKT1_PS1_i",
        "void hpcg::GatherHaloKernel<128, double, int>(double const*, int const*, double*, int)",
        3.5,
        (65024, 1, 1),
        (128, 1, 1),
    ),
)
"""All kernels; a kernel's id in a file is its position here, from 1."""

KERNEL_IDS: dict[str, int] = {kernel.key: i for i, kernel in enumerate(KERNELS, 1)}
