"""The bundle: everything a maintainer needs, no canary that was planted in any input."""

from __future__ import annotations

import json
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from crashlab import facts
from crashlab.errors import UnreadableInput, UsageError
from crashlab.gpucore.dump import CoreDump
from crashlab.report import bundle, bundlecheck, bundledump, jsonio
from crashlab.report.redact import Redactor
from crashlab.report.timeline import Event, Sample, Timeline
from tests.support import corpus, hostile
from tests.support.core_writer import CoreWriter
from tests.support.scene import simple_scene

CANARIES = (
    "export HF_TOKEN=hf_CANARYabcdefghijklmnop",
    "user=canaryuser hostname: canarybox /home/canaryuser/model",
    "Received request x: prompt: 'CANARY words', params: SamplingParams()",
    "http://bob:CANARYpw@10.0.0.9:8000/v1",
)
NAMES = ("CANARY", "canaryuser", "canarybox", "10.0.0.9", "bob:")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    (run / "cores").mkdir(parents=True)
    (run / "logs").mkdir()
    (run / "report.json").write_text(jsonio.dumps(report()))
    text = "\n".join(CANARIES) + "\n\x1b[31mplain fact 42\n"
    for name in (
        "server.log",
        "driver.log",
        "stdout.txt",
        "dmesg",
        "metrics.prom",
        "logs/worker.err",
        "logs/a.out",
    ):
        (run / name).write_text(text)
    (run / "requests.jsonl").write_text(
        '{"t": 1, "prompt": "CANARY", "tokens": 3, "error": "CANARY as a sentence"}\nCANARY\n'
    )
    (run / "events.jsonl").write_text(
        json.dumps({"t": 2, "note": CANARIES[0], "messages": ["CANARY"]}) + "\n"
    )
    (run / "environment.json").write_text(json.dumps({"HF_TOKEN": "CANARY", "HOSTNAME": "canarybox", "n": 3}))
    (run / "broken.json").write_text("{" + CANARIES[0])
    (run / "weights.safetensors").write_bytes(b"CANARY")
    (run / ".netrc").write_text("machine x login y password CANARY")
    (run / "link.log").symlink_to("/etc/passwd")
    dump().write(run / "cores" / "canarybox.1461.7.nvcudmp")
    return run


def dump() -> CoreWriter:
    image = b"\x7fELF-not-really /home/canaryuser/k.cu \x00" * 20
    memory = (0x7F0000000000, b"CANARY in GPU memory " * 300)
    scene = simple_scene(pc=0x7F00001230, image=image, memory=memory)
    scene.writer.string("/home/canaryuser/from/strtab CANARYfree")
    scene.writer.section(".cudbg.shared.x", 4, b"CANARY shared")
    scene.writer.section(".cudbg.local.x", 3, b"CANARY local")
    return scene.writer


def report() -> facts.Report:
    base = hostile.report("word")
    run = facts.Run(("vllm", "serve", "--api-key", "CANARY"), None, None, {"requests": 5.0})
    inputs = (facts.Input("canarybox.1461.7.nvcudmp", None, 5, True),)
    verdict = base.verdict._replace(module=facts.Module(0))
    return base._replace(run=run, inputs=inputs, provenance=CANARIES, commands=CANARIES, verdict=verdict)


def contents(*parts: Path) -> dict[str, bytes]:
    out = {}
    for part in parts:
        with zipfile.ZipFile(part) as archive:
            assert archive.testzip() is None
            out.update({name: archive.read(name) for name in archive.namelist()})
    return out


