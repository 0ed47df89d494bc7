"""The family of a kernel: its name without what differs between builds, shapes and compilations.

Crashes of one bug come with many spellings of one kernel: another tile, another template argument, another
hash, another position in a compiled graph. ``normalise`` reduces them to one text, for de-duplication keys
and for reports. It is deterministic, idempotent, the same for a mangled and a demangled spelling, never
empty for a name that is not, and at most :data:`LONGEST` characters long.

Two things are kept on purpose: the generation of the architecture (``sm12x``: kernels of two generations are
different code), and the first telling template argument of a *shell*, a kernel whose own name says nothing
because the work is its argument (``cutlass::device_kernel<FlashAttnFwdSm90>``).
"""

from __future__ import annotations

import re

from crashlab.postmortem import kernelname

LONGEST = 200

#: Kernels that only run what they are given as a template argument.
_SHELLS = frozenset(
    {
        "cutlass::Kernel",
        "cutlass::Kernel2",
        "cutlass::device_kernel",
        "at::native::elementwise_kernel",
        "at::native::elementwise_kernel_with_index",
        "at::native::index_elementwise_kernel",
        "at::native::legacy::elementwise_kernel",
        "at::native::reduce_kernel",
        "at::native::unrolled_elementwise_kernel",
        "at::native::unrolled_elementwise_kernel_for_multi_outputs",
        "at::native::vectorized_elementwise_kernel",
        "at::native::multi_tensor_apply_kernel",
        "at::native::_scatter_gather_elementwise_kernel",
        "at::native::distribution_elementwise_grid_stride_kernel",
        "multi_tensor_apply_kernel",
        "thrust::cuda_cub::core::_kernel_agent",
        "thrust::cuda_cub::core::detail::_kernel_agent",
        "cub::detail::for_each::static_kernel",
        "cub::detail::transform::transform_kernel",
        "onnxruntime::cuda::_BinaryElementWise",
        "onnxruntime::cuda::_BinaryElementWiseSimple",
        "onnxruntime::cuda::_UnaryElementWise",
    }
)
#: Namespaces and adapters between a shell and the argument that tells.
_NOISE_WORDS = """
at native cuda detail c10 std cutlass cute gemm kernel collective epilogue threadblock device conv thrust
cuda_cub core cub agent for_each policy_hub policy_hub_t __parallel_for op flash fmha hopper arch layout numeric
onnxruntime memory
enable_sm80_to_sm89 enable_sm75_to_sm80 enable_sm89_to_sm90 enable_sm90 enable_sm90_only enable_sm90_or_later
enable_sm100_only enable_sm100a_only enable_sm100f_only enable_sm120_only enable_sm120_family
enable_3x_kernel_for_sm9x enable_3x_kernel_for_sm10 enable_3x_kernel_for_sm10x enable_2x_kernel_for_sm89
gpu_kernel_impl gpu_kernel_impl_nocast TensorIteratorBase TensorIterator TensorListMetadata
TensorListScalarListMetadata ReduceOp func_wrapper_t array Array TrivialOffsetCalculator OffsetCalculator
LoadWithoutCast StoreWithoutCast LoadWithCast StoreWithCast half_t bfloat16_t float_e4m3_t BFloat16 Half
__half __nv_bfloat16 BinaryFunctor AUnaryFunctor BUnaryFunctor lambda
"""
_NOISE = frozenset(_NOISE_WORDS.split())

#: Characters of a plain symbol that are looked at (keeps every expression below cheap, whatever the text).
_PLAIN_LIMIT = 1024

# Compiled on first use by the cache of ``re``, behind cheap checks: most names need one or two of them.
_GENERATION = r"sm_?(7|8|9|1[0-2])[0-9][af]?$"
_TILE = r"[a-z]{0,14}[0-9]+(?:x[0-9]+)+[a-z]?[0-9]{0,2}$"
_HEX = r"[0-9a-f]{8,64}$"
_TUNING = r"(?:stages?[0-9]*|align[abcd]?[0-9]+)$"
_CUDNN_TAIL = r"knob$|kernel[0-9]+$|[0-9]+$"
_TRTLLM_TAIL = r"(?:s[0-9]{1,2}|sched[A-Z]|schPd[0-9x]*|splitK[0-9]+)$"
_SPECIALISED = r"_[0-9]+[dec]{1,2}[0-9][0-9dec]*$|_0d$"
_INDUCTOR = r"triton_(?:(?:poi|red|per|tem|for|unk|mm|spl|mix)_|_|[0-9]*$)"
_XLA = ("loop_", "input_", "gemm_fusion", "triton_", "fusion", "command_buffer", "concatenate_", "transpose_")
_FMHA = r"fmhaSm([0-9]{1,2})[0-9][af]?(?=Kernel)"
_FMHA_NUMBER = r"(HQk|HV|H|PerCta|P|Q|Kv)[0-9]+"
_MYELIN = r"_0x[0-9a-f]+|_myl[0-9]+_[0-9]+$|_myl[0-9]+"


