"""``crashlab signatures``: list, show, match, new and check the catalogue of known failures."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from crashlab.cli.given import Given
from crashlab.errors import UnreadableInput, UsageError
from crashlab.facts import Hypothesis, SignatureMatch
from crashlab.inputfile import open_regular
from crashlab.postmortem.words import counted
from crashlab.report.jsontext import written
from crashlab.report.safe import one_line
from crashlab.signatures import catalogue
from crashlab.signatures.entry import CONFIDENCES, KINDS, STATUSES, Entry, to_plain

_MAX_REPORT = 64 << 20
_DUMP_MAGIC = (b"\x7fELF", b"\x1f\x8b", b"\xfd7zXZ")
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _catalogue_option(command: _Command) -> _Command:
    return click.option(
        "--catalogue",
        "folders",
        multiple=True,
        metavar="DIR",
        type=click.Path(readable=False),
        help="A folder of further entries (*.toml). Repeatable. $CRASHLAB_SIGNATURES adds folders too.",
    )(command)


def _json_option(command: _Command) -> _Command:
    return click.option("--json", "as_json", is_flag=True, help="Write JSON.")(command)


@click.group()
def signatures() -> None:
    """The catalogue of known failures: what a crash is consistent with, and what speaks against it.

    \b
    Examples:
      crashlab signatures list --arch sm_120
      crashlab signatures show CUDNN-SM120-FORT-STS
      crashlab signatures match report.json --env cudnn=9.19.0.56 --log server.log
      crashlab signatures new report.json -o my-signatures/new.toml
      crashlab signatures check --catalogue my-signatures
    """


@signatures.command("list")
@_catalogue_option
@_json_option
@click.option("--kind", type=click.Choice(KINDS), help="Only this kind.")
@click.option("--status", type=click.Choice(STATUSES), help="Only this status.")
@click.option("--confidence", type=click.Choice(CONFIDENCES), help="Only this confidence.")
@click.option("--arch", metavar="sm_NNN", help="Only entries that can concern this GPU architecture.")
@click.option("--find", "word", metavar="TEXT", help="Only entries that mention TEXT.")
def list_entries(
    folders: Sequence[str],
    as_json: bool,
    kind: str | None,
    status: str | None,
    confidence: str | None,
    arch: str | None,
    word: str | None,
) -> int:
    """One line an entry.

    \b
    Examples:
      crashlab signatures list --kind cause --status open
      crashlab signatures list --find flashinfer --json
    """
    wanted = {"kind": kind, "status": status, "confidence": confidence}
    chosen = [
        entry
        for entry in catalogue.load(folders)
        if all(value is None or getattr(entry, key) == value for key, value in wanted.items())
        and (arch is None or _concerns(entry, arch))
        and (word is None or word.lower() in str(entry).lower())
    ]
    if as_json:
        rows = [{**_summary(entry), "source": entry.source} for entry in chosen]
        click.echo(written({"schema": catalogue.SCHEMA, "entries": rows}))
        return 0
    for entry in chosen:
        click.echo(one_line(f"{entry.id:32} {entry.kind:14} {entry.status:9} {entry.title}"))
    click.echo(counted(len(chosen), "entry", "entries"), err=True)
    return 0


def _summary(entry: Entry) -> dict[str, Any]:
    keys = ("id", "title", "kind", "status", "fixed_in", "confidence", "date", "references")
    return {key: getattr(entry, key) for key in keys}


def _concerns(entry: Entry, arch: str) -> bool:
    from crashlab.signatures.criteria import arch_fits
    from crashlab.signatures.observed import arch_number

    number = arch_number(arch)
    if number is None:
        raise UsageError(f"{arch!r} is no architecture", hint="Write sm_120, sm_90a or 12.0.")
    for picture in entry.pictures:
        asked = [item.want for item in picture.criteria if item.key == "arch"]
        if not asked or any(arch_fits(want, number) for wants in asked for want in wants):
            return True
    return False


@signatures.command("show")
@click.argument("name", metavar="ID")
@_catalogue_option
@_json_option
def show_entry(name: str, folders: Sequence[str], as_json: bool) -> int:
    """Everything about one entry.

    \b
    Example:
      crashlab signatures show CUDNN-SM120-FORT-STS
    """
    entry = catalogue.find(catalogue.load(folders), name)
    if as_json:
        click.echo(written({**to_plain(entry), "source": entry.source}))
        return 0
    from crashlab.signatures.document import section

    for line in section(entry).splitlines():
        click.echo(one_line(line))
    return 0


@signatures.command("match")
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
@_catalogue_option
@_json_option
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
    found = match(
        _read_report(report) if report is not None else None,
        env=parse_options(env),
        log=_log_lines(logs),
        entries=catalogue.packed(folders),
    )
    if as_json:
        from crashlab.report.jsonio import to_json

        data = {"schema": catalogue.SCHEMA, "signatures": to_json(found)}
        click.echo(written(data))
        return 0
    if not found:
        click.echo("No known failure fits what was captured.")
    for position, item in enumerate(found):
        for line in _shown(item, verbose or position == 0, verbose):
            click.echo(one_line(line))
    return 0


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
            f"{path} is neither JSON nor a GPU core dump: {error}",
            hint="Give the report.json that crashlab wrote, or logs with --log.",
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("verdict"), dict):
        raise UnreadableInput(
            f"{path} has no verdict: it is no crashlab report",
            hint="Write one with `crashlab analyze CORE --json > report.json`.",
        )
    return data


def _log_lines(paths: Sequence[str]) -> Iterator[str]:
    from crashlab.logs.text import read_file

    return (line.text for path in paths for line in read_file(path))


def _shown(item: SignatureMatch, in_full: bool, everything: bool) -> list[str]:
    lines = [f"{item.status:13} {item.score:4.2f}  {item.id}: {item.title}"]
    hypotheses = item.hypotheses if in_full else item.hypotheses[:1]
    for position, hypothesis in enumerate(hypotheses):
        most = 40 if everything else (12 if position == 0 else 2) if in_full else 1
        lines += _argument(hypothesis, most)
    lines += [f"    fix      {text}" for text in item.fix]
    if in_full:
        lines += [f"    test     {text}" for text in item.discriminating_tests[: 40 if everything else 3]]
    if item.references:
        lines.append(f"    see      {', '.join(item.references[: 40 if everything else 4])}")
    return [*lines, ""]


def _argument(hypothesis: Hypothesis, most: int) -> list[str]:
    lines = [f"  {hypothesis.cause}"]
    for mark, sentences in (
        ("for", hypothesis.supporting),
        ("against", hypothesis.against),
        ("unknown", hypothesis.unknown),
    ):
        lines += [f"    {mark:8} {text}" for text in sentences[:most]]
        if len(sentences) > most:
            lines.append(f"    {mark:8} … and {len(sentences) - most} more (-v shows them)")
    return lines


@signatures.command("new")
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
      crashlab signatures new report.json --id MY-KERNEL-OOB -o my-signatures/my-kernel-oob.toml
    """
    from crashlab.signatures.draft import draft

    text = draft(_read_report(report), name)
    _prove(text)
    if output is None:
        click.echo(text, nl=False)
        return 0
    try:
        with open(output, "x", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write {output}: {error.strerror or error}", hint="Name a new file in an existing folder."
        ) from error
    click.echo(f"wrote {output}: describe the cause, then run `crashlab signatures check --catalogue "
               f"{os.path.dirname(output) or '.'}`", err=True)  # fmt: skip
    return 0


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


