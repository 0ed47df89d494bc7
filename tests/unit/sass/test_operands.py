"""Instruction text into facts, against nvdisasm's own life ranges and by hand."""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from crashlab.errors import CrashlabError
from crashlab.sass import opcodes, registers
from crashlab.sass.address import AddressExpr, parse_address
from crashlab.sass.operands import ParsedInstruction, parse

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "sass"
sys.path.append(str(ROOT / "scripts" / "sass"))
from check_operands import differences  # noqa: E402
from liferanges import Row, rows  # noqa: E402


def fixture(name: str = "instructions.tsv.xz") -> list[tuple[str, Row]]:
    """Architecture and oracle row of every recorded instruction shape."""
    found = []
    for line in lzma.decompress((DATA / name).read_bytes()).decode().splitlines():
        arch, text, defines, reads = line.split("\t")
        found.append((arch, Row(0, text, _names(defines), _names(reads))))
    return found


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split(",")) if text else frozenset()


RECORDED = fixture()


class TestRecordedInstructions:
    def test_there_are_thousands_from_every_architecture(self) -> None:
        assert len(RECORDED) > 3000
        arches = {arch.rstrip("af") for arch, _ in RECORDED}
        assert {
            "sm_70",
            "sm_75",
            "sm_80",
            "sm_86",
            "sm_89",
            "sm_90",
            "sm_100",
            "sm_103",
            "sm_110",
            "sm_120",
            "sm_121",
        } <= arches

    def test_every_opcode_is_known(self) -> None:
        unknown = {parse(row.text).opcode for _, row in RECORDED if not parse(row.text).known}
        assert unknown == set()

    def test_definitions_and_reads_agree_with_the_life_ranges(self) -> None:
        wrong = []
        for arch, row in RECORDED:
            parsed = parse(row.text)
            shown = row.defines | row.reads | frozenset(parsed.defines or ()) | frozenset(parsed.reads or ())
            wrong += [f"{arch} {row.text}: {words}" for words in differences(parsed, row, shown)]
        assert wrong == []

    def test_definitions_are_known_except_behind_calls(self) -> None:
        unknown = {parse(row.text).opcode for _, row in RECORDED if parse(row.text).defines is None}
        assert unknown <= {"CALL"}

    def test_no_operand_with_a_bracket_is_left_unread(self) -> None:
        left = [
            row.text
            for _, row in RECORDED
            for o in parse(row.text).operands
            if o.kind == "word" and "[" in o.text
        ]
        assert left == []

    def test_the_spelling_of_cuda_gdb_gives_the_same(self) -> None:
        """cuda-gdb leaves out the blank after a comma, and the comma before a bracket."""
        for _, row in RECORDED:
            if "`" in row.text or "(*" in row.text:
                continue
            glued = row.text.replace(", ", ",").replace(",[", "[")
            ours, theirs = parse(row.text), parse(glued)
            assert theirs._replace(text=ours.text, operands=()) == ours._replace(operands=()), glued


@pytest.mark.parametrize("opcode", sorted(opcodes.names()))
def test_every_row_of_the_table_compiles(opcode: str) -> None:
    row = opcodes.row(opcode)
    assert row is not None
    assert (row.space is None) or (row.access is not None)


def test_an_unknown_opcode_parses_without_claims() -> None:
    parsed = parse("@!P3 FROBNICATE.E.64 R2, [R4.64], UR6")
    assert not parsed.known
    assert (parsed.predicate, parsed.predicate_negated) == ("P3", True)
    assert parsed.defines is None
    assert parsed.reads is None
    assert parsed.access is None


