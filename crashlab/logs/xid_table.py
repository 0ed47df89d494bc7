"""Xid numbers of NVIDIA's kernel driver: meaning and what kind of trouble each one points to.

Own wording, after NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors) and the lines seen with
driver 580. Groups: ``application`` (a kernel or the program did something wrong), ``consequence``
and ``cleanup`` (follow another error), ``hardware`` (hardware or firmware: software hypotheses step
back), ``timeout``, ``driver``. An application group does not exclude hardware; it is merely usual.
"""

from __future__ import annotations

from typing import NamedTuple


class XidKind(NamedTuple):
    """Meaning and group of one Xid number."""

    meaning: str
    group: str


_TABLE = """\
8 timeout the GPU stopped processing: a channel made no progress
11 application invalid or corrupted push buffer
12 driver the driver failed while handling a GPU exception
13 application graphics engine exception: a kernel's memory access or instruction was refused
16 hardware the display engine hung
18 hardware bus mastering was disabled in PCI configuration space
25 application illegal push buffer address
31 application MMU fault: a memory access of the GPU hit an unmapped or protected page
32 driver invalid or corrupted push buffer stream (DMA controller)
38 driver driver firmware error
43 consequence the GPU stopped processing for one application after an earlier error of its own
44 driver graphics engine fault during a context switch
45 cleanup the driver tore down a channel of a process that failed or was killed
46 timeout the GPU stopped processing
48 hardware double-bit ECC error: memory content is lost
54 hardware auxiliary power is not connected
56 hardware display engine error
57 hardware error in programming the video memory interface
58 hardware unstable video memory interface, or corrupted clocks
60 driver video processor exception
61 hardware breakpoint of an internal micro-controller
62 hardware halt of an internal micro-controller
63 hardware a memory row was remapped, or a page retired
64 hardware remapping a row, or retiring a page, failed
65 driver video processor exception
66 driver illegal access by the driver
68 application video decoder (NVDEC) exception
69 application graphics engine class error: a method with an illegal value
74 hardware NVLink error
79 hardware the GPU has fallen off the bus
80 hardware corrupted data was sent to the GPU
81 hardware VGA subsystem error
92 hardware high rate of single-bit ECC errors
93 hardware the InfoROM was written against its protection
94 hardware contained ECC error: the affected application was ended
95 hardware uncontained ECC error: other applications may be affected
109 timeout context-switch time-out: a running kernel could not be preempted
110 hardware security fault
119 hardware the GPU's system processor (GSP) did not answer a call in time
120 hardware error in the GPU's system processor (GSP)
121 hardware corrected error on the chip-to-chip link
122 hardware error reading or writing the SPI flash
123 hardware error in the power management unit
137 hardware NVLink memory request without privilege (fabric address)
140 hardware unrecovered ECC error
143 hardware the GPU failed to initialise
144 hardware NVLink error (SAW)
145 hardware NVLink error (RLW)
146 hardware NVLink error (TLW)
147 hardware NVLink error (TREX)
148 hardware NVLink error (NVLPW)
149 hardware NVLink error (NETIR)
150 hardware NVLink error (MSE)
154 hardware the driver says which recovery the GPU needs (reset, reboot, drain)
156 hardware resources of the GPU were retired
158 hardware fatal time-out inside the GPU
160 hardware a memory channel was retired
171 hardware uncorrectable error in device memory (with Xid 48, 63, 64)
172 hardware uncorrectable error in on-chip memory (with Xid 48, 94, 95)
"""


def _row(line: str) -> tuple[int, XidKind]:
    number, group, meaning = line.split(maxsplit=2)
    return int(number), XidKind(meaning, group)


KINDS: dict[int, XidKind] = dict(_row(line) for line in _TABLE.splitlines())

# Low byte of the first ESR word of Xid 13 (HWW_WARP_ESR_ERROR): names as in the nouveau driver's
# gf100 table; 0x0b, 0x0e, 0x0f, 0x10 and 0x17 were seen with the text that the driver prints beside.
ESR_CODES: dict[int, str] = {
    0x01: "stack error",
    0x02: "API stack error",
    0x04: "program counter wrapped",
    0x05: "misaligned program counter",
    0x06: "program counter overflow",
    0x08: "misaligned register",
    0x09: "illegal instruction encoding",
    0x0B: "illegal instruction parameter",
    0x0C: "invalid constant address",
    0x0D: "register out of range",
    0x0E: "address out of range",
    0x0F: "misaligned address",
    0x10: "invalid address space",
    0x11: "illegal instruction parameter",
    0x12: "invalid constant address (LDC)",
    0x17: "MMU fault",
}


def kind_of(code: int) -> XidKind | None:
    """The table's row, or None for a number not listed."""
    return KINDS.get(code)
