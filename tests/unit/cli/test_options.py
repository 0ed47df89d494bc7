"""No option is ignored without a word: it works, is refused with the next step, or is said to change nothing."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import click
import pytest

from crashlab.cli.inspect import inspect
from crashlab.inspection.scope import OPTIONS
from tests.support import corpus
from tests.support.command import run_cli


def _run(*arguments: str) -> tuple[int, str, str]:
    dump = str(corpus.path("oob_load"))
    found = run_cli(*(dump if a == "DUMP" else a for a in arguments))
    return found.code, found.out, found.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["analyze", "DUMP", "--transcript", "-"], "instead of a dump"),
        (["analyze", "DUMP", "--fast", "--debugger", "always"], "--fast starts none"),
        (["analyze", "DUMP", "--fast", "--debugger", "/bin/true"], "--fast starts none"),
        (["analyze", "DUMP", "--fast", "--nvdisasm", "/bin/true"], "--fast starts none"),
        (["analyze", "DUMP", "--fast", "--sass-by", "both"], "--fast starts none"),
        (["analyze", "DUMP", "--sass-by", "native", "--nvdisasm", "/bin/true"], "never asks"),
        (["analyze", "DUMP", "--json", "-q"], "contradict"),
        (["analyze", "DUMP", "-v", "-q"], "contradict"),
        (["analyze", "DUMP", "--debugger-timeout", "nan"], "no time limit"),
        (["analyze", "DUMP", "--debugger-timeout", "inf"], "no time limit"),
        (["analyze", "DUMP", "--debugger-timeout", "-3"], "no time limit"),
        (["analyze", "DUMP", "--debugger-timeout", "1e300"], "no time limit"),
        (["report", "DUMP", "--format", "md", "--open"], "--format html"),
        (["report", "DUMP", "DUMP", "--for", "vllm"], "one report"),
        (["report", "DUMP", "DUMP", "--open"], "comparison"),
        (["bundle", "--check", "x.zip", "-o", "y.zip"], "only looks"),
        (["bundle", "--check", "x.zip", "--include-dump"], "only looks"),
        (["inspect", "DUMP", "kernels", "--pc", "0x10"], "It takes --device, --grid, --json"),
        (["inspect", "DUMP", "modules", "--device", "0"], "does not apply"),
        (["inspect", "DUMP", "sass", "--faulting"], "does not apply"),
        (["inspect", "DUMP", "cubin", "--json", "-o", "x"], "does not apply"),
        (["inspect", "DUMP", "memory", "--length", "8"], "without --address or --space"),
        (["inspect", "DUMP", "memory", "--address", "16", "--offset", "8"], "with --address"),
        (["inspect", "DUMP", "memory", "--space", "shared", "--lane", "3"], "with --space shared"),
        (["inspect", "DUMP", "memory", "--address", "16", "--length", "0"], "from 1"),
        (["inspect", "DUMP", "warps", "--device", "77"], "It has device 0."),
        (["inspect", "DUMP", "lanes", "--sm", "999"], "It has SM 0 to 131."),
        (["inspect", "DUMP", "params", "--grid", "77"], "It has grid "),
        (["inspect", "DUMP", "lanes", "--lane", "32"], "0 to 31"),
        (["inspect", "DUMP", "sass", "--sass-by", "native", "--nvdisasm", "x"], "never asks"),
    ],
)
def test_what_contradicts_or_does_not_apply_is_refused(arguments: list[str], says: str) -> None:
    code, out, err = _run(*arguments)
    assert (code, out) == (2, "")
    assert says in err


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["analyze", "DUMP", "--fast", "--json", "-v"], "--verbose"),
        (["analyze", "DUMP", "--fast", "--debugger-timeout", "5"], "--debugger-timeout"),
        (["report", "DUMP", "--debugger", "never", "--format", "junit", "-v"], "--verbose"),
        (["signatures", "match", "--env", "gpu=H200", "--json", "-v"], "--verbose"),
    ],
)
def test_what_changes_nothing_is_said_to(arguments: list[str], option: str) -> None:
    code, out, err = _run(*arguments)
    assert code == 0
    assert out
    assert err.startswith(f"crashlab: {option} changes nothing")


def test_a_kernel_log_alone_is_evidence(tmp_path: Path) -> None:
    log = tmp_path / "dmesg"
    log.write_text("NVRM: Xid (PCI:0000:17:00): 31, pid=1, name=x, Ch 00000008, intr 00000000. MMU Fault\n")
    assert run_cli("analyze", "--dmesg", str(log)).code == 0


def test_every_option_of_every_view_is_decided() -> None:
    everywhere = {"as_json"}
    known = {p.name for p in inspect.params if isinstance(p, click.Option)} - everywhere
    assert known == {name for names in OPTIONS.values() for name in names}
    view = next(p for p in inspect.params if p.name == "view")
    assert isinstance(view.type, click.Choice)
    assert set(view.type.choices) == set(OPTIONS)


def test_an_option_that_a_view_does_not_take_is_refused_by_each(tmp_path: Path) -> None:
    flags = {"device": "0", "sm": "0", "grid": "1", "block": "0", "warp": "0", "lane": "0", "pc": "16",
             "module": "0", "nvdisasm": "x", "address": "16", "output": str(tmp_path / "x")}  # fmt: skip
    for view, takes in OPTIONS.items():
        for name, value in flags.items():
            if name in takes:
                continue
            code, out, err = _run("inspect", "DUMP", view, f"--{name}", value)
            assert (code, out) == (2, ""), (view, name)
            assert f"--{name} does not apply to the {view} view" in err


def test_filters_that_fit_nothing_say_so() -> None:
    _, out, _ = _run("inspect", "DUMP", "warps", "--warp", "60")
    assert "nothing in this dump matches" in out


def test_a_device_narrows_the_view_of_devices() -> None:
    two = str(corpus.path("two_devices"))
    for view in ("devices", "contexts"):
        whole, one = (run_cli("inspect", two, view, *more).out for more in ((), ("--device", "1")))
        assert len(one.splitlines()) < len(whole.splitlines())


def test_memory_that_ends_early_says_so() -> None:
    core = str(corpus.path("shared_oob_full"))
    shared = ("inspect", core, "memory", "--space", "shared", "--sm", "124")
    found = run_cli(*shared, "--length", "4096")
    assert found.out.splitlines()[-1] == "(4,096 bytes were asked for; this memory ends after 1,024 of them)"
    assert run_cli(*shared, "--offset", "4096").out.endswith("(nothing there: this memory has 1,024 bytes)\n")


def test_length_is_cut_with_a_note() -> None:
    core = str(corpus.path("shared_oob_full"))
    found = run_cli("inspect", core, "memory", "--space", "shared", "--sm", "125", "--length", "99999")
    assert found.out.splitlines()[-1] == "(99,999 bytes were asked for; at most 4,096 are shown at a time)"
    assert "shown at a time" not in run_cli(
        "inspect", core, "memory", "--space", "shared", "--sm", "125", "--length", "4096"
    ).out  # fmt: skip


@pytest.mark.parametrize("columns", [60, 72, 100])
@pytest.mark.parametrize("name", ["seed_sm120", "barrier_hang", "torch_gather", "cut_short"])
def test_sentences_keep_to_the_columns(name: str, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = run_cli("analyze", "--fast", str(corpus.path(name))).out
    code = [line for line in shown.splitlines() if len(line) > columns]
    assert all("0x" in line for line in code), "only lines of code are longer"


NARROW = (
    *(("analyze", "--fast", str(corpus.path(name))) for name in ("seed_sm120", "barrier_hang", "cut_short")),
    *(("inspect", str(corpus.path("oob_load")), view) for view in ("kernels", "warps", "modules", "meta")),
    ("inspect", str(corpus.path("torch_gather")), "params"),
    ("signatures", "list"),
    ("sweep", "--list-levers"),
    ("doctor", "--no-torch"),
)


@pytest.mark.parametrize("words", NARROW, ids=lambda words: "-".join(Path(word).name for word in words))
def test_everything_fits_a_screen_of_forty_columns(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = run_cli(*words).out
    for columns in ("40", "9"):
        monkeypatch.setenv("COLUMNS", columns)
        shown = run_cli(*words).out
        assert 30 < max(map(len, shown.splitlines())) <= 40
    assert max(map(len, plain.splitlines())) > 40


def test_a_row_that_does_not_fit_becomes_a_list_of_its_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    core = str(corpus.path("oob_load"))
    rows = json.loads(run_cli("inspect", core, "warps", "--json").out)["rows"]
    monkeypatch.setenv("COLUMNS", "40")
    records = run_cli("inspect", core, "warps").out.rstrip("\n").split("\n\n")
    assert len(records) == len(rows)
    heads = [line.split()[0] for line in records[0].splitlines() if not line.startswith(" ")]
    assert heads == list(rows[0])
    monkeypatch.setenv("COLUMNS", "80")
    assert run_cli("inspect", core, "warps").out.splitlines()[0].split() == list(rows[0])


def test_without_a_screen_the_doctor_writes_a_hundred_columns() -> None:
    shown = run_cli("doctor", "--no-torch", "-v").out.splitlines()
    assert 80 < max(map(len, shown)) <= 100


@pytest.mark.timeout(60)
def test_a_page_is_as_wide_as_the_terminal() -> None:
    reader, writer = os.openpty()
    fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 72, 0, 0))
    argv = [sys.executable, "-m", "crashlab", "analyze", "--fast", str(corpus.path("cut_short"))]
    with subprocess.Popen(argv, stdout=writer, cwd=Path(__file__).resolve().parents[3]) as program:
        os.close(writer)
        said = b""
        with contextlib.suppress(OSError):  # how a terminal says that the other end is closed
            while piece := os.read(reader, 1 << 16):
                said += piece
        os.close(reader)
    assert program.returncode == 3
    lines = said.decode().splitlines()
    assert 60 < max(map(len, lines)) <= 72


@pytest.mark.parametrize("columns", ["", "0", "-5", "nonsense", "200"])
def test_no_columns_or_too_many_give_a_page(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run_cli("analyze", "--fast", str(corpus.path("oob_load"))).out
    monkeypatch.setenv("COLUMNS", columns)
    assert run_cli("analyze", "--fast", str(corpus.path("oob_load"))).out == plain


def test_a_table_goes_on_below_where_the_screen_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    core = str(corpus.path("torch_gather"))
    whole = run_cli("inspect", core, "params").out
    monkeypatch.setenv("COLUMNS", "120")
    narrow = run_cli("inspect", core, "params").out
    assert max(map(len, narrow.splitlines())) <= 120 < max(map(len, whole.splitlines()))
    assert narrow.split()[:3] == whole.split()[:3]
    long = max(whole.split(), key=len)
    assert long[:16] in narrow


def test_a_folder_of_copies_counts_them_once(tmp_path: Path) -> None:
    for name in ("a.core", "b.core"):
        (tmp_path / name).write_bytes(corpus.raw("oob_load"))
    (tmp_path / "c.core").write_bytes(corpus.raw("misaligned"))
    (tmp_path / "d.core").symlink_to("c.core")
    shown = run_cli("analyze", "--fast", str(tmp_path)).out
    assert shown.startswith("4 files, 2 distinct: 2 dumps in 2 groups\n")
    assert "b.core = a.core, d.core = c.core" in shown
    assert shown.count("    1 x") == 2
    (tmp_path / "c.core").unlink()
    quiet = run_cli("analyze", "--fast", "-q", str(tmp_path)).out
    assert quiet == "2 files, 1 distinct: 1 dump in 1 group\n"


def test_copies_given_by_name_are_one_crash(tmp_path: Path) -> None:
    for name in ("a.core", "b.core"):
        shutil.copy(corpus.path("oob_load"), tmp_path / name)
    found = run_cli("analyze", "--fast", "-v", str(tmp_path / "a.core"), str(tmp_path / "b.core"))
    assert "b.core holds the same bytes as a.core" in found.out
    assert "sympathetic" not in found.out


def test_files_of_one_size_that_differ_are_two(tmp_path: Path) -> None:
    from crashlab.report.copies import distinct

    one, other, last = (tmp_path / name for name in ("one", "other", "last"))
    one.write_bytes(bytes(5 << 20))
    other.write_bytes(bytes((5 << 20) - 300_001) + b"x" + bytes(300_000))
    last.write_bytes(bytes(5 << 20))
    kept, copies = distinct([one, other, last, tmp_path / "missing", str(one)])
    assert kept == [one, other, tmp_path / "missing"]
    assert [(copy.path, copy.original, copy.same_file) for copy in copies] == [
        (last, one, False),
        (str(one), one, True),
    ]
