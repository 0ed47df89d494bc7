"""Line tables made by hand: the rest of DWARF, and tables that lie."""

from __future__ import annotations

import struct
import time

import pytest

from crashlab.cubin.image import Cubin
from crashlab.cubin.lines import LineRange
from crashlab.errors import MalformedCubin
from crashlab.facts import InlineFrame, Source
from tests.unit.cubin.images import Part, assemble, symbol


def uleb(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def set_address(value: int = 0) -> bytes:
    return b"\0\x09\x02" + struct.pack("<Q", value)


END = b"\0\x01\x01"
COPY = b"\x01"


def advance(line: int, pc: int = 0) -> bytes:
    return b"\x03" + bytes([line & 0x7F]) + (b"\x02" + uleb(pc) if pc else b"")


def inlined(context: int, name: int) -> bytes:
    operands = uleb(context) + uleb(name)
    return b"\0" + uleb(1 + len(operands)) + b"\x90" + operands


def unit(
    program: bytes,
    *,
    version: int = 2,
    wide: bool = False,
    tables: bytes = b"/d\0rel\0\0a.cu\0\x01\0\0b.cu\0\x02\0\0/abs/c.cu\0\x01\0\0\0",
    line_range: int = 14,
    opcode_base: int = 10,
    header_length: int | None = None,
) -> bytes:
    fields = b"\x01" + (b"\x01" if version >= 4 else b"") + b"\x01\xfb" + bytes([line_range, opcode_base])
    header = fields + bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1][: opcode_base - 1]) + tables
    width = "<Q" if wide else "<I"
    body = struct.pack("<H", version) + (b"\x08\0" if version >= 5 else b"")
    body += struct.pack(width, len(header) if header_length is None else header_length) + header + program
    return (b"\xff\xff\xff\xff" if wide else b"") + struct.pack(width, len(body)) + body


def with_table(
    table: bytes,
    places: list[int] | None = None,
    *,
    rel: bool = False,
    address: int = 0x7000,
    strings: bytes = b"\0inlined\0",
    addend: int = 0,
    line_strings: bytes = b"",
) -> Cubin:
    """One loaded function ``k`` of 4 KiB whose line table is ``table``, relocated at ``places``."""
    rows = b"".join(
        struct.pack("<QQ", place, 1 << 32 | 2) + (b"" if rel else struct.pack("<q", addend))
        for place in places or []
    )
    return Cubin(
        memoryview(
            assemble(
                [
                    Part(".text.k", 1, bytes(4096), flags=6, address=address),
                    Part(".symtab", 2, symbol(0, 0, 0, 0) + symbol(1, 1, address, 4096), link=3, entsize=24),
                    Part(".strtab", 3, b"\0k\0"),
                    Part(".debug_line", 1, table),
                    Part(".debug_str", 1, strings),
                    Part(".rel.debug_line" if rel else ".rela.debug_line", 9 if rel else 4, rows, info=4),
                    Part(".debug_line_str", 1, line_strings),
                ]
            )
        )
    )


def operand_at(table: bytes, index: int = 0) -> int:
    at = -1
    for _ in range(index + 1):
        at = table.index(b"\0\x09\x02", at + 1)
    return at + 3


SIMPLE = set_address() + advance(9) + COPY + advance(5, 0x40) + COPY + advance(0, 0x40) + END


@pytest.mark.parametrize("rel", [False, True])
@pytest.mark.parametrize("operand", [0, 0x7000])
def test_operands_that_are_patched_or_not_give_the_same_lines(rel: bool, operand: int) -> None:
    table = unit(set_address(operand) + SIMPLE[11:])
    image = with_table(table, [operand_at(table)], rel=rel)
    assert image.source_at(0x7000) == Source("/d/a.cu", 10)
    assert image.source_at(0x703F) == Source("/d/a.cu", 10)
    assert image.source_at(0x7040) == Source("/d/a.cu", 15)
    assert image.source_at(0x7080) is None  # behind the end of the sequence
    assert image.line_map(0x7000) == (
        LineRange(0x7000, 0x7040, "/d/a.cu", 10),
        LineRange(0x7040, 0x7080, "/d/a.cu", 15),
    )


def test_the_addend_moves_the_sequence() -> None:
    table = unit(SIMPLE)
    image = with_table(table, [operand_at(table)], addend=0x100)
    assert image.source_at(0x70FF) is None
    assert image.source_at(0x7100) == Source("/d/a.cu", 10)
    implicit = with_table(unit(set_address(0x100) + SIMPLE[11:]), [operand_at(table)], rel=True)
    assert implicit.source_at(0x7100) == Source("/d/a.cu", 10)


def test_an_unpatched_operand_without_relocation_belongs_to_nothing() -> None:
    assert with_table(unit(SIMPLE)).source_at(0x7000) is None
    assert with_table(unit(SIMPLE), address=0).source_at(0) is None


