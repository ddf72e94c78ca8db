"""YAML files: a tree of nodes with their lines and columns, built from the parser's events without recursion.

PyYAML's own composer recurses in C, so that a deeply nested file can crash it; here the depth is bounded.
Scalars have the meaning of YAML 1.1, and are resolved on access.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, NoReturn

from elimina._core import TextError
from elimina.errors import UnsupportedError
from elimina.system import require

_DEEPEST = 100
_MAX_NUMBER_CHARACTERS = 400
_SIMILARITY = 0.82
"""Least similarity of an unknown key to a known one at which it counts as misspelt (``difflib``)."""
_SIMPLE = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?")
_STRING = "tag:yaml.org,2002:str"


@dataclass(eq=False, slots=True)
class YamlNode:
    """A node; it starts at this line and column, both from 1."""

    line: int
    column: int


@dataclass(eq=False, slots=True)
class ScalarNode(YamlNode):
    """A scalar.

    Attributes:
        text: Text of the node, without quotes.
        is_plain: True if it had no quotes, so that it may be something other than a string.
    """

    text: str
    is_plain: bool


@dataclass(eq=False, slots=True)
class SequenceNode(YamlNode):
    """A sequence."""

    items: list[YamlNode] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class MappingNode(YamlNode):
    """A mapping whose keys are scalars, by the keys' texts."""

    entries: dict[str, tuple[ScalarNode, YamlNode]] = field(default_factory=dict)


