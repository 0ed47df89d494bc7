# ruff: noqa: E501
"""Warp-wide operations, arithmetic and conversions in PTX."""

from __future__ import annotations

import itertools


def warp() -> list[str]:
    found = [
        *(
            f"shfl.sync.{mode}.b32 r20|p2, r10, {lane}, {clamp}, {mask}; selp.u32 r21, 1, 2, p2;"
            for mode in ("up", "down", "bfly", "idx")
            for lane, clamp, mask in (("1", "0x1f", "-1"), ("r11", "0x1f", "r12"), ("r11", "r12", "-1"))
        ),
        *(
            f"vote.sync.{mode}.pred p2, p0, {mask}; selp.u32 r20, 1, 2, p2;"
            for mode in ("all", "any", "uni")
            for mask in ("-1", "r10")
        ),
        "vote.sync.ballot.b32 r20, p0, -1;",
        "vote.sync.ballot.b32 r20, !p0, r10;",
        "match.any.sync.b32 r20, r10, -1;",
        "match.any.sync.b64 r20, d0, r10;",
        "match.all.sync.b32 r20|p2, r10, -1; selp.u32 r21, 1, 2, p2;",
        "match.all.sync.b64 r20|p2, d0, r10; selp.u32 r21, 1, 2, p2;",
        *(
            f"redux.sync.{op}.{kind} r20, r10, -1;"
            for op, kind in (
                ("add", "u32"),
                ("min", "s32"),
                ("max", "u32"),
                ("and", "b32"),
                ("xor", "b32"),
                ("or", "b32"),
            )
        ),
        *(f"redux.sync.{op}.f32 f20, f10, -1;" for op in ("min", "max", "min.abs", "max.NaN")),
    ]
    for name in (
        "tid.y",
        "ntid.x",
        "ctaid.x",
        "ctaid.z",
        "nctaid.x",
        "laneid",
        "warpid",
        "nwarpid",
        "smid",
        "nsmid",
        "lanemask_eq",
        "lanemask_lt",
        "lanemask_ge",
        "clock",
        "clock_hi",
        "pm0",
        "cluster_ctaid.x",
        "cluster_ctarank",
        "cluster_nctaid.y",
        "clusterid.x",
        "nclusterid.x",
        "total_smem_size",
        "dynamic_smem_size",
        "aggr_smem_size",
        "is_explicit_cluster",
    ):
        register = "r20"
        found.append(
            f"mov.u32 {register}, %{name};"
            if name != "is_explicit_cluster"
            else "mov.pred p2, %is_explicit_cluster; selp.u32 r20,1,2,p2;"
        )
    for name in ("clock64", "globaltimer", "gridid", "current_graph_exec", "pm0_64"):
        found.append(f"mov.u64 d10, %{name};")
    return found


