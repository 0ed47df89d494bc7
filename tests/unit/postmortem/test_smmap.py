"""The map of the GPU: what each SM held, who faulted, and what an address can be measured against."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from crashlab import facts
from crashlab.gpucore.dump import CoreDump
from crashlab.postmortem.smmap import gpus
from tests.support import corpus
from tests.support.mutate import mutate
from tests.support.scene import simple_scene

NOTHING = facts.Verdict("gpu-fault", "x")


def of_scene(tmp_path: Path, **knobs: object) -> CoreDump:
    path = tmp_path / "x.core"
    path.write_bytes(simple_scene(**knobs).writer.build())  # type: ignore[arg-type]
    return CoreDump.open(path)


def test_a_faulting_warp_gives_its_sm_block_and_masks(tmp_path: Path) -> None:
    (gpu,) = gpus(of_scene(tmp_path, pc=0x1230, lanes=8), NOTHING)
    assert (gpu.name, gpu.arch, gpu.sm_count) == ("Test GPU", "sm_90", 8)
    assert gpu.sms == (facts.SmState(7, 1, 1, (), "Warp Illegal Address"),)
    assert gpu.warps == (
        facts.WarpState(7, 3, facts.Dim3(2, 0, 0), facts.Hex(0xFF), facts.Hex(0xFF), facts.Hex(0xFF)),
    )


def test_an_exited_warp_leaves_its_sm_marked(tmp_path: Path) -> None:
    (gpu,) = gpus(of_scene(tmp_path, pc=0x1230, exited=True), NOTHING)
    assert gpu.sms == (facts.SmState(7, 0, 0, (), "Warp Illegal Address"),)
    assert gpu.warps == ()


def test_without_a_fault_nothing_is_marked(tmp_path: Path) -> None:
    (gpu,) = gpus(of_scene(tmp_path), NOTHING)
    assert gpu.sms == (facts.SmState(7, 1, 1),)
    assert gpu.warps == ()


def test_dumped_memory_is_a_landmark_on_the_verdicts_device_only(tmp_path: Path) -> None:
    dump = of_scene(tmp_path, pc=0x1230, memory=(0x7F0000000000, 4096))
    assert gpus(dump, NOTHING)[0].landmarks == ()
    verdict = NOTHING._replace(where=facts.Where(0))
    assert gpus(dump, verdict)[0].landmarks == (
        facts.Landmark("dumped allocation", facts.Hex(0x7F0000000000), 4096),
    )


def test_two_devices_are_two_maps() -> None:
    found = gpus(CoreDump.open(corpus.path("two_devices")), NOTHING)
    assert [g.device for g in found] == [0, 1]
    assert [bool([s for s in g.sms if s.exception]) for g in found] == [False, True]


def test_kernels_are_named_and_arguments_are_landmarks() -> None:
    dump = CoreDump.open(corpus.path("torch_triton"))
    grid = dump.grids[0]
    launch = facts.Launch(grid_id=grid.grid_id)
    verdict = NOTHING._replace(where=facts.Where(0), kernel=facts.Kernel("x", "x", launch))
    (gpu,) = gpus(dump, verdict)
    assert gpu.kernels == ("fused_silu_gate",)
    assert [m.label for m in gpu.landmarks if m.label.startswith("argument")]
    assert all(k < len(gpu.kernels) for s in gpu.sms for k in s.kernels)


@pytest.mark.parametrize("seed", range(40))
def test_damaged_dumps_give_a_map_or_an_error_of_ours(seed: int, tmp_path: Path) -> None:
    from crashlab.errors import CrashlabError

    path = tmp_path / "bad.core"
    path.write_bytes(mutate(corpus.raw(corpus.SMALL[seed % len(corpus.SMALL)]), seed))
    with suppress(CrashlabError):
        gpus(CoreDump.open(path), NOTHING._replace(where=facts.Where(0)))
