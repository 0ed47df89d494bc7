# ruff: noqa: E501
"""Asynchronous and tensor copies, barriers, textures and surfaces in PTX."""

from __future__ import annotations


def copies() -> list[str]:
    found = []
    for size, cache in (("4", "ca"), ("8", "ca"), ("16", "ca"), ("16", "cg")):
        found.append(f"cp.async.{cache}.shared.global [r4], [a2], {size};")
        found.append(f"cp.async.{cache}.shared.global [r4+16], [a2+64], {size}, r10;")
        found.append(f"cp.async.{cache}.shared.global.L2::256B [r4], [a3+-16], {size}, p0;")
    found += [
        "cp.async.commit_group; cp.async.wait_group 1; cp.async.wait_all;",
        "cp.async.mbarrier.arrive.shared.b64 [r4];",
        "cp.async.mbarrier.arrive.noinc.shared.b64 [r4];",
    ]
    for n in range(1, 6):
        coordinates = "{" + ",".join(f"r{10 + i}" for i in range(n)) + "}"
        for mode in ("", ".im2col"):
            if mode and n < 3:
                continue
            offsets = ", {" + ",".join(f"h{i}" for i in range(n - 2)) + "}" if mode else ""
            head = f"cp.async.bulk.tensor.{n}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes"
            found.append(f"{head} [r4], [a6, {coordinates}], [r3]{offsets};")
            found.append(f"{head}.multicast::cluster [r4], [a6, {coordinates}], [r3]{offsets}, h0;")
            found.append(f"{head}.L2::cache_hint [r4], [a6, {coordinates}], [r3]{offsets}, d0;")
            found.append(f"cp.async.bulk.prefetch.tensor.{n}d.L2.global{mode} [a6, {coordinates}]{offsets};")
            if mode:
                mode = ".im2col_no_offs"
            store = mode or ".tile"
            found.append(
                f"cp.async.bulk.tensor.{n}d.global.shared::cta{store}.bulk_group [a6, {coordinates}], [r4];"
            )
            found.append(
                f"cp.async.bulk.tensor.{n}d.global.shared::cta{store}.bulk_group.L2::cache_hint [a6, {coordinates}], [r4], d0;"
            )
            for op in ("add", "min", "max", "inc", "and", "xor"):
                found.append(
                    f"cp.reduce.async.bulk.tensor.{n}d.global.shared::cta.{op}{store}.bulk_group [a6, {coordinates}], [r4];"
                )
    found += [
        "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes [r4], [a6, {r10,r11,r12,r13,r14}], [r3];",
        "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [a6, {r10,r11,r12,r13,r14}], [r4];",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [a6, {r10,r11,r12,r13,r14}];",
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes [r4], [a6, {r10,r11,r12,r13}], [r3], {h0,h1};",
        "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [r4], [a6, {r10,r11}], [r3];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r4], [a2], r10, [r3];",
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [r4], [a2], r10, [r3];",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [r4], [a2], r10, [r3], h0;",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [r4], [a2], r10, [r3], d0;",
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [r4], [r3], r10, [r5];",
        "cp.async.bulk.global.shared::cta.bulk_group [a2], [r4], r10;",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [a2], [r4], r10, d0;",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [a2], [r4], r10, h0;",
        "cp.async.bulk.prefetch.L2.global [a2], r10;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [a2], [r4], r10;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [a2], [r4], r10;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16 [a2], [r4], r10;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.min.s64 [a2], [r4], r10;",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u64 [r4], [r3], r10, [r5];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.inc.u32 [r4], [r3], r10, [r5];",
        "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 1;",
        "tensormap.replace.tile.global_address.global.b1024.b64 [a2], d0; tensormap.replace.tile.rank.global.b1024.b32 [a2], 3;",
        "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [r4], 1, r10;",
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [r4], 1, r10;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [a2], [r4], 128;",
        "fence.proxy.tensormap::generic.acquire.gpu [a6], 128; fence.proxy.tensormap::generic.release.gpu;",
    ]
    return found


