"""A kernel's symbol taken apart just far enough to compare it: its own qualified name, and its words.

Rules about kernels must hold whether a symbol is mangled (from a cubin), demangled (by c++filt, cuda-gdb,
Nsight, each with its own spelling) or plain C. All of them are reduced to one form:

* ``head``: the function's own qualified name, without template arguments, parameters, return type,
  anonymous and versioned inline namespaces (``at::native::elementwise_kernel``);
* ``words``: every identifier and every number of the symbol in order, joined by blanks, so that
  ``_ZN2at6native18elementwise_kernelILi128E…`` and ``void at::native::elementwise_kernel<128, …>``
  read the same. Names of built-in types are left out (mangling abbreviates them), booleans are 0 and 1.

This is no demangler: substitutions (``S1_``) are not expanded, since every name was spelled out once before.
Time is linear in the symbol, of which only the first :data:`LIMIT` characters are read.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from typing import NamedTuple

#: Characters of a symbol that are looked at. Real ones end at about 12,000 (CUTLASS, mangled).
LIMIT = 16384

# Compiled on first use (by the cache of ``re``): each costs 0.2 ms and more, and a plain name needs none.
_TOKEN = (
    r"([0-9]{1,6})"  # the length of a source name, or the value of a literal of a named type
    r"|L[a-z](n?[0-9]{1,20})E"  # a literal of a built-in type
    r"|([ST][0-9A-Z]{0,6}_)"  # a substitution or template parameter
    r"|A[0-9]{1,10}_"  # an array bound
    r"|[IE]"  # template arguments open, a nested name or argument list closes
)
_WORD = r"-?[0-9]+|[A-Za-z_][A-Za-z0-9_]*"
_STATIC = r"__nv_static_[0-9]+__"
# _GLOBAL__N__<hash>_<length>_<file>_<hash>: nvcc puts the translation unit into the anonymous namespace.
_UNIT = r"(?:_GLOBAL__N__|_INTERNAL_)[0-9a-f]{8}_[0-9]{1,4}_(\w+)_[0-9a-f]{8}"
_HIDDEN = ("_GLOBAL__N", "_INTERNAL_")
_UNNAMED = ("(anonymous namespace)", "<unnamed>", "{anonymous}")
_CUT_SUFFIX = r"\.(?:clone|constprop|isra|part|cold|llvm|lto_priv)\b"
_NUMBER_SUFFIX = "uUlLfF"
_BUILTIN_WORDS = """
void bool char signed unsigned short int long float double const volatile struct class enum typename __int128
wchar_t char8_t char16_t char32_t
"""
_BUILTIN = frozenset(_BUILTIN_WORDS.split())


class Name(NamedTuple):
    """``head`` and ``words`` as described above.

    ``plain``: a C symbol (generated kernels, extern "C"). ``unit``: the source file that nvcc put into the
    anonymous namespace (``Indexing.cu``), None when the symbol does not tell.
    """

    head: str
    words: str
    plain: bool
    unit: str | None = None


def parse(symbol: str) -> Name:
    """Take ``symbol`` apart; never fails, whatever the text."""
    text = _unwrap(symbol[:LIMIT].strip())
    if text.startswith("_Z"):
        name = _mangled(text)
        if name.head:
            return name
    if any(mark in text for mark in "<(: "):
        return _demangled(text)
    return Name(text, text, True)


def _unwrap(text: str) -> str:
    """Strip what tools put around a symbol: launch configuration, clone notes, ``$kernel$function``."""
    for mark in ("<<<", " [clone"):
        at = text.find(mark)
        if at > 0:
            text = text[:at]
    if text.startswith("$"):
        text = text[text.rfind("$") + 1 :] or text
    if text.startswith("__nv_static_") and (static := re.match(_STATIC, text)):
        at = text.find("__Z", static.end())
        if at > 0:
            text = text[at + 1 :]
    if "." in text:
        cut = re.search(_CUT_SUFFIX, text)
        if cut and cut.start() > 0:
            text = text[: cut.start()]
    return text.removeprefix("__device_stub__") or text


def _mangled(text: str) -> Name:
    """Walk an Itanium-mangled name: source names, literals, and what separates them."""
    words: list[str] = []
    head: list[str] = []
    unit: str | None = None
    in_head = True
    at = 2
    token = re.compile(_TOKEN)
    while found := token.search(text, at):
        at = found.end()
        before = text[found.start() - 1]
        if (digits := found.group(1)) is not None:
            word, end = _source_name(text, int(digits), at, before)
            if word is None:
                if before == "E" and text[at : at + 1] == "E":
                    words.append(digits)
                elif before == "B":
                    at = end  # an ABI tag that was cut off
                continue
            at = end
            if before == "B":
                continue  # an ABI tag; Numba hides its own mangling in these
            if word.startswith(_HIDDEN):
                hidden = re.match(_UNIT, word)
                unit = unit or (_file_name(hidden.group(1)) if hidden else None)
            elif not _is_version(word):
                words.append(word)
                if in_head:
                    head.append(word)
                    # a name outside N…E ends with itself: what follows are arguments or parameters
                    in_head = text[2] == "N"
            if before == "L":
                at = _take_value(text, at, words)
        elif (value := found.group(2)) is not None:
            words.append(value.replace("n", "-"))
        elif found.group(3) is not None:
            at = _take_value(text, at, words) if before == "L" else at
        elif found.group() in "IE":
            in_head = in_head and not head
    return Name("::".join(head), " ".join(words), False, unit)


def _source_name(text: str, length: int, start: int, before: str) -> tuple[str | None, int]:
    """The identifier of ``length`` at ``start`` and where it ends; None when there is none.

    It is shorter where the symbol was cut, as tables of profilers do.
    """
    word = text[start : start + length]
    if not word or not (word[0].isalpha() or word[0] in "_$") or (before == "E" and word[0] == "E"):
        return None, start
    if before == "B" and len(word) < length:
        return None, len(text)
    return word, start + length


def _take_value(text: str, at: int, words: list[str]) -> int:
    """The value of a literal of a named type (``L9ggml_type8E``), if one is here; returns where it ends."""
    end = at + 1 if text[at : at + 1] == "n" else at
    while end < at + 20 and text[end : end + 1].isdigit():
        end += 1
    if end == at or text[end : end + 1] != "E":
        return at
    words.append(text[at:end].replace("n", "-"))
    return end + 1


def _is_version(word: str) -> bool:
    """Inline namespaces of CUB, Thrust and libcu++ spell version and target architectures."""
    if word.startswith(("CUB_", "THRUST_", "_V_")):
        return word[word.index("_", 1) + 1 :][:6].isdigit()
    return len(word) == 3 and word.startswith("__") and word[2].isdigit()


def _file_name(mangled: str) -> str:
    """``Indexing_cu`` is ``Indexing.cu``."""
    stem, _, extension = mangled.rpartition("_")
    return f"{stem}.{extension}" if stem else mangled


def _demangled(text: str) -> Name:
    """Find the qualified name between return type and parameters, counting brackets."""
    for mark in _UNNAMED:
        text = text.replace(mark + "::", "").replace(mark, "")
    start, stop = _span(text)
    qualified = text[start:stop]
    head = qualified.partition("<")[0].partition("[abi:")[0]
    parts = [part.strip() for part in head.split("::")]
    head = "::".join(part for part in parts if part and not _is_version(part))
    words: list[str] = []
    for word in re.findall(_WORD, text[start:]):
        if word in _BUILTIN or _is_version(word):
            continue
        if word in ("true", "false"):
            word = "1" if word == "true" else "0"
        elif len(word) <= 2 and words and not word.strip(_NUMBER_SUFFIX) and words[-1].lstrip("-").isdigit():
            continue  # the suffix of a number: 128u, 4ul
        words.append(word)
    if not head:
        head = words[0] if words else text[:80]
    return Name(head, " ".join(words) or head, False)


def _span(text: str) -> tuple[int, int]:
    """Start and end of the qualified name, template arguments included, within demangled ``text``."""
    depth = start = 0
    for at, char in enumerate(text):
        if char in "<[{":
            depth += 1
        elif char in ">]}":
            depth = max(depth - 1, 0)
        elif char == "(":
            if depth == 0 and at > start:
                return start, at
            depth += 1
        elif char == ")":
            depth = max(depth - 1, 0)
        elif char == " " and depth == 0 and text[at + 1 : at + 2] not in ("", "(", "<"):
            start = at + 1
    return start, len(text)
