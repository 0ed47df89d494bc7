"""What is taken out of anything that may leave the machine: one rule a kind of secret, all linear in time.

Rules find spans; what replaces them is decided by the caller (a word in text, filler of the same
length in binaries).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """A part of a text that must go. ``value`` is what a numbered placeholder is made for."""

    start: int
    end: int
    value: str


class Rule(NamedTuple):
    """``name`` is counted and shown; ``placeholder`` replaces a span (``#`` becomes a number for each value)."""

    name: str
    placeholder: str
    find: Callable[[str], Iterator[Span]]


_SECRET_NAME = (
    r"(?:api[_-]?key|apikey|access[_-]?key(?:[_-]?id)?|secret(?:[_-]?(?:access[_-]?)?key)?|auth[_-]?token|token|passw(?:or)?d"
    r"|passphrase|credentials?|private[_-]?key|session[_-]?key|client[_-]?secret)"
)
_NAMED = re.compile(
    rf"(?i)(?<![A-Za-z0-9])(?:[A-Za-z0-9]{{1,40}}[_.-]){{0,6}}{_SECRET_NAME}[\"']?\s{{0,4}}(?:=|:(?!:))\s{{0,4}}[\[(]?[\"']?"
    r"([^\s\"',;)\]}]{3,4000})"
)
_FLAG = re.compile(
    rf"(?i)(?<![\w-])--?(?:[a-z0-9]{{1,30}}[-_]){{0,4}}{_SECRET_NAME}(?:\s+|=)[\"']?([^\s\"']{{3,4000}})"
)
_BEARER = re.compile(
    r"(?i)\b(?:(?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[a-z]{1,20}\s+)?|bearer\s+|basic\s+(?=[A-Za-z0-9+/]{12}))"
    r"((?!(?:bearer|basic|token|digest)\b)[A-Za-z0-9._~+/=-]{6,4000})"
)
_COOKIE = re.compile(r"(?i)\b(?:set-)?cookie[\"']?\s{0,3}[:=]\s{0,3}([^\r\n]{1,4000})")
_SHAPED = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|(?:gh[opsur]_|github_pat_)[A-Za-z0-9_]{16,}|glpat-[\w-]{16,}"
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30,}|nvapi-[\w-]{16,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[\w-]{16,}|dop_v1_[a-f0-9]{40,}|SG\.[\w-]{16,}\.[\w-]{16,})"
)
_DOTTED = re.compile(r"(?<![\w-])[\w-]{13,}\.[\w-]{5,}(?:\.[\w-]{0,4000})?")
_WEB_TOKEN = re.compile(r"(?<![A-Za-z0-9])eyJ[\w-]{10}")
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----")
_KEY_END = re.compile(r"-----END [A-Z ]{0,40}PRIVATE KEY-----")
_URL_LOGIN = re.compile(r"(?i)\b[a-z][a-z0-9+.-]{1,20}://([^\s/@\"'<>]{1,400})@")
_URL_QUERY = re.compile(
    r"(?i)[?&](?:[a-z_-]{0,30}(?:sig(?:nature)?|token|key|secret|password|credential|auth))=([^\s&\"'<>]{3,4000})"
)
_EMAIL = re.compile(
    r"(?<![\w.+-])[\w.+-]{1,64}@(?!GLIBC|GCC|CXXABI|OPENSSL|sha\d|lib)[A-Za-z][A-Za-z0-9-]{0,62}(?:\.[A-Za-z0-9-]{1,63}){0,8}"
)
_HOME = re.compile(
    r"(?:/(?:home|Users|var/home|export/home|data/home)/|[A-Za-z]:\\Users\\)([^\s/\\:\"'<>,;|)\]}\x00]{1,100})"
)
_ROOT = re.compile(r"(?<![\w/])/(root)(?=[/\s:\"']|$)")
_IP4 = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.]*\d)")
_IP6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f:]{0,39}[0-9])[0-9A-Fa-f:]{2,39}(?![\w:])")
_VERSION_BEFORE = re.compile(
    r"(?i)(?:(?:version|cudnn|cublas|cuda|nccl|torch|vllm|driver|flashinfer|nvidia|release)[\w.-]{0,30}|[=<>~!]=)"
    r"[\"'\s:=(v]{0,6}$"
)
_PRIVATE_NET = re.compile(
    r"(?:10|127|192\.168|169\.254|172\.(?:1[6-9]|2\d|3[01])|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7]))\."
)
_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")
_DEVICE_ID = re.compile(
    r"\b(?:GPU|MIG)-[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
)
_SERIAL = re.compile(r"(?i)\bserial(?:[ _]number|[ _]no\.?)?\s{0,20}[:=]\s{0,4}[\"']?([A-Za-z0-9-]{4,60})")
_INTERNAL = re.compile(
    r"(?<![\w.-])(?:[A-Za-z0-9][A-Za-z0-9-]{0,62}\.){1,8}(?:internal|local|localdomain|lan|corp|intranet|home\.arpa|cluster)(?!\.?[\w-])"
)
_URL_HOST = re.compile(
    r"(?i)\b[a-z][a-z0-9+]{1,12}://(?:[^\s/@\"'<>]{1,400}@)?([A-Za-z0-9][A-Za-z0-9.-]{0,252})"
)
_PUBLIC = (
    "github.com", "githubusercontent.com", "nvidia.com", "pytorch.org", "vllm.ai", "huggingface.co", "python.org",
    "pypi.org", "readthedocs.io", "wikipedia.org", "w3.org", "localhost", "json-schema.org", "docs.rs", "flashinfer.ai",
)  # fmt: skip
_HARMLESS_IP = ("127.0.0.1", "0.0.0.0", "255.255.255.255", "::1", "::")


