#!/usr/bin/env python3
"""Derive ``crashlab/report/report.schema.json`` (JSON Schema 2020-12) from the types in ``crashlab.facts``.

usage: scripts/gen_report_schema.py [--check]     exit status 1 with --check when the file is out of date
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from crashlab import facts  # noqa: E402
from crashlab.report import jsonio  # noqa: E402

TARGET = ROOT / "crashlab" / "report" / "report.schema.json"
REQUIRED = {"Report": ["schema", "tool", "created", "inputs", "verdict"], "Verdict": ["kind", "headline"]}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        options = [schema_of(option, definitions) for option in get_args(kind) if option is not type(None)]
        return {"anyOf": [*options, {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": schema_of(get_args(kind)[0], definitions)}
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], definitions)}
    if kind is facts.Hex:
        return {"type": "string", "pattern": "^-?0x[0-9a-f]+$"}
    if kind is facts.Dim3:
        return {"type": "array", "items": {"type": "integer"}, "minItems": 3, "maxItems": 3}
    if hasattr(kind, "_fields"):
        define(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    return {"type": {str: "string", int: "integer", float: "number", bool: "boolean"}[kind]}


def define(kind: Any, definitions: dict[str, Any]) -> None:
    name = kind.__name__
    if name in definitions:
        return
    definitions[name] = {}
    hints = get_type_hints(kind)
    properties = {}
    for field in kind._fields:
        key = jsonio.json_name(kind, field)
        properties[key] = schema_of(hints[field], definitions)
    definitions[name] = {
        "description": (kind.__doc__ or "").strip().split("\n\n")[0].replace("\n", " "),
        "type": "object",
        "properties": properties,
        **({"required": REQUIRED[name]} if name in REQUIRED else {}),
    }


def build() -> str:
    definitions: dict[str, Any] = {}
    define(facts.Report, definitions)
    definitions["Report"]["properties"]["schema"] = {"const": jsonio.SCHEMA}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:crashlab:report:1",
        "title": "crashlab.report/1",
        "$ref": "#/$defs/Report",
        "$defs": definitions,
    }
    return json.dumps(schema, indent=2) + "\n"


def main() -> int:
    text = build()
    if "--check" in sys.argv[1:]:
        return 0 if TARGET.exists() and TARGET.read_text() == text else 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
