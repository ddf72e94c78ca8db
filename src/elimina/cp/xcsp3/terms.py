"""Terms of XCSP3: references to variables, lists, and expressions such as ``eq(add(x,1),y[2])``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from elimina._core import TextError
from elimina.cp.expressions import Expression, Relation
from elimina.cp.model import Model
from elimina.cp.operands import MAX_INTEGER
from elimina.errors import UnsupportedError
from elimina.number_texts import counted


@dataclass
class Array:
    """An array of variables: its sizes, first indices, and elements in row-major order (None: no variable)."""

    sizes: list[int]
    starts: list[int]
    elements: list[Expression | None]


Operand: TypeAlias = Expression | int

MAX_ITEMS = 1 << 22
"""Largest number of elements of an array, or of a list in a shorter form, such as ``0x1000``."""

_NUMBER = re.compile(r"[+-]?\d{1,19}")
_REPEATED = re.compile(r"([+-]?\d{1,19})x(\d{1,19})")
_RANGE = re.compile(r"([+-]?\d{1,19})\.\.([+-]?\d{1,19})")
_REFERENCE = re.compile(r"([A-Za-z_]\w*)((?:\[[^\[\]]*\])*)")
_CALL = re.compile(r"\s*(%?[A-Za-z_0-9.+\-][\w.+\-]*(?:\[[^\[\]]*\])*)\s*(\()?")
_END = re.compile(r"\s*([,)])")
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


@dataclass
class Terms:
    """The variables of a problem, and the meaning of texts that refer to them.

    Attributes:
        model: Model of the variables.
        variables: Id of a variable outside arrays -> the variable.
        arrays: Id of an array -> the array.
        tables: Text of a table, and what else its contents depend on -> the contents of the last few tables.
    """

    model: Model
    variables: dict[str, Expression] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    tables: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def items(self, text: str) -> list[Operand]:
        """Return the items of a list: variables, parts of arrays, numbers, and expressions.

        Raises:
            UnsupportedError: The list has too many items.
        """
        operands: list[Operand] = []
        for token in tokens(text):
            repeated = _REPEATED.fullmatch(token)
            if repeated:
                count = int(repeated[2])
                if count > MAX_ITEMS:
                    raise UnsupportedError(f"the list {token} has {count:,} items; at most {MAX_ITEMS:,} are supported")
                operands += [number(repeated[1])] * count
            elif "(" in token:
                operands.append(self.value(token))
            elif _RANGE.fullmatch(token):
                operands += span(token)
            else:
                operands += self._named(token)
        return operands

    def names(self, token: str) -> list[str]:
        """Return the texts that an argument of a group stands for.

        A part of an array stands for its elements; any other argument stands for itself.
        """
        if "[" not in token or "(" in token:
            return [token]
        return [x.name if isinstance(x, Expression) else str(x) for x in self._named(token)]

    def matrix(self, text: str) -> list[list[Operand]]:
        """Return the rows of a matrix: ``x[][]``, or ``(1,2)(3,4)``."""
        text = text.strip()
        if text.startswith("("):
            rows = [self.items(row.replace(",", " ")) for row in rows_of(text)]
            if not together("matrix", *rows):
                raise TextError(f"expected a matrix, found {text[:40]!r}")
            return rows
        match = _REFERENCE.fullmatch(text)
        if match is None or match[1] not in self.arrays or len(self.arrays[match[1]].sizes) != 2:
            raise TextError(f"expected a matrix, found {text[:40]!r}")
        array = self.arrays[match[1]]
        ranges = self._ranges(match[2], array, text)
        return [self._elements(array, [range(row, row + 1), ranges[1]], text) for row in ranges[0]]

    def value(self, text: str) -> Operand:
        """Return the value of an expression; that of a condition is a Boolean."""
        return self._value(FunctionCall.read(text))

    def require(self, text: str) -> None:
        """Post an expression as a constraint."""
        self._require(FunctionCall.read(text))

    def meet(self, left: Operand, condition: str) -> None:
        """Post a condition such as ``(le,5)`` on an operand."""
        operator, right = _split_condition(condition)
        if operator in _COMPARISONS:
            self.model.add(self.relation(operator, left, self.value(right)))
        else:
            self._restrict(left, self._set(right), operator == "in")

    def truth_of_condition(self, left: Operand, condition: str) -> Operand:
        """Return a Boolean that is 1 exactly if an operand fulfils a condition such as ``(le,5)``."""
        operator, right = _split_condition(condition)
        if operator in _COMPARISONS:
            return self.truth(operator, left, self.value(right))
        inside = self.is_in(left, self._set(right))
        return inside if operator == "in" else 1 - self.model.expression(inside)

    def truth(self, operator: str, left: Operand, right: Operand) -> Operand:
        """Return a Boolean that is 1 exactly if a comparison holds."""
        return self.model.holds(self.relation(operator, left, right))

    def boolean(self, x: Operand) -> Expression:
        """Return an operand that is used as a Boolean.

        Raises:
            TextError: The operand may have a value other than 0 and 1.
        """
        lo, hi = self.model.bounds(x)
        if lo < 0 or hi > 1:
            name = (isinstance(x, Expression) and x.name) or "an expression"
            raise TextError(
                f"expected a Boolean, found {name} with values from {lo} to {hi}"
                if lo < hi
                else f"expected a Boolean, found {lo}"
            )
        return self.model.expression(x)

    def product(self, xs: Sequence[Operand]) -> Operand:
        """Return the product of operands."""
        product = xs[0]
        for x in xs[1:]:
            product = product * x if isinstance(product, int) or isinstance(x, int) else self.model.product(product, x)
        return product

    def relation(self, operator: str, left: Operand, right: Operand) -> Relation:
        """Return a comparison; both operands may be numbers."""
        a, b = self.model.expression(left), self.model.expression(right)
        relation: Relation = {
            "eq": a.__eq__, "ne": a.__ne__, "lt": a.__lt__, "le": a.__le__, "gt": a.__gt__, "ge": a.__ge__,
        }[operator](b)  # fmt: skip
        return relation

    def is_in(self, x: Operand, values: Sequence[int]) -> Operand:
        """Return a Boolean that is 1 exactly if an operand is among some values; 0 if there are no values."""
        if not values:
            return 0
        runs = list(_runs(values))
        inside: list[Operand] = []
        for lo, hi in runs:
            ends = [self.model.holds(self.relation("ge", x, lo)), self.model.holds(self.relation("le", x, hi))]
            inside.append(self.model.holds(self.relation("eq", x, lo)) if lo == hi else self.model.all_of(ends))
        return inside[0] if len(inside) == 1 else self.model.any_of(inside)

    def _restrict(self, x: Operand, values: Sequence[int], inside: bool) -> None:
        if inside:
            self.model.member(self.model.expression(x), values)
            return
        lo, hi = self.model.bounds(x)
        if len(values) > 1 and hi - lo <= MAX_ITEMS:
            out = set(values)
            self.model.member(self.model.expression(x), [v for v in range(lo, hi + 1) if v not in out])
        else:
            for v in values:
                self.model.add(self.relation("ne", x, v))

    def _set(self, text: str) -> Sequence[int]:
        if _RANGE.fullmatch(text):
            return span(text)
        if not (text.startswith("{") and text.endswith("}")):
            raise TextError(f"expected a set such as 1..5 or {{1,2}}, found {text[:40]!r}")
        return [number(token) for token in text[1:-1].replace(",", " ").split()]

    def _named(self, token: str) -> list[Operand]:
        if _NUMBER.fullmatch(token):
            return [number(token)]
        if token in self.variables:
            return [self.variables[token]]
        match = _REFERENCE.fullmatch(token)
        if match is None:
            raise TextError(f"expected a variable or a number, found {token[:40]!r}")
        if match[1] not in self.arrays:
            raise TextError(f"there is no variable {token[:40]!r}")
        array = self.arrays[match[1]]
        return self._elements(array, self._ranges(match[2], array, token), token)

    def _ranges(self, indices: str, array: Array, token: str) -> list[range]:
        index_texts = re.findall(r"\[([^\[\]]*)\]", indices)
        if len(index_texts) != len(array.sizes):
            raise TextError(
                f"{token[:40]} has {len(index_texts)} indices; the array has {counted(len(array.sizes), 'dimension')}"
            )
        ranges = []
        for index_text, size, start in zip(index_texts, array.sizes, array.starts, strict=True):
            index_text = index_text.strip()
            if index_text == "":
                ranges.append(range(size))
                continue
            ends = _RANGE.fullmatch(index_text)
            lo, hi = (number(ends[1]), number(ends[2])) if ends else (number(index_text), number(index_text))
            if not start <= lo <= hi < start + size:
                raise TextError(f"{token[:40]}: the index {index_text} is not within {start}..{start + size - 1}")
            ranges.append(range(lo - start, hi - start + 1))
        return ranges

    def _elements(self, array: Array, ranges: Sequence[range], token: str) -> list[Operand]:
        elements: list[Operand] = []
        for position in itertools.product(*ranges):
            flat = 0
            for index, size in zip(position, array.sizes, strict=True):
                flat = flat * size + index
            element = array.elements[flat]
            if element is not None:
                elements.append(element)
        if not elements:
            raise TextError(f"{token[:40]} has no domain")
        return elements

    def _require(self, call: FunctionCall) -> None:
        if call.operator in _COMPARISONS:
            values = [self._value(argument) for argument in call.arguments]
            call.takes(2, MAX_ITEMS)
            if call.operator == "ne" and len(values) > 2:
                self.model.all_different(values)
                return
            for left, right in itertools.pairwise(values):
                self.model.add(self.relation(call.operator, left, right))
        elif call.operator == "and":
            for argument in call.arguments:
                self._require(argument)
        elif call.operator == "or":
            self.model.clause([self._boolean(argument) for argument in call.arguments])
        elif call.operator == "imp":
            call.takes(2, 2)
            self.model.clause([self._boolean(call.arguments[1])], [self._boolean(call.arguments[0])])
        elif call.operator in ("in", "notin"):
            call.takes(2, 2)
            values = self._values_of_set(call.arguments[1])
            numbers = [v for v in values if isinstance(v, int)]
            if numbers and len(numbers) == len(values):
                self._restrict(self._value(call.arguments[0]), numbers, call.operator == "in")
            else:
                self.model.add(self.relation("eq", self._value(call), 1))
        else:
            self.model.add(self.relation("ge", self._boolean(call), 1))

    def _boolean(self, call: FunctionCall) -> Expression:
        return self.boolean(self._value(call))

    def _values_of_set(self, call: FunctionCall) -> list[Operand]:
        if call.operator != "set":
            raise TextError(f"expected set(...), found {(call.operator or call.name)[:40]!r}")
        return [self._value(argument) for argument in call.arguments]

    def is_among(self, x: Operand, values: Sequence[Operand]) -> Operand:
        """Return a Boolean that is 1 exactly if an operand equals one of several operands."""
        numbers = [v for v in values if isinstance(v, int)]
        if len(numbers) == len(values):
            return self.is_in(x, numbers)
        return self.model.any_of([self.truth("eq", x, v) for v in values])

    def _value(self, call: FunctionCall) -> Operand:
        if not call.operator:
            variables = self._named(call.name)
            if len(variables) != 1:
                raise TextError(f"{call.name[:40]} is {len(variables)} variables where one is expected")
            return variables[0]
        if call.operator in ("in", "notin"):
            call.takes(2, 2)
            inside = self.is_among(self._value(call.arguments[0]), self._values_of_set(call.arguments[1]))
            return inside if call.operator == "in" else 1 - self.model.expression(inside)
        if call.operator not in _FUNCTIONS:
            raise UnsupportedError(f"the operator {call.operator[:40]!r} is not supported")
        min_count, max_count, function = _FUNCTIONS[call.operator]
        call.takes(min_count, max_count)
        values = [self._value(argument) for argument in call.arguments]
        for x in values[: _BOOLEAN_ARGUMENTS.get(call.operator, 0)]:
            self.boolean(x)
        return function(self, values)


@dataclass
class FunctionCall:
    """A node of an expression: an operator and its arguments, or a name.

    Attributes:
        operator: Name of the operator; empty for a name.
        name: The name; empty for an operator.
        arguments: Arguments of the operator.
    """

    operator: str
    name: str
    arguments: list[FunctionCall]

    @staticmethod
    def read(text: str) -> FunctionCall:
        """Parse an expression."""
        call, end = FunctionCall._from(text, 0)
        if text[end:].strip():
            raise TextError(f"expected the end of an expression, found {text[end:].strip()[:40]!r}")
        return call

    @staticmethod
    def _from(text: str, position: int) -> tuple[FunctionCall, int]:
        match = _CALL.match(text, position)
        if match is None:
            raise TextError(f"expected an expression, found {text[position:].strip()[:40]!r}")
        position = match.end()
        if match[2] is None:
            return FunctionCall("", match[1], []), position
        arguments: list[FunctionCall] = []
        end_match = _END.match(text, position)
        if end_match is not None and end_match[1] == ")":
            return FunctionCall(match[1], "", arguments), end_match.end()
        while True:
            argument, position = FunctionCall._from(text, position)
            arguments.append(argument)
            end_match = _END.match(text, position)
            if end_match is None:
                raise TextError(f"expected a comma or a parenthesis, found {text[position : position + 40].strip()!r}")
            position = end_match.end()
            if end_match[1] == ")":
                return FunctionCall(match[1], "", arguments), position

    def takes(self, min_count: int, max_count: int) -> None:
        """Raise ``TextError`` if there are fewer or more arguments."""
        if not min_count <= len(self.arguments) <= max_count:
            expected = f"{min_count}" if min_count == max_count else f"at least {min_count}"
            raise TextError(f"{self.operator} has {counted(len(self.arguments), 'argument')}; expected {expected}")


def _split_condition(condition: str) -> tuple[str, str]:
    """Return the operator of a condition and its right-hand side."""
    match = re.fullmatch(r"\s*\(\s*(\w+)\s*,(.*)\)\s*", condition, re.DOTALL)
    if match is None:
        raise TextError(f"expected a condition such as (le,5), found {condition[:40]!r}")
    if match[1] not in (*_COMPARISONS, "in", "notin"):
        raise TextError(f"expected an operator of a condition, found {match[1]!r}")
    return match[1], match[2].strip()


def together(name: str, *lists: Sequence[Any]) -> Sequence[tuple[Any, ...]]:
    """Return the items of lists of equal lengths side by side.

    Raises:
        TextError: The lengths differ.
    """
    lengths = list(map(len, lists))
    if len(set(lengths)) > 1:
        raise TextError(f"<{name}> has lists of {', '.join(map(str, lengths))} items, which have to be of one length")
    return list(zip(*lists, strict=True))


def number(token: str) -> int:
    """Return the whole number that a text writes.

    Raises:
        TextError: The text is not a whole number.
        UnsupportedError: The number is beyond 2^52.
    """
    if not _NUMBER.fullmatch(token.strip()):
        raise TextError(f"expected a whole number, found {token[:40]!r}")
    value = int(token)
    if abs(value) > MAX_INTEGER:
        raise UnsupportedError(f"the number {value} is beyond 2^52")
    return value


def span(token: str) -> range:
    """Return the values of ``a..b``.

    Raises:
        TextError: The range is malformed, is empty, or has too many values.
    """
    match = _RANGE.fullmatch(token.strip())
    if match is None:
        raise TextError(f"expected a range such as 1..5, found {token[:40]!r}")
    lo, hi = number(match[1]), number(match[2])
    if lo > hi or hi - lo > MAX_ITEMS:
        raise TextError(f"the range {token} is empty, or has more than {MAX_ITEMS:,} values")
    return range(lo, hi + 1)


def tokens(text: str) -> Iterator[str]:
    """Yield the items of a list, which is split at blanks outside parentheses."""
    depth, token = 0, ""
    for part in re.split(r"(\s+|[()])", text):
        depth += (part == "(") - (part == ")")
        if part.isspace() and depth == 0:
            if token:
                yield token
            token = ""
        elif not part.isspace():
            token += part
    if depth:
        raise TextError(f"the parentheses do not match in {text.strip()[:40]!r}")
    if token:
        yield token


def rows_of(text: str) -> list[str]:
    """Return the contents of ``(...)(...)``."""
    rows = re.findall(r"\s*\(([^()]*)\)\s*", text)
    if re.sub(r"\s*\(([^()]*)\)\s*", "", text):
        raise TextError(f"expected tuples such as (1,2)(3,4), found {text.strip()[:40]!r}")
    return rows


def _runs(values: Sequence[int]) -> Iterator[tuple[int, int]]:
    ordered = sorted(set(values))
    start = 0
    for position in range(1, len(ordered) + 1):
        if position == len(ordered) or ordered[position] != ordered[position - 1] + 1:
            yield ordered[start], ordered[position - 1]
            start = position


def _power(terms: Terms, xs: list[Operand]) -> Operand:
    (lo, hi), (min_count, max_count) = terms.model.bounds(xs[0]), terms.model.bounds(xs[1])
    if min_count < 0:
        raise UnsupportedError("a negative exponent is not supported")
    largest = max(abs(lo), abs(hi), 1)
    if max_count > 64 or largest**max_count > MAX_INTEGER:
        raise UnsupportedError(f"the power of up to {largest} to {max_count} is beyond 2^52")
    return terms.model.power(xs[0], xs[1], 0 if lo >= 0 else -(largest**max_count), largest**max_count)


def _chain(operator: str) -> Callable[[Terms, list[Operand]], Operand]:
    def function(terms: Terms, xs: list[Operand]) -> Operand:
        # Only `ne` compares all pairs; other comparisons follow from those of neighbours.
        pairs = itertools.combinations(xs, 2) if operator == "ne" else itertools.pairwise(xs)
        holds = [terms.model.holds(terms.relation(operator, a, b)) for a, b in pairs]
        return holds[0] if len(holds) == 1 else terms.model.all_of(holds)

    return function


def _xor(terms: Terms, xs: list[Operand]) -> Operand:
    chain = xs[0]
    for x in xs[1:]:
        chain = terms.model.holds(terms.relation("ne", chain, x))
    return chain


_FUNCTIONS: dict[str, tuple[int, int, Callable[[Terms, list[Operand]], Operand]]] = {
    "neg": (1, 1, lambda terms, xs: -terms.model.expression(xs[0])),
    "abs": (1, 1, lambda terms, xs: abs(terms.model.expression(xs[0]))),
    "sqr": (1, 1, lambda terms, xs: terms.product([xs[0], xs[0]])),
    "add": (2, MAX_ITEMS, lambda terms, xs: terms.model.sum(xs)),
    "sub": (2, 2, lambda terms, xs: terms.model.expression(xs[0]) - xs[1]),
    "mul": (2, MAX_ITEMS, Terms.product),
    "div": (2, 2, lambda terms, xs: terms.model.quotient(*xs)),
    "mod": (2, 2, lambda terms, xs: terms.model.remainder(*xs)),
    "pow": (2, 2, _power),
    "dist": (2, 2, lambda terms, xs: abs(terms.model.expression(xs[0]) - xs[1])),
    "min": (1, MAX_ITEMS, lambda terms, xs: terms.model.minimum(xs)),
    "max": (1, MAX_ITEMS, lambda terms, xs: terms.model.maximum(xs)),
    **{operator: (2, MAX_ITEMS, _chain(operator)) for operator in _COMPARISONS},
    "not": (1, 1, lambda terms, xs: 1 - terms.model.expression(xs[0])),
    "and": (1, MAX_ITEMS, lambda terms, xs: terms.model.all_of(xs)),
    "or": (1, MAX_ITEMS, lambda terms, xs: terms.model.any_of(xs)),
    "xor": (1, MAX_ITEMS, _xor),
    "iff": (2, MAX_ITEMS, _chain("eq")),
    "imp": (2, 2, lambda terms, xs: terms.model.any_of([1 - terms.model.expression(xs[0]), xs[1]])),
    "if": (3, 3, lambda terms, xs: terms.model.element([xs[2], xs[1]], terms.model.expression(xs[0]))),
}
"""Operator -> least and greatest number of arguments, and function that returns its value."""

_BOOLEAN_ARGUMENTS = {**dict.fromkeys(("not", "and", "or", "xor", "iff", "imp"), MAX_ITEMS), "if": 1}
"""Operator -> number of leading arguments that are Booleans."""