@pytest.mark.parametrize(
    "text",
    [
        "IABS.64 R2, R4",  # a wider form of a known opcode
        "VIADD.S64 R2, R4, R6",
        "FADD.F64 R2, R4, R6",
        "SYNCS.FROB.64 R2, [UR4], R6",
        "LDTM.x4.FROB R4, tmem[UR4]",
        "HMMA.FROB.F32 R4, R8, R12, R4",
        "HMMA.881.F16 R4, R8, R12, R4",
        "FMMA.16816 R4, R8, R12, R4",
        "LDSM.16.FROB R4, [R8]",
        "UTMASTG [UR4], [UR8]",
        "UTMAPF.L2 [UR4], [UR8]",
        "UTMALDG [UR4], [UR8]",
        "UBLKCP.X.Y [UR4], [UR8], UR6",
        "LDG.E.256 R4, desc[UR4][R2.64]",
        "FFMA2 R4, R6, R8, R10",
        "F2F.F64 R4, R6",
        "HGMMA.F32 R24, gdesc[UR4], RZ",
        "SULD.P.2D R4, [R6], R8",
        "LDG.E R2, desc[UR4][R2.64-x]",
    ],
)
def test_a_form_that_the_table_does_not_have_is_unknown_not_wrong(text: str) -> None:
    assert parse(text).defines is None


class TestSpaceAccessAndWidth:
    @pytest.mark.parametrize(
        ("text", "access", "space", "width"),
        [
            ("LDG.E R7, desc[UR4][R2.64]", "load", "global", 4),
            ("LDG.E.U8 R7, [R2.64]", "load", "global", 1),
            ("LDG.E.U16.CONSTANT R7, desc[UR4][R2.64]", "load", "global", 2),
            ("LDG.E.128 R4, desc[UR4][R2.64]", "load", "global", 16),
            ("LDG.E.ENL2.256 R8, R4, desc[UR4][R2.64]", "load", "global", 32),
            ("LD.E.64 R4, [R2.64]", "load", "generic", 8),
            ("LDS.S8 R4, [R2]", "load", "shared", 1),
            ("LDL.128 R4, [R1+0x10]", "load", "local", 16),
            ("LDC.64 R4, c[0x0][0x210]", "load", "constant", 8),
            ("ULDC UR4, c[0x0][0x0]", "load", "constant", 4),
            ("STS.128 [R9+UR4], R4", "store", "shared", 16),
            ("STL [R1+0x14], R8", "store", "local", 4),
            ("ST.E.U16 desc[UR4][R2.64], R8", "store", "generic", 2),
            ("STAS.64 [R6.64], R8", "store", "shared", 8),
            ("ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R8.64], R10, R12", "atomic", "global", 8),
            ("ATOM.E.ADD.STRONG.GPU PT, R3, [R2], R4", "atomic", "generic", 4),
            ("ATOMS.CAST.SPIN P0, [R0], R8, R10", "atomic", "shared", 4),
            ("ATOMG.E.EXCH.128.STRONG.GPU PT, R4, desc[UR4][R8.64], R12", "atomic", "global", 16),
            ("REDG.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5", "reduce", "global", 4),
            ("REDG.E.ADD.F32x4.RN.STRONG.GPU desc[UR4][R2.64], R4", "reduce", "global", 16),
            ("LDGSTS.E.BYPASS.128 [R7], [R10.64]", "copy", "global", 16),
            ("LDSM.16.M88.4 R4, [R23]", "load", "shared", 16),
            ("STSM.16.M88.2 [R9], R40", "store", "shared", 16),
            ("LDGMC.E.HPADD.BF16x8.RN.STRONG.SYS R12, [R56.64+URZ]", "load", "global", 16),
            ("LDGMC.E.HPADD.E4M3x4.RN.STRONG.SYS R12, [R56.64+URZ]", "load", "global", 4),
            ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R0", "barrier", "shared", 8),
            ("UTMALDG.2D [UR4], [UR8]", "copy", "tma", None),
            ("UBLKCP.S.G [UR8], [UR6], UR4", "copy", "tma", None),
            ("LDTM.x4 R4, tmem[UR4]", "load", "tensor", None),
            (
                "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR5], tmem[UR10], idesc[UR11], UPT",
                "matrix",
                "tensor",
                None,
            ),
            ("TEX.LL R6, R4, R4, R6, UR4, 2D", "load", "texture", None),
            ("SUST.D.BA.2D.STRONG.SM.TRAP [R4], R6, UR4", "store", "surface", None),
            ("CCTL.IVALL", "cache", "generic", None),
            ("BAR.SYNC.DEFER_BLOCKING 0x0", "barrier", None, None),
            ("BRA 0x1000", "branch", None, None),
            ("CALL.REL.NOINC 0x1000", "call", None, None),
            ("RET.REL.NODEC R4 0x1000", "return", None, None),
            ("@P0 EXIT", "exit", None, None),
            ("BPT.TRAP 0x1", "trap", None, None),
            ("MEMBAR.SC.GPU", "fence", None, None),
            ("FFMA R1, R2, R3, R4", None, None, None),
        ],
    )
    def test_is_read_from_opcode_and_modifiers(
        self, text: str, access: str | None, space: str | None, width: int | None
    ) -> None:
        parsed = parse(text)
        assert (parsed.access, parsed.space, parsed.width_bytes) == (access, space, width)

    @pytest.mark.parametrize(("text", "lanes"), [("1", 8), ("2", 16), ("4", 32)])
    def test_matrix_loads_take_addresses_from_their_first_lanes(self, text: str, lanes: int) -> None:
        assert parse(f"LDSM.16.M88.{text} R4, [R23]").address_lanes == lanes


