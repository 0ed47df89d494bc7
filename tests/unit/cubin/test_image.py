"""The facade over one image."""

from __future__ import annotations

import hashlib
import subprocess
import sys

from crashlab.cubin.image import Cubin
from tests.support import corpus
from tests.unit.cubin.images import cubin, holding, raw


def fault(dump: str) -> tuple[Cubin, int]:
    pc = int(corpus.manifest()[dump]["expect"]["pc"], 16)
    image = holding(dump, pc)
    assert image is not None
    return image, pc


def test_the_window_of_a_pc_is_its_whole_section() -> None:
    image, pc = fault("oob_store")
    window = image.code_window(pc)
    assert window is not None
    base, code = window
    section = image.section_at(pc)
    assert section is not None
    assert (base, len(code)) == (section.address, section.size)
    function = image.code_of("_Z16oob_global_storePfxx")
    assert function is not None
    assert function[0] == base
    assert bytes(function[1]) == code[: len(function[1])]


def test_everything_about_an_address_outside_is_none() -> None:
    image, _ = fault("oob_store")
    assert not image.contains(0)
    assert image.section_at(0) is None
    assert image.symbol_at(0) is None
    assert image.source_at(0) is None
    assert image.code_window(0) is None
    assert image.line_map(0) == ()


def test_the_hash_is_that_of_the_bytes() -> None:
    image = cubin("shapes_sm_90")
    assert image.sha256 == hashlib.sha256(raw("shapes_sm_90")).hexdigest()
    assert image.sha256 is image.sha256


def test_views_of_any_item_type_are_read_as_bytes() -> None:
    data = raw("shapes_sm_90")
    image = Cubin(memoryview(data[: len(data) & ~7]).cast("Q"))
    assert image.elf.view.format == "B"
    assert image.arch == "sm_90"


def test_functions_are_listed_with_their_sections() -> None:
    image = cubin("shapes_sm_90")
    names = {f.mangled: image.elf.section(f.section).name for f in image.functions()}
    assert names["store_chain"] == ".text.store_chain"
    assert names["$_Z5callsPfPKf$_Z5innerPKfi"] == ".text._Z5callsPfPKf"


def test_the_package_imports_nothing_heavy_and_nothing_from_other_rooms() -> None:
    code = (
        "import sys; before = set(sys.modules); import crashlab.cubin.image, crashlab.cubin.demangle;"
        "print(' '.join(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert not {"hashlib", "ctypes", "json", "subprocess", "elftools", "array"} & set(loaded)
    own = {name for name in loaded if name.startswith("crashlab.")}
    assert {name.split(".")[1] for name in own} <= {"cubin", "errors", "facts"}