def arithmetic() -> list[str]:
    found = []
    for op in ("add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"):
        for kind, x, y, out in (
            ("u32", "r10", "r11", "r20"),
            ("s32", "r10", "r11", "r20"),
            ("u64", "d2", "d3", "d10"),
            ("s64", "d2", "d3", "d10"),
            ("u16", "h0", "h1", "h10"),
        ):
            found.append(f"{op}.{kind} {out}, {x}, {y};")
            if kind[1:] != "16":
                found.append(f"{op}.{kind} {out}, {x}, 12345;")
    for kind in ("u32", "s32"):
        found += [
            f"mul.wide.{kind} d10, r10, r11;",
            f"mad.wide.{kind} d10, r10, r11, d2;",
            f"mad.hi.{kind} r20, r10, r11, r12;",
            f"mad24.lo.{kind} r20, r10, r11, r12;",
            f"sad.{kind} r20, r10, r11, r12;",
            f"mad.wide.{kind} d10, r0, 4, a0;",
            f"dp4a.{kind}.{kind} r20, r10, r11, r12;",
            f"dp2a.lo.{kind}.{kind} r20, r10, r11, r12;",
            f"bfe.{kind} r20, r10, r11, r12;",
            f"shr.{kind} r20, r10, r11;",
            f"bfind.{kind} r20, r10;",
            f"bfe.{kind.replace('32', '64')} d10, d2, 3, 9;",
        ]
    found += [
        "abs.s32 r20, r10; neg.s32 r21, r11; abs.s64 d10, d2; neg.s64 d11, d3;",
        "popc.b32 r20, r10; popc.b64 r21, d2;",
        "clz.b32 r20, r10; clz.b64 r21, d2;",
        "brev.b32 r20, r10; brev.b64 d10, d2;",
        "bfi.b32 r20, r10, r11, r12, r13; bfi.b64 d10, d2, d3, 3, 9;",
        "fns.b32 r20, r10, r11, 3;",
        "bmsk.clamp.b32 r20, r10, r11; szext.wrap.s32 r21, r10, r11;",
        "lop3.b32 r20, r10, r11, r12, 0x96;",
        "lop3.or.b32 r20|p2, r10, r11, r12, 0x3f, p0; selp.u32 r21, 1, 2, p2;",
        "prmt.b32 r20, r10, r11, r12; prmt.b32.f4e r21, r10, r11, r12;",
        "shf.l.wrap.b32 r20, r10, r11, r12; shf.r.clamp.b32 r21, r10, r11, 7;",
        "shl.b32 r20, r10, r11; shl.b64 d10, d2, r11; shr.u64 d11, d3, r11;",
        "shr.s64 d11, d3, 7; shl.b64 d10, d2, 5;",
        "and.b32 r20, r10, r11; or.b64 d10, d2, d3; xor.b32 r21, r10, 255; not.b32 r22, r10;",
        "add.cc.u32 r20, r10, r11; addc.cc.u32 r21, r12, r13; addc.u32 r22, r14, r15;",
        "sub.cc.u32 r20, r10, r11; subc.u32 r21, r12, r13;",
        "mad.lo.cc.u32 r20, r10, r11, r12; madc.hi.u32 r21, r13, r14, r15;",
        "add.sat.s32 r20, r10, r11; cnot.b32 r21, r10;",
        "vadd.u32.u32.u32.sat r20, r10.b0, r11.h1; vabsdiff.s32.u32.u32.add r21, r10, r11, r12;",
        "vabsdiff4.u32.u32.u32.add r20, r10, r11, r12; vmax2.s32.s32.s32 r21, r10, r11, r12;",
        "vadd4.u32.u32.u32 r20, r10, r11, r12; vset4.u32.u32.lt r21, r10, r11, r12;",
        "selp.b64 d10, d2, d3, p0; slct.s32.s32 r20, r10, r11, r12; slct.b64.f32 d11, d2, d3, f0;",
        "setp.lt.s64 p2, d2, d3; setp.ge.or.u32 p3|p4, r10, r11, p0; selp.u32 r20,1,2,p2; selp.u32 r21,3,4,p3; selp.u32 r22,3,4,p4;",
        "set.lt.u32.f32 r20, f10, f11; set.gt.f32.s32 f20, r10, r11;",
        "setp.lt.u64 p2, d2, 77; setp.eq.s64.and p2, d3, d2, p2; selp.u32 r20,1,2,p2;",
        "min.u16x2 r20, r10, r11; max.s16x2 r21, r10, r11; add.u16x2 r22, r10, r11;",
        "min.s32.relu r20, r10, r11; add.s32 r30, r10, r11; max.s32 r21, r30, r12;",
        "max.s32 r30, r10, r11; max.s32 r20, r30, r12; min.u32 r31, r10, r11; min.u32 r21, r31, r12;",
        "mov.b32 r20, {h0,h1}; mov.b64 {r21,r22}, d2;",
        "mov.b64 d10, {r10,r11};",
        "and.pred p2, p0, p1; xor.pred p3, p2, p0; selp.u32 r20,1,2,p2; selp.u32 r21,1,2,p3;",
        "not.pred p2, p0; selp.u32 r20,1,2,p2;",
    ]
    for kind, x, y, z, out in (
        ("f32", "f10", "f11", "f12", "f20"),
        ("f64", "e0", "e1", "e2", "e10"),
        ("f16x2", "r10", "r11", "r12", "r20"),
        ("bf16x2", "r10", "r11", "r12", "r20"),
        ("f16", "h0", "h1", "h1", "h10"),
        ("bf16", "h0", "h1", "h1", "h10"),
        ("f32x2", "d2", "d3", "d0", "d10"),
    ):
        found += [
            f"add.{kind} {out}, {x}, {y};",
            f"sub.rn.{kind} {out}, {x}, {y};",
            f"mul.{kind} {out}, {x}, {y};",
            f"fma.rn.{kind} {out}, {x}, {y}, {z};",
            f"min.{kind} {out}, {x}, {y};",
            f"max.NaN.{kind} {out}, {x}, {y};",
            f"abs.{kind} {out}, {x};",
            f"neg.{kind} {out}, {x};",
            f"min.{kind} {out}, {x}, {y}, {z};",
            f"max.xorsign.abs.{kind} {out}, {x}, {y};",
            f"fma.rn.relu.{kind} {out}, {x}, {y}, {z};",
            f"fma.rn.ftz.sat.{kind} {out}, {x}, {y}, {z};",
        ]
        if kind in ("f32", "f64", "f16", "bf16"):
            found += [
                f"setp.lt.{kind} p2, {x}, {y}; selp.u32 r20,1,2,p2;",
                f"setp.num.and.{kind} p2, {x}, {y}, p0; selp.u32 r20,1,2,p2;",
                f"selp.{kind.replace('f16', 'b16').replace('bb', 'b')} {out}, {x}, {y}, p0;",
            ]
            found += [f"ex2.approx.ftz.{kind} {out}, {x};", f"tanh.approx.{kind} {out}, {x};"]
        if kind in ("f32", "f64"):
            found += [
                f"div.rn.{kind} {out}, {x}, {y};",
                f"sqrt.rn.{kind} {out}, {x};",
                f"rcp.rn.{kind} {out}, {x};",
                f"rsqrt.approx.{kind} {out}, {x};",
                f"copysign.{kind} {out}, {x}, {y};",
                f"testp.finite.{kind} p2, {x}; selp.u32 r20,1,2,p2;",
            ]
        if kind in ("f16x2", "bf16x2"):
            found += [
                f"setp.lt.{kind} p2|p3, r10, r11; selp.u32 r20,1,2,p2; selp.u32 r21,1,2,p3;",
                f"set.lt.{kind}.{kind} r20, r10, r11;",
                f"ex2.approx.ftz.{kind} r20, r10;",
                f"tanh.approx.{kind} r20, r10;",
                f"set.lt.u32.{kind} r20, r10, r11;",
            ]
    found += [
        "sin.approx.f32 f20, f10; cos.approx.f32 f21, f11; lg2.approx.f32 f22, f12;",
        "div.full.f32 f20, f10, f11; rcp.approx.ftz.f32 f21, f10; sqrt.approx.f32 f22, f11;",
        "rcp.approx.ftz.f64 e10, e0; rsqrt.approx.ftz.f64 e11, e1;",
        "add.rz.f32 f20, f10, 0f3F800000; fma.rp.f32 f21, f10, f11, f12;",
        "fma.rn.f64 e10, e0, 0d3FF8000000000000, e1;",
        "add.f32 f20, f10, 0f42280000; mul.sat.f32 f21, f10, 0f3F000000;",
        "min.ftz.NaN.f32 f30, f10, f11; max.ftz.f32 f20, f30, f12;",
    ]
    return found


