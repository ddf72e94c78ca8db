"""Constraints of XCSP3, each a function of its name."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Sequence

import numpy as np

from elimina._core import TextError
from elimina.cp.expressions import Expression
from elimina.cp.xcsp3.terms import Operand, Terms, number, rows_of, span, together, tokens
from elimina.errors import UnsupportedError
from elimina.io.files import Element

MOST_CELLS = 1 << 20
"""Assignments that the complement of a table of conflicts is made of; beyond, each conflict becomes a clause."""


class Arguments:
    """The elements of a constraint.

    Args:
        element: Element of the constraint.
    """

    def __init__(self, element: Element) -> None:
        self.element = element
        self.name = element.tag

    def all(self, tag: str) -> list[Element]:
        """Return the elements of a name."""
        return [child for child in self.element.children if child.tag == tag]

    def get(self, tag: str) -> Element | None:
        """Return the element of a name; None if there is none.

        Raises:
            TextError: There are two.
        """
        found = self.all(tag)
        if len(found) > 1:
            raise TextError(f"expected one <{tag}> in <{self.name}>, found {len(found)}")
        return found[0] if found else None

    def text(self, tag: str) -> str:
        """Return the text of the element of a name.

        Raises:
            TextError: There is none, or there are two.
        """
        found = self.get(tag)
        if found is None:
            raise TextError(f"expected <{tag}> in <{self.name}>")
        return found.raw_text

    def main(self) -> str:
        """Return the text of the list, which may stand alone."""
        return self.element.raw_text if not self.element.children else self.text("list")

    def only(self, *tags: str) -> Arguments:
        """Refuse elements besides these."""
        for child in self.element.children:
            if child.tag not in tags:
                raise UnsupportedError(f"<{child.tag}> in <{self.name}> is not supported")
        return self

    def start(self, tag: str, attribute: str = "startIndex", place: int = 0) -> int:
        """Return the first index of a list."""
        found = self.all(tag)
        return number(found[place].attributes.get(attribute, "0")) if len(found) > place else 0

    def condition(self, terms: Terms, left: Operand) -> None:
        """Post the constraint's condition on an operand."""
        terms.meet(left, self.text("condition"))

    def weighted(self, terms: Terms) -> list[Operand]:
        """Return the list's items, times their coefficients if there are any."""
        xs = terms.items(self.main())
        coefficients = self.get("coeffs")
        if coefficients is None:
            return xs
        factors = terms.items(coefficients.raw_text)
        if len(factors) != len(xs):
            raise TextError(f"<{self.name}> has {len(xs)} items and {len(factors)} coefficients")
        return [terms.product([factor, x]) for factor, x in zip(factors, xs, strict=True)]

    def sum(self, terms: Terms) -> Expression:
        """Return the weighted sum of the list."""
        return terms.model.sum(self.weighted(terms))


def _intension(terms: Terms, given: Arguments) -> None:
    element = given.element
    terms.require(given.text("function") if element.children else element.raw_text)


def _extension(terms: Terms, given: Arguments) -> None:
    given.only("list", "supports", "conflicts")
    xs = terms.items(given.text("list"))
    supports, conflicts = given.get("supports"), given.get("conflicts")
    if (supports is None) == (conflicts is None):
        raise TextError("expected <supports> or <conflicts> in <extension>")
    listed = supports if supports is not None else conflicts
    rows = _rows("" if listed is None else listed.raw_text, len(xs))
    if supports is not None:
        terms.model.table(xs, [full for row in rows for full in _completed(terms, xs, row)])
        return
    ends = [terms.model.bounds(x) for x in xs]
    shape = [hi - lo + 1 for lo, hi in ends]
    if math.prod(shape) > MOST_CELLS:
        for row in rows:
            named = [(x, value) for x, value in zip(xs, row, strict=True) if value is not None]
            terms.model.clause([terms.model.holds(terms.relation("ne", x, value)) for x, value in named])
        return
    allowed = np.ones(shape, dtype=bool)
    for row in rows:
        place = [
            slice(None) if value is None else value - lo if lo <= value <= hi else None
            for value, (lo, hi) in zip(row, ends, strict=True)
        ]
        if None not in place:
            allowed[tuple(one for one in place if one is not None)] = False
    firsts = np.array([lo for lo, _ in ends])
    terms.model.table(xs, (np.argwhere(allowed) + firsts).tolist())


