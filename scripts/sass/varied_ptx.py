#!/usr/bin/env python3
"""Compile many small PTX snippets for every architecture that ptxas knows.

Libraries use few of the instructions that can fault: this makes cubins with the others (every access
width, space and atomic, TMA, clusters, tensor memory, textures, conversions, matrix shapes), as food
for ``check_operands.py``. Snippets that an architecture does not have are left out.

usage: varied_ptx.py OUTPUT_FOLDER [--ptxas PATH] [--version 9.0] [--arch sm_90a ...]

sm_70 needs a ptxas of CUDA 12 and the PTX version that it knows (8.4 with CUDA 12.4).
"""

from __future__ import annotations

import argparse
import re
import subprocess
from pathlib import Path

import snippets_compute
import snippets_copies
import snippets_matrices
import snippets_memory

ARCHES = [
    "75",
    "80",
    "86",
    "87",
    "88",
    "89",
    "90",
    "90a",
    "100",
    "100a",
    "103a",
    "110a",
    "120",
    "120a",
    "121a",
]

HEADER = """.version {version}
.target sm_{arch}
.address_size 64
.extern .shared .align 1024 .b8 smem[];
.global .align 16 .b8 gmem[4096];
.const .align 16 .b8 cmem[4096];
.global .texref tref;
.global .surfref sref;
"""

ENTRY = """.visible .entry k{number}(.param .u64 pa, .param .u64 pb, .param .u32 pi, .param .u32 pj,
    .param .align 64 .b8 pt[128])
{{
  .reg .b16 h<20>; .reg .b32 r<80>; .reg .b64 a<20>, d<20>; .reg .f32 f<80>; .reg .f64 e<20>;
  .reg .pred p<8>; .reg .b128 q<4>; .reg .b8 c<4>;
  .local .align 16 .b8 lmem[512];
  ld.param.u64 a0, [pa]; ld.param.u64 a1, [pb]; ld.param.u32 r0, [pi]; ld.param.u32 r1, [pj];
  mov.u32 r2, %tid.x; mad.wide.u32 a2, r2, 16, a0; mad.wide.s32 a3, r0, 4, a1; mov.b64 a6, pt;
  mov.u32 r3, smem; mad.lo.u32 r4, r2, 16, r3; cvta.global.u64 a4, a2; mov.u64 a5, lmem; cvta.param.u64 a6, a6;
  add.u32 r5, r0, r2; setp.gt.s32 p0, r0, r1; setp.gt.u32 p1, r2, 7; ld.f32 f0, [a0]; ld.f32 f1, [a1];
  ld.f64 e0, [a0]; ld.f64 e1, [a1]; mov.b64 d0, e0; cvt.u16.u32 h0, r0; cvt.u16.u32 h1, r1;
  ld.v4.b32 {{r10,r11,r12,r13}}, [a2]; ld.v4.b32 {{r14,r15,r16,r17}}, [a3];
  ld.v4.f32 {{f10,f11,f12,f13}}, [a2]; ld.v4.f32 {{f14,f15,f16,f17}}, [a3]; ld.v2.b64 {{d2,d3}}, [a2];
  ld.v2.f64 {{e2,e3}}, [a2]; ld.v2.f64 {{e4,e5}}, [a3];
  {body}
  st.volatile.v4.b32 [a0], {{r20,r21,r22,r23}}; st.volatile.v4.f32 [a1], {{f20,f21,f22,f23}};
  st.volatile.v2.b64 [a0], {{d10,d11}}; st.volatile.v2.f64 [a1], {{e10,e11}}; @p2 st.volatile.b16 [a1], h10;
  st.volatile.v4.b32 [a0+16], {{r24,r25,r26,r27}};
  ret;
}}
"""


GROUPS = (
    snippets_memory.memory,
    snippets_memory.atomics,
    snippets_copies.copies,
    snippets_copies.synchronisation,
    snippets_copies.textures,
    snippets_compute.warp,
    snippets_compute.arithmetic,
    snippets_compute.conversions,
    snippets_matrices.matrices,
    snippets_matrices.warpgroup,
    snippets_matrices.tensor_memory,
    snippets_matrices.control,
)


def entries() -> list[str]:
    bodies = [body for group in GROUPS for body in group()]
    return [ENTRY.format(number=number, body=body) for number, body in enumerate(bodies)]


def compile_for(arch: str, ptxas: str, folder: Path, version: str, chunk: int = 60) -> tuple[int, int]:
    """Cubins of all snippets that the architecture has, some in a file; (kept, left out)."""
    kept = dropped = 0
    texts = entries()
    for part in range(0, len(texts), chunk):
        left = texts[part : part + chunk]
        target = folder / f"varied.{part // chunk:02d}.sm_{arch}.cubin"
        while left:
            source = HEADER.format(arch=arch, version=version) + "".join(left)
            done = subprocess.run(
                [ptxas, f"-arch=sm_{arch}", "-o", str(target), "-"],
                input=source,
                capture_output=True,
                text=True,
            )
            if done.returncode == 0:
                kept += len(left)
                break
            survivors = _without_errors(left, done.stderr, HEADER.count("\n"))
            dropped += len(left) - len(survivors)
            left = survivors
    return kept, dropped


def _without_errors(texts: list[str], errors: str, header_lines: int) -> list[str]:
    lines = {int(n) for n in re.findall(r"line (\d+);", errors)}
    names = set(re.findall(r"\bk(\d+)\b", errors))
    survivors, first = [], header_lines + 1
    for text in texts:
        count = text.count("\n")
        number = re.search(r"entry k(\d+)", text)
        broken = any(first <= line < first + count for line in lines) or (
            number is not None and number[1] in names
        )
        if not broken:
            survivors.append(text)
        first += count
    return survivors if len(survivors) < len(texts) else texts[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--ptxas", default="ptxas")
    parser.add_argument("--version", default="9.0", help="of PTX")
    parser.add_argument("--arch", nargs="*", default=ARCHES)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for arch in options.arch:
        kept, dropped = compile_for(arch.removeprefix("sm_"), options.ptxas, options.folder, options.version)
        print(f"sm_{arch.removeprefix('sm_')}: {kept} snippets, {dropped} that it does not have")


if __name__ == "__main__":
    main()