def test_of_several_sequences_the_one_around_the_place_is_used() -> None:
    table = unit(SIMPLE + set_address(0x7200) + advance(29) + COPY + advance(0, 0x40) + END)
    image = with_table(table, [operand_at(table)])
    assert image.source_at(0x7210) is None  # only the relocated operand counts when there are relocations
    absolute = with_table(
        unit(
            set_address(0x7000)
            + SIMPLE[11:]
            + set_address(0x7200)
            + advance(29)
            + COPY
            + advance(0, 0x40)
            + END
        )
    )
    assert absolute.source_at(0x7210) == Source("/d/a.cu", 30)
    assert absolute.source_at(0x7010) == Source("/d/a.cu", 10)
    assert absolute.source_at(0x7100) is None


def test_the_last_row_of_an_address_counts() -> None:
    table = unit(set_address() + advance(9) + COPY + b"\x04\x02" + advance(1) + COPY + advance(0, 16) + END)
    assert with_table(table, [operand_at(table)]).source_at(0x7000) == Source("rel/b.cu", 11)


def test_names_are_joined_as_the_table_spells_them() -> None:
    for file, expected in ((1, "/d/a.cu"), (2, "rel/b.cu"), (3, "/abs/c.cu"), (4, None), (0, None)):
        table = unit(set_address() + b"\x04" + uleb(file) + COPY + advance(0, 16) + END)
        source = with_table(table, [operand_at(table)]).source_at(0x7000)
        assert (source.file if source is not None else None) == expected


def test_line_0_is_no_line() -> None:
    table = unit(set_address() + advance(-1) + COPY + advance(0, 16) + END)
    image = with_table(table, [operand_at(table)])
    assert image.source_at(0x7000) is None
    assert image.line_map(0x7000) == ()


def test_standard_opcodes_move_the_registers() -> None:
    program = (
        set_address()
        + b"\x05\x07\x06\x07"  # column, statement, block
        + bytes([10 + 5 + 14])  # special: address 1, line + 0 (base -5, range 14)
        + b"\x08"  # const_add_pc: what 255 would add: (255 - 10) // 14 = 17
        + b"\x09\x10\x00"  # fixed_advance_pc
        + COPY
        + advance(0, 16)
        + END
    )
    table = unit(program)
    image = with_table(table, [operand_at(table)])
    assert [(r.start - 0x7000, r.end - 0x7000) for r in image.line_map(0x7000)] == [(1, 34), (34, 50)]


def test_opcodes_of_later_versions_are_stepped_over_by_their_lengths() -> None:
    program = set_address() + b"\x0a\x0b\x0c\x05" + COPY + advance(0, 16) + END
    table = unit(program, version=4, opcode_base=13)
    assert with_table(table, [operand_at(table)]).source_at(0x7000) == Source("/d/a.cu", 1)


def test_unknown_extended_opcodes_are_stepped_over() -> None:
    program = set_address() + b"\0\x02\x04\x09" + b"\0\x06\x85hello" + COPY + advance(0, 16) + END
    table = unit(program)
    assert with_table(table, [operand_at(table)]).source_at(0x7000) == Source("/d/a.cu", 1)


def test_a_second_set_address_moves_within_the_function() -> None:
    program = set_address(0x7000) + COPY + set_address(0x7020) + advance(3) + COPY + advance(0, 16) + END
    table = unit(program)
    image = with_table(table, [operand_at(table)])
    assert image.source_at(0x7025) == Source("/d/a.cu", 4)


def test_registers_set_before_the_address_are_kept() -> None:
    program = SIMPLE + b"\x04\x03" + set_address() + advance(6) + COPY + advance(0, 16) + END
    table = unit(program)
    image = with_table(table, [operand_at(table, 1)])
    assert image.source_at(0x7000) == Source("/abs/c.cu", 7)


def test_function_names_can_be_set_alone() -> None:
    program = (
        set_address()
        + advance(9)
        + COPY
        + inlined(1, 0)
        + b"\0\x02\x91\x01"
        + advance(1)
        + COPY
        + advance(0, 16)
        + END
    )
    table = unit(program)
    source = with_table(table, [operand_at(table)]).source_at(0x7000)
    assert source == Source("/d/a.cu", 11, (InlineFrame("/d/a.cu", 10, "inlined"),))


def test_call_sites_are_counted_within_the_sequence() -> None:
    program = (
        SIMPLE + set_address() + advance(29) + COPY + inlined(1, 1) + advance(1) + COPY + advance(0, 16) + END
    )
    table = unit(program)
    source = with_table(table, [operand_at(table, 1)]).source_at(0x7000)
    assert source == Source("/d/a.cu", 31, (InlineFrame("/d/a.cu", 30, "inlined"),))


def test_chains_that_bite_their_tail_or_point_nowhere_end() -> None:
    circle = unit(set_address() + inlined(1, 1) + COPY + advance(0, 16) + END)
    source = with_table(circle, [operand_at(circle)]).source_at(0x7000)
    assert source is not None
    assert len(source.inlined) == 64
    nowhere = unit(set_address() + inlined(99, 9999) + COPY + advance(0, 16) + END)
    assert with_table(nowhere, [operand_at(nowhere)]).source_at(0x7000) == Source("/d/a.cu", 1)