def _rows(text: str, arity: int) -> list[list[int | None]]:
    """Return the tuples of a table; None stands for any value."""
    if arity == 1 and "(" not in text:
        values: list[int] = []
        for token in text.split():
            values += span(token) if ".." in token else [number(token)]
        return [[value] for value in values]
    rows: list[list[int | None]] = []
    for row in rows_of(text):
        cells = row.split(",")
        if len(cells) != arity:
            raise TextError(f"the tuple ({row[:40]}) has {len(cells)} values for {arity} variables")
        rows.append([None if cell.strip() == "*" else number(cell.strip()) for cell in cells])
    return rows


def _completed(terms: Terms, xs: Sequence[Operand], row: Sequence[int | None]) -> list[tuple[int, ...]]:
    choices = []
    for x, value in zip(xs, row, strict=True):
        lo, hi = terms.model.bounds(x)
        choices.append(range(lo, hi + 1) if value is None else range(value, value + 1))
    if math.prod(map(len, choices)) > MOST_CELLS:
        raise UnsupportedError(f"a tuple with * stands for more than {MOST_CELLS:,} tuples")
    return list(itertools.product(*choices))


def _all_different(terms: Terms, given: Arguments) -> None:
    model = terms.model
    matrix, lists, exceptions = given.get("matrix"), given.all("list"), given.get("except")
    if matrix is not None:
        rows = terms.matrix(matrix.raw_text)
        for line in (*rows, *map(list, zip(*rows, strict=True))):
            model.all_different(line)
        return
    if len(lists) > 1:
        for one, other in itertools.combinations([terms.items(each.raw_text) for each in lists], 2):
            model.clause([model.holds(terms.relation("ne", x, y)) for x, y in together(given.name, one, other)])
        return
    xs = terms.items(given.main())
    if exceptions is None:
        model.all_different(xs)
        return
    values = [number(token) for token in exceptions.raw_text.split()]
    if len(values) == 1:
        model.all_different_except_0([model.expression(x) - values[0] for x in xs])
        return
    free = [terms.is_in(x, values) for x in xs]
    for (x, is_free), (y, _) in itertools.combinations(zip(xs, free, strict=True), 2):
        model.clause([model.holds(terms.relation("ne", x, y)), is_free])


def _all_equal(terms: Terms, given: Arguments) -> None:
    for x, y in itertools.pairwise(terms.items(given.only("list").main())):
        terms.model.add(terms.relation("eq", x, y))


def _ordered(terms: Terms, given: Arguments) -> None:
    xs = terms.items(given.only("list", "operator", "lengths").main())
    operator = given.element.attributes.get("case") or given.text("operator").strip()
    lengths = given.get("lengths")
    gaps = [0] * len(xs) if lengths is None else terms.items(lengths.raw_text)
    if operator not in ("lt", "le", "ge", "gt") or len(gaps) < len(xs) - 1:
        raise TextError(f"expected lt, le, ge or gt and a length for each pair, found {operator[:40]!r}")
    for (x, y), gap in zip(itertools.pairwise(xs), gaps, strict=False):
        terms.model.add(terms.relation(operator, terms.model.expression(x) + gap, y))


