"""One unit of ``.debug_line``: its header and the state machine that turns opcodes into rows.

DWARF 2 to 5 (dwarfstd.org), plus NVIDIA's two extended opcodes. Both take ULEB operands: ``0x90``
(inlined call) a context and a function name, ``0x91`` (set function name) a function name. The
context is the number, from 1 and counted within the sequence, of the row that is the call site;
0 means not inlined. The name is an offset into ``.debug_str``. (elfutils counts contexts in the
whole table; the tables that ptxas 12.8 and 13.0 write make sense only within the sequence.)
"""

from __future__ import annotations

from crashlab.errors import MalformedCubin

_MAX_ENTRIES = 1 << 14
"""Most directories or files of one unit; real units have a few hundred."""
_MAX_COLUMNS = 16
"""Most columns of a DWARF 5 table; five kinds are defined."""
_MAX_TEXT = 1 << 12
"""Longest text that is taken from a string section, in bytes."""
_MASK = (1 << 64) - 1

_FIXED_FORMS = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
_FORM_STRING, _FORM_BLOCK, _FORM_STRP, _FORM_UDATA, _FORM_LINE_STRP = 0x08, 0x09, 0x0E, 0x0F, 0x1F
_CONTENT_PATH, _CONTENT_DIRECTORY = 1, 2


Row = tuple[int, int, int, int, int]
"""Address (counted from the operand of DW_LNE_set_address), file, line, context, function name."""


class Unit:
    """A unit's header. Positions count from the start of ``.debug_line``.

    ``files`` has name and directory of each value of the file register (the first is None before DWARF
    5). ``operands`` has the number of operands of each standard opcode.
    """

    __slots__ = (
        "directories", "end", "files", "instruction_bytes", "line_base", "line_range", "operands", "program",
    )  # fmt: skip

    def __init__(self, program: int, end: int) -> None:
        self.program, self.end = program, end
        self.instruction_bytes = self.line_base = self.line_range = 0
        self.operands = b""
        self.directories: list[str] = []
        self.files: list[tuple[str | None, int]] = []

    def path(self, file: int) -> str | None:
        """Directory and name of a file as the table spells them; None when the table has no such file."""
        name, directory = self.files[file] if file < len(self.files) else (None, 0)
        if not name:
            return None
        return _join(self.directories[directory] if directory < len(self.directories) else "", name)


class Strings:
    """The string sections that a DWARF 5 header may point into."""

    __slots__ = ("debug_line_str", "debug_str")

    def __init__(self, debug_str: bytes, debug_line_str: bytes) -> None:
        self.debug_str, self.debug_line_str = debug_str, debug_line_str


class Cursor:
    """A bounds-checked reading position. Leaving ``end`` raises MalformedCubin."""

    __slots__ = ("at", "data", "end")

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self.data, self.at, self.end = data, at, min(end, len(data))

    def skip(self, size: int) -> int:
        """Step over ``size`` bytes; returns where they start."""
        start = self.at
        if not 0 <= size <= self.end - start:
            raise MalformedCubin("the line table of a code image ends inside an entry")
        self.at = start + size
        return start

    def byte(self) -> int:
        """One byte."""
        return self.data[self.skip(1)]

    def number(self, size: int) -> int:
        """An unsigned little-endian number of ``size`` bytes."""
        start = self.skip(size)
        return int.from_bytes(self.data[start : self.at], "little")

    def uleb(self) -> int:
        """An unsigned LEB128 of at most ten bytes."""
        value = shift = 0
        while shift < 70:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise MalformedCubin("the line table of a code image holds a number longer than 64 bits")

    def sleb(self) -> int:
        """A signed LEB128 of at most ten bytes."""
        start = self.at
        value = self.uleb()
        return value - (1 << 7 * (self.at - start)) if self.data[self.at - 1] & 0x40 else value

    def text(self) -> str:
        """A NUL-terminated string."""
        end = self.data.find(b"\0", self.at, self.end)
        if end < 0:
            raise MalformedCubin("the line table of a code image ends inside a name")
        start, self.at = self.at, end + 1
        return self.data[start:end].decode("utf-8", "backslashreplace")


