"""``crashlab signatures match`` and ``new``: a crash held against the catalogue, and made an entry of it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from crashlab.cli.given import Given
from crashlab.cli.signatureoptions import catalogue_option, json_option
from crashlab.cli.tofile import write_file
from crashlab.cli.unusable import warn
from crashlab.cli.width import sentence_width
from crashlab.errors import UnreadableInput, UsageError
from crashlab.facts import Hypothesis, SignatureMatch
from crashlab.inputfile import open_regular
from crashlab.report.jsontext import written
from crashlab.report.safe import one_line
from crashlab.signatures import catalogue

if TYPE_CHECKING:
    from crashlab.report.text import Paragraph, Piece

_MAX_REPORT = 64 << 20
_DUMP_MAGIC = (b"\x7fELF", b"\x1f\x8b", b"\xfd7zXZ")


@click.command("match")
@click.argument(
    "report", required=False, metavar="[REPORT.json|RUNDIR|CORE]", type=click.Path(allow_dash=True)
)
@click.option("--env", "env", multiple=True, metavar="FILE|KEY=VALUE", help="Environment facts. Repeatable.")
@click.option(
    "--log",
    "logs",
    multiple=True,
    metavar="FILE",
    type=click.Path(readable=False),
    help="Server, driver or kernel log. Repeatable.",
)
@catalogue_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Every sentence for and against, every test.")
def match_report(
    report: str | None,
    env: Sequence[str],
    logs: Sequence[str],
    folders: Sequence[str],
    as_json: bool,
    verbose: bool,
) -> int:
    """Hold a crash against the catalogue.

    Works on a report.json, a run directory, a GPU core dump, or on logs alone. --env takes key=value
    (cudnn=9.19.0.56, cuda_graph=true, garbage=token0) or a file: key=value lines, JSON, the output of
    `vllm collect-env`, `nvidia-smi`, `nvcc --version` or `pip freeze`.

    \b
    Examples:
      crashlab signatures match report.json --env cudnn=9.19.0.56
      crashlab signatures match --log server.log --env env.txt
      crashlab analyze core --json | crashlab signatures match -
    """
    if report is None and not logs and not env:
        raise UsageError("nothing to match", hint="Give a report.json, or a log with --log.")
    from crashlab.signatures.environment import parse_options
    from crashlab.signatures.match import match

    if as_json:
        Given(click.get_current_context()).idle(("verbose",), "JSON always holds everything.")
    skipped: list[catalogue.Skipped] = []
    entries = catalogue.packed(folders, skipped=skipped)
    warn(skipped)
    found = match(
        _read_report(report) if report is not None else None,
        env=parse_options(env),
        log=_log_lines(logs),
        entries=entries,
    )
    if as_json:
        from crashlab.report.jsonio import to_json

        data = {"schema": catalogue.SCHEMA, "signatures": to_json(found)}
        click.echo(written(data))
        return 0
    from crashlab.report.text import page

    width = sentence_width()
    if not found:
        click.echo("No known failure fits what was captured.")
    for position, item in enumerate(found):
        click.echo(page(_shown(item, verbose or position == 0, verbose), width), nl=False)
    return 0


@click.command("new")
@click.argument("report", metavar="REPORT.json|RUNDIR|CORE", type=click.Path(allow_dash=True))
@click.option("--id", "name", metavar="ID", help="The entry's id (default: from the kernel's name).")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(readable=False),
    help="The file to write; it must not exist.",
)
def new_entry(report: str, name: str | None, output: str | None) -> int:
    """Draft an entry from a crash: patterns generalised, fixture and near miss filled in.

    \b
    Example:
      crashlab signatures new report.json --id MY-KERNEL-OOB \\
        -o my-signatures/my-kernel-oob.toml
    """
    from crashlab.signatures.draft import draft

    if name is not None:
        _check_id(name)
    text = draft(_read_report(report), name)
    _prove(text)
    if output is None:
        click.echo(text, nl=False)
        return 0
    write_file(output, text, new=True)
    click.echo(f"wrote {output}: describe the cause, then run `crashlab signatures check --catalogue "
               f"{os.path.dirname(output) or '.'}`", err=True)  # fmt: skip
    return 0


def _check_id(name: str) -> None:
    """UsageError for an id that no entry can have, before the crash is read."""
    from crashlab.signatures.schema import is_id

    if not is_id(name):
        raise UsageError(
            f"--id {name[:64]!r}: an id is 3 to 64 upper-case letters, digits and hyphens.",
            hint="For example --id MY-KERNEL-OOB.",
        )
    if any(card.id == name for card in catalogue.cards()):
        raise UsageError(
            f"--id {name}: this id is taken by an entry that ships with crashlab.", hint="Choose another id."
        )


def _prove(text: str) -> None:
    """A draft that does not pass its own check would be worse than none."""
    from crashlab.signatures import proof, schema

    table = catalogue.parse_toml(text, "the draft")
    for outcome in proof.check(schema.entry_from(table), table):
        if outcome.problem:
            raise UnreadableInput(
                f"no usable draft: {outcome.fixture}: {outcome.problem}",
                hint="The report knows too little: analyze the dump without --fast and try again.",
            )


def _read_report(path: str) -> Any:
    """A parsed report.json (of a file, standard input or a run directory), or the report of a dump."""
    if os.path.isdir(path):
        path = os.path.join(path, "report.json")
    if path == "-":
        raw: bytes = sys.stdin.buffer.read(_MAX_REPORT + 1)
    else:
        with open_regular(path, "report") as stream:
            raw = stream.read(_MAX_REPORT + 1)
    if raw.startswith(_DUMP_MAGIC) and path != "-":
        import crashlab

        return crashlab.analyze(path)
    if len(raw) > _MAX_REPORT:
        raise UnreadableInput(f"{path} is larger than {_MAX_REPORT >> 20} MiB: that is no report.json")
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(
            f"{'standard input' if path == '-' else path} {_what_it_is(raw)}",
            hint="Give the report.json that crashlab wrote; 'crashlab signatures match --log FILE' reads logs.",
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("verdict"), dict):
        raise UnreadableInput(
            f"{path} has no verdict: it is no crashlab report",
            hint="Write one with `crashlab analyze CORE --json > report.json`.",
        )
    return data


def _what_it_is(raw: bytes) -> str:
    """What is wrong with bytes that are no JSON, in words that need no knowledge of JSON."""
    start = raw.lstrip()[:1]
    if not start:
        return "is empty."
    if start in (b"{", b"["):
        return "is neither JSON nor a GPU core dump: it begins like JSON and is cut short or damaged."
    return "is neither JSON nor a GPU core dump."


def _log_lines(paths: Sequence[str]) -> Iterator[str]:
    from crashlab.logs.text import read_file

    return (line.text for path in paths for line in read_file(path))


def _shown(item: SignatureMatch, in_full: bool, everything: bool) -> Iterator[Piece]:
    yield _line(f"{item.status:13} {item.score:4.2f}  ", f"{item.id}: {item.title}", 4)
    hypotheses = item.hypotheses if in_full else item.hypotheses[:1]
    for position, hypothesis in enumerate(hypotheses):
        most = 40 if everything else (12 if position == 0 else 2) if in_full else 1
        yield from _argument(hypothesis, most)
    yield from (_line("    fix      ", text) for text in item.fix)
    if in_full:
        tests = item.discriminating_tests[: 40 if everything else 3]
        yield from (_line("    test     ", text) for text in tests)
    if item.references:
        yield _line("    see      ", ", ".join(item.references[: 40 if everything else 4]))
    yield ""


def _argument(hypothesis: Hypothesis, most: int) -> Iterator[Piece]:
    yield _line("  ", hypothesis.cause)
    for mark, sentences in (
        ("for", hypothesis.supporting),
        ("against", hypothesis.against),
        ("unknown", hypothesis.unknown),
    ):
        yield from (_line(f"    {mark:8} ", text) for text in sentences[:most])
        if len(sentences) > most:
            yield _line(f"    {mark:8} ", f"… and {len(sentences) - most} more (-v shows them)")


def _line(lead: str, text: str, rest: int | None = None) -> Paragraph:
    from crashlab.report.text import Paragraph

    return Paragraph(one_line(text), lead, " " * (len(lead) if rest is None else rest))
