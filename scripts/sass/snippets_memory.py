# ruff: noqa: E501
"""Loads, stores, atomics and asynchronous copies in PTX."""

from __future__ import annotations

import itertools


def memory() -> list[str]:
    found = []
    for space, address in (("global", "a2"), ("shared", "r4"), ("local", "a5"), ("", "a4")):
        dot = f".{space}" if space else ""
        for size, register in (
            ("u8", "r20"),
            ("s8", "r20"),
            ("u16", "h10"),
            ("s16", "h10"),
            ("b32", "r20"),
            ("b64", "d10"),
        ):
            found.append(f"ld{dot}.{size} {register}, [{address}+8]; add.u32 r21, r20, 1;")
            found.append(
                f"st{dot}.{size.replace('s', 'u') if size[0] == 's' else size} [{address}+-8], {'r10' if register[0] == 'r' else 'h0' if register[0] == 'h' else 'd0'};"
            )
        found.append(f"ld{dot}.v2.b32 {{r20,r21}}, [{address}];")
        found.append(f"ld{dot}.v4.b32 {{r20,r21,r22,r23}}, [{address}+16];")
        found.append(f"st{dot}.v4.b32 [{address}+32], {{r10,r11,r12,r13}};")
        found.append(f"st{dot}.v2.b64 [{address}+32], {{d2,d3}};")
        found.append(f"ld{dot}.volatile.b32 r20, [{address}]; st{dot}.volatile.b32 [{address}], r10;")
        for order, scope in itertools.product(("acquire", "relaxed"), ("cta", "cluster", "gpu", "sys")):
            if space != "local":
                found.append(
                    f"ld.{order}.{scope}{dot}.b32 r20, [{address}]; ld.{order}.{scope}{dot}.b64 d10, [{address}];"
                )
                found.append(f"st.{order.replace('acquire', 'release')}.{scope}{dot}.b32 [{address}], r10;")
    for extra in (
        "ld.global.nc.v4.b32 {r20,r21,r22,r23}, [a2];",
        "ld.global.nc.u8 r20, [a2];",
        "ld.global.nc.L1::no_allocate.L2::256B.v4.b32 {r20,r21,r22,r23}, [a2];",
        "ld.global.L1::evict_last.b32 r20, [a2];",
        "ld.global.lu.b32 r20, [a2]; ld.global.cs.b32 r21, [a3];",
        "st.global.wt.b32 [a2], r10;",
        "st.global.L1::evict_first.v2.b32 [a2], {r10,r11};",
        "ld.global.v8.b32 {r20,r21,r22,r23,r24,r25,r26,r27}, [a2];",
        "st.global.v8.b32 [a2], {r10,r11,r12,r13,r14,r15,r16,r17};",
        "ld.global.v4.b64 {d10,d11,d12,d13}, [a2];",
        "st.global.v4.b64 [a2], {d0,d1,d2,d3};",
        "ld.global.b128 q0, [a2]; mov.b128 {d10,d11}, q0;",
        "mov.b128 q0, {d2,d3}; st.relaxed.gpu.global.b128 [a2], q0;",
        "ld.global.b32 r20, [gmem+16]; st.global.b32 [gmem+20], r10;",
        "ld.const.b32 r20, [cmem+16];",
        "mov.u64 a7, cmem; add.s64 a7, a7, a2; ld.const.b64 d10, [a7];",
        "ld.shared.b32 r20, [smem+64];",
        "cvt.u64.u32 a8, r2; add.s64 a9, a0, a8; ld.global.b32 r20, [a9];",
        "ld.param.b32 r20, [pt+4];",
        "mul.lo.u32 r30, r2, 4; add.u32 r31, r30, r3; ld.shared.b32 r20, [r31+64];",
        "mul.lo.u32 r30, r2, 8; add.u32 r31, r30, r3; ld.shared.b64 d10, [r31];",
        "prefetch.global.L2 [a2]; prefetch.global.L1 [a2];",
        "prefetchu.L1 [a4];",
        "applypriority.global.L2::evict_normal [a2], 128;",
        "discard.global.L2 [a2], 128;",
        "prefetch.global.L2::evict_last [a2];",
        "prefetch.tensormap [a6];",
        "createpolicy.fractional.L2::evict_last.b64 d5, 1.0; ld.global.L2::cache_hint.b32 r20, [a2], d5;",
        "createpolicy.range.L2::evict_last.b64 d5, [a2], r10, r11; st.global.L2::cache_hint.b32 [a2], r10, d5;",
        "isspacep.shared p2, a4; isspacep.local p3, a4; isspacep.global p4, a4; selp.u32 r20, 1, 2, p2; selp.u32 r21, 1, 2, p3; selp.u32 r22, 3, 4, p4;",
        "cvta.to.shared.u64 a8, a4; cvt.u32.u64 r30, a8; ld.shared.b32 r20, [r30];",
        "mapa.shared::cluster.u32 r30, r4, r0; ld.shared::cluster.b32 r20, [r30]; st.shared::cluster.b32 [r30], r10;",
        "mapa.u64 a8, a4, r0; ld.b32 r20, [a8];",
        "getctarank.shared::cluster.u32 r20, r4;",
        "ld.shared::cluster.v4.b32 {r20,r21,r22,r23}, [r4]; atom.shared::cluster.add.u32 r24, [r4], r10;",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [r4], r10, [r3];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [r4], r10, [r3];",
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [r4], {r10,r11,r12,r13}, [r3];",
        "ld.weak.shared.v2.f64 {e10,e11}, [r4];",
        "ldu.global.b32 r20, [a2];",
        "alloca.u64 a8, 64; st.local.b32 [a8], r10;",
    ):
        found.append(extra)
    return found


