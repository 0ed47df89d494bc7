"""Which further arms would tell causes apart: one change each, and what each outcome would mean.

The two classic ones are the field's own: with an FP8 cache and with the older cache layout on the same
build both clean, the NVFP4 layout was to blame; with Marlin on the same checkpoint clean, the GEMM.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from crashlab.facts import EnvFact
from crashlab.quality.facts import Control
from crashlab.quality.onset import CONCURRENCY, LENGTH

Facts = Mapping[str, str]


class Lever(NamedTuple):
    """``options`` are added to the command (in the place of an option of the same name), ``variables`` set.

    ``applies`` says whether the change would be one, given the arm's settings.
    """

    tells: str
    options: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    applies: Callable[[Facts], bool] = lambda _: True
    words: str | None = None


def _is(name: str, *values: str) -> Callable[[Facts], bool]:
    return lambda facts: any(value in facts.get(name, "").lower() for value in values)


def _not(name: str, value: str) -> Callable[[Facts], bool]:
    return lambda facts: value not in facts.get(name, "").lower()


def _fp4(facts: Facts) -> bool:
    """Weights in four bits, or unknown."""
    return "quantization" not in facts or any(w in facts["quantization"].lower() for w in ("fp4", "modelopt"))


_LEVERS = {
    "kv": Lever(
        "clean: the KV cache's format or layout is to blame; still wrong: look at the weights' kernels",
        ("--kv-cache-dtype", "fp8"),
        applies=_is("kv_cache_dtype", "nvfp4", "int4", "turbo"),
    ),
    "kv-auto": Lever(
        "clean: the quantised KV cache is to blame (scales, layout, or the attention kernel that reads it)",
        ("--kv-cache-dtype", "auto"),
        applies=_is("kv_cache_dtype", "fp8", "int8"),
    ),
    "layout": Lever(
        "clean: the change of the cache layout between the two releases is to blame",
        applies=_is("kv_cache_dtype", "nvfp4"),
        words="the release before, with the older KV cache layout, everything else the same",
    ),
    "marlin": Lever(
        "clean: the linear (GEMM) kernel that was chosen is to blame; still wrong: not the linear layers",
        ("--linear-backend", "marlin"),
        applies=lambda facts: _not("linear_backend", "marlin")(facts) and _fp4(facts),
    ),
    "moe": Lever(
        "clean: the MoE kernel that was chosen is to blame",
        ("--moe-backend", "marlin"),
        applies=lambda facts: "moe_backend" in facts and _not("moe_backend", "marlin")(facts),
    ),
    "eager": Lever(
        "clean: CUDA graphs or torch.compile take part; sweep the two apart with -cc.cudagraph_mode=NONE",
        ("--enforce-eager",),
        applies=lambda facts: facts.get("enforce_eager", "").lower() != "true",
    ),
    "deepgemm": Lever(
        "clean: DeepGEMM, or its power-of-two scales (E8M0), is to blame",
        variables=(("VLLM_USE_DEEP_GEMM", "0"),),
        applies=_is("quantization", "fp8"),
    ),
    "portable": Lever(
        "clean: a vendor kernel is to blame; still wrong: the checkpoint or the model's own code",
        ("--model-impl", "transformers"),
        (("VLLM_USE_HW_AGNOSTIC", "1"),),
        applies=_not("model_impl", "transformers"),
    ),
    "nan": Lever(
        "vllm:corrupted_requests_total grows: the logits hold NaN; it stays 0: they are finite and wrong",
        variables=(("VLLM_COMPUTE_NANS_IN_LOGITS", "1"),),
    ),
    "single": Lever(
        "clean: what is mixed up lies between the requests of a batch",
        ("--max-num-seqs", "1"),
        applies=_not("max_num_seqs", "1"),
    ),
    "graphs": Lever(
        "clean: a CUDA graph of one batch size is to blame",
        ("-cc.cudagraph_mode=NONE",),
    ),
    "prefix": Lever(
        "clean: cached blocks are reused wrongly",
        ("--no-enable-prefix-caching",),
    ),
    "chunks": Lever(
        "clean: what crosses the border of two chunks of a prefill is lost",
        ("--no-enable-chunked-prefill",),
    ),
}
_ORDER = ("kv", "kv-auto", "layout", "marlin", "moe", "deepgemm", "eager", "portable")


def controls_for(
    garbage: Sequence[str],
    settings: Mapping[str, EnvFact],
    onsets: Iterable[str] = (),
    argv: Sequence[str] = (),
) -> tuple[Control, ...]:
    """Control arms for an arm with these settings, the most telling first. ``onsets`` are the dimensions
    in which garbage begins somewhere; ``argv`` its command, which each control then repeats."""
    facts = {key: fact.value for key, fact in settings.items()}
    names: list[str] = []
    dimensions = set(onsets)
    if CONCURRENCY in dimensions:
        names += ["single", "graphs"]
    if LENGTH in dimensions:
        names += ["prefix", "chunks"]
    names += _ORDER
    if "token0" in garbage or "nan" in garbage or "empty" in garbage:
        names.insert(0, "nan")
    chosen = (_LEVERS[name] for name in names if _LEVERS[name].applies(facts))
    return tuple(_control(lever, tuple(argv)) for lever in chosen)


def _control(lever: Lever, argv: tuple[str, ...]) -> Control:
    spelled = [f"{name}={value}" for name, value in lever.variables]
    change = lever.words or " ".join((*spelled, *lever.options))
    command = _replaced(argv, lever.options) if argv and not lever.words else ()
    return Control(change, lever.tells, command, dict(lever.variables))


def _replaced(argv: tuple[str, ...], options: tuple[str, ...]) -> tuple[str, ...]:
    """The command with the options, those of the same name taken out."""
    if not options:
        return argv
    name = options[0].partition("=")[0]
    out: list[str] = []
    skip = False
    for word in argv:
        if skip:
            skip = False
            if not word.startswith("-"):
                continue
        if word == name:
            skip = len(options) > 1
            continue
        if word.startswith(f"{name}="):
            continue
        out.append(word)
    return (*out, *options)
