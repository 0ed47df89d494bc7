"""For each fact that can be missing: what it is called, and how to have it next time."""

from __future__ import annotations

from collections.abc import Mapping

from crashlab.signatures.sentences import label

_RECORD = "record with `crashlab run` or `soak`, or give --env {sub}=VERSION"

HINTS: Mapping[str, tuple[str, str]] = {
    "verdict": ("a verdict", "analyze a GPU core dump"),
    "exception": ("the exception number", "analyze a GPU core dump or the driver's log (--log)"),
    "precision": ("the precision of the exception", "analyze a GPU core dump"),
    "space": ("the memory space", "analyze without --fast, so that the instruction is disassembled"),
    "access": ("the kind of access", "analyze without --fast, so that the instruction is disassembled"),
    "width": ("the width of the access", "analyze without --fast, so that the instruction is disassembled"),
    "arch": ("the GPU architecture", "give --env gpu=NAME or --env arch=sm_NNN"),
    "garbage": ("what kind of garbage was seen", "ask the server with `crashlab quality` or `soak`"),
    "hang": ("what the warps were doing", "trigger a GPU dump of the hung process (`crashlab run` does)"),
    "error": ("the error that the host reported", "give the server's log with --log"),
    "finding": ("a finding about the address", "analyze without --fast; `--dump full` keeps memory"),
    "address_below": ("the bad address", "analyze without --fast; the kernel log (--dmesg) has its page"),
    "address_from": ("the bad address", "analyze without --fast; the kernel log (--dmesg) has its page"),
    "stray_lane": ("the other lanes' addresses", "analyze without --fast; `--dump full` keeps memory"),
    "pc_in_image": ("whether any code holds the PC", "analyze a GPU core dump"),
    "library": ("the kernel's library", "analyze a GPU core dump"),
    "opcode": ("the instruction", "analyze without --fast, so that the instruction is disassembled"),
    "family": ("the kernel's family", "analyze a GPU core dump"),
    "kernel": ("the kernel's name", "analyze a GPU core dump or the driver's log (--log)"),
    "function": ("the function at the PC", "analyze a GPU core dump"),
    "xid": ("Xid lines", "give the kernel log with --dmesg"),
    "cuda_graph": ("whether CUDA graphs were on", "give the server's log or --env cuda_graph=true|false"),
    "log": ("the log", "give the server's log with --log"),
    "log_all": ("the log", "give the server's log with --log"),
    "run": ("the run's {sub}", "give the server's log, or --env {sub}=VALUE"),
    "affected": ("the {sub} version", _RECORD),
    "seen": ("the {sub} version", _RECORD),
}


def hint(key: str, sub: str | None) -> str:
    """One sentence: what was not captured and how to capture it next time."""
    what, how = HINTS[key]
    name = sub or ""
    return f"not captured: {what.format(sub=label(name))} ({how.format(sub=name)})"
