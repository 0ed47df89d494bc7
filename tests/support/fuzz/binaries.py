"""Targets that read bytes of the GPU: dumps, code images, line tables, instruction words, names."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path

from crashlab.errors import CrashlabError
from tests.support import corpus
from tests.support.fuzz import blindly
from tests.support.fuzz.target import Target, fixtures
from tests.support.mutate import mutate

_DUMPS = (
    "oob_load", "oob_store", "shared_oob", "stack", "hang", "tma", "seed_sm120", "barrier_hang", "assert",
    "badpc", "deep", "oob_load_debug", "many", "two_devices", "trap", "graph_full", "shared_oob_full",
    "torch_gather",
)  # fmt: skip
_ARCHES = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_103", "sm_120")


_TEXT = re.compile(rb"[ -~]{4,}")


def _respell(data: bytes, rng: random.Random) -> bytes:
    """Names of kernels, files, chips and drivers that are none: texts of the dump written over, lengths kept."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 4, 30))):
        start = rng.randrange(len(out))
        found = list(_TEXT.finditer(out[start : start + 4096]))
        if found:
            word = rng.choice(found)
            size = word.end() - word.start()
            new = blindly.encode(rng.choice((*blindly.STRINGS, *blindly.NUMBERS)))[:size]
            keep = rng.choice((0, size - len(new)))  # at the word's end or in place of all of it
            text = (word[0][:keep] + new).ljust(size, rng.choice((b"\0", b"A", b"_")))
            out[start + word.start() : start + word.end()] = text[:size]
    return bytes(out)


