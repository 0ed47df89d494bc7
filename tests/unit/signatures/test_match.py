"""The argument itself: what matches, what is contradicted, what is unknown, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashlab import facts
from crashlab.report import jsonio
from crashlab.signatures import catalogue
from crashlab.signatures.match import match
from tests.unit.signatures.material import (
    DATA,
    SEED_KERNEL,
    env,
    report_of,
    seed_sm120,
    seed_with_global_load,
)

FIELD = env(torch="2.11.0+cu130", cudnn="9.19.0.56")
CUDNN = "CUDNN-SM120-FORT-STS"


def _by_id(found: tuple[facts.SignatureMatch, ...], name: str) -> facts.SignatureMatch | None:
    return next((item for item in found if item.id == name), None)


def test_the_field_case_matches_the_cudnn_entry_first() -> None:
    found = match(seed_sm120(), env=FIELD)
    first = found[0]
    assert first.id == CUDNN
    assert first.status == "match"
    assert first.score > 0.75
    assert "cuDNN >= 9.23.2" in first.fix[0]
    assert any("35566" in reference for reference in first.references)
    assert first.discriminating_tests


def test_its_hypotheses_are_ordered_and_say_why() -> None:
    own, flashinfer, pointers = match(seed_sm120(), env=FIELD)[0].hypotheses
    assert own.cause.startswith("consistent with cuDNN's own tile")
    assert "cuDNN 9.19.0.56 is in the affected range (<9.23.1)" in own.supporting
    assert not own.against
    assert flashinfer.cause.startswith("less consistent with FlashInfer's shared cuDNN workspace")
    assert any("a freed workspace is global memory" in sentence for sentence in flashinfer.against)
    assert any("FlashInfer version" in sentence for sentence in flashinfer.unknown)
    assert pointers.cause.startswith("less consistent with a pointer argument")


def test_a_fixed_cudnn_contradicts() -> None:
    found = match(seed_sm120(), env=env(cudnn="9.24.0.43"))
    entry = _by_id(found, CUDNN)
    assert entry is not None
    assert entry.status == "contradicted"
    assert entry.score < 0.25
    assert not entry.fix
    own = entry.hypotheses[-1]
    assert own.cause.startswith("contradicted by what was seen")
    assert any("cuDNN 9.24.0.43 is outside the affected range" in sentence for sentence in own.against)
    assert not any(item.status == "match" for item in found)


def test_a_missing_version_is_unknown_not_for() -> None:
    with_version = match(seed_sm120(), env=FIELD)[0]
    without = match(seed_sm120())[0]
    assert without.id == CUDNN
    assert without.score < with_version.score
    own = without.hypotheses[0]
    assert not any("affected range" in sentence for sentence in own.supporting)
    assert any("the cuDNN version" in sentence and "--env cudnn=" in sentence for sentence in own.unknown)


def test_a_git_hash_is_unknown_too() -> None:
    own = match(seed_sm120(), env=env(cudnn="d749821db"))[0].hypotheses[0]
    assert any("the cuDNN version" in sentence for sentence in own.unknown)


def test_the_same_name_with_a_global_load_is_another_story() -> None:
    found = match(seed_with_global_load(), env={**FIELD, **env(flashinfer="0.6.14", cuda_graph="true")})
    assert _by_id(found, CUDNN) is None
    assert found[0].id == "FLASHINFER-CUDNN-WS-RESIZE"


def test_a_tiny_address_is_the_small_pointer_story() -> None:
    for address in (0x1, 0x27000013FF):  # both reported: a one, and two packed sizes
        found = match(seed_with_global_load(address), env=FIELD)
        assert found[0].id == "CUDNN-GEMM-SMALL-POINTER"
        assert _by_id(found, CUDNN) is None
    far = match(seed_with_global_load(0x7EFADC000100), env=FIELD)
    assert _by_id(far, "CUDNN-GEMM-SMALL-POINTER") is None


def test_eager_mode_rules_the_captured_graph_out() -> None:
    found = match(seed_with_global_load(), env=env(cuda_graph="false"))
    entry = _by_id(found, "FLASHINFER-CUDNN-WS-RESIZE")
    assert entry is not None
    assert entry.status == "contradicted"


def test_a_kernels_name_alone_is_no_cause() -> None:
    named = facts.Verdict("gpu-fault", "h", kernel=facts.Kernel(SEED_KERNEL, SEED_KERNEL))
    assert all(item.status != "match" for item in match(named, env=FIELD))
    text_only = seed_sm120()._replace(instruction=None, address=None)
    entry = _by_id(match(text_only), CUDNN)
    assert entry is None or entry.status == "possible"


def test_a_generic_access_is_judged_by_where_its_address_lies() -> None:
    verdict = seed_with_global_load()
    assert verdict.instruction is not None
    generic = verdict._replace(instruction=verdict.instruction._replace(opcode="LD.E.128", space="generic"))
    name = "FLASHINFER-CUDNN-WS-RESIZE"
    assert _by_id(match(generic), name) is not None
    unknown = _by_id(match(generic._replace(address=None)), name)
    assert unknown is not None
    own = next(item for item in unknown.hypotheses if "growth of FlashInfer" in item.cause)
    assert any("the memory space" in sentence for sentence in own.unknown)


def test_xids_of_other_processes_do_not_count() -> None:
    other = report_of(seed_sm120(), xid=(facts.XidEvent(79, relevant=False),))
    assert _by_id(match(other), "XID-HARDWARE") is None
    assert _by_id(match(other._replace(xid=(facts.XidEvent(79),))), "XID-HARDWARE") is not None


def test_an_exception_alone_accuses_nobody() -> None:
    bare = facts.Verdict("gpu-fault", "h", facts.GpuException(4, "Warp Illegal Instruction", "warp"))
    assert match(bare) == ()


def test_a_pc_outside_every_image_is_told_from_an_unknown_one() -> None:
    wild = facts.Verdict(
        "gpu-fault",
        "h",
        facts.GpuException(4, "Warp Illegal Instruction", "warp"),
        pc=facts.Hex(0x7FF7B6BF7280),
        pc_source="errorpc",
    )
    assert match(wild)[0].id == "HUGE-GRID-PC-MISMATCH"
    assert match(wild._replace(pc_source="cuda-gdb")) == ()
    assert match(wild._replace(module=facts.Module(3))) == ()


def test_another_architecture_is_not_it() -> None:
    hopper = seed_sm120()._replace(where=facts.Where(sm_arch="sm_90"))
    assert _by_id(match(hopper, env=FIELD), CUDNN) is None


def test_no_sentence_says_is() -> None:
    for verdict in (seed_sm120(), seed_with_global_load(), seed_with_global_load(1)):
        for item in match(verdict, env=FIELD):
            for hypothesis in item.hypotheses:
                assert hypothesis.cause.startswith(
                    (
                        "consistent with ",
                        "less consistent with ",
                        "contradicted by ",
                        "not excluded: ",
                        "reads as: ",
                    )
                )


def test_scores_are_between_0_and_1_and_sorted() -> None:
    found = match(report_of(seed_sm120()), env=FIELD, log=(DATA / "vllm_nodump.log").read_text().splitlines())
    ranks = [("match", "possible", "contradicted").index(item.status) for item in found]
    assert ranks == sorted(ranks)
    assert all(0 <= item.score <= 1 for item in found)
    assert found[0].id == CUDNN  # a cause comes before the classifications of the log


def test_a_report_and_its_json_give_the_same() -> None:
    report = report_of(
        seed_sm120(),
        environment=env(cudnn="9.19.0.56", gpu="NVIDIA RTX PRO 6000 Blackwell"),
        xid=(facts.XidEvent(13), facts.XidEvent(31)),
        run=facts.Run(argv=("vllm", "serve", "m", "--kv-cache-dtype", "fp8")),
        host=facts.Host(facts.HostReported("CUDA error: an illegal memory access was encountered")),
        readers={"cuda_gdb": facts.ReaderStatus("ok", tail="CUDA Exception: Warp Out-of-range Address\n")},
    )
    plain = json.loads(jsonio.dumps(report))
    assert match(report) == match(plain)
    assert match(report)[0].id == CUDNN
    assert match(report)[0].status == "match"


def test_what_the_caller_gives_outranks_the_report_and_the_log() -> None:
    report = report_of(seed_sm120(), environment=env(cudnn="9.19.0.56"))
    entry = _by_id(match(report, env=env(cudnn="9.24")), CUDNN)
    assert entry is not None
    assert entry.status == "contradicted"
    log = ["[pip3] nvidia-cudnn-cu13==9.24.0.43"]
    entry = _by_id(match(report, log=log), CUDNN)
    assert entry is not None
    assert entry.status == "match"
    entry = _by_id(match(seed_sm120(), log=log), CUDNN)
    assert entry is not None
    assert entry.status == "contradicted"


def test_unnormalised_keys_are_understood() -> None:
    assert match(seed_sm120(), env=env(**{"nvidia-cudnn-cu13": "9.19.0.56"})) == match(
        seed_sm120(), env=env(cudnn="9.19.0.56")
    )


def test_a_name_without_a_number_is_enough_for_the_exception() -> None:
    transcript = seed_sm120()._replace(exception=facts.GpuException(None, "Warp Out-of-range Address"))
    assert match(transcript, env=FIELD)[0].id == CUDNN
    unknown = seed_sm120()._replace(exception=facts.GpuException(None, "Warp Novel Exception"))
    assert _by_id(match(unknown, env=FIELD), CUDNN) is not None


# ---- logs without any dump -------------------------------------------------------------------------


def test_the_masked_error_leads_to_the_toolkit() -> None:
    found = match(
        None,
        log=["RuntimeError: FlashInfer requires GPUs with sm75 or higher"],
        env=env(
            gpu="NVIDIA GeForce RTX 5090",
            arch="sm_120",
            cuda_toolkit="12.8.93",
            torch_cuda="13.0",
            cuda_driver="13.0",
        ),
    )
    first = found[0]
    assert first.id == "FLASHINFER-SM75-MISLEADING"
    assert first.status == "match"
    sentences = " ".join(first.hypotheses[0].supporting)
    assert "contradicts a known fact" in sentences
    assert "12.8.93" in sentences
    assert "13.0" in sentences
    assert any("12.9" in fix for fix in first.fix)
    assert _by_id(found, "THREE-CUDA-VERSIONS") is not None


def test_without_versions_the_masked_error_asks_for_them() -> None:
    found = match(None, log=["RuntimeError: FlashInfer requires GPUs with sm75 or higher"])
    first = found[0]
    assert first.id == "FLASHINFER-SM75-MISLEADING"
    assert first.status == "possible"
    assert any("the CUDA toolkit version" in sentence for sentence in first.hypotheses[0].unknown)


def test_shape_mismatch_and_stall_are_read_from_the_log() -> None:
    shapes = match(
        None,
        log=[
            "self.o_proj(x)",
            "RuntimeError: mat1 and mat2 shapes cannot be multiplied (7x4096 and 8192x5376)",
        ],
    )
    assert shapes[0].id == "GEMMA4-HEADDIM"
    stall = match(None, log=["No available shared memory broadcast block found in 60 seconds."])
    assert stall[0].id == "SHM-BROADCAST-STALL"
    assert stall[0].hypotheses[0].cause.startswith("reads as: ")


def test_a_real_log_of_a_fault_reads_as_a_victim_site() -> None:
    found = match(None, log=(DATA / "vllm_nodump.log").read_text().splitlines())
    ids = [item.id for item in found]
    assert ids[:2] == ["ASYNC-VICTIM-SITE", "ENGINE-DEAD-ELSEWHERE"]
    assert "streams.py" in " ".join(found[0].hypotheses[0].supporting)


def test_xids_of_the_log_count() -> None:
    line = "NVRM: Xid (PCI:0000:01:00): 79, pid=4, name=python3, GPU has fallen off the bus."
    assert _by_id(match(None, log=[line]), "XID-HARDWARE") is not None


def test_garbage_needs_the_setting_that_it_is_about() -> None:
    verdict = facts.Verdict("garbage", "token 0", where=facts.Where(sm_arch="sm_120"))
    with_nvfp4 = match(verdict, run={"garbage": "token0", "kv_cache_dtype": "nvfp4"})
    assert with_nvfp4[0].id == "NVFP4-KV-TOKEN0"
    with_fp8 = match(verdict, run={"garbage": "token0", "kv_cache_dtype": "fp8"})
    assert [item.id for item in with_fp8] == ["NAN-TO-BANG"]


def test_the_run_records_command_line_counts() -> None:
    verdict = facts.Verdict("garbage", "token 0", where=facts.Where(sm_arch="sm_120"))
    run = facts.Run(argv=("vllm", "serve", "m", "--kv-cache-dtype=nvfp4"))
    found = match(report_of(verdict, run=run), env=env(garbage="token0"))
    assert found[0].id == "NVFP4-KV-TOKEN0"
    assert match(verdict, run=run, env=env(garbage="token0"))[0].id == "NVFP4-KV-TOKEN0"


def test_a_hang_is_read_from_its_groups() -> None:
    group = facts.HangGroup(
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", None, facts.Hex(1), 4, 1, state="spinning"
    )
    verdict = facts.Verdict("hang", "h", hang=facts.Hang((group,)))
    found = match(verdict)
    assert found[0].id == "ALLREDUCE-COLLATERAL"
    assert found[0].status == "match"


def test_nothing_known_gives_nothing() -> None:
    plain = facts.Verdict(
        "gpu-fault",
        "h",
        facts.GpuException(14, "Warp Illegal Address", "warp"),
        facts.Kernel("oob_load", "_Z8oob_loadPKf"),
        instruction=facts.Instruction(
            "LDG.E R2, [R2.64]", "LDG.E", access="load", space="global", width_bytes=4
        ),
        library=facts.Library("user"),
        where=facts.Where(sm_arch="sm_90"),
    )
    assert match(plain) == ()
    assert match(None) == ()
    assert match({"verdict": "text"}) == ()


def test_contradicted_entries_come_last_and_are_bounded() -> None:
    found = match(seed_sm120(), env=FIELD, log=(DATA / "vllm_nodump.log").read_text().splitlines())
    assert len(found) <= 20


@pytest.mark.parametrize("name", [entry.id for entry in catalogue.bundled()])
def test_every_reference_and_text_is_one_printable_line(name: str) -> None:
    entry = catalogue.find(catalogue.bundled(), name)
    for text in (entry.title, *entry.fix, *entry.workaround, *entry.references, entry.reads_as or "x"):
        assert text.isprintable()
    assert entry.references
    assert entry.date


HOSTILE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.floats(allow_nan=False),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "verdict",
                    "exception",
                    "code",
                    "name",
                    "kernel",
                    "function",
                    "instruction",
                    "opcode",
                    "address",
                    "value",
                    "hang",
                    "groups",
                    "state",
                    "environment",
                    "xid",
                    "run",
                    "argv",
                    "readers",
                    "cuda_gdb",
                    "tail",
                    "host",
                    "reported",
                    "text",
                    "where",
                    "sm_arch",
                    "library",
                    "kind",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@given(HOSTILE)
def test_any_json_is_matched_without_an_error(data: Any) -> None:
    match(data if isinstance(data, dict) else {"verdict": data})


@given(st.text(max_size=60), st.text(max_size=60))
def test_hostile_names_cannot_break_out_of_their_sentence(kernel: str, version: str) -> None:
    verdict = seed_sm120()._replace(kernel=facts.Kernel(SEED_KERNEL + kernel, None))
    for item in match(verdict, env=env(cudnn=version, torch="2.11.0")):
        for hypothesis in item.hypotheses:
            for sentence in (*hypothesis.supporting, *hypothesis.against, *hypothesis.unknown):
                assert sentence.isprintable()