class TestAddresses:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("[R2.64+0x4]", AddressExpr("memory", "R2", 64, offset=4)),
            ("desc[UR4][R2.64+-0x10]", AddressExpr("desc", "R2", 64, offset=-16, descriptor="UR4")),
            ("desc[UR4.64][R2.64]", AddressExpr("desc", "R2", 64, descriptor="UR4")),
            ("[R0+0xe910]", AddressExpr("memory", "R0", offset=0xE910)),
            ("[R9+UR4]", AddressExpr("memory", "R9", uniform="UR4")),
            ("[R9+UR4+0x8]", AddressExpr("memory", "R9", uniform="UR4", offset=8)),
            ("[R0+URZ]", AddressExpr("memory", "R0", uniform="URZ")),
            ("[RZ]", AddressExpr("memory", "RZ")),
            ("[0x20]", AddressExpr("memory", offset=32)),
            ("[UR4+-0x8]", AddressExpr("memory", uniform="UR4", offset=-8)),
            ("[R9.X4+0x4]", AddressExpr("memory", "R9", scale=4, offset=4)),
            ("[R9.X16+UR4]", AddressExpr("memory", "R9", scale=16, uniform="UR4")),
            (
                "[R85.U32+UR4.64]",
                AddressExpr("memory", "R85", base_extension="U32", uniform="UR4", uniform_bits=64),
            ),
            ("c[0x0][0x160]", AddressExpr("c", offset=0x160, bank=0)),
            ("c[0x3][R4+0x8]", AddressExpr("c", "R4", offset=8, bank=3)),
            ("c[0x0][UR4+0x8]", AddressExpr("c", uniform="UR4", offset=8, bank=0)),
            ("cx[UR4][0x8]", AddressExpr("cx", offset=8, bank_register="UR4")),
            ("c[0x0] [0x164].H0_H0", AddressExpr("c", offset=0x164, bank=0)),
            ("-|c[0x0][0x164]|", AddressExpr("c", offset=0x164, bank=0)),
            ("tmem[UR5+0x100]", AddressExpr("tmem", uniform="UR5", offset=0x100)),
            ("gdesc[UR26]", AddressExpr("gdesc", uniform="UR26")),
            ("desc[UR6]", AddressExpr("policy", descriptor="UR6")),
        ],
    )
    def test_forms(self, text: str, expected: AddressExpr) -> None:
        assert parse_address(text) == expected

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            "[R2",
            "[R2+R3]",
            "[UR2+UR3]",
            "[-R2]",
            "[R2.X3]",
            "[R2-0x4]",
            "[x]",
            "c[x][0x4]",
            "c[0x0]",
            "[R2][R4]",
            "desc[4][R2]",
            "no brackets",
            "[UR2.X4]",
        ],
    )
    def test_what_is_not_understood_is_none(self, text: str) -> None:
        assert parse_address(text) is None

    def test_registers_of_the_sum_leave_descriptors_out(self) -> None:
        address = parse("STG.E desc[UR6][R14.64], R11").addresses[0]
        assert address.address_registers() == ("R14", "R15")
        assert address.all_registers() == ("R14", "R15", "UR6", "UR7")

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("LD.E R4, [R8+0x38]", ("R8", "R9")),  # .E without .64 is 64 bits all the same
            ("ST.E.STRONG.GPU [R85.U32+UR4], RZ", ("R85", "UR4", "UR5")),
            ("ST.E.U16.SYS [R102.64+UR4], R4", ("R102", "R103", "UR4", "UR5")),
            ("LDS R4, [R8+UR4]", ("R8", "UR4")),
            ("RED.E.MIN.S32.STRONG.GPU [UR8], R25", ("UR8", "UR9")),
            ("QSPC.E.L P1, RZ, [R4]", None),
        ],
    )
    def test_missing_widths_follow_the_address_space(
        self, text: str, expected: tuple[str, ...] | None
    ) -> None:
        parsed = parse(text)
        if expected is None:
            assert parsed.reads == ("R4", "R5")
        else:
            assert parsed.addresses[0].address_registers() == expected

    @pytest.mark.parametrize(
        "text",
        [
            "LDGSTS.E.LTC128B [R40+0x1980], desc[UR18][R58.64], P0",
            "LDGSTS.E.LTC128B desc[UR18][R58.64],P0[R40+0x1980]",
        ],
    )
    def test_async_copies_have_a_shared_and_a_global_address_in_either_order(self, text: str) -> None:
        by_role = {address.role: address for address in parse(text).addresses}
        assert by_role["destination"].address_registers() == ("R40",)
        assert by_role["destination"].space == "shared"
        assert by_role["destination"].offset == 0x1980
        assert by_role["source"].address_registers() == ("R58", "R59")
        assert by_role["source"].space == "global"

    def test_an_async_copy_without_widths_has_its_destination_first(self) -> None:
        assert [a.role for a in parse("LDGSTS.E [R7], [R10]").addresses] == ["destination", "source"]

    def test_tensor_copies_name_barrier_descriptor_and_coordinates(self) -> None:
        parsed = parse("UTMALDG.3D.MULTICAST [UR16], [UR6], UR4, desc[UR10]")
        roles = [(address.role, address.address_registers()) for address in parsed.addresses]
        assert roles == [
            ("destination", ("UR16",)),
            ("barrier", ("UR17",)),
            ("descriptor", ("UR6", "UR7")),
            ("policy", ()),
        ]
        assert parsed.coordinates == ("UR18", "UR19", "UR20")

    @pytest.mark.parametrize(
        ("text", "coordinates"),
        [
            ("UTMASTG.2D [UR8], [UR4]", ("UR9", "UR10")),
            ("UTMAREDG.1D.ADD [UR8], [UR4]", ("UR9",)),
            ("UTMAPF.L2.2D [UR8], [UR4]", ("UR8", "UR9")),
            ("UTMALDG.2D.GATHER4 [UR8], [UR6]", ("UR10", "UR11", "UR12", "UR13", "UR14")),
            ("LDG.E R4, [R2.64]", ()),
        ],
    )
    def test_coordinates(self, text: str, coordinates: tuple[str, ...]) -> None:
        assert parse(text).coordinates == coordinates

    @pytest.mark.parametrize(
        ("text", "roles"),
        [
            (
                "UBLKCP.S.G [UR8], [UR6], UR4",
                [("destination", "shared", "UR8"), ("barrier", "shared", "UR9"), ("source", "global", "UR6")],
            ),
            ("UBLKCP.G.S [UR6], [UR5], UR4", [("destination", "global", "UR6"), ("source", "shared", "UR5")]),
            (
                "UBLKRED.S.S.ADD.U64 [UR8], [UR4], UR5",
                [("destination", "shared", "UR8"), ("barrier", "shared", "UR9"), ("source", "shared", "UR4")],
            ),
            ("UTMACCTL.PF [UR6]", [("descriptor", "generic", "UR6")]),
            ("UTMAPF.L2.2D [UR8], [UR4]", [("descriptor", "generic", "UR4")]),
            ("UTCBAR [UR13], URZ", [("barrier", "shared", "UR13")]),
        ],
    )
    def test_bulk_copies_have_an_address_on_each_side(
        self, text: str, roles: list[tuple[str, str, str]]
    ) -> None:
        assert [(a.role, a.space or "", a.uniform or "") for a in parse(text).addresses] == roles

    def test_a_barrier_follows_the_address_of_an_async_store(self) -> None:
        addresses = parse("STAS.128 [R26.64], R8").addresses
        assert [(a.role, a.base, a.base_bits) for a in addresses] == [
            ("destination", "R26", 32),
            ("barrier", "R27", 32),
        ]

    def test_constant_operands_are_no_addresses_of_an_access(self) -> None:
        assert parse("FADD R1, R2, c[0x0][0x160]").addresses == ()
        assert parse("LDC R1, c[0x0][0x28]").addresses[0].bank == 0


