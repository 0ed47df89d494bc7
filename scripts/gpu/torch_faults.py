#!/usr/bin/env python3
"""Faults in frameworks and vendor libraries: PyTorch, cuBLAS, cuDNN, FlashAttention, Triton, Inductor, CuPy.

`python3 torch_faults.py SCENE` runs one scene; `--list` names them. What is planted is printed as lines
"FACT name value" before the fault; "READY" says that a kernel that never ends is running. Exit code 77: this
machine cannot run the scene (a package, or a second GPU, is missing). If FAULTS_GATE names a file, the GPU is
not touched before that file exists.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module

sys.dont_write_bytecode = True


def wait_for_gate(path: str | None) -> None:
    while path and not os.path.exists(path) and os.getppid() != 1:
        time.sleep(0.02)


def main(arguments: list[str]) -> int:
    try:
        import torch

        for name in ("aten", "compilers", "ranks", "triton_kernels", "vendor"):
            import_module(f"frameworks.{name}")  # registers its scenes
        from frameworks.harness import SCENES
    except ImportError as missing:
        print(f"ERROR {missing}", flush=True)
        return 77
    if arguments == ["--list"]:
        print("\n".join(SCENES))
        return 0
    if len(arguments) != 1 or arguments[0] not in SCENES:
        print("usage: torch_faults.py SCENE | --list", file=sys.stderr)
        return 2
    wait_for_gate(os.environ.pop("FAULTS_GATE", None))
    try:
        SCENES[arguments[0]]()
        torch.cuda.synchronize()
        time.sleep(1)  # a store whose warp has retired faults after the first wait has succeeded
        torch.cuda.synchronize()
    except Exception as error:  # noqa: BLE001 (whatever the framework says belongs into the record)
        print(f"END {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}", flush=True)
        return 4
    print("END no error", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