def normalise(name: str) -> str:
    """The family of ``name`` (mangled, demangled or plain); "" only for "".

    Any text is accepted. Only its first ``kernelname.LIMIT`` characters count.
    """
    family = _once(name)
    # Each step shortens the text or turns a digit of an architecture into x, so this ends.
    while (again := _once(family)) != family:
        family = again
    return family


def _once(name: str) -> str:
    if not name:
        return ""
    parsed = kernelname.parse(name)
    text = _plain(parsed.head) if parsed.plain else _with_argument(parsed)
    return (" ".join(text.split()) or "?")[:LONGEST].rstrip()


def _with_argument(parsed: kernelname.Name) -> str:
    """The qualified name, and for a shell the argument that says what it runs."""
    if parsed.head not in _SHELLS:
        # Numba counts the versions of a function: foo$241
        return parsed.head.partition("$")[0] or parsed.head
    for word in parsed.words.split()[parsed.head.count("::") + 1 :]:
        if word not in _NOISE and not word.lstrip("-").isdigit() and len(word) > 1:
            return f"{parsed.head}<{_plain(word)}>"
    return parsed.head


def _plain(name: str) -> str:
    """Normalise a C symbol, token by token."""
    name = name[:_PLAIN_LIMIT]
    if name.startswith("kernel_cutlass_"):
        return _cute_dsl(name)
    if name.startswith("fmhaSm"):
        return re.sub(_FMHA_NUMBER, r"\1", re.sub(_FMHA, r"fmhaSm\1x", name))
    if name.startswith("cupy_"):
        return name.partition("__")[0]
    if name.startswith("__myl_"):
        return re.sub(_MYELIN, "", name) or name
    if name[-1:] in "dec0123456789" and "d" in name:
        name = re.sub(_SPECIALISED, "", name) or name
    if (name.startswith("triton_") and re.match(_INDUCTOR, name)) or _is_xla(name):
        name = _without_number(name)
    kept = _drop(name.split("_"), name)
    return "_".join(kept) if any(kept) else name


def _is_xla(name: str) -> bool:
    return name.startswith("wrapped_") or ("fusion" in name and name.startswith(_XLA))


def _without_number(name: str) -> str:
    """``loop_add_fusion_2_1`` and ``fusion.7`` without the counters at their end."""
    while (rest := name.rstrip("0123456789")) != name and len(rest) > 1 and rest[-1] in "._":
        name = rest[:-1]
    return name


def _drop(tokens: list[str], name: str) -> list[str]:
    """Leave out tiles, hashes, knobs and stages; give architectures their generation."""
    cudnn = name.startswith("cudnn_generated_")
    nvjet = name.startswith("nvjet_")  # h and v are the order in which its tiles are visited
    trtllm = name.startswith(("bmm_", "gemm_")) and any(t.startswith("t1") and "x" in t for t in tokens)
    kept: list[str] = []
    skip_number = False
    for token in tokens:
        if skip_number and token.isdigit():
            skip_number = False
            continue
        skip_number = token in ("knob", "stages")
        generation = re.match(_GENERATION, token) if token.startswith("sm") else None
        if generation:
            kept.append(f"sm{generation.group(1)}x")
        elif (
            ("x" in token and re.match(_TILE, token))
            or _is_hash(token)
            or skip_number
            or (cudnn and re.match(_CUDNN_TAIL, token))
            or (nvjet and token in ("h", "v"))
            or (trtllm and re.match(_TRTLLM_TAIL, token))
            or (len(kept) > 1 and token.startswith(("stage", "align")) and re.match(_TUNING, token))
        ):
            continue
        else:
            kept.append(token)
    return kept


def _is_hash(token: str) -> bool:
    if len(token) < 8 or token.isalpha() or (token.isdigit() and len(token) < 12):
        return False
    return re.match(_HEX, token) is not None


def _cute_dsl(name: str) -> str:
    """CuTe DSL appends the types of all arguments: ``…_object_at__tensorptrbf16gmem…_0``."""
    for mark in ("_object_at_", "_tensor", "_TiledMMA", "_CopyAtom"):
        at = name.find(mark)
        if at > 0:
            name = name[:at]
    return _without_number(name)