def _lex(terms: Terms, given: Arguments) -> None:
    given.only("list", "matrix", "operator")
    operator, matrix = given.text("operator").strip(), given.get("matrix")
    if operator not in ("lt", "le", "ge", "gt"):
        raise TextError(f"expected lt, le, ge or gt, found {operator[:40]!r}")
    rows = [terms.items(each.raw_text) for each in given.all("list")]
    chains = [rows]
    if matrix is not None:
        rows = terms.matrix(matrix.raw_text)
        chains = [rows, [list(column) for column in zip(*rows, strict=True)]]
    post = terms.model.lex_less if operator in ("lt", "gt") else terms.model.lex_lesseq
    for chain in chains:
        for one, other in itertools.pairwise(chain):
            post(*((one, other) if operator in ("lt", "le") else (other, one)))


def _sum(terms: Terms, given: Arguments) -> None:
    given.only("list", "coeffs", "condition").condition(terms, given.sum(terms))


def _count(terms: Terms, given: Arguments) -> None:
    xs, values = terms.items(given.only("list", "values", "condition").main()), terms.items(given.text("values"))
    if len(values) == 1:
        given.condition(terms, terms.model.count([terms.model.variable_of(x) for x in xs], values[0]))
        return
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) < len(values):
        raise UnsupportedError("<count> of several values that are variables is not supported")
    given.condition(terms, terms.model.sum(terms.is_in(x, numbers) for x in xs))


def _distinct_values(terms: Terms, given: Arguments) -> None:
    xs = terms.items(given.only("list", "condition").main())
    given.condition(terms, terms.model.distinct_values(xs))


def _cardinality(terms: Terms, given: Arguments) -> None:
    given.only("list", "values", "occurs")
    values_at, xs = given.get("values"), terms.items(given.main())
    values = [number(token) for token in given.text("values").split()]
    counts: list[Operand] = []
    for token in tokens(given.text("occurs")):
        if ".." in token and "[" not in token:
            within = span(token)
            counts.append(terms.model.int_var(within[0], within[-1]))
        else:
            counts += terms.items(token)
    if len(counts) != len(values):
        raise TextError(f"<cardinality> has {len(values)} values and {len(counts)} numbers of occurrences")
    closed = values_at is not None and values_at.attributes.get("closed") == "true"
    # Not a mapping: a value may be listed twice.
    terms.model.post("global_cardinality_closed" if closed else "global_cardinality", xs, values, counts)


def _extreme(terms: Terms, given: Arguments) -> None:
    xs = terms.items(given.only("list", "condition").main())
    found = terms.model.minimum(xs) if given.name == "minimum" else terms.model.maximum(xs)
    given.condition(terms, found)


def _element(terms: Terms, given: Arguments) -> None:
    given.only("list", "matrix", "index", "value", "condition")
    if any(each.attributes.get("rank", "any") != "any" for each in given.all("index")):
        raise UnsupportedError("ranks of <element> other than any are not supported")
    model, at, matrix = terms.model, given.get("index"), given.get("matrix")
    if matrix is not None:
        rows, places = terms.matrix(matrix.raw_text), terms.items(given.text("index"))
        starts = given.start("matrix", "startRowIndex"), given.start("matrix", "startColIndex")
        if len(places) != 2:
            raise TextError(f"expected two indices of a matrix, found {len(places)}")
        row, column = (model.expression(place) - start for place, start in zip(places, starts, strict=True))
        model.add(column >= 0)
        model.add(column <= len(rows[0]) - 1)
        found: Operand = model.element([x for line in rows for x in line], row * len(rows[0]) + column)
    else:
        items = terms.items(given.text("list"))
        if at is None:
            model.clause([model.holds(terms.relation("eq", x, terms.value(given.text("value")))) for x in items])
            return
        found = model.element(items, model.expression(terms.value(at.raw_text)) - given.start("list"))
    if given.get("value") is not None:
        model.add(terms.relation("eq", found, terms.value(given.text("value"))))
    else:
        given.condition(terms, found)


