# ruff: noqa: E501
"""Matrix instructions, tensor memory and control flow in PTX."""

from __future__ import annotations

import itertools


def _list(letter: str, first: int, count: int) -> str:
    return "{" + ",".join(f"{letter}{first + i}" for i in range(count)) + "}"


def matrices() -> list[str]:
    found = []
    for shape, number in itertools.product(("m8n8",), ("x1", "x2", "x4")):
        count = int(number[1])
        for trans in ("", ".trans"):
            found.append(
                f"ldmatrix.sync.aligned.{shape}.{number}{trans}.shared.b16 {_list('r', 20, count)}, [r4];"
            )
            found.append(
                f"stmatrix.sync.aligned.{shape}.{number}{trans}.shared.b16 [r4+128], {_list('r', 10, count)};"
            )
    for number in ("x1", "x2"):
        count = int(number[1]) * 2
        found.append(f"ldmatrix.sync.aligned.m16n16.{number}.trans.shared.b8 {_list('r', 20, count)}, [r4];")
        found.append(
            f"ldmatrix.sync.aligned.m16n16.{number}.trans.shared.b8x16.b4x16_p64 {_list('r', 20, count)}, [r4];"
        )
        found.append(
            f"ldmatrix.sync.aligned.m8n16.{number}.shared.b8x16.b6x16_p32 {_list('r', 20, int(number[1]))}, [r4];"
        )
        found.append(
            f"stmatrix.sync.aligned.m16n8.{number}.trans.shared.b8 [r4], {_list('r', 10, int(number[1]))};"
        )
    found.append("movmatrix.sync.aligned.m8n8.trans.b16 r20, r10;")
    for shape, a, b in (("m16n8k8", 2, 1), ("m16n8k16", 4, 2)):
        for kind in ("f16", "bf16"):
            found.append(
                f"mma.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {_list('f', 20, 4)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('f', 10, 4)};"
            )
        found.append(
            f"mma.sync.aligned.{shape}.row.col.f16.f16.f16.f16 {_list('r', 20, 2)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('r', 12, 2)};"
        )
    found.append(
        f"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {_list('f', 20, 8)}, {_list('r', 10, 2)}, {_list('r', 14, 2)}, {_list('f', 10, 8)};"
    )
    for shape, a, b in (("m16n8k4", 2, 1), ("m16n8k8", 4, 2)):
        found.append(
            f"mma.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32 {_list('f', 20, 4)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('f', 10, 4)};"
        )
    for shape, a, b, c in (("m8n8k16", 1, 1, 2), ("m16n8k16", 2, 1, 4), ("m16n8k32", 4, 2, 4)):
        found.append(
            f"mma.sync.aligned.{shape}.row.col.satfinite.s32.s8.u8.s32 {_list('r', 20, c)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('r', 12, c)};"
        )
    for shape, a, b, c in (("m8n8k32", 1, 1, 2), ("m16n8k32", 2, 1, 4), ("m16n8k64", 4, 2, 4)):
        found.append(
            f"mma.sync.aligned.{shape}.row.col.s32.s4.s4.s32 {_list('r', 20, c)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('r', 12, c)};"
        )
    for shape, a, b, c in (("m8n8k128", 1, 1, 2), ("m16n8k128", 2, 1, 4), ("m16n8k256", 4, 2, 4)):
        found.append(
            f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.and.popc {_list('r', 20, c)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('r', 12, c)};"
        )
    found.append("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {e10,e11}, {e0}, {e1}, {e2,e3};")
    for shape, a, b in (("m16n8k4", 2, 1), ("m16n8k8", 4, 2)):
        found.append(
            f"mma.sync.aligned.{shape}.row.col.f64.f64.f64.f64 {_list('e', 10, 4)}, {_list('e', 2, a)}, {_list('e', 0, b)}, {_list('e', 2, 4)};"
        )
    for x, y in (("e4m3", "e4m3"), ("e5m2", "e4m3")):
        found.append(
            f"mma.sync.aligned.m16n8k32.row.col.f32.{x}.{y}.f32 {_list('f', 20, 4)}, {_list('r', 10, 4)}, {_list('r', 14, 2)}, {_list('f', 10, 4)};"
        )
        found.append(
            f"mma.sync.aligned.m16n8k32.row.col.f16.{x}.{y}.f16 {_list('r', 20, 2)}, {_list('r', 10, 4)}, {_list('r', 14, 2)}, {_list('r', 12, 2)};"
        )
    for kind in ("e2m1", "e3m2", "e2m3"):
        found.append(
            f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{kind}.e4m3.f32 {_list('f', 20, 4)}, {_list('r', 10, 4)}, {_list('r', 14, 2)}, {_list('f', 10, 4)};"
        )
    found.append(
        f"mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 {_list('f', 20, 4)}, {_list('r', 10, 4)}, {_list('r', 14, 2)}, {_list('f', 10, 4)}, r16, {{h0,h1}}, r17, {{h0,h1}};"
    )
    found.append(
        f"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0 {_list('f', 20, 4)}, {_list('r', 10, 4)}, {_list('r', 14, 2)}, {_list('f', 10, 4)}, r16, {{h0,h1}}, r17, {{h0,h1}};"
    )
    for shape, kind, a, b in (
        ("m16n8k16", "f16", 2, 2),
        ("m16n8k32", "f16", 4, 4),
        ("m16n8k8", "tf32", 2, 2),
        ("m16n8k16", "tf32", 4, 4),
    ):
        found.append(
            f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.f32.{kind}.{kind}.f32 {_list('f', 20, 4)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('f', 10, 4)}, r18, 0x0;"
        )
    for shape, kind, a, b in (
        ("m16n8k32", "s8", 2, 2),
        ("m16n8k64", "u8", 4, 4),
        ("m16n8k64", "s4", 2, 2),
        ("m16n8k128", "u4", 4, 4),
    ):
        found.append(
            f"mma.sp::ordered_metadata.sync.aligned.{shape}.row.col.s32.{kind}.{kind}.s32 {_list('r', 20, 4)}, {_list('r', 10, a)}, {_list('r', 14, b)}, {_list('r', 12, 4)}, r18, 0x0;"
        )
    found.append(
        f"mma.sp::ordered_metadata.sync.aligned.m16n8k64.row.col.f32.e4m3.e5m2.f32 {_list('f', 20, 4)}, {_list('r', 10, 4)}, {_list('r', 14, 4)}, {_list('f', 10, 4)}, r18, 0x0;"
    )
    return found


