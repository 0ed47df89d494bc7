"""Verdicts and reports that the tests of this room share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from crashlab import facts

DATA = Path(__file__).resolve().parents[2] / "data" / "signatures"
SEED_KERNEL = "cudnn_generated_fort_native_sm120_matMul_pointwise_pointwise_knob_3_128x128x128_0_0"


def env(**values: str) -> dict[str, facts.EnvFact]:
    return {key: facts.EnvFact(value, "--env") for key, value in values.items()}


def seed_sm120() -> facts.Verdict:
    """The field case as the dump tells it: an exception 5 at a shared 128-bit store, three SMs, offset 2688."""
    return facts.Verdict(
        kind="gpu-fault",
        headline="Warp Out-of-range Address at STS.128",
        exception=facts.GpuException(5, "Warp Out-of-range Address", "warp"),
        kernel=facts.Kernel(
            SEED_KERNEL, SEED_KERNEL, facts.Launch(facts.Dim3(64, 1, 1), facts.Dim3(128, 1, 1), None, 50176)
        ),
        function=facts.Function(SEED_KERNEL, SEED_KERNEL, 2688),
        pc=facts.Hex(0x7F1AA3000C00),
        pc_source="errorpc",
        instruction=facts.Instruction(
            "STS.128 [R0+0xe910], R36", "STS.128", access="store", space="shared", width_bytes=16
        ),
        library=facts.Library("cuDNN", "cudnn_generated_fort_native_sm12x_matMul_pointwise_pointwise"),
        where=facts.Where(0, "NVIDIA RTX PRO 6000 Blackwell Workstation Edition", "sm_120", (3, 77, 140)),
        address=facts.Address(
            "recovered", facts.Hex(0xED10), space="shared", kind="shared-past-end", limit=50176
        ),
    )


def seed_with_global_load(address: int | None = 0x7EFADC000100) -> facts.Verdict:
    """The same kernel name, but exception 14 at a global load."""
    return seed_sm120()._replace(
        exception=facts.GpuException(14, "Warp Illegal Address", "warp"),
        instruction=facts.Instruction(
            "LDG.E.128 R4, desc[UR4][R2.64]", "LDG.E.128", access="load", space="global", width_bytes=16
        ),
        address=None if address is None else facts.Address("recovered", facts.Hex(address), space="global"),
    )


def report_of(verdict: facts.Verdict, **parts: Any) -> facts.Report:
    base = facts.Report("crashlab.report/1", facts.Tool("crashlab", "0"), "2026-11-30T00:00:00Z", (), verdict)
    return base._replace(**parts)
