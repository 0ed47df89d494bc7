"""A ready scene for the core writer: one faulting warp in one kernel, with knobs for each test."""

from __future__ import annotations

from typing import NamedTuple

from tests.support.core_writer import CoreWriter, stride_of


class Scene(NamedTuple):
    """Handles into the writer that tests add to."""

    writer: CoreWriter
    device: int
    grid_table: int
    warp_table: int
    lane_table: int


def simple_scene(
    *,
    release: int = 580,
    arch: tuple[int, int] = (9, 0),
    image: bytes = b"",
    pc: int | None = None,
    code: int = 14,
    lane_pc: int | None = None,
    exited: bool = False,
    registers: list[int] | None = None,
    function_entry: int = 0,
    memory: tuple[int, bytes | int] | None = None,
    sm_id: int = 7,
    lanes: int = 32,
    shared_bytes: int = 1024,
) -> Scene:
    """One device, context, module, grid, SM, block, warp.

    ``pc`` None = no fault at all. ``exited`` puts the fault into the SM row only, as for warps that
    had retired (needs release 555 or later). ``memory`` is (address, bytes or hole size).
    """
    w = CoreWriter(release)
    if memory is not None:
        w.section(".cudbg.global.0", 2, memory[1], address=memory[0])
    devices = w.table("device", "devtbl")
    devices.add(
        devName=w.string("Test GPU"), smType=w.string(f"sm_{arch[0]}{arch[1]}"), numSMs=8, numWarpsPerSM=48,
        numLanesPerWarp=32, numRegsPerLane=255, numPredicates=8, smMajor=arch[0], smMinor=arch[1], instructionSize=16,
    )  # fmt: skip
    contexts = w.table("context", "ctxtbl.dev0", devices.index, 0)
    contexts.add(contextId=0x1000, sharedWindowBase=0x7F0000000000, localWindowBase=0x7F0001000000)
    modules = w.table("module", "modtbl.dev0.ctx0", contexts.index, 0)
    modules.add(moduleHandle=0x2000)
    if image:
        w.section(".cudbg.relfimg.dev0.ctx0", 7, image, modules.index, 0)
    grids = w.table("grid", "gridtbl.dev0", devices.index, 0)
    grids.add(
        gridId64=5, contextId=0x1000, functionEntry=function_entry, moduleHandle=0x2000, numRegs=32,
        gridDimX=4, gridDimY=1, gridDimZ=1, blockDimX=lanes, blockDimY=1, blockDimZ=1,
    )  # fmt: skip
    sms = w.table("sm", "smtbl.dev0", devices.index, 0)
    fault_in_sm = pc is not None and (stride_of("sm", release) or 0) >= 24
    sm_fields = {"exception": code, "errorPCValid": 1, "errorPC": pc or 0} if fault_in_sm else {}
    sms.add(smId=sm_id, **sm_fields)
    ctas = w.table("cta", f"ctatbl.dev0.sm{sm_id}", sms.index, 0)
    if exited:
        return _finish(Scene(w, devices.index, grids.index, 0, 0))
    ctas.add(gridId64=5, blockIdxX=2)
    warps = w.table("warp", f"wptbl.dev0.sm{sm_id}.cta0", ctas.index, 0)
    mask = (1 << lanes) - 1
    faulted = pc is not None
    warps.add(
        errorPC=pc or 0, warpId=3, validLanes=mask, activeLanes=mask, errorPCValid=int(faulted), numRegs=32,
        sharedMemSize=shared_bytes,
    )  # fmt: skip
    table = w.table("lane", f"lntbl.dev0.sm{sm_id}.cta0.wp0", warps.index, 0)
    for lane in range(lanes):
        table.add(
            virtualPC=lane_pc if lane_pc is not None else (pc or 0) + 32, lane=lane, threadIdxX=lane,
            exception=code if faulted else 0,
        )  # fmt: skip
    for lane in range(lanes):
        w.words("regs", f"regs.ln{lane}", registers or list(range(16)), table.index, lane)
        w.words("pred", f"pred.ln{lane}", [0, 1, 0, 0, 0, 0, 0, 1], table.index, lane)
    return _finish(Scene(w, devices.index, grids.index, warps.index, table.index))


def _finish(scene: Scene) -> Scene:
    if stride_of("meta", scene.writer.release) is not None:
        meta = scene.writer.table("meta", "meta")
        meta.add(
            generatorName=scene.writer.string("test"),
            driverMajor=scene.writer.release,
            cudaMajor=13,
            unixTime=1_795_969_813,
        )
    return scene
