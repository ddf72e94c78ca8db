"""toulbar2's CFN format: a relaxed JSON with decimal costs, to be minimised or maximised.

An object with "problem" (a name, and "mustbe": "<bound" to minimise or ">bound" to maximise), "variables" (a list of
states or a size each) and "functions" (a scope and full costs, or a default and tuples, or another function's name, or
a type with parameters: see ``elimina.io.keywords``). Commas, colons and quotation marks are optional, braces and
brackets are alike, comments start with "#" or "//". The cost "inf" means forbidden. Costs have as many decimals as the
bound; further ones are cut off. An assignment whose cost reaches the bound is not a solution. An entry is forbidden if
it reaches the bound even with the least cost of all other functions. Source: the description that comes with toulbar2,
"The CFN format".
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import Text, TextError
from elimina.errors import InputError, UnsupportedError
from elimina.io.cfn_json import in_order
from elimina.io.codecs import Codec
from elimina.io.cost_function_tables import CostFunctionTables
from elimina.io.listed_tuples import table_of_tuples
from elimina.io.parsing import token_text
from elimina.model.auxiliary_variables import auxiliary_variables
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN, Sense, Table
from elimina.model.variable import MAX_STATES, Variable, texts_of
from elimina.number_texts import counted

_logger = logging.getLogger("elimina")

_BOUND = re.compile(rb"([<>])([+-]?\d{1,400})(?:\.(\d{0,400}))?")
_NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_FORBIDDEN_WORD = b"inf"
"""The cost of forbidden assignments, also if costs are maximised."""
_MAX_EXACT_DECIMALS = 22
_MAX_ROUNDED_DECIMALS = 15
_MAX_INDEX_DIGITS = 18
_MAX_INTEGER_CHARACTERS = 400
_MAX_EXACT_INTEGER = 2**52

_MIN_TOTAL_TO_DOUBLE = 10**12
"""Smallest total of float costs for which the bound is twice the total. For smaller totals, the bound is the total plus
1, which rounding errors (1e-13 of the total) do not reach."""

_MAX_FLOAT = Fraction(np.finfo(np.float64).max.item())
_Values = NDArray[Any]
_text_of = partial(Text, blanks=",:", marks="{}[]", quotes=True, block_comments=True, line_comments=True)


def _open_text(data: bytes) -> Text:
    return _text_of(in_order(data))


def parse(text: Text) -> Model:
    """Read a model; its costs are integers if all costs of the file are integers."""
    _open(text)
    _tag(text, b"problem")
    name, sign, bound, decimals = _read_problem(text)
    _tag(text, b"variables")
    variables = _read_variables(text)
    _tag(text, b"functions")
    reader = _NamedFunctionReader(text, variables, sign, decimals)
    reader.read_all()
    _close(text)
    if reader.cut is not None:
        _logger.warning(
            "costs are cut to %s, as many as the bound after 'mustbe' has: %r becomes %r; "
            "write the bound with more decimals to keep them",
            "1 decimal" if decimals == 1 else f"{decimals} decimals",
            *reader.cut,
        )
    tables = _forbid(reader.tables, sign, bound, decimals)
    sense: Sense = "min-cost" if sign > 0 else "max-cost"
    variables += auxiliary_variables(reader.functions.sizes[len(variables) :])
    model = Model(variables, tables, sense=sense, upper_bound=bound, name=name)
    model.decimals = decimals if 0 < decimals <= _MAX_ROUNDED_DECIMALS else None
    return model


def _open(text: Text) -> None:
    token = text.token("'{' or '['")
    if token not in (b"{", b"[") or text.quoted:
        raise TextError(f"expected '{{' or '[', found {token_text(token)}")


def _at_close(text: Text) -> bool:
    return text.peek() in (b"}", b"]") and not text.quoted


def _close(text: Text) -> None:
    token = text.token("'}' or ']'")
    if token not in (b"}", b"]") or text.quoted:
        raise TextError(f"expected '}}' or ']', found {token_text(token)}")


def _tag(text: Text, tag: bytes) -> None:
    """Read a field's name, which may be left out before a brace or bracket."""
    if text.peek() in (b"{", b"[") and not text.quoted:
        return
    token = text.token(f"'{tag.decode()}'")
    if token != tag:
        raise TextError(f"expected '{tag.decode()}', found {token_text(token)}")


def _word(text: Text, what: str) -> bytes:
    token = text.token(what)
    if not text.quoted and token in (b"{", b"}", b"[", b"]"):
        raise TextError(f"expected {what}, found {token_text(token)}")
    return token


