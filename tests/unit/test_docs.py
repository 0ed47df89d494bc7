"""Generated pages are up to date; links of the documentation point at files that exist."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("script", sorted(path.name for path in (ROOT / "scripts").glob("gen_*.py")))
def test_generated_files_are_up_to_date(script: str) -> None:
    argv = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    found = subprocess.run(argv, check=False, capture_output=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("path", sorted((ROOT / "crashlab").rglob("*.schema.json")), ids=lambda p: p.name)
def test_the_descriptions_of_a_schema_carry_no_indentation_of_the_source(path: Path) -> None:
    # Compilers before Python 3.13 leave it in docstrings, so that the file would depend on who wrote it.
    kinds = json.loads(path.read_text())["$defs"].values()
    descriptions = [kind["description"] for kind in kinds]
    assert descriptions
    assert [text for text in descriptions if text != " ".join(text.split())] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_point_at_files_that_exist(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if not target.startswith(("http:", "https:", "mailto:")):
            assert (page.parent / target).exists(), target


def test_the_diffs_of_the_contributing_page_stand_in_the_files_that_they_name() -> None:
    lines: list[str] = []
    checked = 0
    for block in re.findall(r"```diff\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("+++ "):
                lines = (ROOT / line[4:]).read_text().splitlines()
            elif not line.startswith("---"):
                assert line[1:] in lines, line
                checked += 1
    assert checked > 10