def _groups(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    """Spans of group 1, or of the whole match when the pattern has none."""
    group = 1 if pattern.groups else 0

    def find(text: str) -> Iterator[Span]:
        for match in pattern.finditer(text):
            yield Span(match.start(group), match.end(group), match.group(group))

    return find


def _key_blocks(text: str) -> Iterator[Span]:
    """PEM keys from their first line to their last, or to the end of a text that was cut."""
    at = 0
    while begin := _KEY_BEGIN.search(text, at):
        end = _KEY_END.search(text, begin.end())
        at = end.end() if end else len(text)
        yield Span(begin.start(), at, text[begin.start() : at])


def open_key_block(text: str) -> bool:
    """True when a key begins in this text and does not end: the lines after it belong to it."""
    begins = [match.end() for match in _KEY_BEGIN.finditer(text)]
    return bool(begins) and _KEY_END.search(text, begins[-1]) is None


def closes_key_block(text: str) -> bool:
    """True when a key that began earlier ends in this text."""
    return _KEY_END.search(text) is not None


def _named(text: str) -> Iterator[Span]:
    """Values of settings whose name says secret; small numbers and None are counts, not secrets."""
    for pattern in (_NAMED, _FLAG):
        for match in pattern.finditer(text):
            value = match.group(1)
            if value.lower() in ("none", "null", "true", "false") or (value.isdigit() and len(value) < 8):
                continue
            yield Span(match.start(1), match.end(1), value)


def _tokens(text: str) -> Iterator[Span]:
    """Tokens known by their shape. JSON web tokens are looked for in whole words with a dot: a pattern that
    began at each ``eyJ`` would read the rest of its word again for each."""
    yield from _groups(_SHAPED)(text)
    for match in _DOTTED.finditer(text):
        first = text.index(".", match.start())
        begin = _WEB_TOKEN.search(text, match.start(), first)
        if begin is not None:
            yield Span(begin.start(), match.end(), text[begin.start() : match.end()])


def _ip4(text: str) -> Iterator[Span]:
    """IPv4 addresses; four numbers behind a product's name are a version, unless they lie in a private network."""
    for match in _IP4.finditer(text):
        value = match.group()
        if value in _HARMLESS_IP or any(int(part) > 255 for part in value.split(".")):
            continue
        before = text[max(0, match.start() - 40) : match.start()]
        if _PRIVATE_NET.match(value) or not _VERSION_BEFORE.search(before):
            yield Span(match.start(), match.end(), value)


def _ip6(text: str) -> Iterator[Span]:
    for match in _IP6.finditer(text):
        value = match.group()
        if value.count(":") < 2 or value in _HARMLESS_IP:
            continue
        try:
            ipaddress.IPv6Address(value)
        except ValueError:
            continue
        yield Span(match.start(), match.end(), value)


def _url_hosts(text: str) -> Iterator[Span]:
    for match in _URL_HOST.finditer(text):
        host = match.group(1).rstrip(".").lower()
        numbers = host.replace(".", "").isdigit()
        if not numbers and not any(host == p or host.endswith(f".{p}") for p in _PUBLIC):
            yield Span(match.start(1), match.end(1), host)


RULES: tuple[Rule, ...] = (
    Rule("private key", "<private key>", _key_blocks),
    Rule("login in an address", "<login>", _groups(_URL_LOGIN)),
    Rule("secret in an address", "<secret>", _groups(_URL_QUERY)),
    Rule("authorization", "<secret>", _groups(_BEARER)),
    Rule("cookie", "<secret>", _groups(_COOKIE)),
    Rule("named secret", "<secret>", _named),
    Rule("token", "<secret>", _tokens),
    Rule("mail address", "<mail>", _groups(_EMAIL)),
    Rule("user", "<user>", _groups(_HOME)),
    Rule("user", "<user>", _groups(_ROOT)),
    Rule("device id", "<device-id>", _groups(_DEVICE_ID)),
    Rule("serial number", "<serial>", _groups(_SERIAL)),
    Rule("hardware address", "<mac>", _groups(_MAC)),
    Rule("host", "<host-#>", _url_hosts),
    Rule("host", "<host-#>", _groups(_INTERNAL)),
    Rule("IP address", "<ip-#>", _ip4),
    Rule("IP address", "<ip-#>", _ip6),
)

_USERS = (
    _HOME,
    re.compile(
        r"(?i)\b(?:user(?:name)?|login|logname)[\"']?\s{0,3}[=:]\s{0,3}[\"']?([A-Za-z_][\w.-]{2,31})\b"
    ),
    re.compile(r"(?<![\w.-])([a-z_][a-z0-9_-]{2,31})@[A-Za-z][\w-]{1,62}:[~/]"),
)
_HOSTS = (
    re.compile(
        r"(?i)\b(?:host(?:name)?|node(?:name)?|nodelist|machine)[\"']?\s{0,3}[=:]\s{0,3}[\"']?([A-Za-z][A-Za-z0-9.-]{2,252})"
    ),
    re.compile(
        r"^(?:[A-Z][a-z]{2}\s{1,2}\d{1,2} \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT[\d:.,+Z-]{8,30})"
        r" ([A-Za-z][A-Za-z0-9.-]{2,252}) (?:kernel|systemd|sshd)",
        re.M,
    ),
    re.compile(
        r"(?<![A-Za-z])([A-Za-z][A-Za-z0-9-]{2,62}(?:\.[A-Za-z0-9-]{1,63}){0,4})\.\d{1,9}\.\d{1,12}\.nvcudmp"
    ),
    re.compile(r"core_\d{1,12}_([A-Za-z][A-Za-z0-9.-]{2,252}?)_\d{1,9}\.nvcudmp"),
    re.compile(r"(?<![\w.-])[a-z_][a-z0-9_-]{2,31}@([A-Za-z][\w-]{1,62}):[~/]"),
)
_COMMON = frozenset((
    "user", "users", "root", "ubuntu", "debian", "centos", "admin", "runner", "vllm", "app", "nobody",
    "daemon", "none", "null", "true", "false", "localhost", "default", "auto", "name", "host", "node",
    "server", "unknown", "home", "model", "data", "work", "cuda", "gpu", "kernel", "python", "all",
    "any", "self", "local", "main", "test", "device", "cpu",
))  # fmt: skip


def users_in(text: str) -> Iterator[str]:
    """Login names that a text betrays: home folders, ``user=``, shell prompts."""
    yield from _learned(_USERS, text)


def hosts_in(text: str) -> Iterator[str]:
    """Machine names that a text betrays: ``hostname=``, log prefixes, names of dump files."""
    yield from _learned(_HOSTS, text)


def _learned(patterns: tuple[re.Pattern[str], ...], text: str) -> Iterator[str]:
    for pattern in patterns:
        for match in pattern.finditer(text):
            name = match.group(1).rstrip(".-")
            if len(name) >= 3 and name.lower() not in _COMMON and not name.isdigit():
                yield name