class TestDefinitions:
    """A few forms that are easily read wrongly; the rest is held against the oracle above."""

    @pytest.mark.parametrize(
        ("text", "defines", "reads"),
        [
            ("LDG.E.128 R4, desc[UR4][R2.64]", "R4 R5 R6 R7", "R2 R3 UR4 UR5"),
            ("@P1 IADD3 R4, P2, R56, -R3, RZ", "R4 P2", "P1 R56 R3"),
            ("IADD3.X R73, PT, PT, R79, UR22, RZ, P4, !PT", "R73", "R79 UR22 P4"),
            ("LOP3.LUT P0, RZ, R11, 0xffff, RZ, 0xc0, !PT", "P0", "R11"),
            ("LEA R2, P0, R27, UR4, 0x2", "R2 P0", "R27 UR4"),
            ("IMAD.WIDE.U32 R2, P1, R6, 0x80, R4", "R2 R3 P1", "R6 R4 R5"),
            ("IMAD.HI.U32 R8, R34.reuse, UR28, R40", "R8", "R34 UR28 R40 R41"),
            ("ISETP.GE.AND P1, PT, R3, R0, !P2", "P1", "R3 R0 P2"),
            ("VOTE.ANY R2, P0, !P1", "R2 P0", "P1"),
            ("VOTE.ALL P0, !P0", "P0", "P0"),
            ("SHFL.IDX P0, R7, R3, R0, 0x1f", "P0 R7", "R3 R0"),
            ("SEL R0, R5, R2, P0", "R0", "R5 R2 P0"),
            ("R2P PR, R66, 0xf", "P0 P1 P2 P3", "R66"),
            ("R2P PR, R66", "P0 P1 P2 P3 P4 P5 P6", "R66"),
            ("P2R R12, PR, R16, 0x5", "R12", "R16 P0 P2"),
            ("UP2UR UR7, UPR, URZ, 0x8", "UR7", "UP3"),
            ("BMOV.32.CLEAR R17, B6", "R17 B6", "B6"),
            ("BMOV.32 B6, R17", "B6", "R17"),
            ("BSSY B0, 0x7f00", "B0", ""),
            ("BSYNC B0", "", "B0"),
            ("BREAK B1", "B1", "B1"),
            ("CS2R R6, SRZ", "R6 R7", ""),
            ("CS2R.32 R6, SR_CLOCKLO", "R6", ""),
            ("DFMA R44, R34, -|R2|, 1", "R44 R45", "R34 R35 R2 R3"),
            ("F2I.U64.F64.TRUNC R10, R4", "R10 R11", "R4 R5"),
            ("HMMA.16816.F32 R4, R36.reuse, R40, R4", "R4 R5 R6 R7", "R36 R37 R38 R39 R40 R41 R4 R5 R6 R7"),
            ("SYNCS.ARRIVE.TRANS64 R4, [R33+URZ], R35", "R4 R5", "R33 R35"),
            ("SYNCS.EXCH.64 URZ, [UR7], UR8", "", "UR7 UR8 UR9"),
            ("ATOMG.E.CAS.64.STRONG.GPU PT, R4, [R8.64], R10, R12", "R4 R5", "R8 R9 R10 R11 R12 R13"),
            ("RET.REL.NODEC R34 0x7f00", "", "R34 R35"),
            ("BRX R2 -0x17b0 (*\"BRANCH_TARGETS .L_x_299,.L_x_300\"*)", "", "R2 R3"),
            ("LDG.E.ENL2.256 R8, R4, desc[UR4][R2.64]", "R8 R9 R10 R11 R4 R5 R6 R7", "R2 R3 UR4 UR5"),
            ("TEX RZ, R12, R6, UR4, 2D, 0x1", "R12", None),
            ("FADD RZ, RZ, RZ", "", ""),
            ("HGMMA.64x8x16.F32 R24, gdesc[UR4], RZ, !UPT, gsb0", "R24 R25 R26 R27", "UR4 UR5 UR6 UR7"),
            ("HGMMA.64x8x16.F16 R24, R4, gdesc[UR4], RZ, gsb0", "R24 R25", "R4 R5 R6 R7 UR4 UR5 UR6 UR7"),
            ("UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], tmem[UR10], idesc[UR11], UR12, UP0", "",
             "UR4 UR5 UR6 UR7 UR8 UR10 UR11 UR12 UR13 UR14 UR15 UP0"),
            ("UTCQMMA.2CTA gdesc[UR12], gdesc[UR6], tmem[UR8], tmem[UR16], idesc[UR17], tmem[UR14], UP6", "",
             "UR12 UR13 UR6 UR7 UR8 UR16 UR17 UR14 UR15 UP6"),
            ("HMMA.884.F32.F32.STEP0 R16, R8.ROW, R12.COL, R8", "R16 R17", "R8 R9 R12 R13"),
            ("IMMA.16832.S8.S8.SAT R4, R8, R12, R4", "R4 R5 R6 R7", "R8 R9 R10 R11 R12 R13 R4 R5 R6 R7"),
            ("DMMA.8x8x4 R4, R68, R72, R4", "R4 R5 R6 R7", "R68 R69 R72 R73 R4 R5 R6 R7"),
            ("BMMA.168256.AND.POPC R4, R8, R12, R4", "R4 R5 R6 R7", "R8 R9 R10 R11 R12 R13 R4 R5 R6 R7"),
            ("LDTM.16dp256bit.x2 R12, tmem[UR12]", "R12 R13 R14 R15 R16 R17 R18 R19", "UR12"),
            ("LDTM.STAT.x4.MIN.F32 R0, R4, tmem[UR6]", "R0 R4 R5 R6 R7", "UR6"),
            ("STTM.x2 tmem[UR26], R164", "", "UR26 R164 R165"),
            ("FFMA2 R134, R134.F32x2.HI_LO, UR20.F32, R4.reuse.F32", "R134 R135", "R134 R135 UR20 R4"),
            ("SULD.D.BA.3D.128.STRONG.SM R8, [R4], UR4", "R8 R9 R10 R11", None),
        ],
    )  # fmt: skip
    def test_names_every_single_register(self, text: str, defines: str, reads: str | None) -> None:
        parsed = parse(text)
        assert set(parsed.defines or ()) == set(defines.split())
        assert parsed.reads is None if reads is None else set(parsed.reads or ()) == set(reads.split())

    def test_calls_may_change_anything(self) -> None:
        assert parse("CALL.REL.NOINC 0x7f0000").defines is None


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("@!P0 BRA 0x7f4a237a0b30", 0x7F4A237A0B30),
        ("BRA.U !UP0, 0x80", 0x80),
        ("BSSY B0, 0x15f0", 0x15F0),
        ("CALL.REL.NOINC `($foo)", None),
        ("BRX R2 -0x17b0", None),
        ("MOV R0, 0x80", None),
        ("EXIT", None),
    ],
)
def test_branch_targets(text: str, target: int | None) -> None:
    assert parse(text).target() == target


