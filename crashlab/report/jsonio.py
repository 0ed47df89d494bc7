"""``crashlab.report/1``: a :class:`~crashlab.facts.Report` as plain JSON values, and back.

The mapping is mechanical: field names are key names, :class:`~crashlab.facts.Hex` becomes ``"0x…"``,
tuples become lists, coordinates become lists of three. Reading ignores unknown keys and treats missing ones as
absent, so reports of other versions stay readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from crashlab import facts
from crashlab.errors import UnreadableInput

SCHEMA = "crashlab.report/1"
_DEPTH = 40


def json_name(kind: type, field: str) -> str:
    """The JSON key of a field: its name, but for the one that is a Python keyword."""
    return "for" if kind is facts.Hypothesis and field == "supporting" else field


def _field_name(kind: type, key: str) -> str:
    return "supporting" if kind is facts.Hypothesis and key == "for" else key


def to_json(value: object) -> Any:
    """Plain JSON values of a fact (or of a tuple, mapping or scalar of facts)."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, facts.Hex):
        return hex(value)
    if isinstance(value, facts.Dim3):
        return [value.x, value.y, value.z]
    if isinstance(value, (int, float)):
        return value
    fields = getattr(value, "_fields", None)
    if fields is not None:
        return {json_name(type(value), name): to_json(getattr(value, name)) for name in fields}
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [to_json(item) for item in value]
    return str(value)


def dumps(report: facts.Report) -> str:
    """The report as JSON text, two blanks of indentation, ending in a newline."""
    from crashlab.report.jsontext import written

    return written(to_json(report)) + "\n"


def parsed(text: str | bytes, hint: str) -> Any:
    """Plain JSON values; UnreadableInput with that hint when the text is no JSON."""
    import json

    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableInput(f"This is not JSON: {error}.", hint=hint) from error


def loads(text: str | bytes) -> facts.Report:
    """Read a report.json; UnreadableInput when it is none."""
    raw = parsed(text, "Give the report.json that crashlab wrote.")
    if not isinstance(raw, dict) or not str(raw.get("schema", "")).startswith("crashlab.report/"):
        raise UnreadableInput(
            "This JSON is not a crashlab report: it has no 'schema' of the form crashlab.report/N.",
            hint="Write one with 'crashlab analyze --json DUMP > report.json'.",
        )
    if raw["schema"] != SCHEMA:
        raise UnreadableInput(
            f"This report has schema {raw['schema']!r}; this crashlab reads {SCHEMA!r}.",
            hint="Use the crashlab version that wrote it.",
        )
    report = build(facts.Report, raw, 0)
    if not isinstance(report, facts.Report):
        raise UnreadableInput(
            "The report lacks its required parts.", hint="Write it again with 'crashlab analyze'."
        )
    return report


@lru_cache(maxsize=64)
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def build(kind: Any, raw: Any, depth: int) -> Any:
    """One value of the annotated ``kind`` out of JSON; None where it does not fit."""
    if raw is None or depth > _DEPTH:
        return None
    origin = get_origin(kind)
    if origin is Union or str(origin) == "<class 'types.UnionType'>":
        for option in get_args(kind):
            if option is not type(None):
                built = build(option, raw, depth)
                if built is not None:
                    return built
        return None
    if origin is tuple:
        item = get_args(kind)[0]
        values = raw if isinstance(raw, list) else []
        return tuple(b for b in (build(item, v, depth + 1) for v in values) if b is not None)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        item = get_args(kind)[1]
        if not isinstance(raw, dict):
            return None
        built = {_scalar(str, k): build(item, v, depth + 1) for k, v in raw.items()}
        may_lack = type(None) in get_args(item)
        return {k: v for k, v in built.items() if v is not None or may_lack}
    if kind is facts.Dim3:
        ok = isinstance(raw, list) and len(raw) == 3 and all(isinstance(v, int) for v in raw)
        return facts.Dim3(*raw) if ok else None
    if hasattr(kind, "_fields"):
        return _build_fact(kind, raw, depth)
    return _scalar(kind, raw)


def _build_fact(kind: Any, raw: Any, depth: int) -> Any:
    if not isinstance(raw, dict):
        return None
    hints, values = _hints(kind), {}
    for key, item in raw.items():
        name = _field_name(kind, key)
        if name in hints:
            built = build(hints[name], item, depth + 1)
            if built is not None:
                values[name] = built
    for name in kind._fields:
        if name not in values and name not in kind._field_defaults:
            optional = type(None) in get_args(hints[name])
            if get_origin(hints[name]) is tuple:
                values[name] = ()
            elif not optional:
                return None
            else:
                values[name] = None
    return kind(**values)


def _scalar(kind: Any, raw: Any) -> Any:
    if kind is facts.Hex:
        try:
            return facts.Hex(int(raw, 16)) if isinstance(raw, str) and len(raw) < 40 else None
        except ValueError:
            return None
    if kind is bool:
        return raw if isinstance(raw, bool) else None
    if kind is int:
        return raw if isinstance(raw, int) and not isinstance(raw, bool) else None
    if kind is float:
        return _float(raw)
    # A lone surrogate ("\ud800" in JSON) is no character and cannot be written as UTF-8.
    return raw.encode("utf-8", "replace").decode() if isinstance(raw, str) and kind is str else None


def _float(raw: Any) -> float | None:
    """A finite number; JSON as Python reads it may also hold NaN, Infinity and integers of any size."""
    if not isinstance(raw, (int, float)) or isinstance(raw, bool):
        return None
    return float(raw) if -1e300 < raw < 1e300 else None
