"""What each opcode defines, uses and touches: one row an opcode, as data.

A row is words separated by blanks:

- ``d0 d1 d2``: the first 0, 1 or 2 operands are defined. ``da``: leading predicates, then one
  register, then predicates (carries). ``dp``: leading predicates. ``dm``: every operand before the
  first address. ``d?``: not known.
- ``w=D:S``: registers per defined and per used operand (predicates not counted); the last digit
  repeats; ``m`` is the size of the memory access. Default ``1:1``.
- ``NAME=D:S``: the same when the modifier NAME is there; ``A+B=D:S`` when all are. The entry with the
  most modifiers wins.
- ``f=NAME``: a function of :mod:`crashlab.sass.shapes` gives the widths.
- ``@access:space``; ``x64``: addresses without a width are 64 bits wide when ``.E`` is there.

A modifier that changes operand sizes (:data:`SIZING`) and that the row does not mention makes the
definition *unknown*: a new form of a known opcode must not be read as the old one. Checked against
the register life ranges of nvdisasm with ``scripts/sass/check_operands.py``.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

from typing import NamedTuple

SIZING = frozenset({"64", "U64", "S64", "F64", "96", "128", "256", "WIDE", "HI64", "x2", "x4", "x8"})

_FLOAT = "FADD FFMA FMUL FMNMX FMNMX3 FSEL FSET FSWZADD FADD32I FFMA32I FMUL32I FHADD FHFMA QMUL4"
_HALF = "HADD2 HFMA2 HMUL2 HMNMX2 HSET2 HADD2_32I HFMA2_32I HMUL2_32I VHMNMX"
_INTEGER = (
    "BMSK BREV FLO IABS IDP IDP4A ISCADD ISCADD32I LOP LOP32I POPC PRMT SGXT SHL SHR VABSDIFF"
    " VABSDIFF4 VIADD MOV32I I2FP F2FP F2IP I2IP IADD32I IMUL32I"
)
_UNIFORM = (
    "UBMSK UBREV UFLO UIABS UPOPC UPRMT USGXT UVIADD UFADD UFFMA UFMUL UFMNMX UFSEL UFSET UI2F"
    " UI2FP UF2I UF2F UF2FP UFRND UF2IP"
)
_NO_OPERANDS = "NOP YIELD ENDCOLLECTIVE LDGDEPBAR ACQBULK PREEXIT UTMACMDFLUSH PMTRIG"


def _rows(names: str, row: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), row)


_ROWS: dict[str, str] = {
    **_rows(_FLOAT, "d1"),
    **_rows(_HALF, "d1"),
    **_rows(_INTEGER, "d1"),
    **_rows(_UNIFORM, "d1"),
    **_rows("FADD2 FFMA2 FMUL2", "d1 f=packed"),
    **_rows("DADD DMUL DFMA", "d1 w=2:2"),
    "DMNMX": "da w=2:2",
    "DSETP": "d2 w=1:2",
    **_rows("FSETP HSETP2 PSETP UFSETP UPSETP PLOP3 UPLOP3", "d2"),
    **_rows("ISETP UISETP", "d2 U64=1:2 S64=1:2"),
    "MOVM": "d1 M832=2:1",
    "FCHK": "d1",
    "MUFU": "d1",
    "FRND": "d1 F64=2:2",
    "I2F": "d1 F64=2:1 U64=1:2 S64=1:2 F64+U64=2:2 F64+S64=2:2",
    "F2I": "d1 U64=2:1 S64=2:1 F64=1:2 F64+U64=2:2 F64+S64=2:2",
    "F2F": "d1 f=f2f",
    "I2I": "d1",
    **_rows("SHF USHF", "d1 U64=1:1 S64=1:1"),  # the type of the funnel's input, not of a register
    "IADD": "da 64=2:2",
    "IADD3": "da 64=2:2",
    "UIADD3": "da 64=2:2",
    **_rows("IMAD UIMAD", "da WIDE=2:112 HI=1:112"),
    **_rows("IMUL", "d1 WIDE=2:1"),
    **_rows("LEA ULEA", "da HI=1:1"),
    **_rows("LOP3 ULOP3", "da"),
    **_rows("IMNMX UIMNMX", "da S64=2:2 U64=2:2"),
    **_rows("VIMNMX UVIMNMX VIMNMX3 VIADDMNMX", "da"),
    **_rows("MOV UMOV", "d1 64=2:2"),
    **_rows("SEL USEL", "d1 64=2:2"),
    "S2R": "d1",
    "S2UR": "d1",
    "CS2R": "d1 w=2:1 32=1:1",
    "CS2UR": "d1 w=2:1 32=1:1",
    "R2UR": "da",
    "REDUX": "d1",
    "CREDUX": "d1",
    "VOTE": "f=vote",
    "VOTEU": "f=vote",
    "MATCH": "da U64=1:2",
    "SHFL": "da",
    "ELECT": "d2",
    "P2R": "f=from_predicates",
    "UP2UR": "f=from_predicates",
    "R2P": "f=to_predicates",
    "UR2UP": "f=to_predicates",
    "R2B": "d0",
    "B2R": "da",
    "LEPC": "d1 w=2:1",
    "BMOV": "f=bmov",
    # memory
    "LD": "dm w=m:1 x64 @load:generic",
    "LDG": "dm w=m:1 x64 @load:global",
    "LDGMC": "dm w=m:1 x64 @load:global",
    "LDS": "dm w=m:1 @load:shared",
    "LDL": "dm w=m:1 @load:local",
    "LDC": "dm w=m:1 @load:constant",
    "LDCU": "dm w=m:1 @load:constant",
    "ULDC": "dm w=m:1 @load:constant",
    "ST": "d0 w=1:m x64 @store:generic",
    "STG": "d0 w=1:m x64 @store:global",
    "STS": "d0 w=1:m @store:shared",
    "STL": "d0 w=1:m @store:local",
    **_rows("STAS", "d0 w=1:m @store:shared"),
    **_rows("REDAS", "d0 w=1:m @reduce:shared"),
    "ATOM": "dm w=m:m x64 @atomic:generic",
    "ATOMG": "dm w=m:m x64 @atomic:global",
    "ATOMS": "dm w=m:m @atomic:shared",
    "RED": "d0 w=1:m x64 @reduce:generic",
    "REDG": "d0 w=1:m x64 @reduce:global",
    "REDS": "d0 w=1:m @reduce:shared",
    "LDGSTS": "d0 @copy:global",
    "LDSM": "dm f=matrix_tile @load:shared",
    "STSM": "d0 f=matrix_tile @store:shared",
    "QSPC": "dm x64 w=1:1",
    "CCTL": "d0 x64 @cache:generic",
    "CCTLL": "d0 @cache:local",
    "SYNCS": "dm f=syncs @barrier:shared",
    "ARRIVES": "dm f=arrives @barrier:shared",
    # bulk and tensor copies
    "UTMALDG": "d0 f=tma_load @copy:tma",
    "UTMASTG": "d0 f=tma_store @copy:tma",
    "UTMAREDG": "d0 f=tma_store @copy:tma",
    "UTMAPF": "d0 f=tma_prefetch @prefetch:tma",
    "UTMACCTL": "d0 f=pairs @cache:tma",
    "UBLKCP": "d0 f=bulk @copy:tma",
    "UBLKRED": "d0 f=bulk @copy:tma",
    "UBLKPF": "d0 f=bulk_prefetch @prefetch:tma",
    # tensor cores and tensor memory
    **_rows("HMMA IMMA BMMA DMMA QMMA OMMA", "d1 f=mma"),
    **_rows("HGMMA IGMMA BGMMA QGMMA", "d1 f=warpgroup_mma @matrix:tensor"),
    "LDTM": "dm f=tensor_memory @load:tensor",
    "STTM": "d0 f=tensor_memory @store:tensor",
    **_rows("UTCHMMA UTCQMMA UTCIMMA UTCOMMA", "d0 f=utc_mma @matrix:tensor"),
    "UTCCP": "d0 @copy:tensor",
    "UTCSHIFT": "d0 @copy:tensor",
    "UTCBAR": "d0 @barrier:shared",
    "UTCATOMSWS": "f=utc_atom",
    "UVIRTCOUNT": "d0",
    # textures and surfaces
    **_rows("TEX TLD TLD4 TXD", "f=texture @load:texture"),
    "TXQ": "f=texture",
    **_rows("TMML SUQUERY", "d?"),
    "SULD": "f=surface_load @load:surface",
    "SUST": "d0 f=opaque @store:surface",
    "SUATOM": "d? @atomic:surface",
    "SURED": "d0 f=opaque @reduce:surface",
    # control flow
    "BRA": "d0 @branch",
    "BRX": "d0 w=1:2 @branch",
    "BRXU": "d0 w=1:2 @branch",
    "JMP": "d0 @branch",
    "JMX": "d0 w=1:2 @branch",
    "JMXU": "d0 w=1:2 @branch",
    "CALL": "d? w=1:2 @call",
    "RET": "d0 w=1:2 @return",
    "EXIT": "d0 @exit",
    "KILL": "d0 @exit",
    "BPT": "d0 @trap",
    "RTT": "d0 @trap",
    "BSSY": "d1",
    "BSYNC": "d0 @barrier",
    "BREAK": "f=break",
    "WARPSYNC": "d0 @barrier",
    "NANOSLEEP": "d0",
    "RPCMOV": "d1 64=2:2",
    # barriers and fences
    "BAR": "d0 @barrier",
    "UCGABAR_ARV": "d0 @barrier",
    "UCGABAR_WAIT": "d0 @barrier",
    "DEPBAR": "d0",
    "WARPGROUP": "d0",
    "WARPGROUPSET": "d0",
    **_rows("MEMBAR FENCE ERRBAR CGAERRBAR", "d0 @fence"),
    "USETMAXREG": "dp",
    "UGETNEXTWORKID": "d0 @copy:shared",
    **_rows(_NO_OPERANDS, "d0"),
}


class Row(NamedTuple):
    """One opcode. ``destinations`` is None when it is not known what the opcode defines."""

    destinations: str | None
    widths: tuple[tuple[frozenset[str], str, str], ...]
    shape: str | None
    access: str | None
    space: str | None
    wide_addresses: bool


_cache: dict[str, Row | None] = {}


def row(opcode: str) -> Row | None:
    """The row of an opcode, or None when the table does not have it."""
    if opcode not in _ROWS:
        return None
    if opcode not in _cache:
        _cache[opcode] = _compile(_ROWS[opcode])
    return _cache[opcode]


def names() -> frozenset[str]:
    """Every opcode that the table knows."""
    return frozenset(_ROWS)


def _compile(text: str) -> Row:
    destinations, shape, access, space, wide = None, None, None, None, False
    widths = [(frozenset[str](), "1", "1")]
    for word in text.split():
        if word[0] == "@":
            access, _, after = word[1:].partition(":")
            space = after or None
        elif word == "x64":
            wide = True
        elif "=" not in word:
            destinations = None if word == "d?" else word
        elif word.startswith("f="):
            shape = word[2:]
        else:
            key, _, value = word.partition("=")
            defined, _, used = value.partition(":")
            modifiers = frozenset[str]() if key == "w" else frozenset(key.split("+"))
            widths.append((modifiers, defined, used))
    # The most specific entry first; of equals the later one (a row's `w=` replaces the default).
    widths.reverse()
    ordered = sorted(widths, key=lambda entry: -len(entry[0]))
    return Row(destinations, tuple(ordered), shape, access, space, wide)
