"""Whose kernel it is: by its name, by its module, by the files the process had loaded.

The rules are data (:mod:`crashlab.postmortem.libraries`). A name alone is a claim of its author; a module's
properties or a loaded file that agree raise the confidence by one level, a list of loaded files without the
library lowers it. What no rule knows is the user's, with little confidence.
"""

# No "from __future__ import annotations" here: see docs/adr/0001-named-tuples.md.

import re
from collections.abc import Sequence
from typing import NamedTuple

from crashlab import facts
from crashlab.postmortem import family, kernelname
from crashlab.postmortem.libraries.rule import LEVELS, Asked, Rule

#: Characters of a symbol's words that expressions see: keeps the worst of them at some milliseconds.
_MATCHED = 4096
_ANSWER = {
    "compiler": "compiled by",
    "source": "source file",
    "arch": "architecture",
    "sections": "section",
    "siblings": "another kernel",
}


class ModuleHints(NamedTuple):
    """What is known of the module that holds the kernel. None and () mean unknown.

    ``compiler``: text of ``.note.nv.tkinfo``, options included. ``kernels``: entries in the module.
    ``source_file``: of the faulting line. ``siblings``: symbols of the module's other kernels.
    """

    compiler: str | None = None
    kernels: int | None = None
    line_info: bool | None = None
    source_file: str | None = None
    sections: tuple[str, ...] = ()
    arch: str | None = None
    siblings: tuple[str, ...] = ()


def attribute(
    mangled: str | None,
    demangled: str | None,
    module: ModuleHints | None = None,
    loaded_files: Sequence[str] = (),
) -> facts.Library:
    """Name the library of a kernel, with the evidence and the confidence (high, medium or low).

    Either spelling of the symbol will do; the mangled one tells more. ``loaded_files``: paths from the
    process's memory map. Without any symbol the name is None. Never fails, whatever the texts.
    """
    symbol = mangled or demangled
    if not symbol:
        return facts.Library(None, evidence=("no symbol is known",))
    name = kernelname.parse(symbol)
    hints = module or ModuleHints()
    weighed = [(rule, *_weigh(rule, said, hints, loaded_files)) for rule, said in _fitting(name, hints)]
    if not weighed:
        return _unknown(symbol, name, hints)
    rule, level, evidence = max(weighed, key=lambda entry: entry[1])  # of equals the first in the table
    rivals = sorted({other.library for other, as_sure, _ in weighed if as_sure == level} - {rule.library})
    if rivals:
        evidence.append(f"the same name is known from {', '.join(rivals)}")
    details = _details(rule, name, hints)
    return facts.Library(
        name=rule.library,
        family=_family(rule, symbol, details),
        evidence=tuple(evidence),
        confidence=LEVELS[level],
        details=details or None,
    )


def _fitting(name: kernelname.Name, hints: ModuleHints) -> list[tuple[Rule, list[str]]]:
    """The fitting rules of the highest ten of ranks that has any, each with what made it fit."""
    from crashlab.postmortem.libraries.table import RULES

    found: list[tuple[Rule, list[str]]] = []
    for rule in map(Rule._make, RULES):
        if found and rule.rank // 10 < found[0][0].rank // 10:
            break
        named = rule.head or rule.name
        if named and not name.head.startswith(rule.head) and name.head not in rule.name:
            continue
        if rule.contains and not any(literal in name.words for literal in rule.contains):
            continue
        said = _said(rule, name, hints)
        if said is not None:
            found.append((rule, said))
    return found


def _said(rule: Rule, name: kernelname.Name, hints: ModuleHints) -> list[str] | None:
    """What makes ``rule`` fit, in words; None when it does not."""
    said: list[str] = []
    if rule.name and name.head in rule.name:
        said.append(f"the function is called {_short(name.head)}")
    elif rule.head:
        prefix = next((text for text in rule.head if name.head.startswith(text)), None)
        if prefix is not None:
            said.append(f"the name starts with {_short(prefix)}")
    if any(literal in name.words for literal in rule.unless):
        return None
    if rule.match is not None:
        found = re.search(rule.match, name.words[:_MATCHED])
        if found is None:
            return None
        if not said:
            said.append(f"the name holds {_short(found.group())}")
    elif rule.contains and not said:
        literal = next(text for text in rule.contains if text in name.words)
        said.append(f"the name holds {_short(literal)}")
    if rule.module:
        answer = _module_says(rule.module, hints)
        if answer is None:
            return None
        said.extend(answer)
    said[0] += f" (rule {rule.id})"
    return said