def test_template_names_with_commas_are_one_operand() -> None:
    parsed = parse("CALL.REL.NOINC `(void f<int, 4>(int const*, float))")
    assert len(parsed.operands) == 1
    assert parsed.access == "call"


class TestRegisters:
    def test_runs_stop_at_the_end_of_the_file(self) -> None:
        assert registers.run("R253", 4) == ("R253", "R254")
        assert registers.run("RZ", 2) == ()
        assert registers.run("P6", 1) == ("P6",)

    @pytest.mark.parametrize(
        "name", ["RZ", "PT", "URZ", "UPT", "R255", "P7", "X1", "R", "", "R1x", "R0001", "B16"]
    )
    def test_what_is_no_register(self, name: str) -> None:
        assert registers.split(name) is None


WILD_OPERANDS = tuple(
    "R1 RZ -R2 |R3| P0 !PT UR4 [R2.64+0x4] desc[UR4][R2.64] c[0x0][0x4] 0x10 gdesc[UR4] tmem[UR4] PR B0 `(x)"  # noqa: SIM905
    " 64 1.5 [R2 ] + idesc[UR4] desc[UR4] 2D SR_TID.X UPR UP3 R254 UR253".split()
)
WILD_MODIFIERS = tuple(
    "E 64 128 256 U8 WIDE X HI x4 2D S G F64 F32 16816 M88 4 PHASECHK 64x8x16 SP D CLEAR".split()  # noqa: SIM905
)