def atomics() -> list[str]:
    found = []
    for space, address in (("global", "a2"), ("shared", "r4"), ("", "a4")):
        dot = f".{space}" if space else ""
        for op, kind in itertools.product(
            ("add", "min", "max", "and", "or", "xor", "inc", "dec", "exch"),
            ("u32", "s32", "b32", "u64", "s64", "b64", "f32", "f64"),
        ):
            wide = "64" in kind
            value, out = {"f32": ("f10", "f20"), "f64": ("e0", "e10")}.get(
                kind, ("d0", "d10") if wide else ("r10", "r20")
            )
            found.append(f"atom{dot}.{op}.{kind} {out}, [{address}], {value};")
            found.append(f"red{dot}.{op}.{kind} [{address}+4096], {value};")
        for kind, out, x, y in (
            ("b32", "r20", "r10", "r11"),
            ("b64", "d10", "d2", "d3"),
            ("b16", "h10", "h0", "h1"),
        ):
            found.append(f"atom{dot}.cas.{kind} {out}, [{address}], {x}, {y};")
            found.append(f"atom{dot}.acq_rel.sys.cas.{kind} {out}, [{address}+16], {x}, {y};")
        found.append(
            f"atom{dot}.add.noftz.f16x2 r20, [{address}], r10; red{dot}.add.noftz.bf16x2 [{address}], r10;"
        )
        found.append(
            f"atom{dot}.add.noftz.f16 h10, [{address}], h0; red{dot}.add.noftz.bf16 [{address}], h0;"
        )
        found.append(
            f"mov.b128 q0, {{d2,d3}}; atom{dot}.exch.b128 q1, [{address}], q0; mov.b128 {{d10,d11}}, q1;"
        )
        found.append(
            f"mov.b128 q0, {{d2,d3}}; atom{dot}.cas.b128 q1, [{address}], q0, q0; mov.b128 {{d10,d11}}, q1;"
        )
        found.append(f"red.release.gpu{dot}.add.u32 [{address}], 1;")
    found += [
        "red.global.add.v4.f32 [a2], {f10,f11,f12,f13};",
        "red.global.add.v2.f32 [a2], {f10,f11};",
        "atom.global.add.v4.f32 {f20,f21,f22,f23}, [a2], {f10,f11,f12,f13};",
        "red.global.v4.f16x2.add.noftz [a2], {r10,r11,r12,r13};",
        "red.global.add.noftz.v8.f16 [a2], {h0,h1,h0,h1,h0,h1,h0,h1};",
        "red.global.add.noftz.v4.bf16x2 [a2], {r10,r11,r12,r13};",
        "atom.global.add.noftz.v2.f16x2 {r20,r21}, [a2], {r10,r11};",
        "atom.global.min.noftz.v2.bf16x2 {r20,r21}, [a2], {r10,r11};",
        "multimem.ld_reduce.global.add.f32 f20, [a2];",
        "multimem.ld_reduce.global.add.v4.f32 {f20,f21,f22,f23}, [a2];",
        "multimem.ld_reduce.global.add.v4.bf16x2 {r20,r21,r22,r23}, [a2];",
        "multimem.ld_reduce.global.min.u64 d10, [a2];",
        "multimem.st.global.v4.f32 [a2], {f10,f11,f12,f13};",
        "multimem.red.global.add.v4.f32 [a2], {f10,f11,f12,f13};",
        "multimem.red.global.add.u64 [a2], d0;",
        "multimem.ld_reduce.global.add.f64 e10, [a2];",
        "multimem.ld_reduce.global.add.v2.f32 {f20,f21}, [a2];",
    ]
    return found