def _read_problem(text: Text) -> tuple[str, int, int | float | None, int]:
    """Return the name, 1 to minimise or -1 to maximise, the bound (None if too large), and the number of decimals."""
    _open(text)
    name = _word(text, "the problem's name")
    if name == b"name":
        name = _word(text, "the problem's name")
    word = _word(text, "'mustbe'")
    if word == b"mustbe":
        word = _word(text, "a bound")
    match = _BOUND.fullmatch(word)
    if match is None:
        raise TextError(f"expected a bound such as '<100.00' or '>-5', found {token_text(word)}")
    _close(text)
    direction, whole_digits, fraction = match.groups(default=b"")
    sign, decimals = (1 if direction == b"<" else -1), len(fraction)
    bound = float(whole_digits + b"." + fraction) if decimals else int(whole_digits)
    if not math.isfinite(bound):
        raise TextError(f"expected a bound within the range of a double, found {token_text(word)}")
    return name.decode(), sign, bound if decimals or sign * bound < FORBIDDEN else None, decimals


def _read_variables(text: Text) -> list[Variable]:
    _open(text)
    variables: list[Variable] = []
    names: set[str] = set()
    while not _at_close(text):
        name = f"x{len(variables)}"
        following = text.peek()
        if text.quoted or not (following in (b"{", b"[") or _NUMBER.fullmatch(following)):
            name = text.token("a variable's name").decode()
        if name in names:
            raise TextError(f"two variables are named {name!r}")
        names.add(name)
        if text.peek() in (b"{", b"[") and not text.quoted:
            text.token("'['")
            states = [state.decode() for state in text.bracket_items(as_words=True)]
            variables.append(Variable(name, len(states), states))
            continue
        size = abs(text.integer("a domain: states in brackets, or a size"))
        if not 1 <= size <= MAX_STATES:
            raise TextError(f"expected a domain size from 1 to {MAX_STATES} for variable {name!r}, found {size}")
        variables.append(Variable(name, size))
    _close(text)
    return variables


