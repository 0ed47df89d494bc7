"""The pages about sweeps say what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from crashlab.sweep.catalogue import bundled
from crashlab.sweep.plan import LOAD_OPTIONS, read_plan

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference" / "sweep-plan.md"
HOW_TO = ROOT / "docs" / "how-to" / "sweep.md"
KEY = re.compile(
    r"\.(?:text|word|words|texts|flag|number|whole|text_map|commands?|tables?|take)\(\s*\"([\w-]+)\""
)


@pytest.mark.parametrize(
    "module",
    ["plan/arms.py", "plan/budget.py", "plan/read.py", "plan/remote.py", "arms.py", "catalogue.py"],
)
def test_every_key_that_a_plan_may_have_is_documented(module: str) -> None:
    source = (ROOT / "crashlab" / "sweep" / module).read_text()
    keys = set(KEY.findall(source)) | set(re.findall(r"seconds\(\"([\w-]+)\"\)", source))
    text = REFERENCE.read_text()
    assert keys
    assert [key for key in sorted(keys | set(LOAD_OPTIONS)) if not re.search(rf"\b{key}\b", text)] == []


@pytest.mark.parametrize("page", [REFERENCE, HOW_TO], ids=lambda page: page.name)
def test_every_plan_on_the_pages_can_be_read(page: Path) -> None:
    text = page.read_text()
    plans = re.findall(r"```toml\n(.*?)```", text, re.S) + re.findall(r"<<'PLAN'\n(.*?)PLAN\n", text, re.S)
    assert plans
    for plan in plans:
        if "[levers]" not in plan and "[bisect]" not in plan:
            own = re.findall(r'^id = "([^"]+)"', plan, re.M)[0]
            plan = (
                f"{plan}\n[levers]\n{own} = ['off']\n"
                if "overlay" not in plan.split("[[lever.way]]")[1][:20]
                else (f"{plan}\n[levers]\n{own} = ['1']\n")
            )
        assert read_plan(plan, page.name, command=["server"]).arms


def test_the_pages_name_no_lever_that_does_not_exist() -> None:
    named = re.findall(r"^([a-z][a-z0-9-]+) = \[", HOW_TO.read_text(), re.M)
    assert named
    assert [
        name for name in named if name not in bundled() and name not in ("values", "prepare", "command")
    ] == []
