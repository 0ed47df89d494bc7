"""An artificial code image with as many function symbols as a test wants."""

from __future__ import annotations

import struct


def cubin_with_symbols(count: int, *, address: int, spread: int = 64) -> bytes:
    """An EM_CUDA image: ``.text.k`` at ``address`` holds kernel ``k``; ``count`` symbols in other sections.

    ``spread`` further empty code sections share the other symbols, as in a framework's module.
    """
    names = bytearray(b"\0k\0")
    symbols = [
        struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0),
        struct.pack("<IBBHQQ", 1, 0x12, 0x10, 1, address, 4096),
    ]
    for number in range(max(0, count - 2)):
        at = len(names)
        names += b"_Z%dfunction_%06dv\0" % (15, number)
        section = 2 + number % spread
        symbols.append(
            struct.pack("<IBBHQQ", at, 0x12, 0, section, address + (section << 20) + number * 16, 16)
        )
    shstr = bytearray(b"\0")

    def name(text: str) -> int:
        at = len(shstr)
        shstr.extend(text.encode() + b"\0")
        return at

    code, table = bytes(4096), b"".join(symbols)
    at = 64
    headers = [struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    headers.append(struct.pack("<IIQQQQIIQQ", name(".text.k"), 1, 6, address, at, len(code), 0, 0, 128, 0))
    for number in range(2, 2 + spread):
        headers.append(
            struct.pack(
                "<IIQQQQIIQQ", name(f".text.f{number}"), 1, 6, address + (number << 20), at, 16, 0, 0, 128, 0
            )
        )
    at += len(code)
    strtab_index = len(headers) + 1
    headers.append(
        struct.pack("<IIQQQQIIQQ", name(".symtab"), 2, 0, 0, at, len(table), strtab_index, 0, 8, 24)
    )
    at += len(table)
    headers.append(struct.pack("<IIQQQQIIQQ", name(".strtab"), 3, 0, 0, at, len(names), 0, 0, 1, 0))
    at += len(names)
    own = name(".shstrtab")
    headers.append(struct.pack("<IIQQQQIIQQ", own, 3, 0, 0, at, len(shstr), 0, 0, 1, 0))
    at += len(shstr)
    ident = b"\x7fELF\x02\x01\x01\x33\x07" + bytes(7)
    header = ident + struct.pack(
        "<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, at, 90, 64, 0, 0, 64, len(headers), len(headers) - 1
    )
    return header + code + table + bytes(names) + bytes(shstr) + b"".join(headers)