def unit_extent(data: bytes, start: int) -> tuple[int, int, bool]:
    """Of the unit at ``start``: the position after its length, its end, and whether it is 64-bit DWARF."""
    cursor = Cursor(data, start, len(data))
    length, wide = cursor.number(4), False
    if length == 0xFFFFFFFF:
        length, wide = cursor.number(8), True
    if length > len(data) - cursor.at:
        raise MalformedCubin("a unit of the line table of a code image lies outside the table")
    return cursor.at, cursor.at + length, wide


def read_unit(data: bytes, start: int, strings: Strings) -> Unit:
    """The header of the unit at ``start``."""
    body, end, wide = unit_extent(data, start)
    cursor = Cursor(data, body, end)
    version = cursor.number(2)
    if not 2 <= version <= 5:
        raise MalformedCubin(f"a line table of DWARF version {version} in a code image")
    if version >= 5:
        cursor.skip(2)  # address and segment selector sizes
    header = cursor.number(8 if wide else 4)
    program = cursor.at + header
    if program > end:
        raise MalformedCubin("the header of a line table in a code image is longer than its unit")
    cursor.end = program
    unit = Unit(program, end)
    unit.instruction_bytes = cursor.byte()
    if version >= 4:
        cursor.skip(1)  # operations an instruction: 1, as GPUs are no VLIW machines to DWARF
    cursor.skip(1)  # default_is_stmt: every row counts here
    base = cursor.byte()
    unit.line_base = base - 256 if base > 127 else base
    unit.line_range, opcode_base = cursor.byte(), cursor.byte()
    operands_at = cursor.skip(max(opcode_base - 1, 0))
    unit.operands = b"\0" + data[operands_at : cursor.at]
    if version >= 5:
        _read_tables(cursor, unit, strings, 8 if wide else 4)
    else:
        _read_lists(cursor, unit)
    return unit


def _read_lists(cursor: Cursor, unit: Unit) -> None:
    """The tables of DWARF 2 to 4: names, each list ended by an empty one. Directory 0 is not named."""
    unit.directories.append("")
    while len(unit.directories) < _MAX_ENTRIES and (name := cursor.text()):
        unit.directories.append(name)
    unit.files.append((None, 0))
    while len(unit.files) < _MAX_ENTRIES and (name := cursor.text()):
        unit.files.append((name, cursor.uleb()))
        cursor.uleb()  # time
        cursor.uleb()  # length


def _read_tables(cursor: Cursor, unit: Unit, strings: Strings, width: int) -> None:
    """The tables of DWARF 5, which describe their own columns; directory 0 is the compilation's."""
    names = [name or "" for name, _ in _entries(cursor, strings, width)]
    unit.directories = [_join(names[0], name) if index else name for index, name in enumerate(names)]
    unit.files = _entries(cursor, strings, width)


def _entries(cursor: Cursor, strings: Strings, width: int) -> list[tuple[str | None, int]]:
    columns = cursor.byte()
    if columns > _MAX_COLUMNS:
        raise MalformedCubin(f"a line table in a code image claims {columns} columns")
    formats = [(cursor.uleb(), cursor.uleb()) for _ in range(columns)]
    count = cursor.uleb()
    if count > _MAX_ENTRIES or (count and not formats):
        raise MalformedCubin(f"a line table in a code image claims {count} names")
    found: list[tuple[str | None, int]] = []
    for _ in range(count):
        path: str | None = None
        directory = 0
        for content, form in formats:
            value = _form(cursor, form, strings, width)
            if content == _CONTENT_PATH and isinstance(value, str):
                path = value
            elif content == _CONTENT_DIRECTORY and isinstance(value, int):
                directory = value
        found.append((path, directory))
    return found


def _form(cursor: Cursor, form: int, strings: Strings, width: int) -> str | int | None:
    if form in _FIXED_FORMS:
        return cursor.number(_FIXED_FORMS[form])
    if form == _FORM_STRING:
        return cursor.text()
    if form in (_FORM_STRP, _FORM_LINE_STRP):
        table = strings.debug_line_str if form == _FORM_LINE_STRP else strings.debug_str
        return string_at(table, cursor.number(width))
    if form == _FORM_UDATA:
        return cursor.uleb()
    if form == _FORM_BLOCK:
        cursor.skip(cursor.uleb())
        return None
    raise MalformedCubin(f"a line table in a code image uses form {form:#x}")