def _module_says(asked: Asked, hints: ModuleHints) -> list[str] | None:
    """The facts of the module that answer ``asked``; None when one of them contradicts or is unknown."""
    said = []
    for key, wanted in asked:
        answer = _answer(key, wanted, hints)
        if answer is None:
            return None
        said.append(f"module: {answer}")
    return said


def _answer(key: str, wanted: tuple[str, ...] | int | bool, hints: ModuleHints) -> str | None:
    if isinstance(wanted, tuple):
        texts = {
            "compiler": (hints.compiler or "",),
            "source": (hints.source_file or "",),
            "arch": (hints.arch or "",),
            "sections": hints.sections,
            "siblings": hints.siblings,
        }[key]
        found = next((text for text in texts if any(_in_text(part, text) for part in wanted)), None)
        if found is None:
            return None
        shown = _base(found) if key == "source" else _short(found)
        return f"{_ANSWER[key]} {shown}"
    if key == "line_info":
        return None if hints.line_info is not wanted else f"with{'' if wanted else 'out'} line information"
    if hints.kernels is None or (hints.kernels < wanted if key == "kernels_min" else hints.kernels > wanted):
        return None
    return f"{hints.kernels} kernel{'' if hints.kernels == 1 else 's'}"


def _weigh(rule: Rule, said: list[str], hints: ModuleHints, loaded: Sequence[str]) -> tuple[int, list[str]]:
    """The rule's confidence, raised or lowered by what else is known, and the evidence."""
    from crashlab.postmortem.libraries.table import OWNERS

    level = LEVELS.index(rule.confidence)
    files, paths, always_loaded = OWNERS[rule.library]
    agreed = (_module_says(rule.support, hints) if rule.support else None) or []
    if hints.source_file and any(part in hints.source_file for part in paths):
        agreed.append(f"the faulting line's source, {_base(hints.source_file)}, is in its tree")
    if loaded and files:
        file = next((path for path in loaded if _brings(files, path)), None)
        if file is not None:
            agreed.append(f"{_base(file)} is loaded")
        elif always_loaded and any(_base(path).startswith(("libcuda.so", "libcudart")) for path in loaded):
            said.append(f"against: no {files[0]}* among the {len(loaded)} loaded files")
            level = max(level - 1, 0)
    if agreed:
        level = min(level + 1, len(LEVELS) - 1)
    return level, said + agreed


def _unknown(symbol: str, name: kernelname.Name, hints: ModuleHints) -> facts.Library:
    """A kernel that no rule knows: its source's owner's, else the user's."""
    from crashlab.postmortem.libraries.table import OWNERS

    group = family.normalise(symbol)
    details = {"unit": name.unit} if name.unit else None
    source = hints.source_file
    if not source:
        return facts.Library("user", group, ("no rule knows the name",), "low", details)
    for library, (_, paths, _) in OWNERS.items():
        part = next((part for part in paths if part in source), None)
        if part is not None:
            said = f"no rule knows the name; its source, {_base(source)}, lies under {part}"
            return facts.Library(library, group, (said,), "medium", details)
    evidence = ("no rule knows the name", f"the faulting line's source is {_base(source)}")
    return facts.Library("user", group, evidence, "medium", details)


def _details(rule: Rule, name: kernelname.Name, hints: ModuleHints) -> dict[str, str]:
    details: dict[str, str] = {}
    for expressions, text in (
        (rule.details, name.words[:_MATCHED]),
        (rule.source_details, (hints.source_file or "")[-_MATCHED:]),
    ):
        for expression in expressions if text else ():
            found = re.search(expression, text)
            for key, value in found.groupdict().items() if found else ():
                if value and key not in details:
                    details[key] = value
    details.update(rule.set)
    if name.unit:
        details.setdefault("unit", name.unit)
    return details


def _family(rule: Rule, symbol: str, details: dict[str, str]) -> str:
    group = family.normalise(symbol)
    if rule.family is None:
        return group
    text = rule.family.replace("{family}", group)
    for key, value in details.items():
        text = text.replace("{" + key + "}", value)
    return text


def _brings(files: tuple[str, ...], path: str) -> bool:
    base = path.rsplit("/", 1)[-1]
    return any((part in path) if "/" in part else base.startswith(part) for part in files)


def _in_text(part: str, text: str) -> bool:
    return text.endswith(part) if part.startswith(".") else part in text


def _base(path: str) -> str:
    return _short(path.rsplit("/", 1)[-1])


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "…"
