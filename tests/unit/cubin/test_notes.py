"""The maker and the architecture of an image."""

from __future__ import annotations

import struct

import pytest

from crashlab.cubin.image import Cubin
from crashlab.cubin.notes import Toolchain, producer
from tests.support import corpus
from tests.unit.cubin.images import Part, assemble, cubin, holding


def note(kind: int, text: bytes, owner: bytes = b"NVIDIA Corp\0") -> bytes:
    pad = bytes(-len(owner) % 4), bytes(-len(text) % 4)
    return struct.pack("<III", len(owner), len(text), kind) + owner + pad[0] + text + pad[1]


def tkinfo(tool: bytes, version: bytes, build: bytes, options: bytes) -> bytes:
    strings, offsets = b"\0", []
    for text in (tool, version, build, options):
        offsets.append(len(strings) if text else 0)
        strings += text + b"\0" if text else b""
    return note(2000, struct.pack("<6I", 2, 0, *offsets) + strings)


def made(*parts: Part, flags: int = 0x06005A04, abi: int = 8) -> Cubin:
    return Cubin(memoryview(assemble(list(parts), flags=flags, abi=abi)))


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("shapes_sm_75", "sm_75"),
        ("shapes_sm_80", "sm_80"),
        ("shapes_sm_90", "sm_90"),
        ("shapes_sm_90a", "sm_90a"),
        ("shapes_sm_100f", "sm_100f"),
        ("shapes_sm_120", "sm_120"),
        ("shapes_sm_120_debug", "sm_120"),
        ("shapes_sm_90_object", "sm_90"),
    ],
)
def test_built_images_name_their_architecture_and_their_compiler(name: str, arch: str) -> None:
    image = cubin(name)
    assert image.arch == arch
    assert image.compiler == "ptxas 13.0, V13.0.88"
    assert image.toolchain is not None
    assert image.toolchain.toolkit == "13.0"
    assert f"-arch {arch}" in (image.toolchain.options or "")
    assert image.toolchain.build == "Build cuda_13.0.r13.0/compiler.36424714_0"


@pytest.mark.parametrize(
    ("dump", "arch", "compiler"),
    [
        ("oob_store", "sm_90a", "ptxas 13.0, V13.0.88"),
        ("seed_sm120", "sm_120", "ptxas 13.0, V13.0.88"),
        ("torch_triton", "sm_90a", None),  # ABI 7 and no notes: ptxas 12.8
        ("torch_gather", "sm_90", "ptxas 13.0, V13.0.88"),
    ],
)
def test_images_of_real_dumps(dump: str, arch: str, compiler: str | None) -> None:
    image = holding(dump, int(corpus.manifest()[dump]["expect"]["pc"], 16))
    assert image is not None
    assert image.arch == arch
    assert image.compiler == compiler


@pytest.mark.parametrize(
    ("flags", "abi", "arch"),
    [
        (0x5A055A, 7, "sm_90"),
        (0x5A0D5A, 7, "sm_90a"),
        (0x500550, 7, "sm_80"),
        (0x06005A04, 8, "sm_90"),
        (0x06006402, 8, "sm_100"),
        (0x0600640A, 8, "sm_100a"),
        (0x06007902, 8, "sm_121"),
        (0, 7, None),
        (0, 8, None),
    ],
)
def test_flags_of_both_generations(flags: int, abi: int, arch: str | None) -> None:
    assert made(flags=flags, abi=abi).arch == arch


def test_an_option_for_another_gpu_lends_no_suffix() -> None:
    options = tkinfo(b"ptxas", b"Cuda compilation tools, release 13.1, V13.1.2", b"", b"-arch=sm_100a")
    assert made(Part(".note.nv.tkinfo", 7, options)).arch == "sm_90"
    right = tkinfo(b"ptxas", b"", b"", b"-v --gpu-name=sm_90a")
    assert made(Part(".note.nv.tkinfo", 7, right)).arch == "sm_90a"


def test_fields_that_are_empty_are_none() -> None:
    text = tkinfo(b"nvlink", b"", b"", b" ")
    assert made(Part(".note.nv.tkinfo", 7, text)).toolchain == Toolchain(tool="nvlink")
    assert made(Part(".note.nv.tkinfo", 7, text)).compiler == "nvlink"
    odd = tkinfo(b"ptxas", b"some version", b"", b"")
    assert made(Part(".note.nv.tkinfo", 7, odd)).compiler == "ptxas some version"


def test_a_toolkit_alone_is_said_as_such() -> None:
    image = made(Part(".note.nv.cuinfo", 7, note(1000, struct.pack("<HHI", 2, 90, 131))))
    assert image.toolchain == Toolchain(toolkit="13.1")
    assert image.compiler == "CUDA 13.1"
    odd = made(Part(".note.nv.cuinfo", 7, note(1000, struct.pack("<HHI", 2, 90, 7))))
    assert odd.toolchain is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0c",
        note(2000, b"short"),
        note(2000, bytes(24), owner=b"Someone\0"),
        note(77, bytes(40)),
        struct.pack("<III", 12, 1 << 30, 2000) + b"NVIDIA Corp\0",
        struct.pack("<III", 1 << 31, 4, 2000) + b"NVIDIA Corp\0",
        note(2000, struct.pack("<6I", 2, 0, 9999, 9999, 9999, 9999)),
    ],
)
def test_notes_that_lie_say_nothing(data: bytes) -> None:
    image = made(Part(".note.nv.tkinfo", 7, data), Part(".note.nv.cuinfo", 7, data))
    assert image.compiler is None
    assert image.arch == "sm_90"


def test_the_front_end_stands_in_the_debug_information() -> None:
    assert producer(cubin("shapes_sm_90_debug").elf) == "lgenfe: EDG 6.6"
    assert producer(cubin("shapes_sm_90").elf) is None
    comment = made(Part(".comment", 1, b"\0clang version 20.0\0more\0"))
    assert comment.compiler == "clang version 20.0"
    for junk in (b"\1\2\3\4\5", b"ab", bytes(20), b'\xe7"\0\0\x09\0\0\0\0\0\x08\x01text\0'):
        assert made(Part(".debug_info", 1, junk)).compiler is None