def string_at(table: bytes, offset: int) -> str | None:
    """The text at ``offset`` of a string section, at most 4 KiB; None when it is not there or empty."""
    return table[offset : offset + _MAX_TEXT].partition(b"\0")[0].decode("utf-8", "backslashreplace") or None


def _join(directory: str, name: str) -> str:
    if name.startswith("/") or not directory:
        return name
    return f"{directory.rstrip('/')}/{name}"


class Sequence:
    """Runs one sequence from ``at``: ``rows`` (the last one is its end), ``end`` the position after it.

    ``operand`` is what its DW_LNE_set_address holds, ``operand_at`` where that stands (the place a
    relocation names); both None without one. ``steps`` opcodes were run, at most ``limit``.
    """

    __slots__ = (
        "_address", "_context", "_cursor", "_done", "_file", "_line", "_name", "_unit",
        "end", "operand", "operand_at", "rows", "steps",
    )  # fmt: skip

    def __init__(self, data: bytes, unit: Unit, at: int, limit: int) -> None:
        self.rows: list[Row] = []
        self.operand: int | None = None
        self.operand_at: int | None = None
        self.steps = 0
        self._unit = unit
        self._cursor = Cursor(data, at, unit.end)
        self._address = self._context = self._name = 0
        self._file = self._line = 1
        self._done = False
        self._run(limit)
        self.end = self._cursor.at

    def _run(self, limit: int) -> None:
        cursor, first_special = self._cursor, len(self._unit.operands)
        while not self._done and cursor.at < cursor.end:
            self.steps += 1
            if self.steps > limit:
                raise MalformedCubin("the line programs of a code image are too long")
            opcode = cursor.byte()
            if opcode >= first_special:
                self._special(opcode - first_special, emit=True)
            elif opcode == 0:
                self._extended()
            else:
                self._standard(opcode)

    def _emit(self) -> None:
        self.rows.append((self._address, self._file, self._line, self._context, self._name))

    def _special(self, value: int, *, emit: bool) -> None:
        unit = self._unit
        if unit.line_range == 0:
            raise MalformedCubin("a line program in a code image has a line range of 0")
        self._advance(value // unit.line_range * unit.instruction_bytes)
        if emit:
            self._line += unit.line_base + value % unit.line_range
            self._emit()

    def _advance(self, size: int) -> None:
        self._address = (self._address + size) & _MASK

    def _standard(self, opcode: int) -> None:
        cursor = self._cursor
        if opcode == 1:  # copy
            self._emit()
        elif opcode == 2:  # advance_pc
            self._advance(cursor.uleb() * self._unit.instruction_bytes)
        elif opcode == 3:  # advance_line
            self._line += cursor.sleb()
        elif opcode == 4:  # set_file
            self._file = cursor.uleb()
        elif opcode == 8:  # const_add_pc: what special opcode 255 advances by
            self._special(255 - len(self._unit.operands), emit=False)
        elif opcode == 9:  # fixed_advance_pc
            self._advance(cursor.number(2))
        else:  # columns, statement and block marks, opcodes of later versions: only their length matters
            for _ in range(self._unit.operands[opcode]):
                cursor.uleb()

    def _extended(self) -> None:
        cursor = self._cursor
        size = cursor.uleb()
        if size == 0:
            raise MalformedCubin("a line program in a code image has an extended opcode without a code")
        start = cursor.skip(size)
        operands = Cursor(cursor.data, start + 1, cursor.at)
        opcode = cursor.data[start]
        if opcode == 1:  # end_sequence
            self._emit()
            self._done = True
        elif opcode == 2 and self.operand is None:  # set_address
            self.operand_at = start + 1
            self.operand = operands.number(min(size - 1, 8))
            self._address = 0
        elif opcode == 2:  # a second one moves within the same section, relative to the first
            self._address = (operands.number(min(size - 1, 8)) - (self.operand or 0)) & _MASK
        elif opcode == 0x90:
            self._context, self._name = operands.uleb(), operands.uleb()
        elif opcode == 0x91:
            self._name = operands.uleb()
