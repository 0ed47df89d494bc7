"""The plug-in that makes a healthy server talk garbage spoils nothing before its time, and all after it."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "scripts" / "gpu" / "nan_plugin"


class Activation:
    """As vLLM's: the method for a processor calls the native one, which is static."""

    @staticmethod
    def forward_native(x: float) -> float:
        return 2 * x

    def forward_cpu(self, x: float) -> float:
        return self.forward_native(x)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> type[Activation]:
    """A fresh class after the plug-in's registration, with three calls until NaN."""
    monkeypatch.setenv("CRASHLAB_NAN_AFTER", "3")
    spec = importlib.util.spec_from_file_location("crashlab_nan", FOLDER / "crashlab_nan.py")
    assert spec is not None
    assert spec.loader is not None
    plugin = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plugin)
    fresh = type("SiluAndMul", (), dict(Activation.__dict__))
    name = "vllm.model_executor.layers.activation"
    for at in range(1, name.count(".") + 2):
        part = ".".join(name.split(".")[:at])
        monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
    monkeypatch.setattr(sys.modules[name], "SiluAndMul", fresh, raising=False)
    plugin.register()
    return fresh


def test_calls_within_calls_count_once_and_later_ones_are_nan(registered: type[Activation]) -> None:
    layer = registered()
    assert [layer.forward_cpu(1.0) for _ in range(3)] == [2.0, 2.0, 2.0]
    assert all(math.isnan(layer.forward_cpu(1.0)) for _ in range(5))


def test_the_static_method_stays_one(registered: type[Activation]) -> None:
    assert registered.forward_native(4.0) == 8.0


def test_its_entry_point_is_found_from_the_python_path() -> None:
    (found,) = metadata.distributions(path=[str(FOLDER)])
    (entry,) = found.entry_points
    assert (entry.group, entry.value) == ("vllm.general_plugins", "crashlab_nan:register")
