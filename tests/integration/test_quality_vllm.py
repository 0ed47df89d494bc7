"""``crashlab quality`` against the real vLLM on the CPU: the same server twice, and a proxy that drops a fifth.

CRASHLAB_VLLM is the path of ``vllm`` (``scripts/vllm-cpu``), CRASHLAB_VLLM_TRAINED the folder of a model that
knows some arithmetic (``scripts/train-tiny-model``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Completed, run_cli
from tests.support.dropproxy import dropping
from tests.support.vllmcpu import TRAINED, VLLM, WHY_NOT, running

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not VLLM or not TRAINED, reason=WHY_NOT),
]


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(TRAINED, tmp_path_factory.mktemp("server") / "server.log") as found:
        yield found


def ask(out: Path, *options: str) -> tuple[Completed, dict[str, Any]]:
    done = run_cli("quality", "--out", str(out), *options)
    return done, json.loads((out / "quality.json").read_text())


@pytest.mark.parametrize("seed", range(5))
def test_the_same_server_twice_shows_no_difference(tmp_path: Path, port: int, seed: int) -> None:
    urls = ("--a-url", f"http://127.0.0.1:{port}", "--b-url", f"http://localhost:{port}")
    done, report = ask(tmp_path / "run", *urls, "--seed", str(seed))
    assert done.code == 0, done.err
    assert report["verdict"]["kind"] == "no-difference-shown"
    for arm in report["arms"]:
        for one in arm["passes"]:
            assert one["counts"]["error"] == 0
            assert 15 <= one["counts"]["correct"] <= 190, "the model is to score in the middle"
    assert report["arms"][0]["cells"]
    assert report["pair"]["distance"]["mean"] is not None


def test_a_proxy_that_drops_a_fifth_shows_errors_and_no_wrong_answers(tmp_path: Path, port: int) -> None:
    with dropping(port) as proxy:
        urls = ("--a-url", f"http://127.0.0.1:{port}", "--b-url", f"http://127.0.0.1:{proxy.port}")
        done, report = ask(tmp_path / "run", *urls, "--no-ladder", "--no-prose")
    assert done.code == 0, done.err
    a, b = (arm["passes"][-1]["counts"] for arm in report["arms"])
    assert a["error"] == 0
    assert b["error"] == proxy.dropped == 40
    assert report["pair"]["left_out"] == 40
    assert report["pair"]["pairs"]["lost"] <= 5
    assert b["correct"] + b["wrong"] + b["invalid"] == 160
