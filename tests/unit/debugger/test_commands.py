"""The command list, and the lines for a person."""

from __future__ import annotations

import shlex
import subprocess

from crashlab.debugger import commands


def test_no_start_up_file_is_read_and_the_dump_is_opened_first() -> None:
    words = commands.arguments()
    assert words[:2] == ("-nx", "-batch")
    given = [words[i + 1] for i, word in enumerate(words) if word == "-ex"]
    assert given[:2] == ["echo ==open\\n", "target cudacore core"]
    assert given[-1] == "echo ==end\\n"


def test_every_question_of_the_sequence_is_asked() -> None:
    text = " ".join(commands.arguments())
    for question in (
        "info registers errorpc",
        "info symbol $errorpc",
        "info line *$errorpc",
        "x/4i $errorpc",
        "x/4i $pc",
        "info cuda kernels",
        "info cuda devices",
        "cuda kernel grid block thread device sm warp lane",
        "backtrace 64",
        "info cuda lanes",
        "info cuda warps",
        "info registers",
    ):
        assert question in text


def test_settings_keep_gdb_from_files_questions_and_paging() -> None:
    words = commands.arguments()
    settings = [words[i + 1] for i, word in enumerate(words) if word == "-iex"]
    for setting in ("set auto-load no", "set debuginfod enabled off", "set pagination off", "set width 0"):
        assert setting in settings
    assert words.index("-ex") > max(i for i, word in enumerate(words) if word == "-iex")


def test_the_lines_for_a_person_survive_a_shell() -> None:
    dump = "/data/my run's/gpu core"
    (line,) = commands.by_hand(dump, 0x7F10, program="printf '%s\\n'")
    assert f"target cudacore {dump}" in shlex.split(line)
    (line,) = commands.by_hand(dump, 0x7F10)
    words = shlex.split(line)
    assert words[:3] == ["cuda-gdb", "-nx", "-batch"]
    assert "x/8i 0x7f10" in words
    echoed = subprocess.run(
        ["sh", "-c", line.replace("cuda-gdb", "printf %s\\\\n", 1)], capture_output=True, text=True
    )
    assert f"target cudacore {dump}" in echoed.stdout.splitlines()
    assert not any("0x" in word for word in commands.by_hand(dump))
