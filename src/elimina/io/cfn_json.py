"""Cost function networks in JSON: the keys of its unordered objects are put into the order of the CFN format."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_TOP_KEYS = ("problem", "variables", "functions")
_PROBLEM_KEYS = ("name", "mustbe")
_FUNCTION_KEYS = ("scope", "defaultcost", "costs", "type", "params")

_OTHER_ORDER = re.compile(
    rb'\A\s*\{\s*"(?:variables|functions)"\s*:'
    rb'|\{\s*"(?:mustbe|costs|defaultcost|type|params)"\s*:'
    rb'|"costs"\s*:\s*(?:\[[^]]*\]|"[^"]*")\s*,\s*"defaultcost"\s*:'
    rb'|"scope"\s*:\s*\[[^]]*\]\s*,\s*"params"\s*:'
)
"""Keys in another order than in the CFN format."""


_HEAD_BYTES = 1 << 16
"""Number of bytes that are searched for keys out of order, at the start of a file and of its block of functions. This
suffices, because programs write the keys of all objects in one order."""


class _Number(str):
    """A number as written in the file."""


class _Pairs(list[tuple[str, Any]]):
    """The keys and values of an object, as written in the file."""


def in_order(data: bytes) -> bytes:
    """Return a network's text with its keys in the order of the format; text that is not JSON is unchanged."""
    functions = data.find(b'"functions"')
    start = max(0, functions)
    heads = data[:_HEAD_BYTES], data[start : start + _HEAD_BYTES]
    if functions >= data.find(b'"variables"') and not any(map(_OTHER_ORDER.search, heads)):
        return data
    try:
        top = json.loads(data, object_pairs_hook=_Pairs, parse_int=_Number, parse_float=_Number, parse_constant=_Number)
    except (ValueError, RecursionError):
        return data
    if not isinstance(top, _Pairs):
        return data
    sections = [(key, _section(key, value)) for key, value in _sorted(top, _TOP_KEYS)]
    return _text(_Pairs(sections)).encode()


def _section(key: str, value: Any) -> Any:
    if not isinstance(value, _Pairs):
        return value
    if key == "problem":
        return _sorted(value, _PROBLEM_KEYS)
    if key == "functions":
        return _Pairs(
            (name, _sorted(function, _FUNCTION_KEYS) if isinstance(function, _Pairs) else function)
            for name, function in value
        )
    return value


def _sorted(pairs: _Pairs, keys: Sequence[str]) -> _Pairs:
    """Return an object with some keys first, in their order; others follow unchanged."""
    rank = {key: number for number, key in enumerate(keys)}
    return _Pairs(sorted(pairs, key=lambda pair: rank.get(pair[0], len(rank))))


def _text(value: Any) -> str:
    if isinstance(value, _Pairs):
        return "{" + ", ".join(f"{json.dumps(key, ensure_ascii=False)}: {_text(item)}" for key, item in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text, value)) + "]"
    return str(value) if isinstance(value, _Number) else json.dumps(value, ensure_ascii=False)
