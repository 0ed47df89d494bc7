"""Line tables held against NVIDIA's own reader, instruction by instruction."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import pytest

from crashlab.cubin.elf import Section
from tests.unit.cubin.images import built, cubin, raw

SECTION = re.compile(r"\s*\.section\s+([^,\s]+),")
POSITION = re.compile(r'\s*//## File "([^"]*)", line (\d+)')
INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s")


def nvdisasm() -> str:
    folders = [Path(sysconfig.get_path(kind)) / "nvidia" for kind in ("purelib", "platlib")]
    found = [path for folder in folders for path in folder.glob("*/bin/nvdisasm")]
    if not found:
        pytest.skip("nvdisasm is not installed")
    return str(found[0])


@pytest.mark.integration
@pytest.mark.parametrize(
    "name", [name for name in built() if name.startswith("shapes") and "object" not in name]
)
def test_every_instruction_has_the_position_and_the_chain_that_nvdisasm_prints(
    name: str, tmp_path: Path
) -> None:
    file = tmp_path / "image.cubin"
    file.write_bytes(raw(name))
    done = subprocess.run(
        [nvdisasm(), "-gi", str(file)], capture_output=True, text=True, check=True, timeout=120
    )
    image = cubin(name)
    section: Section | None = None
    chain: list[tuple[str | None, int | None]] = []
    complete, compared = True, 0
    for line in done.stdout.splitlines():
        if found := SECTION.match(line):
            section = image.elf.find(found[1]) if found[1].startswith(".text") else None
            chain = []
        elif found := POSITION.match(line):
            chain = [] if complete else chain
            chain.append((found[1], int(found[2])))
            complete = False
        elif section is not None and (found := INSTRUCTION.match(line)):
            complete = True
            source = image.lines.source(section, int(found[1], 16))
            frames = () if source is None else (source, *source.inlined)
            assert [(frame.file, frame.line) for frame in frames] == chain, (section.name, found[1])
            compared += 1
    assert compared > 80
