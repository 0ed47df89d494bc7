"""A first draft of an entry from one crash: patterns generalised, fixture filled in, proof included.

What varies between builds (numbers, template arguments) is cut out of names; what decides (exception,
opcode class, space, finding, architecture) becomes a criterion; versions become ``seen``, never
``affected``: one crash does not tell where a fault begins or ends.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from crashlab.errors import UsageError
from crashlab.signatures import placeholders
from crashlab.signatures.gather import gather
from crashlab.signatures.observed import Observed, get, text

_VERSIONED = ("cudnn", "flashinfer", "vllm", "sglang", "torch", "triton", "llama_cpp", "driver")
_MAX_PIECES = 6
_MIN_PIECE = 3
_MAX_NAME = 400


def draft(report: Any, name: str | None = None) -> str:
    """TOML of an entry for ``report`` (a Report, a Verdict or a parsed report.json).

    Raises UsageError when the report holds nothing that tells one failure from another.
    """
    seen = gather(report)
    criteria = _criteria(seen, report)
    if not any(key in criteria for key in ("kernel", "function", "log")):
        raise UsageError(
            "this report names no kernel and no error text, so there is nothing to recognise it by",
            hint="Draft from a report of a GPU core dump: `crashlab analyze CORE --json > report.json`.",
        )
    title = _title(seen)
    ident = name or _identifier(seen)
    lines = [
        "# A draft: say what causes it, remove what does not matter, and run",
        "#   crashlab signatures check --catalogue FOLDER",
        f"id = {_toml(ident)}",
        f"title = {_toml(title)}",
        'kind = "cause"',
        'status = "open"',
        'confidence = "low"',
        f"references = {_toml([placeholders.REFERENCE])}",
        "",
        "[[match]]",
        *(f"{key} = {_toml(value)}" for key, value in criteria.items()),
        *(f"seen.{key} = {_toml('==' + version)}" for key, version in _versions(seen).items()),
        "",
        "[[hypothesis]]",
        f"cause = {_toml(placeholders.CAUSE)}",
        f"tests = {_toml([placeholders.TEST])}",
        "",
        *_proof(seen, report),
    ]
    return "\n".join(lines) + "\n"


def _criteria(seen: Observed, report: Any) -> dict[str, Any]:
    """Keys of [[match]] in a stable order."""
    made: dict[str, Any] = {}
    if seen.kind in ("hang", "stall", "trap"):
        made["verdict"] = [seen.kind]
    if seen.code is not None:
        made["exception"] = [seen.code]
    kernel = seen.names[0] if seen.names else None
    pattern = generalise(kernel) if kernel else None
    function = seen.functions[0] if seen.functions else None
    if pattern:
        made["kernel"] = [pattern]
    elif function and (pattern := generalise(function)):
        made["function"] = [pattern]
    if seen.opcode:
        stem = re.match(r"[A-Z0-9]{2,20}", seen.opcode, re.ASCII)
        made.update({"opcode": [f"^{stem[0]}"]} if stem else {})
    for key, value in (("space", seen.space), ("access", seen.access), ("finding", seen.finding)):
        if value:
            made[key] = [value]
    if seen.arch is not None:
        made["arch"] = [f"sm_{seen.arch}"]
    if seen.hang:
        made["hang"] = sorted(seen.hang)
    message = _message(report)
    if "kernel" not in made and "function" not in made and message:
        made["log"] = [message]
    return made


def generalise(name: str) -> str | None:
    """A pattern for names like this one: literal pieces without numbers, template arguments cut off.

    None when too little is left to tell it from others.
    """
    head = re.split(r"[<(]", name[:_MAX_NAME].removeprefix("void "), maxsplit=1)[0]
    pieces = [piece for piece in re.split(r"\d+", head) if len(piece) >= _MIN_PIECE]
    pieces = [piece for piece in pieces if re.search(r"[A-Za-z]{3}", piece)][:_MAX_PIECES]
    if not pieces or sum(map(len, pieces)) < 2 * _MIN_PIECE:
        return None
    return ".*".join(_literal(piece) for piece in pieces)


def _literal(piece: str) -> str:
    return "".join(char if char.isalnum() or char in "_: " else "\\" + char for char in piece)


def _message(report: Any) -> str | None:
    """The host's error text as a log pattern: words only, numbers become gaps."""
    reported = text(get(report, "host", "reported", "text"))
    if reported is None:
        return None
    line = reported.strip().splitlines()[0][:160] if reported.strip() else ""
    pieces = [piece.strip() for piece in re.split(r"[^A-Za-z _':.-]+", line)]
    kept = [piece for piece in pieces if len(piece) >= 8][:_MAX_PIECES]
    return ".*".join(_literal(piece) for piece in kept) or None