@signatures.command("check")
@_catalogue_option
@_json_option
@click.option("-v", "--verbose", is_flag=True, help="Also name what passed.")
def check_entries(folders: Sequence[str], as_json: bool, verbose: bool) -> int:
    """Validate entries and run their proofs; exit status 3 when one fails.

    Without --catalogue: the bundled entries and those of $CRASHLAB_SIGNATURES.

    \b
    Example:
      crashlab signatures check --catalogue my-signatures
    """
    from crashlab.signatures.proofrun import run

    result = run(folders or catalogue.check_folders())
    if as_json:
        Given(click.get_current_context()).idle(("verbose",), "JSON always holds everything.")
        click.echo(written(_checked(result)))
    else:
        for problem in result.problems:
            click.echo(one_line(f"FAIL {problem}"))
        for outcome in result.outcomes if verbose else ():
            click.echo(
                one_line(f"ok   {outcome.entry}: {outcome.fixture} ({outcome.status} {outcome.score})")
            )
        click.echo(
            f"{counted(result.entries, 'entry', 'entries')}, {counted(len(result.outcomes), 'fixture')}, "
            f"{counted(len(result.problems), 'problem')}"
        )
    return 3 if result.problems else 0


def _checked(result: Any) -> Mapping[str, Any]:
    return {
        "schema": catalogue.SCHEMA,
        "entries": result.entries,
        "fixtures": [outcome._asdict() for outcome in result.outcomes],
        "problems": list(result.problems),
    }
