"""JSON Schema 2020-12 of the types that a report is made of, as :mod:`crashlab.report.jsonio` writes them."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from crashlab import facts
from crashlab.report import jsonio


def document(
    top: Any, title: str, required: Mapping[str, Sequence[str]], head: Mapping[str, Any] | None = None
) -> str:
    """The schema of ``top`` as text. ``title`` is what its ``schema`` says, as in ``crashlab.report/1``.

    ``required``: type name to the keys it must have. ``head``: properties that are no field of the type.
    """
    definitions: dict[str, Any] = {}
    _define(top, definitions)
    name, version = title.removeprefix("crashlab.").split("/")
    own = definitions[top.__name__]
    const = {"schema": {"const": title}}
    own["properties"] = {**const, **(head or {}), **own["properties"], **const}
    for kind, keys in required.items():
        definitions[kind]["required"] = list(keys)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:crashlab:{name}:{version}",
        "title": title,
        "$ref": f"#/$defs/{top.__name__}",
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"


def _schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        options = [_schema_of(option, definitions) for option in get_args(kind) if option is not type(None)]
        return {"anyOf": [*options, {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _schema_of(get_args(kind)[0], definitions)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _schema_of(get_args(kind)[1], definitions)}
    if kind is facts.Hex:
        return {"type": "string", "pattern": "^-?0x[0-9a-f]+$"}
    if kind is facts.Dim3:
        return {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3}
    if hasattr(kind, "_fields"):
        _define(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[kind]}


def _define(kind: Any, definitions: dict[str, Any]) -> None:
    name = kind.__name__
    if name in definitions:
        return
    definitions[name] = {}  # a type may hold itself
    hints = get_type_hints(kind)
    definitions[name] = {
        "description": _description(kind.__doc__ or ""),
        "type": "object",
        "properties": {
            jsonio.json_name(kind, field): _schema_of(hints[field], definitions) for field in kind._fields
        },
    }


def _description(docstring: str) -> str:
    """Its first paragraph on one line: compilers before Python 3.13 leave the source's indentation in it."""
    return " ".join(docstring.strip().split("\n\n")[0].split())