class _NamedFunctionReader:
    """A reader of functions, one by one.

    Attributes:
        cut: The first cost that lost decimals, before and after the loss; None if all costs are kept.
    """

    def __init__(self, text: Text, variables: list[Variable], sign: int, decimals: int) -> None:
        self.text, self.variables, self.sign, self.decimals = text, variables, sign, decimals
        self.functions = CostFunctionTables([v.size for v in variables], can_be_negative=True)
        self.forbidden: int | float = sign * (math.inf if decimals else FORBIDDEN)
        self.tables: list[Table] = []
        self.index = {v.name.encode(): i for i, v in enumerate(variables)}
        self.codes: dict[int, dict[bytes, int]] = {}
        self.waiting: dict[bytes, list[tuple[int, list[int]]]] = {}
        self.cut: tuple[float, float] | None = None

    def read_all(self) -> None:
        """Read the block of functions."""
        _open(self.text)
        while not _at_close(self.text):
            name = b"" if self.text.peek() in (b"{", b"[") and not self.text.quoted else _word(self.text, "a name")
            _open(self.text)
            self._read(name)
            _close(self.text)
        _close(self.text)
        if self.waiting:
            raise TextError(
                f"expected a function named {token_text(next(iter(self.waiting)))}, whose costs another function shares"
            )

    def _read(self, name: bytes) -> None:
        text = self.text
        _tag(text, b"scope")
        _open(text)
        scope = [self._variable(word) for word in text.bracket_items(as_words=True)]
        if len(set(scope)) != len(scope):
            raise TextError(f"a function names a variable twice in its scope {scope}")
        default: int | float | None = None
        field = _word(text, "'costs', 'defaultcost' or 'type'")
        if field == b"defaultcost":
            default = self._number(_word(text, "a cost"))
            field = _word(text, "'costs'")
        if field == b"type" and default is None:
            self._read_global(scope)
        elif field != b"costs":
            raise TextError(f"expected 'costs', 'defaultcost' or 'type', found {token_text(field)}")
        elif text.peek() in (b"{", b"[") and not text.quoted:
            text.token("'['")
            table = self._read_full(scope) if default is None else self._read_tuples(scope, default)
            self.tables.append(table)
            self._hand_out(name, table)
        else:
            self.waiting.setdefault(_word(text, "costs"), []).append((len(self.tables), scope))
            self.tables.append(Table((), 0))

    def _hand_out(self, name: bytes, table: Table) -> None:
        """Give a table to the earlier functions that share its costs.

        Raises:
            TextError: One of these functions has other domain sizes.
        """
        for number, scope in self.waiting.pop(name, ()) if name else ():
            if tuple(self.variables[v].size for v in scope) != table.sizes:
                names = ", ".join(self.variables[v].name for v in scope)
                raise TextError(
                    f"an earlier function over ({names}) shares {token_text(name)}, which has domain sizes "
                    f"{table.sizes}"
                )
            self.tables[number] = table.over(scope)

    def _read_global(self, scope: list[int]) -> None:
        from elimina.io.cfn_functions import read_function

        if self.sign < 0:
            raise UnsupportedError("a function given by a type is only handled where costs are minimised")
        self.functions.tables.clear()
        truncation = read_function(self.text, scope, self.functions, self.decimals, self._variable)
        self.cut = self.cut or truncation
        self.tables.extend(_in_units(table, self.decimals) for table in self.functions.tables)

    def _variable(self, word: bytes) -> int:
        if word in self.index:
            return self.index[word]
        if word.isdigit() and len(word) <= _MAX_INDEX_DIGITS and int(word) < len(self.variables):
            return int(word)
        raise TextError(f"expected a variable's name or index, found {token_text(word)}")

    def _number(self, word: bytes) -> int | float:
        if word == _FORBIDDEN_WORD:
            return self.forbidden
        if not _NUMBER.fullmatch(word):
            raise TextError(f"expected a cost, found {token_text(word)}")
        is_whole = word.lstrip(b"+-").isdigit() and len(word) <= _MAX_INTEGER_CHARACTERS and abs(int(word)) <= FORBIDDEN
        value = np.array([int(word) if is_whole else float(word)])
        if value.dtype.kind not in "if" or not np.isfinite(value).all():
            raise TextError(f"expected a cost that fits 64 bits, found {token_text(word)}")
        fixed: int | float = self._cut(value)[0].item()
        return fixed

    def _numbers(self, words: Sequence[bytes]) -> _Values:
        numbers = [self._number(word) for word in words]
        return _as_reals(numbers) if any(isinstance(number, float) for number in numbers) else np.array(numbers)

    def _cut(self, values: _Values) -> _Values:
        """Cut off decimals beyond those of the bound, and record the first loss."""
        cut_values = _cut(values, self.decimals)
        if self.cut is None and cut_values is not values and (is_changed := cut_values != values).any():
            first_change = is_changed.argmax()
            self.cut = values[first_change].item(), cut_values[first_change].item()
        return cut_values

    def _read_full(self, scope: list[int]) -> Table:
        costs = self.text.bracket_items()
        sizes = tuple(self.variables[v].size for v in scope)
        if isinstance(costs, list):
            costs = self._numbers(costs)
        if len(costs) != math.prod(sizes):
            raise TextError(
                f"expected {counted(math.prod(sizes), 'cost')} for a function of sizes {sizes}, found {len(costs)}"
            )
        return Table(scope, self._cut(costs).reshape(sizes))

    def _read_tuples(self, scope: list[int], default: int | float) -> Table:
        sizes = tuple(self.variables[v].size for v in scope)
        named = [v for v in scope if self.variables[v].states is not None]
        words = any(_NUMBER.fullmatch(text.encode()) for v in named for text in texts_of(self.variables[v]))
        items = self.text.bracket_items(as_words=words)
        width = len(scope) + 1
        if len(items) % width or (not scope and len(items)):
            raise TextError(
                f"expected tuples of {counted(len(scope), 'value')} and a cost, found {counted(len(items), 'item')}"
            )
        if isinstance(items, list):
            rows, costs = self._decoded(scope, items)
        else:
            rows, costs = items.reshape(-1, width)[:, :-1], items.reshape(-1, width)[:, -1]
        for axis, size in enumerate(sizes):
            column = rows[:, axis]
            bad = column[(column < 0) | (column >= size) | (column != np.floor(column))]
            if bad.size:
                name = self.variables[scope[axis]].name
                raise TextError(f"expected a value from 0 to {size - 1} of variable {name!r}, found {bad[0]}")
        costs = self._cut(costs)
        if costs.dtype.kind != np.asarray(default).dtype.kind:
            default, costs = _as_reals(default).item(), _as_reals(costs)
        return table_of_tuples(scope, sizes, default, rows.astype(np.int32), costs)

    def _decoded(self, scope: list[int], items: list[bytes]) -> tuple[_Values, _Values]:
        """Return the positions in the domains and the costs of tuples, whose values are states or indices."""
        width = len(scope) + 1
        columns = [[self._value(v, word) for word in items[axis::width]] for axis, v in enumerate(scope)]
        return np.array(columns, dtype=np.int64).T, self._numbers(items[width - 1 :: width])

    def _value(self, v: int, word: bytes) -> int:
        if v not in self.codes:
            has_states = self.variables[v].states is not None
            self.codes[v] = {
                text.encode(): i for i, text in enumerate(texts_of(self.variables[v]) if has_states else ())
            }
        code = self.codes[v].get(word)
        if code is None and word.isdigit() and len(word) <= _MAX_INDEX_DIGITS:
            return int(word)
        if code is None:
            raise TextError(f"expected a value of variable {self.variables[v].name!r}, found {token_text(word)}")
        return code