def _channel(terms: Terms, given: Arguments) -> None:
    given.only("list", "value")
    model, lists = terms.model, [terms.items(each.raw_text) for each in given.all("list")]
    lists = lists or [terms.items(given.main())]
    value = given.get("value")
    if value is not None:
        chosen = model.expression(terms.value(value.raw_text)) - given.start("list")
        for place, x in enumerate(lists[0]):
            model.add(chosen == place, iff=x)
        model.add(chosen >= 0)
        model.add(chosen <= len(lists[0]) - 1)
        return
    first, second = lists[0], lists[-1]
    starts = given.start("list"), given.start("list", place=len(lists) - 1)
    xs = [model.expression(x) - starts[1] for x in first]
    ys = [model.expression(y) - starts[0] for y in second]
    if len(xs) == len(ys):
        model.inverse(xs, ys)
        return
    for place, x in enumerate(xs):
        model.add(model.element(ys, x) == place)


def _instantiation(terms: Terms, given: Arguments) -> None:
    xs, values = terms.items(given.only("list", "values").main()), terms.items(given.text("values"))
    if len(xs) != len(values):
        raise TextError(f"<instantiation> has {len(xs)} variables and {len(values)} values")
    for x, value in zip(xs, values, strict=True):
        terms.model.add(terms.relation("eq", x, value))


def _automaton(terms: Terms, given: Arguments) -> None:
    """Post <regular>, or <mdd>: the automaton from its root to the nodes without transitions."""
    given.only("list", "transitions", "start", "final")
    xs = terms.items(given.text("list"))
    states: dict[str, int] = {}
    moves: list[dict[int, int]] = []

    def state(name: str) -> int:
        if name not in states:
            states[name] = len(moves)
            moves.append({})
        return states[name]

    for row in rows_of(given.text("transitions")):
        parts = [part.strip() for part in row.split(",")]
        if len(parts) != 3:
            raise TextError(f"expected transitions such as (a,0,b), found ({row[:40]})")
        symbol, source = number(parts[1]), state(parts[0])
        if symbol in moves[source]:
            raise UnsupportedError(f"two transitions of the state {parts[0]} with {symbol} are not supported")
        moves[source][symbol] = state(parts[2])
    if not moves:
        raise TextError(f"expected transitions in <{given.name}>")
    if given.name == "mdd":
        terms.model.regular(xs, moves, 0, [place for place, own in enumerate(moves) if not own])
    else:
        first, last = state(given.text("start").strip()), [state(name) for name in given.text("final").split()]
        terms.model.regular(xs, moves, first, last)


def _circuit(terms: Terms, given: Arguments) -> None:
    model, xs = terms.model, terms.items(given.only("list", "size").main())
    successors = [model.expression(x) - given.start("list") for x in xs]
    model.subcircuit(successors)
    inside = model.sum(model.holds(x != place) for place, x in enumerate(successors))
    model.add(inside >= 2)
    if given.get("size") is not None:
        model.add(inside == terms.value(given.text("size")))


def _no_overlap(terms: Terms, given: Arguments) -> None:
    given.only("origins", "lengths")
    origins, lengths = given.text("origins"), given.text("lengths")
    model, is_line = terms.model, not origins.strip().startswith("(")
    # Boxes without a volume overlap nothing, unless the file says otherwise.
    ignores = given.element.attributes.get("zeroIgnored", "true") == "true"
    if is_line and ignores:
        starts, spans = terms.items(origins), terms.items(lengths)
        together(given.name, starts, spans)  # refuses different lengths
        model.cumulative(starts, spans, [1] * len(starts), 1)
        return
    if is_line:
        boxes = [([a], [m]) for a, m in together(given.name, terms.items(origins), terms.items(lengths))]
    else:
        boxes = list(together(given.name, terms.matrix(origins), terms.matrix(lengths)))
    for (starts, sizes), (others, extents) in itertools.combinations(boxes, 2):
        apart = []
        for a, m, b, n in together(given.name, starts, sizes, others, extents):
            apart.append(model.holds(model.expression(a) + m <= b))
            apart.append(model.holds(model.expression(b) + n <= a))
            if ignores:
                apart += [model.holds(terms.relation("eq", size, 0)) for size in (m, n) if model.bounds(size)[0] <= 0]
        model.clause(apart)


