"""The list of scenes: scenes.json, what each plants and what a perfect tool would say about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent.parent


class Scene(NamedTuple):
    name: str
    scene: str  # the argument that the fault program gets
    program: str  # "cuda" or "torch"
    build: str  # "lineinfo", "nolineinfo", "debug" or "rdc"
    dump: str  # "light", "shared" (keeps shared and local memory) or "full"
    kind: str  # "gpu-fault", "device-assert", "trap", "hang", "maybe-fault" or "unreadable"
    hang: bool  # the dump must be asked for
    cut: bool  # the process is killed while the dump is being written
    keep: bool  # the dump is brought back
    timeout: float  # seconds until the process is asked for a dump, and killed soon after
    gpus: int
    min_cc: int
    max_cc: int
    facts: dict[str, Any]  # the whole entry of scenes.json


def load_scenes(path: Path = HERE / "scenes.json") -> list[Scene]:
    document = json.loads(path.read_text())
    return [_scene(document["defaults"], entry) for entry in document["scenes"]]


def _scene(defaults: dict[str, Any], entry: dict[str, Any]) -> Scene:
    merged = {**defaults, "scene": entry["name"], **entry}
    return Scene(**{name: merged[name] for name in Scene._fields if name != "facts"}, facts=entry)


def select(scenes: list[Scene], only: list[str]) -> list[Scene]:
    """The scenes named in `only` (all if it is empty), in the file's order. ValueError names unknown ones."""
    unknown = sorted(set(only) - {scene.name for scene in scenes})
    if unknown:
        raise ValueError(f"no such scene: {', '.join(unknown)} (see --list)")
    return [scene for scene in scenes if not only or scene.name in only]


def unsuited(scene: Scene, compute_capability: int, gpus: int) -> str | None:
    """Why this machine cannot run the scene; None if it can."""
    if gpus < scene.gpus:
        return f"needs {scene.gpus} GPUs"
    if compute_capability < scene.min_cc:
        return f"needs sm_{scene.min_cc} or later"
    if compute_capability > scene.max_cc:
        return f"not for GPUs after sm_{scene.max_cc}"
    return None
