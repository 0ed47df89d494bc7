"""``crashlab signatures``: list, show and check the catalogue of known failures; its commands in one group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from crashlab.cli.given import Given
from crashlab.cli.signaturecrash import match_report, new_entry
from crashlab.cli.signatureoptions import catalogue_option, json_option
from crashlab.cli.unusable import warn
from crashlab.cli.width import sentence_width, table_width
from crashlab.errors import UsageError
from crashlab.postmortem.words import counted
from crashlab.report.jsontext import written
from crashlab.report.safe import one_line
from crashlab.signatures import catalogue
from crashlab.signatures.entry import CONFIDENCES, KINDS, STATUSES, Entry, to_plain

if TYPE_CHECKING:
    from crashlab.report.text import Piece

_LEAD = 58
"""Columns of id, kind and status."""
_TABLE = 100


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
@catalogue_option
@json_option
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
        for entry in _loaded(folders)
        if all(value is None or getattr(entry, key) == value for key, value in wanted.items())
        and (arch is None or _concerns(entry, arch))
        and (word is None or word.lower() in str(entry).lower())
    ]
    if as_json:
        rows = [{**_summary(entry), "source": entry.source} for entry in chosen]
        click.echo(written({"schema": catalogue.SCHEMA, "entries": rows}))
        return 0
    for line in _listed(chosen, table_width()):
        click.echo(line)
    click.echo(counted(len(chosen), "entry", "entries"), err=True)
    return 0


def _loaded(folders: Sequence[str]) -> Sequence[Entry]:
    """All entries that can be used; a line on standard error for each other one."""
    skipped: list[catalogue.Skipped] = []
    entries = catalogue.load(folders, skipped=skipped)
    warn(skipped)
    return entries


def _listed(entries: Sequence[Entry], width: int | None) -> Iterator[str]:
    """A line an entry; on a screen that is too narrow for columns its name and, below, what it is."""
    from crashlab.report.columns import broken

    for entry in entries:
        told = one_line(f"{entry.id:32} {entry.kind:14} {entry.status:9} {entry.title}")
        if width is None:
            yield told
        elif width >= _TABLE:
            pieces = broken(told[_LEAD:], width - _LEAD)
            yield f"{told[:_LEAD]}{pieces[0]}"
            yield from (f"{'':{_LEAD}}{piece}" for piece in pieces[1:])
        else:
            yield one_line(entry.id)
            words = one_line(f"{entry.kind}, {entry.status}: {entry.title}")
            yield from (f"  {piece}" for piece in broken(words, width - 2))


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
@catalogue_option
@json_option
def show_entry(name: str, folders: Sequence[str], as_json: bool) -> int:
    """Everything about one entry.

    \b
    Example:
      crashlab signatures show CUDNN-SM120-FORT-STS
    """
    entry = catalogue.find(_loaded(folders), name)
    if as_json:
        click.echo(written({**to_plain(entry), "source": entry.source}))
        return 0
    from crashlab.report.text import page

    click.echo(page(_entry(entry), sentence_width()), nl=False)
    return 0


def _entry(entry: Entry) -> Iterator[Piece]:
    """The entry's section of the page, with words where a crash fills something in."""
    from crashlab.report.text import Paragraph
    from crashlab.signatures.document import section
    from crashlab.signatures.sentences import spelled

    plain = section(entry)
    told = spelled(plain)
    for line in told.splitlines():
        lead = "- " if line.startswith("- ") else ""
        yield Paragraph(one_line(line[len(lead) :]), lead, " " * len(lead)) if line else ""
    if told != plain:
        yield ""
        yield Paragraph("Words in <angle brackets> are filled in from the crash.")


signatures.add_command(match_report)
signatures.add_command(new_entry)


@signatures.command("check")
@catalogue_option
@json_option
@click.option("-v", "--verbose", is_flag=True, help="Also name what passed.")
def check_entries(folders: Sequence[str], as_json: bool, verbose: bool) -> int:
    """Validate entries and run their proofs; exit status 3 when one fails.

    A draft in which nobody has replaced the placeholders fails, too. Without --catalogue: the bundled
    entries and those of $CRASHLAB_SIGNATURES.

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