def _versions(seen: Observed) -> dict[str, str]:
    from crashlab.signatures.versions import parse

    found = {key: seen.version(key) for key in _VERSIONED}
    return {
        key: version.split("+")[0]
        for key, version in found.items()
        if version is not None and parse(version) is not None
    }


def _facts(seen: Observed) -> dict[str, Any]:
    facts = {
        "verdict": seen.kind,
        "exception": seen.code,
        "precision": seen.precision,
        "kernel": seen.names[0][:_MAX_NAME] if seen.names else None,
        "function": seen.functions[0][:_MAX_NAME] if seen.functions else None,
        "library": seen.library,
        "family": seen.family,
        "opcode": seen.opcode,
        "access": seen.access,
        "space": seen.space,
        "width": seen.width,
        "finding": seen.finding,
        "limit": seen.limit,
        "arch": None if seen.arch is None else f"sm_{seen.arch}",
        "hang": sorted(seen.hang) if seen.hang else None,
        "xid": list(seen.xids) if seen.xids else None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def _proof(seen: Observed, report: Any) -> list[str]:
    """The crash as fixture, and the near miss that differs in the fact that decides."""
    facts = _facts(seen)
    env = {key: version for key in _VERSIONED if (version := seen.version(key)) is not None}
    message = text(get(report, "host", "reported", "text"))
    log = [message.strip().splitlines()[0][:400]] if message and message.strip() else []
    other = dict(facts)
    if seen.code is not None:
        other["exception"] = 14 if seen.code != 14 else 5
        what = "the same place with another exception"
    else:
        other.update(kernel="another_kernel", function="another_function")
        what = "the same in another kernel"
    made = []
    for table, says, values, lines in (
        ("match", "the crash that this was drafted from", facts, log),
        ("near_miss", what, other, ["another line of a log"] if log else []),
    ):
        made += [f"[[proof.{table}]]", f"says = {_toml(says)}"]
        made += ['expect = "possible"'] if table == "match" and not _strong(seen, report) else []
        made += [f"facts = {_inline(values)}"]
        made += [f"env = {_inline(env)}"] if env else []
        made += [f"log = {_toml(lines)}"] if lines else []
        made.append("")
    return made[:-1]


def _strong(seen: Observed, report: Any) -> bool:
    """Would the drafted picture score as a match? It is tried, not guessed."""
    from crashlab.signatures.match import MATCH, match_entry
    from crashlab.signatures.schema import entry_from

    table = {
        "id": "DRAFT",
        "title": "draft",
        "kind": "cause",
        "status": "open",
        "confidence": "low",
        "match": [{**_criteria(seen, report), **_seen_table(seen)}],
        "hypothesis": [{"cause": "a draft"}],
    }
    found = match_entry(entry_from(table), seen)
    return found is not None and found.status == MATCH


def _seen_table(seen: Observed) -> dict[str, Any]:
    versions = {key: "==" + version for key, version in _versions(seen).items()}
    return {"seen": versions} if versions else {}


def _title(seen: Observed) -> str:
    what = seen.exception or seen.kind or "a failure"
    where = seen.names[0] if seen.names else "an unknown kernel"
    arch = f" on sm_{seen.arch}" if seen.arch is not None else ""
    return f"{what} in {_clean(where)[:160]}{arch}"


def _identifier(seen: Observed) -> str:
    source = seen.family or (seen.names[0] if seen.names else seen.kind or "FAILURE")
    stem = re.sub(r"[^A-Z0-9]+", "-", _clean(source).upper()).strip("-")[:40].strip("-")
    return f"NEW-{stem or 'FAILURE'}"


def _clean(value: str) -> str:
    return "".join(char if char.isprintable() else " " for char in value)


def _inline(values: Mapping[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {_toml(value)}" for key, value in values.items()) + " }"


def _toml(value: Any) -> str:
    """A TOML value; a string with backslashes becomes a literal string where that is possible."""
    import json

    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    if isinstance(value, int):
        return str(int(value))
    shown = _clean(str(value))
    if "\\" in shown and "'" not in shown:
        return f"'{shown}'"
    return json.dumps(shown, ensure_ascii=False)
