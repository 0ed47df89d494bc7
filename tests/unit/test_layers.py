"""Imports point one way: facts, errors <- readers <- reasoning <- report <- inspection <- cli."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "crashlab"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("facts", "errors", "inputfile", "inflate", "stats"),
    ("gpucore", "cubin", "sass", "debugger", "logs"),
    ("postmortem", "signatures"),
    ("capture", "soak", "rundir", "demo"),
    ("sweep", "quality"),
    ("report",),
    ("inspection",),
    ("cli", "__main__"),
)
SIDEWAYS = {
    # a room of the readers' layer may use one that stands left of it in this list
    "cubin": {"facts", "errors", "inputfile", "inflate"},
    "gpucore": {"facts", "errors", "inputfile", "inflate"},
    "sass": {"facts", "errors", "inputfile", "inflate"},
    "debugger": {"facts", "errors", "inputfile", "inflate", "cubin", "gpucore", "sass"},
    "logs": {"facts", "errors", "inputfile", "inflate", "cubin", "gpucore"},
}
"""What rooms of the second layer may import; reasoning, report and the rest may use all to their left."""


def _level(room: str) -> int:
    return next(i for i, rooms in enumerate(LAYERS) if room in rooms)


def _imports(path: Path) -> set[str]:
    """Rooms of crashlab that a module imports, at any depth of nesting."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [node.module]
            if node.module == "crashlab":
                names = [f"crashlab.{alias.name}" for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "crashlab" and len(parts) > 1:
                found.add(parts[1])
    return found - {"__version__"}


def _modules() -> list[Path]:
    return [p for p in sorted(ROOT.rglob("*.py")) if p != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_only_point_left(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0].removesuffix(".py")
    for target in _imports(path) - {room}:
        if room in SIDEWAYS:
            assert target in SIDEWAYS[room], f"{room} must not import {target}"
        else:
            assert _level(target) <= _level(room), f"{room} must not import {target}"


@pytest.mark.parametrize("path", _modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_is_longer_than_a_person_reads_in_one_go(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize(
    "path",
    [p for p in _modules() if "cli" not in p.relative_to(ROOT).parts],
    ids=lambda p: str(p.relative_to(ROOT)),
)
def test_only_the_command_line_prints_exits_or_knows_click(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name not in ("print", "sys.exit", "exit", "os._exit"), f"{name} in line {node.lineno}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            assert "click" not in ast.unparse(node).replace(",", " ").split(), f"click in line {node.lineno}"
