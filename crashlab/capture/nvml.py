"""GPU facts and Xid events from NVML, in a thread of its own: a GPU in trouble can make NVML block.

Needs ``nvidia-ml-py`` and a driver. Containers that cannot read the kernel log still get Xid codes here.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_TEMPERATURE_GPU = 0
"""NVML_TEMPERATURE_GPU of nvml.h."""

Sink = Callable[[str, dict[str, Any]], None]
"""Receives ("gpu", facts), ("sample", values) or ("xid", event)."""


def load() -> Any | None:
    """The initialised library, or None without package or driver."""
    try:
        library = importlib.import_module("pynvml")
        library.nvmlInit()
    except Exception:  # noqa: BLE001 - ImportError, NVMLError, OSError: in each case there is no NVML
        return None
    return library


def gpu_facts(library: Any) -> list[dict[str, Any]]:
    """Name, memory and versions of each GPU; what cannot be asked is left out."""
    return _each_gpu(library, _facts)


def sample(library: Any) -> list[dict[str, Any]]:
    """Load, memory, heat and processes of each GPU now."""
    return _each_gpu(library, _sample)


def _each_gpu(library: Any, ask: Callable[[Any, Any], dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a GPU: its number, and what ``ask(library, handle)`` gives that is not None."""
    out = []
    for index in range(_ask(library, "nvmlDeviceGetCount") or 0):
        values = ask(library, _ask(library, "nvmlDeviceGetHandleByIndex", index))
        out.append({"gpu": index, **{key: value for key, value in values.items() if value is not None}})
    return out


def _facts(library: Any, handle: Any) -> dict[str, Any]:
    memory = _ask(library, "nvmlDeviceGetMemoryInfo", handle)
    pci = _ask(library, "nvmlDeviceGetPciInfo", handle)
    capability = _ask(library, "nvmlDeviceGetCudaComputeCapability", handle)
    return {
        "name": _text(_ask(library, "nvmlDeviceGetName", handle)),
        "driver": _text(_ask(library, "nvmlSystemGetDriverVersion")),
        "cuda_driver": _cuda(_ask(library, "nvmlSystemGetCudaDriverVersion_v2")),
        "memory_bytes": memory.total if memory else None,
        "pci": _text(pci.busId) if pci else None,
        "compute_capability": f"{capability[0]}.{capability[1]}" if capability else None,
        "mig": _mig(library, handle),
    }


def _sample(library: Any, handle: Any) -> dict[str, Any]:
    use = _ask(library, "nvmlDeviceGetUtilizationRates", handle)
    memory = _ask(library, "nvmlDeviceGetMemoryInfo", handle)
    power = _ask(library, "nvmlDeviceGetPowerUsage", handle)
    processes = _ask(library, "nvmlDeviceGetComputeRunningProcesses", handle) or []
    return {
        "busy_percent": use.gpu if use else None,
        "memory_used": memory.used if memory else None,
        "celsius": _ask(library, "nvmlDeviceGetTemperature", handle, _TEMPERATURE_GPU),
        "watts": power / 1000 if power is not None else None,
        "throttle": _ask(library, "nvmlDeviceGetCurrentClocksThrottleReasons", handle),
        "pids": [process.pid for process in processes],
    }


class Sampler:
    """Asks every ``seconds`` and passes on what it hears until :meth:`stop`."""

    def __init__(self, sink: Sink, seconds: float = 10.0, library: Any | None = None) -> None:
        self._sink = sink
        self._seconds = seconds
        self._library = library
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="nvml", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; it is not waited for longer than a moment."""
        self._stop.set()
        self._thread.join(0.5)

    def _work(self) -> None:
        library = self._library if self._library is not None else load()
        if library is None:
            return
        with suppress(Exception):
            for facts in gpu_facts(library):
                self._sink("gpu", facts)
            events = _event_set(library)
            waited = self._seconds
            while not self._stop.is_set():
                if waited >= self._seconds:
                    waited = 0.0
                    for values in sample(library):
                        self._sink("sample", values)
                waited += self._wait(library, events)

    def _wait(self, library: Any, events: Any) -> float:
        """Wait for an Xid or a while; seconds that are counted as passed."""
        step = min(1.0, self._seconds)
        if events is None:
            self._stop.wait(step)
            return step
        try:
            event = library.nvmlEventSetWait_v2(events, 0)
        except Exception:  # noqa: BLE001 - a time-out is an NVMLError, too
            self._stop.wait(step)
            return step
        pci = _ask(library, "nvmlDeviceGetPciInfo", event.device)
        self._sink("xid", {"code": int(event.eventData), "pci": _text(pci.busId) if pci else None})
        return 0.0


def _event_set(library: Any) -> Any | None:
    try:
        events = library.nvmlEventSetCreate()
        for index in range(library.nvmlDeviceGetCount()):
            handle = library.nvmlDeviceGetHandleByIndex(index)
            library.nvmlDeviceRegisterEvents(handle, library.nvmlEventTypeXidCriticalError, events)
    except Exception:  # noqa: BLE001 - not supported (MIG, virtual GPUs, old drivers)
        return None
    return events


def _ask(library: Any, name: str, *arguments: Any) -> Any:
    try:
        return getattr(library, name)(*arguments)
    except Exception:  # noqa: BLE001 - each value is optional: NVMLError of many kinds, and older packages
        return None


def _mig(library: Any, handle: Any) -> bool | None:
    mode = _ask(library, "nvmlDeviceGetMigMode", handle)
    return bool(mode[0]) if mode else None


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return str(value) if value else None


def _cuda(number: Any) -> str | None:
    return f"{number // 1000}.{number % 1000 // 10}" if isinstance(number, int) else None