def assert_clean(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        for canary in NAMES:
            assert canary.encode() not in data, (name, canary)
            assert canary not in name


def test_no_planted_canary_leaves(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "b.zip"
    written = bundle.write(
        report(), folder, target, timeline=Timeline((Sample(1.0, 2.0),), (Event(1.0, CANARIES[0]),))
    )
    files = contents(*written.parts)
    assert_clean(files)
    assert b"plain fact 42" in files["raw/server.log"]
    assert b"\x1b" not in files["raw/server.log"]
    for name in (
        "report.json",
        "report.txt",
        "report.html",
        "report.md",
        "junit.xml",
        "issues/vllm.md",
        "faulting.cubin",
        "README.txt",
    ):
        assert name in files
    assert json.loads(files["raw/requests.jsonl"].splitlines()[0])["tokens"] == 3
    assert json.loads(files["raw/environment.json"])["n"] == 3
    assert jsonio.loads(files["report.json"]).verdict.pc == report().verdict.pc
    left = {item.name: item.why for item in written.left}
    assert {"weights.safetensors", ".netrc", "link.log"} <= set(left)
    assert any("--include-dump" in why for why in left.values())


def test_a_dump_goes_in_only_when_asked_and_without_memory(folder: Path, tmp_path: Path) -> None:
    written = bundle.write(report(), folder, tmp_path / "b.zip", bundle.Options(dump=True))
    files = contents(*written.parts)
    assert b"CANARY in GPU memory" not in files["cores/<host-1>.1461.7.nvcudmp"]
    assert b"CANARY shared" not in files["cores/<host-1>.1461.7.nvcudmp"]
    assert b"CANARY local" not in files["cores/<host-1>.1461.7.nvcudmp"]
    assert b"canaryuser" not in files["cores/<host-1>.1461.7.nvcudmp"]
    original = dump().build()
    assert len(files["cores/<host-1>.1461.7.nvcudmp"]) == len(original)
    stripped = tmp_path / "stripped.core"
    stripped.write_bytes(files["cores/<host-1>.1461.7.nvcudmp"])
    assert CoreDump.open(stripped).warps == CoreDump.open(folder / "cores" / "canarybox.1461.7.nvcudmp").warps


def test_memory_goes_in_when_asked_for(folder: Path, tmp_path: Path) -> None:
    written = bundle.write(report(), folder, tmp_path / "b.zip", bundle.Options(dump=True, memory=True))
    files = contents(*written.parts)
    assert b"CANARY in GPU memory" in files["cores/<host-1>.1461.7.nvcudmp"]


@pytest.mark.parametrize("name", ["shared_oob", "torch_triton", "seed_sm120"])
def test_a_stripped_real_dump_reads_as_the_original(name: str, tmp_path: Path) -> None:
    original = CoreDump.open(corpus.path(name))
    path = tmp_path / "stripped.core"
    path.write_bytes(b"".join(bundledump.stripped(original, Redactor())))
    stripped = CoreDump.open(path)
    assert stripped.size == original.size
    assert stripped.warps == original.warps
    assert stripped.sms == original.sms
    assert [stripped.image(m) for m in stripped.modules][:3] == [original.image(m) for m in original.modules][
        :3
    ]


def test_large_files_are_split_into_parts_that_github_takes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "PART_LIMIT", 60_000)
    monkeypatch.setattr(bundle, "_CHUNK", 20_000)
    import random

    (folder / "cores" / "x.log").write_text("".join(random.Random(1).choices("abcdefgh \n", k=200_000)))
    written = bundle.write(report(), folder, tmp_path / "b.zip")
    assert len(written.parts) > 2
    assert written.parts[1].name == "b.part2.zip"
    assert all(part.stat().st_size < 60_000 for part in written.parts)
    checked = bundlecheck.check(tmp_path / "b.zip")
    assert checked.parts == written.parts
    assert not checked.missing
    assert all(item.whole is not False for item in checked.items)
    pieces = sorted(n for n in contents(*written.parts) if n.startswith("raw/cores/x.log"))
    assert len(pieces) > 5
    assert len(b"".join(contents(*written.parts)[p] for p in pieces)) == 200_001


def test_the_check_shows_files_hashes_and_what_was_taken_out(folder: Path, tmp_path: Path) -> None:
    bundle.write(report(), folder, tmp_path / "b.zip")
    checked = bundlecheck.check(tmp_path / "b.zip")
    assert not [i for i in checked.items if i.suspicious or i.whole is False]
    assert checked.good
    log = next(item for item in checked.items if item.name == "raw/server.log")
    assert log.whole
    assert log.taken_out["named secret"] == 1
    assert not log.suspicious
    assert any(name == "weights.safetensors" for name, _ in checked.left_out)


def test_the_check_finds_damage_loss_and_things_that_look_private(folder: Path, tmp_path: Path) -> None:
    bundle.write(report(), folder, tmp_path / "b.zip")
    files = contents(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as archive:
        for name, data in files.items():
            if name != "report.md":
                archive.writestr(
                    name, data + b"HF_TOKEN=hf_abcdefghijklmnopq\n" if name == "raw/server.log" else data
                )
    checked = bundlecheck.check(tmp_path / "evil.zip")
    assert not checked.good
    assert checked.missing == ("report.md",)
    log = next(item for item in checked.items if item.name == "raw/server.log")
    assert log.whole is False
    assert log.suspicious


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04nonsense", b"no zip", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_bundle_is_said_so(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    path.write_bytes(content)
    with pytest.raises(UnreadableInput):
        bundlecheck.check(path)
    with pytest.raises(UnreadableInput):
        bundlecheck.check(tmp_path / "missing.zip")


def test_every_mangled_zip_gives_an_error_of_ours(folder: Path, tmp_path: Path) -> None:
    import random

    bundle.write(report(), folder, tmp_path / "b.zip")
    good = (tmp_path / "b.zip").read_bytes()
    rng = random.Random(5)
    for _ in range(60):
        bad = bytearray(good)
        for _ in range(rng.choice((1, 5, 50))):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        path = tmp_path / "bad.zip"
        path.write_bytes(bytes(bad[: rng.choice((len(bad), rng.randrange(len(bad))))]))
        with suppress(UnreadableInput):
            bundlecheck.check(path)


def test_nothing_is_overwritten_and_only_zips_are_written(tmp_path: Path) -> None:
    (tmp_path / "b.zip").write_text("mine")
    with pytest.raises(UsageError):
        bundle.write(report(), None, tmp_path / "b.zip")
    with pytest.raises(UsageError):
        bundle.write(report(), None, tmp_path / "b.tar")
    with pytest.raises(UsageError):
        bundle.write(report(), None, tmp_path / "no" / "such" / "b.zip")
    assert (tmp_path / "b.zip").read_text() == "mine"


def test_a_report_alone_makes_a_bundle(tmp_path: Path) -> None:
    written = bundle.write(report(), None, tmp_path / "b.zip")
    assert_clean(contents(*written.parts))
    assert written.left == (bundle.Left("faulting.cubin", "there is no readable dump of the verdict here"),)


def test_where_nothing_faulted_no_cubin_is_missed(tmp_path: Path) -> None:
    clean = report()._replace(verdict=report().verdict._replace(kind="no-fault"))
    assert bundle.write(clean, None, tmp_path / "b.zip").left == ()


def test_an_unreadable_dump_is_left_out_with_the_reason(folder: Path, tmp_path: Path) -> None:
    (folder / "cores" / "cut.nvcudmp").write_bytes(b"\x7fELF cut short")
    written = bundle.write(report(), folder, tmp_path / "b.zip", bundle.Options(dump=True))
    assert any("unreadable" in item.why for item in written.left)


def test_the_same_evidence_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    first = contents(*bundle.write(report(), folder, tmp_path / "a.zip").parts)
    second = contents(*bundle.write(report(), folder, tmp_path / "b.zip").parts)
    first.pop("manifest.json")
    second.pop("manifest.json")
    assert first == second


def test_of_a_giant_log_head_and_tail_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from crashlab.report import bundlefiles

    monkeypatch.setattr(bundlefiles, "_HEAD", 10)
    monkeypatch.setattr(bundlefiles, "_TAIL", 10)
    (tmp_path / "x.log").write_text("0123456789" * 5)
    text = bundlefiles.raw_text(tmp_path / "x.log")
    assert text == "0123456789\n[30 bytes in the middle were left out of the bundle]\n0123456789"
