"""What ``crashlab quality`` asks, and how, from its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crashlab.cli.tofile import write_file
from crashlab.cli.voice import tell
from crashlab.errors import UnreadableInput, UsageError
from crashlab.inputfile import open_regular

if TYPE_CHECKING:
    from crashlab.quality.settings import Settings
    from crashlab.quality.task import Suite


def suite_of(options: dict[str, Any]) -> Suite:
    """The questions. Raises UsageError or UnreadableInput."""
    from crashlab.quality.generate import build_suite
    from crashlab.quality.usertasks import load_tasks

    shots = options["shots"]
    if options["tasks"]:
        if options["level"]:
            raise UsageError("--level chooses among the built-in questions; --tasks brings its own.")
        return load_tasks(
            options["tasks"], options["seed"], options["questions"], 5 if shots is None else shots
        )
    return build_suite(options["seed"], options["questions"], options["level"], 3 if shots is None else shots)


def settings_of(suite: Suite, options: dict[str, Any]) -> Settings:
    """How they are asked."""
    import json

    from crashlab.quality.settings import Settings
    from crashlab.soak.ask import CHAT, COMPLETIONS
    from crashlab.soak.budget import parse_duration
    from crashlab.soak.deadlines import Deadlines

    total = parse_duration(options["answer_within"])
    return Settings(
        suite,
        options["seed"],
        options["concurrency"],
        CHAT if options["chat"] else COMPLETIONS,
        1 if options["no_floor"] else 2,
        options["alpha"],
        not options["no_ladder"],
        options["max_length"],
        not options["no_prose"],
        _share(options["expect"]),
        Deadlines(30.0, total, total, total),
        parse_duration(options["ready_within"]),
        lm_eval=tuple(one.strip() for one in (options["lm_eval"] or "").split(",") if one.strip()),
        limit=options["questions"] if options["lm_eval"] else None,
        extra=json.loads(options["extra"]) if options["extra"] else None,
    )


def write_tasks(suite: Suite, path: str) -> int:
    """The questions as JSONL, in the form that --tasks reads; the exit code.

    Raises UsageError for a file that exists and holds anything else: somebody may have questions of their own there.
    """
    import json

    lines = [
        json.dumps(
            {"id": task.id, "level": task.level, "question": task.question, "prompt": task.prompt,
             task.scoring if task.scoring != "none" else "answer": task.answer, "answer": task.answer},
            ensure_ascii=False,
        )
        for task in suite.tasks
    ]  # fmt: skip
    content = "".join(f"{line}\n" for line in lines)
    if not _holds(path, content):
        write_file(path, content, new=True)
    tell(f"{len(lines)} questions, sha256 {suite.sha256}")
    return 0


def _holds(path: str, content: str) -> bool:
    """Whether a file holds exactly this text."""
    wanted = content.encode("utf-8", "replace")
    try:
        with open_regular(path, "questions") as file:
            return file.read(len(wanted) + 1) == wanted
    except (OSError, UnreadableInput):
        return False


def _share(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text.rstrip("%")) / (100.0 if text.endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 < value <= 1.0:
        raise UsageError(f"--expect takes a share like 0.8867 or 88.67%, not {text!r}.")
    return value
