"""Whose kernel it is: rules against several hundred real names, near misses, module facts and loaded files."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab.errors import CrashlabError, UsageError
from crashlab.postmortem.libraries import load
from crashlab.postmortem.libraries.rule import LEVELS, Rule
from crashlab.postmortem.library import ModuleHints, attribute

from .test_family import SYMBOLS, rows

ROOT = Path(__file__).parents[3]
NAMES = rows("names.tsv")
OWNERS, RULES = load.load()
# What the modules of a live vLLM process looked like: Triton's cubins hold line table and PTX text.
TRITON_SECTIONS = (".debug_frame", ".debug_line", ".nv_debug_line_sass", ".nv_debug_ptx_txt", ".nv.info")


def spelled(symbol: str) -> tuple[str | None, str | None]:
    return (symbol, None) if symbol.startswith("_Z") else (None, symbol)


# --- the corpus ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("library", "symbol", "where"), NAMES)
def test_a_real_kernel_goes_to_its_library(library: str, symbol: str, where: str) -> None:
    answer = attribute(*spelled(symbol))
    assert answer.name in library.split("|"), where
    assert answer.confidence in LEVELS
    assert answer.evidence
    assert answer.family
    if "|" in library:
        assert answer.confidence == "low"
        assert any(other in " ".join(answer.evidence) for other in library.split("|"))


def test_the_corpus_is_large_and_broad() -> None:
    libraries = Counter(library for library, _, _ in NAMES)
    assert len(NAMES) >= 500
    assert len(libraries) >= 25
    assert libraries.most_common(1)[0][1] < 0.15 * len(NAMES)


def test_names_alone_give_high_confidence_for_most_of_the_corpus() -> None:
    levels = Counter(attribute(*spelled(symbol)).confidence for _, symbol, _ in NAMES)
    assert levels["high"] >= 0.8 * len(NAMES)


@pytest.mark.parametrize(("symbol", "why"), rows("near_misses.tsv"))
def test_a_near_miss_is_never_sure(symbol: str, why: str) -> None:
    assert attribute(*spelled(symbol)).confidence != "high", why


def test_every_rule_of_a_library_with_names_is_known_to_the_corpus_or_needs_more_than_a_name() -> None:
    fired = set()
    for _, symbol, _ in [*NAMES, *(["", *row] for row in rows("near_misses.tsv"))]:
        fired.update(re.findall(r"\(rule ([a-z0-9-]+)\)", " ".join(attribute(*spelled(symbol)).evidence)))
    unproven = {rule.id for rule in RULES if rule.rank >= 80} - fired
    assert len(unproven) < 0.4 * sum(rule.rank >= 80 for rule in RULES), sorted(unproven)


# --- details and family -------------------------------------------------------------------------------------


def test_the_cudnn_kernel_of_the_field_story_gives_up_its_knob_and_tile() -> None:
    answer = attribute(
        "cudnn_generated_fort_native_sm120_matMul_pointwise_pointwise_knob_3_128x128x128", None
    )
    assert (answer.name, answer.confidence) == ("cuDNN", "high")
    assert answer.details == {
        "knob": "3",
        "tile": "128x128x128",
        "arch": "sm120",
        "graph": "matMul_pointwise_pointwise",
        "engine": "runtime fusion",
    }
    assert answer.family == "cudnn_generated_fort_native_sm12x_matMul_pointwise_pointwise"


@pytest.mark.parametrize(
    ("symbol", "details"),
    [
        (
            "nvjet_sm90_hsh_64x32_64x16_4x2_h_bz_splitK_bias_TNT",
            {
                "arch": "sm90",
                "types": "hsh",
                "tile": "64x32",
                "cluster": "4x2",
                "layout": "TNT",
                "part": "cuBLASLt",
            },
        ),
        (
            "sm80_xmma_gemm_f32f32_f32f32_f32_tt_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4"
            "_execute_kernel__5x_cublas",
            {"arch": "sm80", "tile": "32x32x8", "stages": "3", "layout": "tt"},
        ),
        (
            "bmm_Bfloat16_E4m3E4m3_Fp32_t128x8x128_s5_et64x128_m64x128x32_c1x1x1_rM_BN_transOut_schedS_bN_sm100f",
            {"tile": "128x8x128", "stages": "5", "cluster": "1x1x1", "scheduler": "schedS", "arch": "sm100f"},
        ),
        (
            "fmhaSm100fKernel_QkvE4m3OE4m3H512PagedKvCausalP32VarSeqQ32Kv128PersistentSwapsAbForGen",
            {"dtype": "QkvE4m3OE4m3", "head_dim": "512", "tile": "Q32Kv128", "page": "32"},
        ),
        (
            "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi64ELi128ELi4ELb0ELb0EN7cutlass10bfloat16_t"
            "E19Flash_kernel_traitsILi128ELi64ELi128ELi4ES2_EELb0EEEv16Flash_fwd_params",
            {"version": "2", "head_dim": "128", "tile_m": "64", "tile_n": "128", "dtype": "bfloat16_t"},
        ),
        (
            "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>",
            {"copy": "PyTorch"},
        ),
        ("triton_red_fused_add_mean_3", {"kind": "red", "operators": "add_mean"}),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
            {"collective": "AllReduce", "algorithm": "RING", "protocol": "LL"},
        ),
        ("void mul_mat_q<(ggml_type)8, 128, false>(char const*)", {"ggml_type": "8", "tile": "128"}),
        ("cupy_multiply__float32_float_float32", {"function": "multiply", "dtype": "float32_float_float32"}),
    ],
)
def test_what_a_name_tells_is_kept(symbol: str, details: dict[str, str]) -> None:
    answer = attribute(*spelled(symbol))
    assert answer.details is not None
    assert details.items() <= dict(answer.details).items()


# --- module properties --------------------------------------------------------------------------------------


def test_a_python_source_makes_a_plain_name_a_triton_kernel_and_names_its_package() -> None:
    source = "/usr/local/lib/python3.12/dist-packages/vllm/v1/worker/gpu/sample/gumbel.py"
    answer = attribute("_some_new_kernel", None, ModuleHints(kernels=1, source_file=source))
    assert (answer.name, answer.confidence) == ("Triton", "high")
    assert answer.details == {"package": "vllm", "file": "gumbel.py"}
    assert "dist-packages" not in " ".join(answer.evidence)


def test_a_python_source_outweighs_a_c_name_that_others_use() -> None:
    hints = ModuleHints(kernels=1, source_file="/srv/app/kernels.py")
    for name in ("kernel_mha", "loop_add_fusion", "moe_align_block_size_kernel", "main_kernel"):
        assert attribute(name, None, hints).name == "Triton"
    assert attribute("kernel_cutlass_kernel___main__Gemm_object_at__0", None, hints).name == "CUTLASS"
    assert attribute("cudapy::__main__::f$241(int)", None, hints).name == "Numba"


def test_the_sections_of_a_module_make_a_triton_kernel_likely() -> None:
    hints = ModuleHints(kernels=1, line_info=True, sections=TRITON_SECTIONS)
    assert attribute("_gumbel_sample_kernel", None, hints)[::3] == ("Triton", "medium")
    assert attribute("_gumbel_sample_kernel", None, hints._replace(kernels=200)).confidence == "low"


def test_inductor_kernels_are_recognised_by_their_cache_when_their_names_are_gone() -> None:
    hints = ModuleHints(kernels=1, source_file="/tmp/torchinductor_user/ab/cab.py")
    assert attribute("kernel_x", None, hints).name == "Inductor"


def test_siblings_of_vllm_raise_the_confidence_of_a_shared_name() -> None:
    hints = ModuleHints(kernels=80, siblings=("_ZN4vllm15rms_norm_kernelIfEEvv",))
    alone, among = attribute("topkGatingSoftmax", None), attribute("topkGatingSoftmax", None, hints)
    assert (alone.name, alone.confidence) == ("vLLM", "low")
    assert (among.name, among.confidence) == ("vLLM", "medium")


def test_the_compiler_of_the_driver_confirms_the_driver() -> None:
    hints = ModuleHints(
        compiler="ptxas release 13.0, V13.0.0 Build cuda_a.cuda_a.35795741_0 -arch sm_90 -dlcm cg -m 64"
    )
    assert attribute("memset32", None).confidence == "medium"
    assert attribute("memset32", None, hints).confidence == "high"


def test_the_number_of_kernels_speaks_for_xla_only_without_line_information() -> None:
    whole_program = ModuleHints(kernels=40, line_info=False)
    assert attribute("loop_add_fusion_3", None, whole_program).confidence == "medium"
    assert attribute("loop_add_fusion_3", None, whole_program._replace(line_info=True)).confidence == "low"
    assert attribute("loop_add_fusion_3", None, ModuleHints(kernels=1)).confidence == "low"


def test_a_users_source_is_evidence_that_the_kernel_is_the_users() -> None:
    answer = attribute(
        "_Z5scalePf", "scale(float*)", ModuleHints(source_file="/home/someone/project/scale.cu")
    )
    assert (answer.name, answer.confidence) == ("user", "medium")
    assert "the faulting line's source is scale.cu" in answer.evidence


def test_a_source_in_a_librarys_tree_names_the_library_of_an_unknown_kernel() -> None:
    source = "/opt/site-packages/flashinfer/data/include/flashinfer/new.cuh"
    answer = attribute("_Z9brand_newPf", None, ModuleHints(source_file=source))
    assert (answer.name, answer.confidence) == ("FlashInfer", "medium")


# --- loaded files -------------------------------------------------------------------------------------------


def test_the_loaded_file_tells_vllm_and_sglang_apart() -> None:
    symbol = "_Z17topkGatingSoftmaxILi8ELi128EEvPKfPKbPfiPiS4_iii"
    sglang = attribute(symbol, None, None, ["/usr/lib/libcuda.so.1", "/v/sgl_kernel/sm90/common_ops.abi3.so"])
    vllm = attribute(symbol, None, None, ["/usr/lib/libcuda.so.1", "/v/vllm/_moe_C.abi3.so"])
    assert (sglang.name, sglang.confidence) == ("SGLang", "medium")
    assert (vllm.name, vllm.confidence) == ("vLLM", "medium")
    assert "common_ops.abi3.so is loaded" in sglang.evidence


def test_a_process_without_cudnn_contradicts_a_cudnn_name() -> None:
    loaded = ["/usr/lib/libcuda.so.1", "/v/libcublas.so.13"]
    answer = attribute("cudnn_generated_fort_native_sm90_x_knob_1_64x64x64", None, None, loaded)
    assert (answer.name, answer.confidence) == ("cuDNN", "medium")
    assert "against: no libcudnn* among the 2 loaded files" in answer.evidence


def test_a_list_of_files_that_is_no_process_map_contradicts_nothing() -> None:
    answer = attribute("cudnn_generated_fort_native_sm90_x_knob_1_64x64x64", None, None, ["README.md"])
    assert answer.confidence == "high"


# --- hostile and absent input -------------------------------------------------------------------------------


def test_without_a_symbol_nothing_is_claimed() -> None:
    for nothing in (None, ""):
        answer = attribute(nothing, nothing)
        assert (answer.name, answer.family, answer.confidence) == (None, None, None)


@given(SYMBOLS, SYMBOLS, st.lists(st.text(max_size=20), max_size=4), st.text(max_size=40))
def test_no_text_makes_attribution_fail(symbol: str, other: str, files: list[str], source: str) -> None:
    hints = ModuleHints(other, len(files), None, source, tuple(files), other, tuple(files))
    for answer in (attribute(symbol, other), attribute(None, symbol, hints, files)):
        assert all(
            "\n" not in text or "\n" in symbol + other + source + "".join(files) for text in answer.evidence
        )


EXPRESSIONS = sorted({e for rule in RULES for e in (rule.match, *rule.details, *rule.source_details) if e})
ATTACKS = [
    "a",
    "_",
    "1",
    "x",
    "S",
    "H",
    "_1",
    "1x",
    "aA",
    " a",
    "fusion",
    "FlashAttention",
    "_xmma_gemm_",
    "Q1Kv",
    "P",
]


def test_no_expression_of_a_rule_is_slow_on_hostile_words() -> None:
    slow = []
    for expression in EXPRESSIONS:
        prefix = re.sub(r"\\w|\\d|\W", "", expression)[:20]
        for attack in ATTACKS:
            text = (prefix + attack * 4096)[:4096] + "\x00"
            began = time.process_time()
            re.search(expression, text)
            if time.process_time() - began > 0.2:
                slow.append((expression, attack))
    assert not slow


# --- the table and the files it comes from ------------------------------------------------------------------


def test_attribution_needs_no_parser_of_toml_and_no_json() -> None:
    code = (
        "import sys\nfrom crashlab.postmortem.library import attribute\n"
        "attribute('nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT', None)\n"
        "heavy = {'tomllib', 'tomli', 'json', 'subprocess', 'crashlab.postmortem.libraries.load'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"


def test_the_table_holds_what_the_files_say() -> None:
    from crashlab.postmortem.libraries.table import OWNERS as TABLE_OWNERS
    from crashlab.postmortem.libraries.table import RULES as TABLE_RULES

    assert tuple(Rule(*row) for row in TABLE_RULES) == RULES  # type: ignore[arg-type]
    assert TABLE_OWNERS == OWNERS


def test_a_family_template_is_filled_with_the_details(monkeypatch: pytest.MonkeyPatch) -> None:
    from crashlab.postmortem.libraries import table

    row = Rule("mine", "Mine", 99, "high", head=("zz_",), details=("_v(?P<v>[0-9]+)",), family="{family}/{v}")
    monkeypatch.setattr(table, "RULES", (tuple(row),))
    monkeypatch.setitem(table.OWNERS, "Mine", ((), (), False))
    assert attribute("zz_gemm_v7", None).family == "zz_gemm_v7/7"


def written(tmp_path: Path, text: str) -> Path:
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_contributors_file_is_read(tmp_path: Path) -> None:
    folder = written(
        tmp_path,
        'library = "Mine"\nfiles = ["libmine"]\n[[rule]]\nid = "mine-1"\nhead = ["mine::"]\n'
        'module = { kernels_max = 3, line_info = true, source = [".cu"] }\n[rule.set]\nversion = "2"\n',
    )
    owners, rules = load.load(folder)
    assert owners == {"Mine": (("libmine",), (), False)}
    assert rules == (
        Rule(
            "mine-1",
            "Mine",
            60,
            "high",
            head=("mine::",),
            module=(("kernels_max", 3), ("line_info", True), ("source", (".cu",))),
            set=(("version", "2"),),
        ),
    )


RULE = 'library = "Mine"\n[[rule]]\nid = "r"\n'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("library = ", "not valid TOML"),
        ("colour = 1", "needs a library name"),
        ('library = "M"\nrule = 3', r"written \[\[rule\]\]"),
        ('library = "M"\n[[rule]]\nhead = ["x"]', "needs an id"),
        (RULE, "fits everything"),
        (RULE + 'head = ["x"]\ncolor = 1', "unknown keys: color"),
        (RULE + 'head = "x"', "head is a list"),
        (RULE + 'head = [""]', "not empty"),
        (RULE + "match = 5", "match is a text"),
        (RULE + "match = '('", "no regular expression"),
        (RULE + "match = '(a+)+$'", "not linear-time"),
        (RULE + 'head = ["x"]\nrank = 101', "rank is 0 to 100"),
        (RULE + 'head = ["x"]\nconfidence = "certain"', "confidence one of"),
        (RULE + 'head = ["x"]\nset = { a = 1 }', "set holds texts"),
        (RULE + 'head = ["x"]\nmodule = { colour = 1 }', "keys out of"),
        (RULE + 'head = ["x"]\nmodule = { kernels_max = true }', "makes no sense"),
        (RULE + 'head = ["x"]\nmodule = { line_info = 1 }', "makes no sense"),
        (RULE + 'head = ["x"]\n[[rule]]\nid = "r"\nhead = ["y"]', "used twice"),
    ],
)
def test_a_broken_file_is_refused_with_its_name_and_the_reason(
    tmp_path: Path, text: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        load.load(written(tmp_path, text))


def test_two_files_for_one_library_are_refused(tmp_path: Path) -> None:
    (tmp_path / "other.toml").write_text('library = "Mine"\n', encoding="utf-8")
    with pytest.raises(UsageError, match="has a file already"):
        load.load(written(tmp_path, 'library = "Mine"\n'))


@given(st.binary(max_size=200))
def test_only_crashlab_errors_leave_the_reader_of_rules(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "a.toml").write_bytes(data)
    with contextlib.suppress(CrashlabError):
        load.load(folder)
