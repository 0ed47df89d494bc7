"""Take secrets, people, machines and prompts out of everything shareable, and count what was taken.

First :meth:`Redactor.learn` sees every input, so that a name betrayed by one file (``/home/NAME`` in
a log) is known in all others; then :meth:`Redactor.text`, :meth:`~Redactor.report`,
:meth:`~Redactor.log` and :meth:`~Redactor.binary` give redacted copies.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from crashlab import facts
from crashlab.report import prompts
from crashlab.report.redactrules import (
    RULES,
    Rule,
    Span,
    closes_key_block,
    hosts_in,
    open_key_block,
    users_in,
)

T = TypeVar("T")
_PROMPT = "<prompt or answer removed>"
_OWN = re.compile(
    "|".join([re.escape(r.placeholder).replace(r"\#", r"\d+") for r in RULES] + [re.escape(_PROMPT)])
)
"""Our own placeholders: what was taken out once is not counted again."""
_KNOWN_LIMIT = 400
_RUN = re.compile(rb"[\x20-\x7e]{5,}")
_RUNS_AT_ONCE = 1 << 20
_SURE_MAIL = re.compile(r"[\w.+-]{2,}@[A-Za-z0-9-]{2,}(?:\.[A-Za-z0-9-]{2,}){0,6}\.[A-Za-z]{2,10}$")
_SECRET_FLAG = re.compile(r"(?i)^--?[\w-]{0,60}(?:key|token|secret|password|passwd|credential)$")


class Redactor:
    """One redaction: equal values get equal numbered placeholders everywhere in it."""

    def __init__(self, *, users: Iterable[str] = (), hosts: Iterable[str] = ()) -> None:
        self._users = {u for u in users if len(u) >= 3 and u != "root"}
        self._hosts = {h for h in hosts if len(h) >= 3 and h != "localhost"}
        self._numbers: dict[str, dict[str, int]] = {}
        self._known: re.Pattern[str] | None = None
        self._in_key = False
        self.counts: dict[str, int] = {}

    # --- learning ------------------------------------------------------------------------------

    def learn(self, text: str) -> None:
        """Remember the login and machine names that a text betrays."""
        before = len(self._users) + len(self._hosts)
        for names, found in ((self._users, users_in(text)), (self._hosts, hosts_in(text))):
            for name in found:
                if len(names) < _KNOWN_LIMIT:
                    names.add(name)
        if len(self._users) + len(self._hosts) != before:
            self._known = None

    def learn_report(self, report: facts.Report) -> None:
        """The same for every string of a report."""
        for text in _strings(report):
            self.learn(text)
        for name, fact in (report.environment or {}).items():
            if name.lower() in ("hostname", "host", "node"):
                self._hosts.add(fact.value)
            if name.lower() in ("user", "username", "login"):
                self._users.add(fact.value)
        self._known = None

    def _known_names(self) -> re.Pattern[str] | None:
        if self._known is None:
            names = sorted(self._users | self._hosts, key=len, reverse=True)
            short = {host.split(".")[0] for host in self._hosts}
            names += sorted(n for n in short if len(n) >= 4 and n not in names)
            if names:
                body = "|".join(map(re.escape, names))
                self._known = re.compile(rf"(?<![A-Za-z0-9])(?:{body})(?![A-Za-z0-9])")
        return self._known

    # --- text ----------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """A redacted copy of any text."""
        found = (Span(start, end, "") for start, end in prompts.spans(text))
        return self.names_and_secrets(self._apply(text, "prompt or answer", found, None))

    def names_and_secrets(self, text: str) -> str:
        """A copy without secrets, people and machines; prompts stay."""
        for rule in RULES:
            text = self._apply(text, rule.name, rule.find(text), rule)
        known = self._known_names()
        if known is not None and known.search(text):
            text = known.sub(self._name, text)
        return text

    def _apply(self, text: str, name: str, found: Iterator[Span], rule: Rule | None) -> str:
        out: list[str] = []
        at = 0
        for span in sorted(found):
            if span.end <= at or _OWN.match(text, span.start):
                continue
            out += [
                text[at : span.start],
                self._placeholder(rule.placeholder, span.value) if rule else _PROMPT,
            ]
            at = span.end
            self.counts[name] = self.counts.get(name, 0) + 1
        return "".join((*out, text[at:])) if out else text

    def _placeholder(self, pattern: str, value: str) -> str:
        """``<ip-#>`` with this value's own number; patterns without ``#`` as they are."""
        if "#" not in pattern:
            return pattern
        numbers = self._numbers.setdefault(pattern, {})
        return pattern.replace("#", str(numbers.setdefault(value.lower(), len(numbers) + 1)))

    def _name(self, match: re.Match[str]) -> str:
        user = match.group() in self._users
        self.counts["user" if user else "host"] = self.counts.get("user" if user else "host", 0) + 1
        return "<user>" if user else self._placeholder("<host-#>", match.group())

    # --- structures ----------------------------------------------------------------------------

    def report(self, report: facts.Report) -> facts.Report:
        """A redacted copy of a report; types, numbers and names of kernels stay."""
        return self.copy(report)

    def copy(self, value: T) -> T:
        """A redacted copy of any named tuple."""
        found: T = self._walk(value)
        return found

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (facts.Hex, facts.Dim3)) or value is None:
            return value
        fields = getattr(value, "_fields", None)
        if fields is not None:
            return type(value)(**{name: self._walk(getattr(value, name)) for name in fields})
        if isinstance(value, Mapping):
            return {self.text(str(key)): self._named(str(key), item) for key, item in value.items()}
        if isinstance(value, tuple):
            return self._arguments(value)
        return value

    def _named(self, key: str, item: Any) -> Any:
        """A value judged with its name before it: ``cudnn=9.19.0.56`` is a version, ``host_ip=…`` an address."""
        if isinstance(item, facts.EnvFact):
            return facts.EnvFact(self._named(key, item.value), self.text(item.source))
        if not isinstance(item, str):
            return self._walk(item)
        lead = f"{key}="
        whole = self.text(lead + item)
        return whole[len(lead) :] if whole.startswith(lead) else self.text(item)

    def _arguments(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """A tuple; of an argument list also the value that follows a flag such as ``--api-key``."""
        out, secret = [], False
        for item in values:
            if secret and isinstance(item, str):
                self.counts["named secret"] = self.counts.get("named secret", 0) + 1
                out.append("<secret>")
                secret = False
                continue
            secret = isinstance(item, str) and _SECRET_FLAG.match(item) is not None
            out.append(self._walk(item))
        return tuple(out)

    # --- logs and binaries ---------------------------------------------------------------------

    def log(self, lines: Iterable[str]) -> Iterator[str]:
        """Redacted lines of a log; keys that span lines and whole-line JSON are understood."""
        for line in lines:
            if self._in_key:
                self._in_key = not closes_key_block(line)
                continue
            if not line:  # a log may hold a hundred thousand of them, and each would pass every rule
                yield line
                continue
            self._in_key = open_key_block(line)
            yield self._json_line(line) if line.lstrip()[:1] == "{" else self.text(line)

    def _json_line(self, line: str) -> str:
        import json

        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            return self.text(line)
        return self.json(row)

    def json(self, value: object) -> str:
        """JSON text of a value: prompt-like fields removed, every string redacted, secrets found by their key."""
        import json

        clean = prompts.json_without_words(value, self.text)
        return self.names_and_secrets(json.dumps(clean, ensure_ascii=False))

    def binary(self, data: bytes) -> bytes:
        """A copy of the same length: what must go is overwritten with ``x``, so that offsets stay true.

        Only text that stands uncompressed in one piece is found.
        """
        out: bytearray | None = None
        for text, starts in _joined_runs(data):
            joined_at = [place for place, _ in starts]
            for start, end in self._binary_spans(text):
                place, origin = starts[bisect_right(joined_at, start) - 1]
                at = origin + start - place
                out = out if out is not None else bytearray(data)
                out[at : at + end - start] = b"x" * (end - start)
        return bytes(out) if out is not None else data

    def _binary_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Spans within single lines: each line is one run of text in the binary."""
        for rule in RULES:
            for span in rule.find(text):
                if rule.name == "mail address" and not _SURE_MAIL.search(span.value):
                    continue  # x@y occurs by chance in machine code, which must not be damaged
                self.counts[rule.name] = self.counts.get(rule.name, 0) + 1
                yield span.start, min(span.end, _line_end(text, span.start))
        known = self._known_names()
        for match in known.finditer(text) if known is not None else ():
            if len(match.group()) < 4:
                continue
            self.counts["user or host"] = self.counts.get("user or host", 0) + 1
            yield match.start(), match.end()


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _joined_runs(data: bytes) -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """The printable runs of a binary, joined by line ends about 1 MiB at a time, with where each came from."""
    parts: list[str] = []
    starts: list[tuple[int, int]] = []
    size = 0
    for run in _RUN.finditer(data):
        starts.append((size, run.start()))
        parts.append(run.group().decode("ascii"))
        size += len(parts[-1]) + 1
        if size > _RUNS_AT_ONCE:
            yield "\n".join(parts), starts
            parts, starts, size = [], [], 0
    if parts:
        yield "\n".join(parts), starts


def leftovers(text: str) -> dict[str, int]:
    """What the rules would still take out of a text that should be clean, by rule."""
    probe = Redactor()
    probe.names_and_secrets(text)
    return probe.counts


def _strings(value: Any) -> Iterator[str]:
    """Every string inside a fact."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield str(key)
            yield from _strings(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from _strings(item)