class TestHostileText:
    @pytest.mark.parametrize(
        "text",
        ["", " ", ";", "@P0", "@P9 EXIT", "lower case", "LDG.E R2, [R4", "X" * 70000, "\x00", "é", "LDG\nX"],
    )
    def test_hopeless_text_is_refused(self, text: str) -> None:
        with pytest.raises(CrashlabError):
            parse(text)

    def test_too_many_operands_are_refused(self) -> None:
        with pytest.raises(CrashlabError):
            parse("FADD " + ", ".join(["R1"] * 1000))

    @settings(max_examples=300, deadline=None)
    @given(st.text(max_size=200))
    @example("FADD R1, [" + "[" * 100)
    @example("LDG.E R2, desc[UR4]")
    @example("R2P PR, -0x5")
    def test_only_crashlab_errors_leave(self, text: str) -> None:
        _parse_or_refuse(text)

    @settings(max_examples=300, deadline=None)
    @given(
        st.sampled_from(sorted(opcodes.names())),
        st.lists(st.sampled_from(WILD_OPERANDS), max_size=9),
        st.lists(st.sampled_from(WILD_MODIFIERS), max_size=4),
    )
    def test_known_opcodes_with_wild_operands_stay_in_bounds(
        self, opcode: str, operands: list[str], modifiers: list[str]
    ) -> None:
        text = ".".join([opcode, *modifiers]) + " " + ", ".join(operands)
        parsed = _parse_or_refuse(text)
        for name in (*((parsed and parsed.defines) or ()), *((parsed and parsed.reads) or ())):
            assert registers.split(name) is not None

    def test_64_kib_of_brackets_take_no_time(self) -> None:
        for text in (
            "FADD R1" + "[R2]" * 16000,
            "FADD " + "a" * 65000,
            "FADD " + "[" * 65000,
            "FADD c[" + "]a" * 30000,
        ):
            _parse_or_refuse(text)


def _parse_or_refuse(text: str) -> ParsedInstruction | None:
    try:
        return parse(text)
    except CrashlabError:
        return None


def test_the_oracle_reader_reads_marks_by_column() -> None:
    listing = "\n".join(
        (
            "                 // |       GPR    |  PRED  |  UGPR  |",
            "                 // |              |        |        |",
            "                 // |  # 0123      | # 01   | # 012  |",
            "  /*0010*/  IMAD.WIDE R2, R0, UR2, R2 ;  // |  3 v xx      |        | 1   v  |",
            "  /*0020*/  @P1 EXIT ;  // |  3 :         | 1  v   |        |",
        )
    )
    assert list(rows(listing)) == [
        Row(0x10, "IMAD.WIDE R2, R0, UR2, R2", frozenset({"R2", "R3"}), frozenset({"R0", "R2", "R3", "UR2"})),
        Row(0x20, "@P1 EXIT", frozenset(), frozenset({"P1"})),
    ]
