#!/usr/bin/env python3
"""Record the SASS of small address computations as a fixture for the evaluator's tests.

The compiler is the oracle: each kernel stores one C expression of its arguments, and the test holds
what the evaluator makes of the SASS against the same expression in Python
(``tests/unit/sass/expression_cases.py``).

usage: expressions.py tests/data/sass/expressions.json.xz [--nvcc PATH] [--nvdisasm PATH]
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "unit" / "sass")]

from expression_cases import CASES  # noqa: E402

ARCHES = ("75", "80", "90", "100", "120")
KERNEL = """extern "C" __global__ void k{number}({type}* out, int a, int b, unsigned u, unsigned v,
    long long x, unsigned long long y, const int* p) {{
  int t = threadIdx.x; unsigned g = blockIdx.x * blockDim.x + threadIdx.x; (void)t; (void)g;
  *out = ({type})({expression});
}}
"""


def record(arch: str, nvcc: str, nvdisasm: str) -> dict[str, list[list[object]]]:
    """Lines of every kernel by the case's name, from the entry to the first EXIT."""
    source = "".join(
        KERNEL.format(number=i, type=case.type, expression=case.expression) for i, case in enumerate(CASES)
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "e.cu").write_text(source)
        cubin = Path(folder) / "e.cubin"
        subprocess.run(
            [nvcc, "-w", "-cubin", f"-arch=sm_{arch}", "-o", cubin, Path(folder) / "e.cu"], check=True
        )
        listing = subprocess.run([nvdisasm, "-c", cubin], check=True, capture_output=True, text=True).stdout
    found: dict[str, list[list[object]]] = {}
    for part in listing.split(".section\t")[1:]:
        name = re.search(r"\.text\.k(\d+)", part)
        lines = [
            [int(m[1], 16), re.sub(r"[ \t]+", " ", m[2]).strip()]
            for m in re.finditer(r"/\*([0-9a-f]+)\*/[ \t]+(\S[^;\n]*);", part)
        ]
        if name:
            end = next(i for i, line in enumerate(lines) if line[1] == "EXIT")
            found[CASES[int(name[1])].name] = lines[: end + 1]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--nvdisasm", default="nvdisasm")
    options = parser.parse_args()
    recorded = {arch: record(arch, options.nvcc, options.nvdisasm) for arch in ARCHES}
    options.output.write_bytes(lzma.compress(json.dumps(recorded).encode(), preset=9))


if __name__ == "__main__":
    main()
