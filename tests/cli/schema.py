"""A check of JSON against the part of JSON Schema that ``result.schema.json`` uses."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

SCHEMA = json.loads(resources.files("elimina").joinpath("result.schema.json").read_text())
KINDS = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def validate(value: Any, schema: dict[str, Any] = SCHEMA, place: str = "answer") -> None:
    """Fail where a value breaks the schema."""
    known = {"$schema", "title", "description", "type", "required", "additionalProperties", "properties", "const"}
    assert schema.keys() <= known | {"enum", "items", "minimum"}, place
    if "const" in schema:
        assert value == schema["const"], place
    if "enum" in schema:
        assert value in schema["enum"], f"{place} is {value!r}"
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    fits = [isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds]
    assert any(fits) or not kinds, f"{place} is {value!r}, not one of {kinds}"
    if "minimum" in schema and value is not None:
        assert value >= schema["minimum"], f"{place} is {value!r}"
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= value.keys(), f"{place} has {list(value)}"
        for key, inner in value.items():
            rule = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            assert rule is not False, f"{place} has an unknown key {key}"
            validate(inner, rule, f"{place}.{key}")
    if isinstance(value, list):
        for number, inner in enumerate(value):
            validate(inner, schema.get("items", {}), f"{place}[{number}]")