def table_of_version_5() -> tuple[bytes, bytes]:
    directories = b"\x01\x01\x1f\x02" + struct.pack("<II", 1, 6)
    formats = (
        uleb(1)
        + uleb(8)
        + uleb(2)
        + uleb(0x0B)
        + uleb(5)
        + uleb(0x1E)
        + uleb(0x2001)
        + uleb(0x0F)
        + uleb(0x2002)
        + uleb(9)
    )
    extra = bytes(16) + uleb(300) + uleb(2) + b"zz"
    files = b"\x05" + formats + b"\x02" + b"main.cu\0\x00" + extra + b"part.cu\0\x01" + extra
    return directories + files, b"\0/top\0sub\0"


@pytest.mark.parametrize("wide", [False, True])
def test_dwarf_5_counts_files_from_0_and_describes_its_columns(wide: bool) -> None:
    tables, strings = table_of_version_5()
    if wide:
        tables = tables.replace(struct.pack("<II", 1, 6), struct.pack("<QQ", 1, 6))
    for file, expected in ((0, "/top/main.cu"), (1, "/top/sub/part.cu"), (2, None)):
        table = unit(
            set_address() + b"\x04" + uleb(file) + COPY + advance(0, 16) + END,
            version=5,
            wide=wide,
            tables=tables,
        )
        source = with_table(table, [operand_at(table)], line_strings=strings).source_at(0x7000)
        assert (source.file if source is not None else None) == expected


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("wide", [False, True])
def test_headers_of_versions_2_to_4_in_both_widths(version: int, wide: bool) -> None:
    table = unit(b"", version=version) + unit(SIMPLE, version=version, wide=wide)
    image = with_table(table, [operand_at(table)])
    assert image.source_at(0x7000) == Source("/d/a.cu", 10)


BROKEN = {
    "version 9": unit(SIMPLE, version=9),
    "longer than its unit": unit(SIMPLE, header_length=5000),
    "outside the table": unit(SIMPLE)[:60],
    "line range of 0": unit(set_address() + b"\xff" + END, line_range=0),
    "extended opcode without a code": unit(set_address() + b"\0\0" + END),
    "longer than 64 bits": unit(set_address() + b"\x02" + b"\x80" * 20 + END),
    "inside an entry": unit(set_address() + b"\0\x7f\x01"),
    "inside a name": unit(SIMPLE, tables=b"abc"),
    "form 0x42": unit(SIMPLE, version=5, tables=b"\x01\x01\x42\x01"),
    "claims 99999 names": unit(SIMPLE, version=5, tables=b"\x01\x01\x08" + uleb(99_999)),
    "claims 200 columns": unit(SIMPLE, version=5, tables=b"\xc8" + bytes(500)),
    "claims 3 names": unit(SIMPLE, version=5, tables=b"\x00\x03"),
}


@pytest.mark.parametrize("told", BROKEN)
def test_a_table_that_contradicts_itself_is_refused(told: str) -> None:
    table = BROKEN[told]
    at = table.find(b"\0\x09\x02") + 3
    with pytest.raises(MalformedCubin, match=told):
        with_table(table, [at]).source_at(0x7000)


def test_a_relocation_outside_the_table_is_refused() -> None:
    with pytest.raises(MalformedCubin, match="outside the line table"):
        with_table(unit(SIMPLE), [1 << 40]).source_at(0x7000)


def test_relocations_into_the_middle_of_a_sequence_find_nothing() -> None:
    table = unit(SIMPLE)
    assert with_table(table, [operand_at(table) + 5]).source_at(0x7000) is None
    twice = with_table(table, [operand_at(table), operand_at(table) + 5])
    assert twice.source_at(0x7000) == Source("/d/a.cu", 10)


def test_a_sequence_whose_addresses_run_backwards_is_left_out() -> None:
    table = unit(set_address() + advance(0, 0x20) + COPY + b"\x02\xf0" + b"\xff" * 8 + b"\x01" + COPY + END)
    assert with_table(table, [operand_at(table)]).source_at(0x7000) is None


def test_a_program_of_megabytes_is_given_up_in_time() -> None:
    table = unit(set_address() + COPY * 2_000_000 + END)
    started = time.monotonic()
    with pytest.raises(MalformedCubin, match="too long"):
        with_table(table, [operand_at(table)]).source_at(0x7000)
    assert time.monotonic() - started < 30


def test_hundreds_of_thousands_of_relocations_are_given_up() -> None:
    with pytest.raises(MalformedCubin, match="too many relocations"):
        with_table(unit(SIMPLE), [30] * 300_000).source_at(0x7000)
    many = unit((set_address(0x7000) + END) * 270_000)
    with pytest.raises(MalformedCubin, match="too many sequences"):
        with_table(many).source_at(0x7000)