def warpgroup() -> list[str]:
    fence = "wgmma.fence.sync.aligned;"
    wait = "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    found = []
    for n in (8, 24, 64, 128):
        for kind, k in (("f16", 16), ("bf16", 16), ("tf32", 8), ("e4m3", 32)):
            accumulators = _list("f", 10, n // 2)
            tail = ", 1, 1, 1, 0, 0" if kind in ("f16", "bf16") else ", 1, 1, 1"
            rs_tail = ", 1, 1, 1, 0" if kind in ("f16", "bf16") else ", 1, 1, 1"
            other = "e5m2" if kind == "e4m3" else kind
            found.append(
                f"{fence} wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{kind}.{other} {accumulators}, d2, d3{tail}; {wait}"
            )
            found.append(
                f"{fence} wgmma.mma_async.sync.aligned.m64n{n}k{k}.f32.{kind}.{other} {accumulators}, {_list('r', 10, 4)}, d3{rs_tail}; {wait}"
            )
            sparse_k = k * 2
            found.append(
                f"{fence} wgmma.mma_async.sp.sync.aligned.m64n{n}k{sparse_k}.f32.{kind}.{other} {accumulators}, d2, d3, r10, 0{tail}; {wait}"
            )
        half = _list("r", 20, n // 4)
        found.append(
            f"{fence} wgmma.mma_async.sync.aligned.m64n{n}k16.f16.f16.f16 {half}, d2, d3, 1, 1, 1, 0, 0; {wait}"
        )
        found.append(
            f"{fence} wgmma.mma_async.sync.aligned.m64n{n}k32.f16.e4m3.e4m3 {half}, d2, d3, 1, 1, 1; {wait}"
        )
        found.append(
            f"{fence} wgmma.mma_async.sync.aligned.m64n{n}k32.s32.s8.s8 {_list('r', 10, n // 2)}, d2, d3, 1; {wait}"
        )
        found.append(
            f"{fence} wgmma.mma_async.sync.aligned.m64n{n}k256.s32.b1.b1.and.popc {_list('r', 10, n // 2)}, d2, d3, 1; {wait}"
        )
    return found


def tensor_memory() -> list[str]:
    found = [
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [r4], 64; tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
        "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [r4], r10;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 r10, 64;",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [r4];",
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [r4], h0;",
        "tcgen05.wait::ld.sync.aligned; tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync; tcgen05.fence::after_thread_sync;",
        "tcgen05.shift.cta_group::1.down [r10];",
    ]
    for shape in ("128x256b", "4x256b", "128x128b"):
        found.append(f"tcgen05.cp.cta_group::1.{shape} [r10], d2;")
    found += [
        "tcgen05.cp.cta_group::1.64x128b.warpx2::02_13 [r10], d2; tcgen05.cp.cta_group::2.32x128b.warpx4 [r10], d2;",
        "tcgen05.cp.cta_group::1.128x256b.b8x16.b6x16_p32 [r10], d2;",
    ]
    for shape, per in (("32x32b", 1), ("16x64b", 1), ("16x128b", 2), ("16x256b", 4)):
        for times in (1, 2, 8):
            count = per * times
            found.append(
                f"tcgen05.ld.sync.aligned.{shape}.x{times}.b32 {_list('r', 20, count)}, [r10]; tcgen05.wait::ld.sync.aligned; add.u32 r20, r20, r{20 + count - 1};"
            )
            found.append(
                f"tcgen05.ld.sync.aligned.{shape}.x{times}.pack::16b.b32 {_list('r', 20, count)}, [r10]; tcgen05.wait::ld.sync.aligned;  add.u32 r20, r20, r{20 + count - 1};"
            )
            found.append(f"tcgen05.st.sync.aligned.{shape}.x{times}.b32 [r10], {_list('r', 10, count)};")
            found.append(
                f"tcgen05.st.sync.aligned.{shape}.x{times}.unpack::16b.b32 [r10], {_list('r', 10, count)};"
            )
    found.append(
        f"tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {_list('r', 20, 4)}, [r10], 8; tcgen05.st.sync.aligned.16x32bx2.x4.b32 [r10], 8, {_list('r', 10, 4)};"
    )
    found.append(f"tcgen05.ld.red.sync.aligned.32x32b.x4.min.f32 {_list('r', 20, 4)}, r24, [r10];")
    for kind in ("f16", "tf32", "f8f6f4", "i8"):
        for group in (1, 2):
            found.append(f"tcgen05.mma.cta_group::{group}.kind::{kind} [r10], d2, d3, r11, p0;")
            found.append(f"tcgen05.mma.cta_group::{group}.kind::{kind} [r10], [r12], d3, r11, p0;")
            found.append(f"tcgen05.mma.sp.cta_group::{group}.kind::{kind} [r10], d2, d3, [r13], r11, p0;")
            found.append(
                f"tcgen05.mma.ws.cta_group::1.kind::{kind}.collector::b0::fill [r10], d2, d3, r11, p0;"
            )
            found.append(f"tcgen05.mma.ws.cta_group::1.kind::{kind} [r10], d2, d3, r11, p0, d0;")
        found.append(f"tcgen05.mma.cta_group::1.kind::{kind} [r10], d2, d3, r11, {{r12,r13,r14,r15}}, p0;")
    for kind, scale in (("mxf8f6f4", "block32"), ("mxf4", "block32"), ("mxf4nvf4", "block16")):
        found.append(
            f"tcgen05.mma.cta_group::1.kind::{kind}.block_scale.{scale} [r10], d2, d3, r11, [r12], [r13], p0;"
        )
        found.append(
            f"tcgen05.mma.cta_group::2.kind::{kind}.block_scale.{scale} [r10], [r14], d3, r11, [r12], [r13], p0;"
        )
        found.append(
            f"tcgen05.mma.sp.cta_group::1.kind::{kind}.block_scale.{scale} [r10], d2, d3, [r14], r11, [r12], [r13], p0;"
        )
    return found


def control() -> list[str]:
    return [
        "L: ld.acquire.gpu.b32 r30, [a2]; setp.ne.u32 p3, r30, 0; @p3 bra L;",
        "L: mbarrier.try_wait.parity.shared.b64 p2, [r4], r10; @!p2 bra L;",
        "L: nanosleep.u32 20; atom.global.cas.b32 r30, [a2], 0, 1; setp.ne.u32 p3, r30, 0; @p3 bra L;",
        "@p1 bra L; bar.sync 1; L:",
        "@p1 ret; ld.global.b32 r20, [a3];",
        "@p1 exit;",
        "ts: .branchtargets L0, L1, L2; @p1 brx.idx r0, ts; L0: add.u32 r20, r10, 1; bra L3; L1: ld.global.b32 r20, [a2]; bra L3; L2: add.u32 r20, r10, 3; L3:",
        "mov.u32 r30, 0; L: mad.wide.u32 a8, r30, 4, a0; ld.global.b32 r31, [a8]; add.u32 r20, r20, r31; add.u32 r30, r30, 1; setp.lt.u32 p3, r30, r1; @p3 bra L;",
        "{ .reg .b64 fp; ld.global.b64 fp, [a1]; pr: .callprototype (.param .b32 _) _ (.param .b32 _); { .param .b32 x; .param .b32 y; st.param.b32 [y], r10; call (x), fp, (y), pr; ld.param.b32 r20, [x]; } }",
    ]