def _as_reals(costs: Any) -> _Values:
    """Return costs as doubles, with infinity for forbidden ones."""
    reals = np.asarray(costs, dtype=np.float64)
    return np.where(np.abs(reals) == FORBIDDEN, np.copysign(math.inf, reals), reals)


def _in_units(table: Table, decimals: int) -> Table:
    """Convert a table's costs from units of the last decimal to numbers with decimals."""
    if not decimals:
        return table
    return table.mapped(lambda values: np.where(values == FORBIDDEN, math.inf, values / 10.0**decimals))


def _cut(values: _Values, decimals: int) -> _Values:
    """Cut off decimals beyond those of the bound; without decimals, floats become integers.

    Integers are unchanged, and so are floats if the bound has over ``_MAX_EXACT_DECIMALS`` decimals.
    """
    if values.dtype.kind == "i" or decimals > _MAX_EXACT_DECIMALS:
        return values
    if decimals == 0 and (np.abs(values) < FORBIDDEN).all():
        return np.trunc(values).astype(np.int64)
    power = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * power
        exact = (np.rint(scaled) / power == values) | (np.abs(scaled) >= _MAX_EXACT_INTEGER)
    if exact.all():
        return values
    # Decimals are cut off in decimal numbers: a product with a power of ten may round to the next integer.
    unit = Decimal(1).scaleb(-decimals)
    shortened = values.copy()
    shortened[~exact] = [float(Decimal(repr(x)).quantize(unit, ROUND_DOWN)) for x in values[~exact].tolist()]
    return shortened


def _forbid(tables: Sequence[Table], sign: int, bound: float | None, decimals: int) -> list[Table]:
    """Forbid the entries that reach the bound even with the least costs of all other functions."""
    if bound is None:
        return list(tables)
    lowest = [_lowest(table, sign) for table in tables]
    slack = sign * _exact(bound) - sum(lowest, Fraction(0)) - Fraction(1, 2 * 10**decimals)
    return [_forbid_above(table, sign, low + slack) for table, low in zip(tables, lowest, strict=True)]


def _exact(value: Any) -> Fraction:
    return Fraction(value if isinstance(value, int | float) else value.item())


def _lowest(table: Table, sign: int) -> Fraction:
    costs = sign * _finite(table)
    return _exact(costs.min()) if costs.size else Fraction(0)


def _forbid_above(table: Table, sign: int, exact_limit: Fraction) -> Table:
    """Forbid the costs at or above a limit (at or below its negation if costs are maximised)."""
    integral = table.values.dtype.kind == "i"
    forbidden = sign * (FORBIDDEN if integral else math.inf)
    limit: float
    if integral:
        limit = min(max(math.ceil(exact_limit), -FORBIDDEN), FORBIDDEN)
    else:
        limit = float(min(max(exact_limit, -_MAX_FLOAT), _MAX_FLOAT))
        limit = limit if limit >= exact_limit else math.nextafter(limit, math.inf)
    return table.mapped(lambda values: np.where(sign * values >= limit, forbidden, values))