def synchronisation() -> list[str]:
    return [
        "mbarrier.init.shared.b64 [r4], 7; mbarrier.inval.shared.b64 [r4];",
        "mbarrier.init.shared.b64 [r4], r10;",
        "mbarrier.arrive.shared.b64 d10, [r4];",
        "mbarrier.arrive.shared.b64 _, [r4], r10;",
        "mbarrier.arrive.noComplete.shared.b64 d10, [r4], 3;",
        "mbarrier.arrive_drop.shared.b64 d10, [r4];",
        "mbarrier.arrive_drop.shared.b64 d10, [r4], r10;",
        "mbarrier.arrive.expect_tx.shared.b64 d10, [r4], r10;",
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [r4];",
        "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [r4], r10;",
        "mbarrier.arrive.release.cta.shared::cta.b64 d10, [r4], r11;",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [r4], r10;",
        "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [r4], r10;",
        "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [r4], r10;",
        "mbarrier.test_wait.shared.b64 p2, [r4], d0; selp.u32 r20, 1, 2, p2;",
        "mbarrier.try_wait.shared.b64 p2, [r4], d0; selp.u32 r20, 1, 2, p2;",
        "mbarrier.try_wait.parity.shared.b64 p2, [r4], r10; selp.u32 r20, 1, 2, p2;",
        "mbarrier.try_wait.parity.shared.b64 p2, [r4], r10, r11; selp.u32 r20, 1, 2, p2;",
        "mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 p2, [r4], r10; selp.u32 r20, 1, 2, p2;",
        "mbarrier.pending_count.b64 r20, d0;",
        "mbarrier.test_wait.parity.b64 p2, [a4], r10; selp.u32 r20, 1, 2, p2; mbarrier.arrive.b64 d10, [a4];",
        "bar.sync 0;",
        "bar.sync 3, 64;",
        "bar.sync r0;",
        "bar.sync r0, r1;",
        "bar.arrive 2, 64;",
        "bar.arrive r0, r1;",
        "bar.red.popc.u32 r20, 0, p0;",
        "bar.red.and.pred p2, 1, 64, p0; selp.u32 r20, 1, 2, p2;",
        "bar.red.or.pred p2, r0, p1; selp.u32 r20, 1, 2, p2;",
        "bar.warp.sync r10;",
        "bar.warp.sync 0xffffffff;",
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
        "barrier.cluster.arrive.release; barrier.cluster.wait.acquire;",
        "barrier.sync r0; barrier.arrive r0, 64;",
        "membar.gl; membar.sys; membar.cta;",
        "fence.sc.cluster; fence.acq_rel.gpu;",
        "fence.proxy.async; fence.proxy.async.shared::cta; fence.proxy.alias;",
        "fence.mbarrier_init.release.cluster;",
        "nanosleep.u32 r10; nanosleep.u32 100;",
        "griddepcontrol.wait; griddepcontrol.launch_dependents;",
        "setmaxnreg.inc.sync.aligned.u32 128;",
        "setmaxnreg.dec.sync.aligned.u32 40;",
        "elect.sync r20|p2, r10; selp.u32 r21, 1, 2, p2;",
        "elect.sync _|p2, -1; selp.u32 r21, 1, 2, p2;",
        "activemask.b32 r20;",
        "trap;",
        "brkpt;",
        "exit;",
        "pmevent 7;",
        "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [r4], [r3];",
        "ld.shared.b128 q0, [r4]; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p2, q0; selp.u32 r20, 1, 2, p2;",
        "ld.shared.b128 q0, [r4]; clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {r20,r21,r22,r23}, q0;",
        "stacksave.u64 a8; stackrestore.u64 a8; mov.u64 d10, a8;",
    ]


def textures() -> list[str]:
    found = []
    for geometry, coordinates in (
        ("1d", "{f10}"),
        ("2d", "{f10,f11}"),
        ("3d", "{f10,f11,f12,f12}"),
        ("a2d", "{r10,f10,f11,f11}"),
        ("cube", "{f10,f11,f12,f12}"),
        ("a1d", "{r10,f10}"),
    ):
        found.append(f"tex.{geometry}.v4.f32.f32 {{f20,f21,f22,f23}}, [tref, {coordinates}];")
        found.append(f"tex.{geometry}.v4.f32.f32 {{f20,f21,f22,f23}}, [d0, {coordinates}];")
        found.append(f"tex.level.{geometry}.v4.f32.f32 {{f20,f21,f22,f23}}, [d0, {coordinates}], f13;")
        if geometry in ("1d", "2d"):
            grad = "{f14}, {f15}" if geometry == "1d" else "{f14,f15}, {f16,f17}"
            found.append(f"tex.grad.{geometry}.v4.f32.f32 {{f20,f21,f22,f23}}, [d0, {coordinates}], {grad};")
    found += [
        "tex.1d.v4.s32.s32 {r20,r21,r22,r23}, [d0, {r10}];",
        "tex.2d.v4.f32.s32 {f20,f21,f22,f23}, [d0, {r10,r11}];",
        "tld4.r.2d.v4.f32.f32 {f20,f21,f22,f23}, [d0, {f10,f11}];",
        "txq.width.b32 r20, [d0]; txq.array_size.b32 r21, [d0];",
        "suq.width.b32 r20, [d0];",
        "tex.2d.v2.f16.f32 {h10,h11}, [d0, {f10,f11}];",
        "tex.2d.v4.f16.f32 {h10,h11,h12,h13}, [d0, {f10,f11}];",
    ]
    for geometry, coordinates in (
        ("1d", "{r10}"),
        ("2d", "{r10,r11}"),
        ("3d", "{r10,r11,r12,r12}"),
        ("a2d", "{r10,r11,r12,r12}"),
    ):
        for clamp in ("trap", "zero", "clamp"):
            found.append(
                f"suld.b.{geometry}.b32.{clamp} r20, [d0, {coordinates}]; sust.b.{geometry}.b32.{clamp} [d0, {coordinates}], r14;"
            )
            found.append(
                f"suld.b.{geometry}.v4.b32.{clamp} {{r20,r21,r22,r23}}, [d0, {coordinates}]; sust.b.{geometry}.v4.b32.{clamp} [sref, {coordinates}], {{r13,r14,r15,r16}};"
            )
            found.append(
                f"suld.b.{geometry}.b64.{clamp} d10, [d0, {coordinates}]; sust.b.{geometry}.v2.b64.{clamp} [d0, {coordinates}], {{d2,d3}};"
            )
            found.append(f"suld.b.{geometry}.b8.{clamp} r20, [d0, {coordinates}];")
        found.append(
            f"sured.b.add.{geometry}.u32.trap [d0, {coordinates}], r14; sured.b.min.{geometry}.s64.trap [d0, {coordinates}], d2;"
        )
        found.append(f"sust.p.{geometry}.v4.b32.trap [d0, {coordinates}], {{r13,r14,r15,r16}};")
    return found