def conversions() -> list[str]:
    regs = {
        "u8": "r",
        "s8": "r",
        "u16": "h",
        "s16": "h",
        "u32": "r",
        "s32": "r",
        "u64": "d",
        "s64": "d",
        "f16": "h",
        "bf16": "h",
        "f32": "f",
        "f64": "e",
    }
    src = {"r": "r10", "h": "h0", "d": "d2", "f": "f10", "e": "e0"}
    out = {"r": "r20", "h": "h10", "d": "d10", "f": "f20", "e": "e10"}
    found = []
    for x, y in itertools.product(regs, repeat=2):
        to_float, from_float = "f" in x, "f" in y
        mode = (
            ".rni"
            if from_float and not to_float
            else ".rn"
            if to_float and not (from_float and x >= y)
            else ""
        )
        found.append(f"cvt{mode}.{x}.{y} {out[regs[x]]}, {src[regs[y]]};")
        if from_float and to_float:
            found.append(f"cvt.rn.{x}.{y} {out[regs[x]]}, {src[regs[y]]};")
        if x == y and from_float:
            found.append(f"cvt.rmi.{x}.{y} {out[regs[x]]}, {src[regs[y]]};")
        if not to_float:
            found.append(f"cvt.{'rzi.' if from_float else ''}sat.{x}.{y} {out[regs[x]]}, {src[regs[y]]};")
    found += [
        f"cvt.rn.satfinite.{small}x2.f32 h10, f10, f11; cvt.rn.f16x2.{small}x2 r20, h0;"
        for small in ("e4m3", "e5m2")
    ]
    found += [f"cvt.rn.satfinite.{small}x2.f16x2 h10, r10;" for small in ("e4m3", "e5m2")]
    found += [f"cvt.rn.satfinite.{small}x2.f32 h10, f10, f11;" for small in ("e2m3", "e3m2")] + [
        "cvt.rn.satfinite.e2m1x2.f32 c0, f10, f11; mov.b16 h10, {c0, c0};"
    ]
    found += [
        "cvt.rn.f16x2.f32 r20, f10, f11; cvt.rn.bf16x2.f32 r21, f10, f11;",
        "cvt.rn.relu.bf16x2.f32 r20, f10, f11; cvt.rz.f16x2.f32 r21, f10, f11;",
        "cvt.rna.tf32.f32 r20, f10; cvt.rn.tf32.f32 r21, f11;",
        "cvt.rs.f16x2.f32 r20, f10, f11, r10;",
        "cvt.rs.satfinite.e4m3x4.f32 r20, {f10,f11,f12,f13}, r10;",
        "cvt.rp.satfinite.ue8m0x2.f32 h10, f10, f11; cvt.rn.bf16x2.ue8m0x2 r20, h0;",
        "cvt.pack.sat.u8.s32.b32 r20, r10, r11, r12; cvt.pack.sat.s16.s32 r21, r10, r11;",
        "cvt.pack.sat.u4.s32.b32 r20, r10, r11, r12;",
    ]
    return found