def render(model: Model) -> Iterator[str]:
    """Yield the file's text, which is strict JSON and exact; it has as many decimals as the costs need.

    A model without an upper bound gets one above all totals. toulbar2 stores costs as 64-bit integers, scaled by ten
    to the number of decimals: round costs with many decimals before writing a file for it.

    Raises:
        InputError: A name has a character that the format cannot hold, or the costs leave no number for forbidden
            entries.
    """
    sign = model.sign
    tables = [*model.factors, *([Table((), model.constant)] if model.constant else [])]
    costs = [sign * _finite(table) for table in tables]
    if model.upper_bound is None:
        reached = 1 + math.ceil(sum((_exact(c.max()) for c in costs if c.size), Fraction(0)))
        # Rounding could make a large total of floats reach a bound that is larger by 1 only.
        bound = str(
            sign * (reached if model.is_integer or abs(reached) < _MIN_TOTAL_TO_DOUBLE else reached + abs(reached))
        )
    else:
        bound = _plain(model.upper_bound)
    reach = sign * Fraction(bound) - sum((min(_exact(c.min()), Fraction(0)) for c in costs if c.size), Fraction(0))
    decimals = max((len(text.partition(".")[2]) for text in (bound, *map(_longest, costs))), default=0)
    decimals = max(decimals, 0 if model.is_integer else 1)
    bound += ("" if "." in bound or not decimals else ".") + "0" * (decimals - len(bound.partition(".")[2]))
    yield f'{{\n"problem": {{"name": {_quoted(model.name or "problem")}, '
    yield f'"mustbe": "{"<" if sign > 0 else ">"}{bound}"}},\n'
    yield '"variables": {\n' + ",\n".join(f"{_quoted(v.name)}: {_domain(v)}" for v in model.variables)
    yield '\n},\n"functions": {\n'
    for i, table in enumerate(tables):
        yield ",\n" if i else ""
        yield _function(f"f{i}", table, model.variables, _forbidden_cost(table, sign, reach))
    yield "\n}\n}\n"


def _finite(table: Table) -> _Values:
    """Return all costs of a table that are not forbidden, its default included."""
    is_finite = np.isfinite(table.values) if table.values.dtype.kind == "f" else np.abs(table.values) != FORBIDDEN
    default = [] if table.default is None or abs(table.default) in (FORBIDDEN, math.inf) else [table.default]
    values: _Values = np.append(table.values[is_finite], np.array(default, dtype=table.values.dtype))
    return values


def _longest(costs: _Values) -> str:
    """Return the text of the cost with the most decimals; empty for integers, or if there are no costs."""
    if costs.dtype.kind == "i":
        return ""
    return max((_plain(c) for c in costs.tolist()), key=lambda text: len(text.partition(".")[2]), default="")


def _plain(cost: float) -> str:
    """Return a number's shortest exact text, without an exponent."""
    text = repr(cost)
    return format(Decimal(text), "f") if "e" in text else text


def _forbidden_cost(table: Table, sign: int, reach: Fraction) -> str:
    """Return the text of a cost so high that an assignment with it reaches the bound for any other costs.

    Raises:
        InputError: The costs are too large for such a number.
    """
    cost = max(math.ceil(reach), 0)
    if table.values.dtype.kind == "i":
        return str(sign * min(cost, FORBIDDEN))
    if cost > _MAX_EXACT_INTEGER:
        cost *= 2
    if cost > _MAX_FLOAT:
        raise InputError("the costs are so large that a CFN file has no number for forbidden entries")
    return f"{sign * cost}.0"


def _function(name: str, table: Table, variables: Sequence[Variable], forbidden: str) -> str:
    def text(values: _Values) -> list[str]:
        is_finite = np.isfinite(values) if values.dtype.kind == "f" else np.abs(values) != FORBIDDEN
        return [_plain(v) if ok else forbidden for v, ok in zip(values.tolist(), is_finite.tolist(), strict=True)]

    head = f'"{name}": {{"scope": [{", ".join(_quoted(variables[v].name) for v in table.scope)}], '
    if table.rows is None:
        return head + f'"costs": [{", ".join(text(table.values.reshape(-1)))}]}}'
    default = text(np.array([table.default], dtype=table.values.dtype))[0]
    columns = [_texts_at(variables[v], indices) for v, indices in zip(table.scope, table.rows.T.tolist(), strict=True)]
    rows = ["".join(f"{text}, " for text in row) for row in zip(*columns, strict=True)]
    costs = ",\n".join(row + cost for row, cost in zip(rows, text(table.values), strict=True))
    return head + f'"defaultcost": {default}, "costs": [\n{costs}]}}'


def _texts_at(variable: Variable, indices: Iterable[int]) -> list[str]:
    """Return the quoted states at these indices."""
    if variable.states is None:
        return [f'"{index}"' for index in indices]
    texts = [_quoted(str(state)) for state in variable.states]
    return [texts[index] for index in indices]


def _domain(variable: Variable) -> str:
    return str(variable.size) if variable.states is None else f"[{', '.join(map(_quoted, texts_of(variable)))}]"


def _quoted(name: str) -> str:
    if any(c in '"\\' or ord(c) < 32 for c in name):
        raise InputError(
            f"a CFN file cannot hold the name {name!r}: it has a quotation mark, a backslash or a control code"
        )
    return f'"{name}"'


CODEC = Codec(("min-cost", "max-cost"), _open_text, parse, render, holds=("names", "upper bound"))