def _dump(rng: random.Random) -> bytes:
    data, how = corpus.raw(rng.choice(_DUMPS)), rng.random()
    if how < 0.3:
        return blindly.damage(data, rng, [corpus.raw(rng.choice(_DUMPS))])
    if how < 0.5:
        return _respell(data, rng)
    with suppress(struct.error, ValueError, IndexError, OverflowError):
        return mutate(data, rng.getrandbits(60))
    return data[: len(data) // 2]


def _analyze(case: bytes, place: Path) -> None:
    from crashlab.report import build, html, jsonio, markdown, text
    from crashlab.report.options import AnalyzeOptions

    path = place / "damaged.core"
    path.write_bytes(case)
    with suppress(CrashlabError):
        report = build.analyze([path], AnalyzeOptions(sass_by="native", debugger="never"))
        assert report.verdict.headline
        text.render(report, verbose=True)
        assert jsonio.loads(jsonio.dumps(report)).verdict.kind == report.verdict.kind
        if len(case) % 4 == 0:
            html.render(report)
            markdown.render(report)


def _inspect(case: bytes, place: Path) -> None:
    """Every view of ``crashlab inspect``."""
    from crashlab.gpucore.dump import CoreDump
    from crashlab.inspection import code, layout_views, memory, state
    from crashlab.inspection.select import Focus
    from crashlab.postmortem.disassembly import Disassembly

    with suppress(CrashlabError):
        dump = CoreDump(memoryview(case))
        focus, faulting = Focus(), Focus(faulting=True)
        views: list[Callable[[], object]] = [
            *(lambda v=view: v(dump, focus).as_json() for view in (
                state.kernels, state.devices, state.contexts, state.sms, state.blocks, state.warp_table, code.modules,
                layout_views.sections, layout_views.meta, memory.ranges,
            )),
            *(lambda v=view: list(v(dump, faulting).as_text()) for view in (
                state.lane_table, state.registers, state.backtraces, code.params, layout_views.constants,
            )),
            lambda: memory.shared(dump, focus, 0, 256),
            lambda: memory.local(dump, focus, 8, 256),
            lambda: memory.at_address(dump, 0x7FE5CBE00000, 256),
            lambda: code.sass(dump, None, Disassembly(sass_by="native")).as_json(),
        ]  # fmt: skip
        for view in views:
            with suppress(CrashlabError):
                view()


@lru_cache(maxsize=1)
def _images() -> tuple[bytes, ...]:
    """Code images that nvcc built, and relocated ones out of dumps."""
    from crashlab.gpucore.dump import CoreDump

    out = list(fixtures("cubin/*.cubin.xz"))
    for name in ("deep", "oob_load", "torch_triton", "oob_load_debug"):
        dump = CoreDump(memoryview(corpus.raw(name)))
        out += [bytes(image) for module in dump.modules if (image := dump.image(module))]
    return tuple(image for image in out if len(image) < 1 << 20)


def _image(rng: random.Random) -> bytes:
    image = rng.choice(_images())
    return blindly.damage(image, rng, [rng.choice(_images())])


def _questions(case: bytes) -> Iterator[Callable[[], object]]:
    """Everything that the other rooms ask of an image."""
    from crashlab.cubin.image import Cubin

    image = Cubin(memoryview(case))
    yield lambda: (image.arch, image.compiler)
    yield lambda: image.toolchain
    yield image.elf.sections
    for section in image.elf.sections()[:80]:
        pc = section.address + 0x20
        for at_pc in (image.contains, image.symbol_at, image.source_at, image.code_window, image.line_map):
            yield partial(at_pc, pc)
        if section.flags & 4:
            yield partial(image.lines.ranges, section)
            yield partial(image.lines.source, section, 0x20)
    kernels = []
    with suppress(CrashlabError):
        list(image.functions())
        kernels = list(image.kernels())
    for kernel in kernels[:20]:
        yield partial(image.code_of, kernel)
        yield partial(image.parameters, kernel.mangled)
        yield partial(image.kernel_info, kernel.mangled)
    yield image.symbols.kernel_count


def _ask(case: bytes, _place: Path) -> None:
    with suppress(CrashlabError):
        for question in _questions(case):
            with suppress(CrashlabError):
                question()


@lru_cache(maxsize=1)
def _lined() -> tuple[tuple[bytes, int, int], ...]:
    """Images with where their line program lies."""
    from crashlab.cubin.image import Cubin

    out = []
    for image in _images():
        found = Cubin(memoryview(image)).elf.find(".debug_line")
        if found is not None and found.size:
            out.append((image, found.offset, found.size))
    return tuple(out)


_OPCODES = (
    b"\x00\x09\x02" + bytes(8), b"\x00\x01\x01", b"\x00\x05\x03a\0\0\0", b"\x00\xff\xff\xff\xff\x0f",
    b"\x02\xff\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x03\x80\x80\x80\x80\x80\x80\x80\x80\x40", b"\x09\xff\xff",
    b"\x08" * 300, b"\x01" * 300, b"\xff" * 300, b"\x04\xff\x7f", b"\x00\x02\x90\x01", b"\x00\x03\x91\xff\x7f",
    b"\x00\x00", b"\x80" * 40,
)  # fmt: skip
"""DWARF line opcodes with operands that are too large, lengths that lie, and NVIDIA's inline extensions."""


def _line_table(rng: random.Random) -> bytes:
    image, at, size = rng.choice(_lined())
    part = bytearray(image[at : at + size])
    for _ in range(rng.choice((1, 1, 3, 10))):
        spot = rng.randrange(len(part))
        if rng.random() < 0.5:
            piece = rng.choice(_OPCODES)
            part[spot : spot + len(piece)] = piece
        elif rng.random() < 0.3:
            start = rng.choice((0, 4, 6, 10, 11, 12, 13, 14, 15))  # the header's fields
            part[start] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        else:
            part[spot] = rng.randrange(256)
    return image[:at] + bytes(part[:size]).ljust(size, b"\0") + image[at + size :]


@lru_cache(maxsize=1)
def _words() -> tuple[tuple[str, int, int], ...]:
    rows = [line.split(b" ", 3) for line in fixtures("sass_decode/instructions.txt.xz")[0].splitlines()]
    return tuple((r[0].decode(), int(r[1], 16), int(r[2], 16)) for r in rows if len(r) == 4)


def _code(rng: random.Random) -> bytes:
    """An architecture, an address, and 1 to 64 words: real ones with bits flipped, or random ones."""
    arch, _, pc = rng.choice(_words())
    if rng.random() < 0.2:
        arch = rng.choice(_ARCHES)
    words = []
    for _ in range(rng.choice((1, 4, 64))):
        word = rng.choice(_words())[1] if rng.random() < 0.9 else rng.getrandbits(128)
        for _ in range(rng.choice((0, 1, 1, 2, 6, 30))):
            word ^= 1 << rng.randrange(128)
        words.append(word.to_bytes(16, "little"))
    return struct.pack("<8sQ", arch.encode(), pc) + b"".join(words)


def _decode(case: bytes, _place: Path) -> None:
    """What is decoded must be text that the reader of instruction text takes, and that can be reasoned about."""
    from crashlab.sass.decode import decode, decode_range
    from crashlab.sass.flow import flow_of
    from crashlab.sass.line import SassLine
    from crashlab.sass.loops import find_spin_loop
    from crashlab.sass.operands import parse
    from crashlab.sass.slice import backward_slice

    arch = case[:8].rstrip(b"\0").decode("ascii", "replace")
    pc = int.from_bytes(case[8:16], "little")
    with suppress(CrashlabError):
        lines = []
        for at, text in decode_range(case[16:], pc, arch):
            if text is not None:
                parse(text)
                lines.append(SassLine(at, text))
        decode(case[16:32], pc, arch)
        if lines:
            middle = lines[len(lines) // 2].pc
            flow_of(lines)
            find_spin_loop(lines, middle)
            backward_slice(lines, middle, ("R2", "R3", "UR4", "P0"))


@lru_cache(maxsize=1)
def _symbols() -> tuple[bytes, ...]:
    names = [name for text in fixtures("cubin/names.txt") for name in text.split()]
    for text in fixtures("library/names.tsv"):
        names += [cell for line in text.splitlines() for cell in line.split(b"\t") if cell.startswith(b"_Z")]
    return tuple(names)


_GRAMMAR = (
    b"N", b"E", b"I", b"S_", b"S0_", b"T_", b"St", b"L", b"X", b"Lj4294967295E", b"Li-1E", b"D0Ev", b"P", b"K",
    b"R", b"O", b"F", b"A10_", b"M", b"Dp", b"J", b"DT", b"Dt", b"cv", b"fp_", b"fL0p_", b"sZ", b"pl", b"_ZN",
    b"UlvE_", b"Ut_", b"B5cxx11", b"9999999999a", b"1a", b"C1", b"cl", b"il", b"sr", b"on", b"v", b"SaIcE",
    b"SZZZZZZZZ_", b"TZZZZZZ_", b"Z", b"s", b"GVr",
)  # fmt: skip
"""Words of the Itanium C++ ABI's grammar (section 5.1), right and wrong."""


def _symbol(rng: random.Random) -> bytes:
    name = rng.choice(_symbols())
    for _ in range(rng.choice((1, 1, 2, 4, 10))):
        at = rng.randrange(len(name) + 1)
        if rng.random() < 0.6:
            piece = rng.choice(_GRAMMAR) * rng.choice((1, 1, 1, 2, 30, 1500))
            name = name[:at] + piece + name[at + rng.choice((0, 0, 1, 3)) :]
        else:
            name = blindly.damage(name, rng, _symbols())
    return name[:20000]


def _demangle(case: bytes, _place: Path) -> None:
    from crashlab.cubin.demangle import demangle
    from crashlab.postmortem.library import attribute

    text = case.decode("utf-8", "replace")
    readable = demangle(text)
    assert len(readable) < 1 << 20
    attribute(text, readable)
    attribute(None, readable)


TARGETS = (
    Target("dump", "GPU core dumps: analyze, and render in every form", _dump, _analyze),
    Target("inspect", "GPU core dumps: every view of inspect", _dump, _inspect),
    Target("cubin", "code images: symbols, lines, notes, parameters", _image, _ask),
    Target("line-table", "DWARF line programs inside code images", _line_table, _ask),
    Target("decoder", "instruction words through the native decoder", _code, _decode),
    Target("demangler", "Itanium C++ names", _symbol, _demangle),
)  # fmt: skip