class YamlFile:
    """A YAML file; ``line`` and ``column`` are the position of the current node."""

    def __init__(self, data: bytes) -> None:
        self.line = 1
        self.column: int | None = None
        self._data = data
        self._anchors: dict[str, YamlNode] = {}

    def root(self) -> MappingNode:
        """Parse the file, which is one mapping.

        Raises:
            TextError: The file is not YAML, repeats a key, or is something other than one mapping.
            UnsupportedError: The file uses tags, merged keys, or very deep nesting.
            InputError: PyYAML is not installed.
        """
        yaml = require("yaml", "dcop", "reading YAML")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        try:
            roots = self._build(yaml, yaml.parse(self._data, Loader=loader))
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            self.line, self.column = (mark.line + 1, mark.column + 1) if mark else (1, None)
            problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "the text is none"
            raise TextError(f"expected YAML: {problem}") from None
        if len(roots) > 1:
            self.fail(roots[1], "expected the end of the file, found a second document")
        if not roots:
            raise TextError("expected a mapping, but the file is empty")
        return self.mapping(roots[0], "the file")

    def _build(self, yaml: Any, events: Iterator[Any]) -> list[YamlNode]:
        roots: list[YamlNode] = []
        open_nodes: list[SequenceNode | MappingNode] = []
        keys: list[ScalarNode | None] = []
        for event in events:
            kind = type(event)
            if kind is yaml.ScalarEvent:
                node: YamlNode = ScalarNode(
                    event.start_mark.line + 1, event.start_mark.column + 1, event.value, event.implicit[0]
                )
            elif kind is yaml.MappingStartEvent:
                node = MappingNode(event.start_mark.line + 1, event.start_mark.column + 1)
            elif kind is yaml.SequenceStartEvent:
                node = SequenceNode(event.start_mark.line + 1, event.start_mark.column + 1)
            elif kind is yaml.AliasEvent:
                self.line, self.column = event.start_mark.line + 1, event.start_mark.column + 1
                if event.anchor not in self._anchors:
                    raise TextError(f"expected an anchor that is defined before, found '*{event.anchor[:40]}'")
                node = self._anchors[event.anchor]
            else:
                if kind in (yaml.MappingEndEvent, yaml.SequenceEndEvent):
                    open_nodes.pop()
                    keys.pop()
                continue
            if kind is not yaml.AliasEvent:
                self._queue_if_ready(event, node)
            if not open_nodes:
                roots.append(node)
            else:
                self._insert(open_nodes[-1], keys, node)
            if kind in (yaml.MappingStartEvent, yaml.SequenceStartEvent):
                if len(open_nodes) == _DEEPEST:
                    self.line, self.column = node.line, node.column
                    raise UnsupportedError(f"collections are nested more than {_DEEPEST} levels deep")
                assert isinstance(node, SequenceNode | MappingNode)
                open_nodes.append(node)
                keys.append(None)
        return roots

    def _queue_if_ready(self, event: Any, node: YamlNode) -> None:
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if event.tag not in (None, "!") and not (isinstance(node, ScalarNode) and event.tag == _STRING):
            self.line, self.column = node.line, node.column
            raise UnsupportedError(f"the tag {event.tag[:40]!r} is not handled")

    def _insert(self, parent: SequenceNode | MappingNode, keys: list[ScalarNode | None], node: YamlNode) -> None:
        if isinstance(parent, SequenceNode):
            parent.items.append(node)
        elif (key := keys[-1]) is not None:
            parent.entries[key.text] = (key, node)
            keys[-1] = None
        elif not isinstance(node, ScalarNode):
            self.fail(node, "expected a name as a key, found a collection")
        elif node.text in parent.entries:
            self.fail(node, f"the key {node.text[:40]!r} occurs twice")
        elif node.text == "<<" and node.is_plain:
            self.line, self.column = node.line, node.column
            raise UnsupportedError("merged keys ('<<') are not handled; write the keys out")
        else:
            parent.entries[node.text] = (node, node)
            keys[-1] = node

    def fail(self, node: YamlNode, problem: str) -> NoReturn:
        """Raise TextError with a node's line and column."""
        self.line, self.column = node.line, node.column
        raise TextError(problem)

    def at(self, node: YamlNode) -> None:
        """Make errors refer to this node's line and column."""
        self.line, self.column = node.line, node.column

    def check_keys(self, node: MappingNode, fields: tuple[str, ...]) -> None:
        """Reject unknown keys that look misspelt; other unknown keys are ignored.

        Raises:
            TextError: A key is close to one of the fields, and not among them.
        """
        for key, _ in node.entries.values():
            if key.text in fields:
                continue
            import difflib  # imported here: few files have unknown keys

            if meant := difflib.get_close_matches(key.text.lower(), fields, 1, _SIMILARITY):
                self.fail(key, f"unknown key {key.text[:40]!r}: did you mean {meant[0]!r}?")

    def mapping(self, node: YamlNode, what: str) -> MappingNode:
        """Return a node that has to be a mapping."""
        if not isinstance(node, MappingNode):
            self.fail(node, f"expected a mapping in {what}, found {_kind(node)}")
        return node

    def text(self, node: YamlNode, what: str) -> str:
        """Return a node that has to be a scalar, as written."""
        if not isinstance(node, ScalarNode):
            self.fail(node, f"expected {what}, found {_kind(node)}")
        return node.text

    def value(self, node: YamlNode, what: str) -> Any:
        """Return a node that has to be a number, a string or a boolean, as YAML resolves it."""
        text = self.text(node, what)
        assert isinstance(node, ScalarNode)
        if not node.is_plain or len(text) > _MAX_NUMBER_CHARACTERS:
            return text
        if match := _SIMPLE.fullmatch(text):
            return float(text) if match[1] else int(text)
        try:
            value = _resolved(text)
        except ValueError as error:
            self.fail(node, f"expected {what}, found {text[:40]!r}: {error}")
        if type(value) not in (bool, int, float, str):
            self.fail(node, f"expected {what}, found {text[:40]!r}")
        return value

    def number(self, node: YamlNode, what: str) -> int | float:
        """Return a node that has to be a number."""
        value = self.value(node, what)
        if type(value) not in (int, float) or math.isnan(value):
            self.fail(node, f"expected {what}, found {str(value)[:40]!r}")
        number: int | float = value
        return number

    def is_empty(self, node: YamlNode) -> bool:
        """Return whether nothing is written here (or null)."""
        return isinstance(node, ScalarNode) and node.is_plain and node.text in ("", "~", "null", "Null", "NULL")


def _kind(node: YamlNode) -> str:
    if isinstance(node, ScalarNode):
        return repr(node.text[:40]) if node.text else "nothing"
    return "a mapping" if isinstance(node, MappingNode) else "a sequence"


@cache
def _resolver() -> tuple[Any, Any]:
    yaml = require("yaml", "dcop", "reading YAML")
    return yaml, yaml.SafeLoader("")


@lru_cache(maxsize=1 << 14)
def _resolved(text: str) -> Any:
    """Return a plain scalar as YAML 1.1 reads it."""
    yaml, loader = _resolver()
    tag = loader.resolve(yaml.ScalarNode, text, (True, False))
    return loader.construct_object(yaml.ScalarNode(tag, text))
