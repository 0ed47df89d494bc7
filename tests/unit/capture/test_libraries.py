"""Loaded libraries and their versions."""

from __future__ import annotations

import ctypes
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashlab.capture import samples as sampling
from crashlab.capture.libraries import Loaded, duplicates, identify, mapped_files, torch_cuda, uses_cuda
from crashlab.capture.samples import LibrarySampler
from crashlab.capture.tree import Proc
from crashlab.capture.versions import ASKED, complete
from crashlab.debugger.process import Limits, Outcome


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site-packages as pip leaves it for vLLM."""
    root = tmp_path / "lib" / "python3.12" / "site-packages"
    for name in (
        "nvidia_cudnn_cu13-9.19.0.56",
        "nvidia_nccl_cu13-2.28.3",
        "vllm-0.25.1",
        "flashinfer_python-0.6.4",
    ):
        (root / f"{name}.dist-info").mkdir(parents=True)
    (root / "torch" / "lib").mkdir(parents=True)
    (root / "torch" / "version.py").write_text("__version__ = '2.11.0+cu130'\ncuda: Optional[str] = '13.0'\n")
    return root


def versions(paths: list[str]) -> dict[str, str | None]:
    return {one.key: one.version for one in identify(paths)}


def test_versions_come_from_file_names_packages_and_neighbours(site: Path) -> None:
    found = versions(
        [
            "/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.04",
            "/usr/local/cuda/lib64/libcublas.so.13.0.2.14",
            f"{site}/nvidia/cudnn/lib/libcudnn.so.9",
            f"{site}/nvidia/nccl/lib/libnccl.so.2",
            f"{site}/torch/lib/libtorch_cuda.so",
        ]
    )
    assert found == {
        "driver": "580.159.04",
        "cublas": "13.0.2.14",
        "cudnn": "9.19.0.56",
        "nccl": "2.28.3",
        "torch": "2.11.0+cu130",
        "vllm": "0.25.1",
        "flashinfer": "0.6.4",
    }


def test_a_version_that_nothing_tells_is_absent() -> None:
    assert versions(["/opt/x/libcudnn.so.9"]) == {"cudnn": None}


def test_a_compiled_kernel_cache_tells_its_package(site: Path) -> None:
    path = "/home/u/.cache/flashinfer/0.6.3/90a/cached_ops/batch/flashinfer/x.so"
    assert versions([path])["flashinfer"] == "0.6.3"


def test_two_packages_of_one_library_leave_the_version_open(site: Path) -> None:
    (site / "nvidia_cudnn_cu12-9.10.2.21.dist-info").mkdir()
    assert versions([f"{site}/nvidia/cudnn/lib/libcudnn.so.9"])["cudnn"] is None


def test_two_copies_are_named(site: Path) -> None:
    rows = identify(["/usr/lib/libcudnn.so.9.1.0", f"{site}/nvidia/cudnn/lib/libcudnn.so.9"])
    (told,) = duplicates(rows)
    assert "9.1.0" in told
    assert "9.19.0.56" in told


def test_torch_names_its_cuda(site: Path) -> None:
    assert torch_cuda(identify([f"{site}/torch/lib/libtorch_cuda.so"])) == "13.0"
    assert torch_cuda(()) is None


def test_our_own_map_lists_the_c_library() -> None:
    paths = mapped_files(os.getpid())
    assert any("libc" in path for path in paths)
    assert not uses_cuda(paths)
    assert mapped_files(4_000_001) == []


@settings(deadline=None)
@given(st.lists(st.text(max_size=60)))
def test_any_paths_are_identified_without_an_error(paths: list[str]) -> None:
    duplicates(identify(["/" + path.replace("\0", "") for path in paths]))


class TestAsking:
    def runner(self, output: bytes, code: int = 0) -> object:
        def run(
            argv: Sequence[str], env: Mapping[str, str], cwd: str, limits: Limits, on_output: object = None
        ) -> Outcome:
            self.argv, self.env = argv, env
            return Outcome(output, code)

        return run

    def test_the_file_itself_outranks_what_pip_says(self, tmp_path: Path) -> None:
        path = tmp_path / "nvidia" / "cudnn" / "lib" / "libcudnn.so.9"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"")
        row = Loaded("cudnn", str(path), "9.19.0.56", "package")
        (asked,) = complete([row], runner=self.runner(b"9.10.2\n"))  # type: ignore[arg-type]
        assert (asked.version, asked.source) == ("9.10.2", ASKED)
        (agreed,) = complete([row], runner=self.runner(b"9.19.0\n"))  # type: ignore[arg-type]
        assert agreed == row
        assert self.env["LD_LIBRARY_PATH"].startswith(str(path.parent))

    def test_an_answer_that_is_none_changes_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "libnccl.so.2").write_bytes(b"")
        row = Loaded("nccl", str(tmp_path / "libnccl.so.2"), None, "loaded")
        for output, code in ((b"", 1), (b"Traceback", 0), (b"", -11)):
            assert complete([row], runner=self.runner(output, code)) == (row,)  # type: ignore[arg-type]

    def test_a_library_that_cannot_be_loaded_is_no_answer(self, tmp_path: Path) -> None:
        (tmp_path / "libcudart.so.13").write_bytes(b"no library")
        row = Loaded("cudart", str(tmp_path / "libcudart.so.13"), None, "loaded")
        assert complete([row]) == (row,)


class FakeLibrary:
    """Entry points as the CUDA libraries have them."""

    @staticmethod
    def _set(pointer: object, value: int) -> int:
        pointer._obj.value = value  # type: ignore[attr-defined]
        return 0

    def __init__(self) -> None:
        class CudnnVersion:
            restype: object = None

            def __call__(self) -> int:
                return 91900

        self.cudnnGetVersion = CudnnVersion()

    def ncclGetVersion(self, p: object) -> int:  # noqa: N802
        return self._set(p, 22803)

    def cudaRuntimeGetVersion(self, p: object) -> int:  # noqa: N802
        return self._set(p, 13000)

    def nvrtcVersion(self, a: object, b: object) -> int:  # noqa: N802
        return self._set(a, 13) or self._set(b, 0)

    def cublasGetProperty(self, which: int, p: object) -> int:  # noqa: N802
        return self._set(p, (13, 0, 2)[which])

    cufftGetProperty = cublasGetProperty  # noqa: N815
    cusolverGetProperty = cublasGetProperty  # noqa: N815


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("cudnn", "9.19.0"),
        ("nccl", "2.28.3"),
        ("cudart", "13.0"),
        ("nvrtc", "13.0"),
        ("cublas", "13.0.2"),
        ("cufft", "13.0.2"),
        ("cusolver", "13.0.2"),
    ],
)
def test_each_library_is_asked_in_its_own_way(
    key: str, answer: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda path: FakeLibrary())
    monkeypatch.setattr(sys, "argv", ["asklibrary.py", key, "x.so"])
    runpy.run_module("crashlab.capture.asklibrary", run_name="__main__")
    assert capsys.readouterr().out == f"{answer}\n"


class TestSampler:
    def test_only_cuda_processes_and_only_changes_are_told(self, monkeypatch: pytest.MonkeyPatch) -> None:
        paths = ["/usr/lib/libc.so.6"]
        monkeypatch.setattr(sampling, "mapped_files", lambda pid: list(paths))
        process = Proc(os.getpid(), 1, 1.0, "python", ())
        sampler = LibrarySampler({})
        assert sampler.look([process], 0.0) == []
        paths.append("/usr/lib/libcuda.so.580.159.04")
        assert sampler.look([process], 0.1) == []  # not due yet
        (first,) = sampler.look([process], 1.0)
        assert [one.key for one in first.libraries] == ["driver"]
        assert sampler.look([process], 100.0) == []
        paths.append("/usr/lib/libcudnn.so.9.1.0")
        assert len(sampler.look([process], 100.1, all_now=True)) == 1
        assert set(sampler.latest) == {os.getpid()}

    def test_variables_that_differ_are_told_without_secrets(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sampling, "mapped_files", lambda pid: ["/usr/lib/libcuda.so.580.1"])
        (sample,) = LibrarySampler({}).look([Proc(os.getpid(), 1, 1.0, "python", ())], 0.0)
        assert all("TOKEN" not in name or value == "<redacted>" for name, value in sample.variables.items())