def _cumulative(terms: Terms, given: Arguments) -> None:
    given.only("origins", "lengths", "heights", "ends", "condition")
    starts, lengths, heights = (terms.items(given.text(tag)) for tag in ("origins", "lengths", "heights"))
    found = re.fullmatch(r"\s*\(\s*le\s*,(.*)\)\s*", given.text("condition"), re.DOTALL)
    if found is None:
        raise UnsupportedError("conditions of <cumulative> other than (le,...) are not supported")
    terms.model.cumulative(starts, lengths, heights, terms.value(found[1]))
    if given.get("ends") is not None:
        for start, length, end in together(given.name, starts, lengths, terms.items(given.text("ends"))):
            terms.model.add(terms.relation("eq", terms.model.sum([start, length]), end))


def _clause(terms: Terms, given: Arguments) -> None:
    positive: list[Operand] = []
    negative: list[Operand] = []
    for token in tokens(given.main()):
        inner = re.fullmatch(r"not\((.*)\)", token)
        if inner is None:
            positive += terms.items(token)
        else:
            negative += terms.items(inner[1])
    terms.model.clause(positive, negative)


def _bin_packing(terms: Terms, given: Arguments) -> None:
    given.only("list", "sizes", "loads", "limits", "condition")
    model, bins = terms.model, terms.items(given.text("list"))
    sizes = [number(token) for token in given.text("sizes").split()]
    if not bins:
        raise TextError("expected items in the list of <binPacking>")
    lo, hi = (end(limits) for end, limits in zip((min, max), zip(*map(model.bounds, bins), strict=True), strict=True))
    start = min(lo, 0)
    loads_at, limits_at = given.get("loads"), given.get("limits")
    count = hi - start + 1
    loads = terms.items(loads_at.raw_text) if loads_at is not None else list(model.int_vars(count, 0, sum(sizes)))
    model.bin_packing_load(loads, [model.expression(x) - start for x in bins], sizes)
    if limits_at is not None:
        for load, limit in together(given.name, loads, terms.items(limits_at.raw_text)):
            model.add(terms.relation("le", load, limit))
    if given.get("condition") is not None:
        for load in loads:
            given.condition(terms, load)


def _knapsack(terms: Terms, given: Arguments) -> None:
    xs = terms.items(given.only("list", "weights", "profits", "condition", "limit").text("list"))
    conditions = [each.raw_text for each in given.all("condition")]
    limit = given.get("limit")
    if limit is not None:
        conditions.insert(0, f"(le,{limit.text})")
    for tag, condition in together(given.name, ("weights", "profits"), conditions):
        factors = terms.items(given.text(tag))
        terms.meet(terms.model.sum(terms.product([f, x]) for f, x in together(given.name, factors, xs)), condition)


CONSTRAINTS: dict[str, Callable[[Terms, Arguments], None]] = {
    "intension": _intension,
    "extension": _extension,
    "allDifferent": _all_different,
    "allEqual": _all_equal,
    "ordered": _ordered,
    "lex": _lex,
    "sum": _sum,
    "count": _count,
    "nValues": _distinct_values,
    "cardinality": _cardinality,
    "minimum": _extreme,
    "maximum": _extreme,
    "element": _element,
    "channel": _channel,
    "instantiation": _instantiation,
    "regular": _automaton,
    "mdd": _automaton,
    "circuit": _circuit,
    "noOverlap": _no_overlap,
    "cumulative": _cumulative,
    "clause": _clause,
    "binPacking": _bin_packing,
    "knapsack": _knapsack,
}
"""Element -> function that posts it."""
