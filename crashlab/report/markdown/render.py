"""An issue text for one form: fields in order, cut in a fixed order until it fits."""

from __future__ import annotations

from typing import NamedTuple

from crashlab import facts
from crashlab.postmortem.wording import short_name
from crashlab.report.markdown.blocks import Block
from crashlab.report.markdown.escape import code, prose
from crashlab.report.markdown.forms import PLAIN, Field, Form
from crashlab.report.safe import one_line

LIMIT = 60_000
"""GitHub refuses bodies above 65,536 characters; the rest is left for what a person adds."""

_TITLE = 200


class _Placed(NamedTuple):
    heading: str
    block: Block
    cut: bool = False


def title(report: facts.Report, form: Form = PLAIN) -> str:
    """The issue's title: exception, function, instruction, GPU architecture; plain text, at most 200 characters."""
    verdict = report.verdict
    who = verdict.function or verdict.kernel
    name = short_name(who.name if who else None, 90)
    if verdict.exception and name:
        opcode = (
            f" at {verdict.instruction.opcode}" if verdict.instruction and verdict.instruction.opcode else ""
        )
        arch = f" ({verdict.where.sm_arch})" if verdict.where and verdict.where.sm_arch else ""
        text = f"{verdict.exception.name} in {name}{opcode}{arch}"
    else:
        text = verdict.headline
    return _cut_title(one_line(f"{form.title_prefix}{text}"))


def _cut_title(text: str) -> str:
    """At most 200 characters, ending at a word."""
    if len(text) <= _TITLE:
        return text
    head, _, _ = text[:_TITLE].rpartition(" ")
    if len(head) < _TITLE // 2:
        head = text[: _TITLE - 1]
    return f"{head.rstrip(' ,;:(')}…"


def render(report: facts.Report, form: Form = PLAIN, *, limit: int = LIMIT) -> str:
    """The whole text, at most ``limit`` characters. Whoever publishes it redacts the report first."""
    placed = [(field, _blocks(report, field)) for field in form.fields]
    text = _assemble(report, form, placed)
    ranks = sorted({p.block.cut for _, blocks in placed for p in blocks if p.block.cut})
    for rank in ranks:
        if len(text) <= limit:
            return text
        placed = [
            (field, [_cut(p) if p.block.cut == rank else p for p in blocks]) for field, blocks in placed
        ]
        text = _assemble(report, form, placed)
    return text if len(text) <= limit else _hard_cut(text, limit)


def answer(report: facts.Report, field: Field) -> str:
    """What stands under one field of a form."""
    return _field(field, _blocks(report, field))


def _blocks(report: facts.Report, field: Field) -> list[_Placed]:
    built = ((heading, builder(report)) for heading, builder in field.builders)
    return [_Placed(heading, block) for heading, block in built if block is not None and block.text]


def _cut(placed: _Placed) -> _Placed:
    block = placed.block
    gone = len(block.text) - len(block.short)
    note = f"_Cut here to keep this text short enough: {gone:,} characters of {block.name}. report.json has them all._"
    text = f"{block.short}\n\n{note}" if block.short else note
    return (
        placed._replace(block=block._replace(text=text, cut=0), cut=True)
        if len(text) < len(block.text)
        else placed
    )


def _field(field: Field, placed: list[_Placed]) -> str:
    parts = [field.note] if field.note else []
    for item in placed:
        if item.heading:
            parts.append(f"#### {item.heading}")
        parts.append(item.block.text)
    return "\n\n".join(parts) or "Nothing is known."


def _assemble(report: facts.Report, form: Form, placed: list[tuple[Field, list[_Placed]]]) -> str:
    head = f"<!-- Title: {_in_comment(title(report, form))} -->"
    if form.url:
        head += f"\n<!-- Each heading is a field of the form at {form.url} ; nothing was sent anywhere. -->"
    parts = [head]
    for field, items in placed:
        parts += [f"### {field.label}", _field(field, items)]
    files = ", ".join(code(item.path, 120) for item in report.inputs[:6])
    parts.append(
        f"---\n{prose(f'Written by {report.tool.name} {report.tool.version} from')} {files or 'no file'}."
    )
    return "\n\n".join(parts) + "\n"


def _in_comment(text: str) -> str:
    """Text that cannot end an HTML comment."""
    return text.replace("<", "‹").replace(">", "›").replace("--", "–")


def _hard_cut(text: str, limit: int) -> str:
    """The last resort: whole lines up to the limit, with an open code block closed."""
    room = limit - 200
    kept = text[:room].rsplit("\n", 1)[0]
    fence = ""
    for line in kept.splitlines():
        ticks = line[: len(line) - len(line.lstrip("`"))]
        if not fence and len(ticks) >= 3:
            fence = ticks
        elif fence and line.rstrip() == fence:
            fence = ""
    closing = f"\n{fence}" if fence else ""
    return f"{kept}{closing}\n\n_Cut here: {len(text) - len(kept):,} more characters. report.json has them all._\n"
