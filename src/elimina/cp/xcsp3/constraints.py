"""Constraints of XCSP3: a function for each kind of element, which posts the constraint."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

from elimina._core import TextError
from elimina.cp.expressions import Expression
from elimina.cp.xcsp3.elements import ElementContents
from elimina.cp.xcsp3.tables import post_extension
from elimina.cp.xcsp3.terms import Operand, Terms, number, rows_of, span, together, tokens
from elimina.errors import UnsupportedError
from elimina.number_texts import counted

MAX_STATES = 1 << 16
"""Largest number of states of an automaton that is made deterministic."""


class Arguments:
    """The contents of a constraint, as operands.

    Args:
        contents: Contents of the constraint's element.
    """

    def __init__(self, contents: ElementContents) -> None:
        self.contents = contents
        self.name = contents.name

    def text(self, tag: str) -> str:
        """Return the text of the only child with this tag.

        Raises:
            TextError: No child has the tag, or several have.
        """
        return self.contents.child(tag).text

    def main(self, terms: Terms) -> list[Operand]:
        """Return the items of the list, which may be the element's own text."""
        return terms.items(self.contents.main.text)

    def numbers(self, tag: str) -> list[int] | None:
        """Return the numbers in the child with this tag; None if there is none."""
        child = self.contents.get(tag)
        return None if child is None else [number(token) for token in child.text.split()]

    def condition(self, terms: Terms, left: Operand) -> None:
        """Post the constraint's condition on an operand."""
        terms.meet(left, self.text("condition"))

    def weighted(self, terms: Terms) -> list[Operand]:
        """Return the list's items, times their coefficients if there are any."""
        xs = self.main(terms)
        coefficients = self.contents.get("coeffs")
        if coefficients is None:
            return xs
        factors = terms.items(coefficients.text)
        if len(factors) != len(xs):
            raise TextError(f"<{self.name}> has {counted(len(xs), 'item')} and {counted(len(factors), 'coefficient')}")
        return [terms.product([factor, x]) for factor, x in zip(factors, xs, strict=True)]

    def sum(self, terms: Terms) -> Expression:
        """Return the weighted sum of the list."""
        return terms.model.sum(self.weighted(terms))


def _start(child: ElementContents, attribute: str = "startIndex") -> int:
    """Return the index of a list's first item: the value of the attribute, or 0 if there is none."""
    return number(child.attribute(attribute, "0"))


def _intension(terms: Terms, arguments: Arguments) -> None:
    contents = arguments.contents
    terms.require(arguments.text("function") if contents.has_children else contents.text)


def _extension(terms: Terms, arguments: Arguments) -> None:
    kind = arguments.contents.attribute("type", "ordinary")
    if kind not in ("ordinary", "hybrid", "hybrid-1", "hybrid-2"):
        raise UnsupportedError(f'<extension type="{kind[:40]}"> is not supported')
    xs = terms.items(arguments.text("list"))
    supports, conflicts = arguments.contents.get("supports"), arguments.contents.get("conflicts")
    if (supports is None) == (conflicts is None):
        raise TextError("expected <supports> or <conflicts> in <extension>")
    listed = supports or conflicts
    assert listed is not None
    post_extension(terms, xs, listed.text, supports is not None)


def _all_different(terms: Terms, arguments: Arguments) -> None:
    contents = arguments.contents
    matrix, lists = contents.get("matrix"), contents.all("list")
    if len(lists) > 1:
        exceptions = contents.get("except")
        vectors = [] if exceptions is None else [_numbers_of(row) for row in rows_of(exceptions.text)]
        _different_lists(terms, arguments.name, [terms.items(each.text) for each in lists], vectors)
        return
    values = arguments.numbers("except") or []
    if matrix is None:
        _different_except(terms, arguments.main(terms), values)
        return
    rows = terms.matrix(matrix.text)
    for line in (*rows, *map(list, zip(*rows, strict=True))):
        _different_except(terms, line, values)


def _numbers_of(row: str) -> list[int]:
    return [number(token) for token in row.replace(",", " ").split()]


def _different_except(terms: Terms, xs: Sequence[Operand], values: Sequence[int]) -> None:
    """Post different values for all operands except those with an excepted value."""
    model = terms.model
    if not values:
        model.all_different(xs)
    elif len(values) == 1:
        model.all_different_except_0([model.expression(x) - values[0] for x in xs])
    else:
        free = [terms.is_in(x, values) for x in xs]
        for (x, is_free), (y, _) in itertools.combinations(zip(xs, free, strict=True), 2):
            model.clause([terms.truth("ne", x, y), is_free])


def _different_lists(
    terms: Terms, name: str, lists: Sequence[Sequence[Operand]], vectors: Sequence[Sequence[int]]
) -> None:
    """Post that all lists differ, except for lists equal to an excepted vector."""
    model = terms.model
    free = [
        [model.all_of([terms.truth("eq", x, value) for x, value in together(name, xs, vector)]) for vector in vectors]
        for xs in lists
    ]
    for (earlier, is_free), (later, _) in itertools.combinations(zip(lists, free, strict=True), 2):
        model.clause([*(terms.truth("ne", x, y) for x, y in together(name, earlier, later)), *is_free])


def _all_equal(terms: Terms, arguments: Arguments) -> None:
    xs, values = arguments.main(terms), arguments.numbers("except")
    if values is None:
        for x, y in itertools.pairwise(xs):
            terms.model.add(terms.relation("eq", x, y))
        return
    free = [terms.is_in(x, values) for x in xs]
    for (x, is_free), (y, is_other_free) in itertools.combinations(zip(xs, free, strict=True), 2):
        terms.model.clause([terms.truth("eq", x, y), is_free, is_other_free])


def _ordered(terms: Terms, arguments: Arguments) -> None:
    xs = arguments.main(terms)
    case = arguments.contents.attribute("case", "")
    operator = case or arguments.text("operator").strip()
    lengths = arguments.contents.get("lengths")
    gaps = [0] * len(xs) if lengths is None else terms.items(lengths.text)
    if operator not in ("lt", "le", "ge", "gt") or len(gaps) < len(xs) - 1:
        raise TextError(f"expected lt, le, ge or gt and a length for each pair, found {operator[:40]!r}")
    for (x, y), gap in zip(itertools.pairwise(xs), gaps, strict=False):
        terms.model.add(terms.relation(operator, terms.model.expression(x) + gap, y))


def _lex(terms: Terms, arguments: Arguments) -> None:
    operator, matrix = arguments.text("operator").strip(), arguments.contents.get("matrix")
    if operator not in ("lt", "le", "ge", "gt"):
        raise TextError(f"expected lt, le, ge or gt, found {operator[:40]!r}")
    rows = [terms.items(each.text) for each in arguments.contents.all("list")]
    chains = [rows]
    if matrix is not None:
        rows = terms.matrix(matrix.text)
        chains = [rows, [list(column) for column in zip(*rows, strict=True)]]
    post = terms.model.lex_less if operator in ("lt", "gt") else terms.model.lex_lesseq
    for chain in chains:
        for earlier, later in itertools.pairwise(chain):
            post(*((earlier, later) if operator in ("lt", "le") else (later, earlier)))


def _precedence(terms: Terms, arguments: Arguments) -> None:
    """Post that each value of a list occurs only after its predecessor in the list."""
    model, xs, values_at = terms.model, arguments.main(terms), None
    if arguments.contents.has_children:
        values_at = arguments.contents.get("values")
    if values_at is None:
        values = sorted({value for x in xs for value in model.domain(x)})
    else:
        values = [number(token) for token in values_at.text.split()]
    model.value_precede(values, xs)
    if values_at is not None and values_at.attribute("covered", "false") == "true" and values:
        model.clause([terms.truth("eq", x, values[-1]) for x in xs])


def _sum(terms: Terms, arguments: Arguments) -> None:
    arguments.condition(terms, arguments.sum(terms))


def _count(terms: Terms, arguments: Arguments) -> None:
    xs, values = arguments.main(terms), terms.items(arguments.text("values"))
    if len(values) == 1:
        arguments.condition(terms, terms.model.count([terms.model.variable_of(x) for x in xs], values[0]))
    else:
        arguments.condition(terms, terms.model.sum(terms.is_among(x, values) for x in xs))


def _distinct_values(terms: Terms, arguments: Arguments) -> None:
    exceptions = sorted(set(arguments.numbers("except") or []))
    # All exceptions are added to the list, so each of them is counted once. Their number is subtracted from the count.
    total = terms.model.distinct_values([*arguments.main(terms), *exceptions])
    arguments.condition(terms, total - len(exceptions))


def _cardinality(terms: Terms, arguments: Arguments) -> None:
    model, values_at, xs = terms.model, arguments.contents.child("values"), arguments.main(terms)
    values = terms.items(values_at.text)
    counts: list[Operand] = []
    for token in tokens(arguments.text("occurs")):
        if ".." in token and "[" not in token:
            within = span(token)
            counts.append(model.int_var(within[0], within[-1]))
        else:
            counts += terms.items(token)
    if len(counts) != len(values):
        raise TextError(
            f"<cardinality> has {counted(len(values), 'value')} and {counted(len(counts), 'number')} of occurrences"
        )
    closed = values_at.attribute("closed", "false") == "true"
    if all(isinstance(value, int) for value in values):
        # A value may be listed twice, which the mapping of Model.cardinality could not hold.
        model.post("global_cardinality_closed" if closed else "global_cardinality", xs, values, counts)
        return
    for value, count in zip(values, counts, strict=True):
        model.add(terms.relation("eq", model.count([model.variable_of(x) for x in xs], value), count))
    if closed:
        for x in xs:
            model.clause([terms.is_among(x, values)])


def _extreme(terms: Terms, arguments: Arguments) -> None:
    model, xs = terms.model, arguments.main(terms)
    extreme = model.minimum(xs) if arguments.name == "minimum" else model.maximum(xs)
    at = arguments.contents.get("index") if arguments.contents.has_children else None
    if at is not None:
        position = model.expression(terms.value(at.text)) - _start(arguments.contents.child("list"))
        hits = [terms.truth("eq", x, extreme) for x in xs]
        model.add(model.element(hits, position) == 1)
        _rank(terms, at.attribute("rank", "any"), position, hits)
    if at is None or arguments.contents.get("condition") is not None:
        arguments.condition(terms, extreme)


def _rank(terms: Terms, rank: str, position: Expression, hits: Sequence[Operand]) -> None:
    """Require that a position is the first or the last one with a true Boolean in ``hits``; accept the rank ``any``."""
    if rank not in ("any", "first", "last"):
        raise TextError(f"expected any, first or last as a rank, found {rank[:40]!r}")
    if rank != "any":
        for number_of, hit in enumerate(hits):
            terms.model.clause([terms.truth("le" if rank == "first" else "ge", position, number_of)], [hit])


def _extreme_place(terms: Terms, arguments: Arguments) -> None:
    """Post <minimumArg> or <maximumArg>: a condition on the position of the extreme."""
    model, xs = terms.model, arguments.main(terms)
    rank, condition = arguments.contents.attribute("rank", "any"), arguments.text("condition")
    start = _start(arguments.contents.child("list"))
    extreme = model.minimum(xs) if arguments.name == "minimumArg" else model.maximum(xs)
    hits = [terms.truth("eq", x, extreme) for x in xs]
    if rank == "any":
        model.clause(
            [
                model.all_of([hit, terms.truth_of_condition(start + position, condition)])
                for position, hit in enumerate(hits)
            ]
        )
        return
    position = model.int_var(0, len(xs) - 1)
    model.add(model.element(hits, position) == 1)
    _rank(terms, rank, position, hits)
    terms.meet(position + start, condition)


def _element(terms: Terms, arguments: Arguments) -> None:
    contents = arguments.contents
    model, at, matrix, value = terms.model, contents.get("index"), contents.get("matrix"), contents.get("value")
    condition = arguments.text("condition") if value is None else f"(eq,{value.text})"
    if matrix is not None:
        rows, index_terms = terms.matrix(matrix.text), terms.items(arguments.text("index"))
        starts = _start(matrix, "startRowIndex"), _start(matrix, "startColIndex")
        if len(index_terms) != 2:
            raise TextError(f"expected two indices of a matrix, found {len(index_terms)}")
        row, column = (model.expression(position) - start for position, start in zip(index_terms, starts, strict=True))
        model.add(column >= 0)
        model.add(column <= len(rows[0]) - 1)
        terms.meet(model.element([x for line in rows for x in line], row * len(rows[0]) + column), condition)
        return
    items = terms.items(arguments.text("list"))
    if at is None:
        model.clause([terms.truth_of_condition(x, condition) for x in items])
        return
    position = model.expression(terms.value(at.text)) - _start(contents.child("list"))
    terms.meet(model.element(items, position), condition)
    rank = at.attribute("rank", "any")
    hits = [] if rank == "any" else [terms.truth_of_condition(x, condition) for x in items]
    _rank(terms, rank, position, hits)


def _channel(terms: Terms, arguments: Arguments) -> None:
    model, contents = terms.model, arguments.contents
    list_elements = contents.all("list") or [contents]
    lists = [terms.items(each.text) for each in list_elements]
    if len(lists) > 2:
        raise TextError(f"expected one or two lists in <channel>, found {len(lists)}")
    value = contents.get("value")
    if value is not None:
        (booleans,) = lists if len(lists) == 1 else [[]]
        chosen = model.expression(terms.value(value.text)) - _start(list_elements[0])
        for position, x in enumerate(booleans):
            model.add(chosen == position, iff=terms.boolean(x))
        model.add(chosen >= 0)
        model.add(chosen <= len(booleans) - 1)
        return
    starts = _start(list_elements[0]), _start(list_elements[-1])
    xs = [model.expression(x) - starts[1] for x in lists[0]]
    ys = [model.expression(y) - starts[0] for y in lists[-1]]
    if len(xs) == len(ys):
        model.inverse(xs, ys)
        return
    for position, x in enumerate(xs):
        model.add(model.element(ys, x) == position)


def _instantiation(terms: Terms, arguments: Arguments) -> None:
    xs, values = arguments.main(terms), terms.items(arguments.text("values"))
    if len(xs) != len(values):
        raise TextError(f"<instantiation> has {counted(len(xs), 'variable')} and {counted(len(values), 'value')}")
    for x, value in zip(xs, values, strict=True):
        terms.model.add(terms.relation("eq", x, value))


def _automaton(terms: Terms, arguments: Arguments) -> None:
    """Post <regular>, or <mdd>: an automaton that starts at the root and accepts at nodes without transitions."""
    xs = terms.items(arguments.text("list"))
    moves: dict[str, dict[int, set[str]]] = {}
    for row in rows_of(arguments.text("transitions")):
        fields = [field.strip() for field in row.split(",")]
        if len(fields) != 3:
            raise TextError(f"expected transitions such as (a,0,b), found ({row[:40]})")
        source, symbol, target = fields[0], number(fields[1]), fields[2]
        moves.setdefault(source, {}).setdefault(symbol, set()).add(target)
        moves.setdefault(target, {})
    if not moves:
        raise TextError(f"expected transitions in <{arguments.name}>")
    if arguments.name == "mdd":
        start, final = next(iter(moves)), {name for name, leaving in moves.items() if not leaving}
    else:
        start, final = arguments.text("start").strip(), set(arguments.text("final").split())
    transitions, accepting = _determinised(moves, start, final)
    terms.model.regular(xs, transitions, 0, accepting)


def _determinised(
    moves: Mapping[str, Mapping[int, set[str]]], start: str, final: set[str]
) -> tuple[list[dict[int, int]], list[int]]:
    """Return the transitions and accepting states of a deterministic automaton for the same words; it starts at 0.

    Raises:
        UnsupportedError: The automaton has too many states.
    """
    states = {frozenset([start]): 0}
    transitions: list[dict[int, int]] = []
    for subset in (pending := [frozenset([start])]):
        leaving: dict[int, set[str]] = {}
        for name in subset:
            for symbol, targets in moves.get(name, {}).items():
                leaving.setdefault(symbol, set()).update(targets)
        row = {}
        for symbol, targets in leaving.items():
            target = frozenset(targets)
            if target not in states:
                states[target] = len(states)
                pending.append(target)
            row[symbol] = states[target]
        transitions.append(row)
        if len(states) > MAX_STATES:
            raise UnsupportedError(f"an automaton of more than {MAX_STATES:,} deterministic states is not supported")
    return transitions, [position for subset, position in states.items() if not final.isdisjoint(subset)]


def _circuit(terms: Terms, arguments: Arguments) -> None:
    model, at = terms.model, arguments.contents.main
    successors = [model.expression(x) - _start(at) for x in terms.items(at.text)]
    model.subcircuit(successors)
    inside = model.sum(model.holds(x != position) for position, x in enumerate(successors))
    model.add(inside >= 2)
    size = arguments.contents.get("size")
    if size is not None:
        model.add(inside == terms.value(size.text))


def _flow(terms: Terms, arguments: Arguments) -> None:
    """Post that the outflow of each node exceeds its inflow by its balance, and a condition on the weighted flow."""
    model, xs = terms.model, arguments.main(terms)
    balance = terms.items(arguments.text("balance"))
    arcs = [_numbers_of(row) for row in rows_of(arguments.text("arcs"))]
    if any(len(arc) != 2 for arc in arcs):
        raise TextError("expected arcs such as (0,1)(1,2) in <flow>")
    nodes = sorted({node for arc in arcs for node in arc})
    for node, surplus in together(arguments.name, nodes, balance):
        leaving = [x for x, (source, _) in together(arguments.name, xs, arcs) if source == node]
        arriving = [x for x, (_, target) in zip(xs, arcs, strict=True) if target == node]
        model.add(terms.relation("eq", model.sum(leaving) - model.sum(arriving), surplus))
    weights = arguments.contents.get("weights")
    if weights is not None:
        factors = terms.items(weights.text)
        total = model.sum(terms.product([f, x]) for f, x in together(arguments.name, factors, xs))
        arguments.condition(terms, total)


def _no_overlap(terms: Terms, arguments: Arguments) -> None:
    origins, lengths = arguments.text("origins"), arguments.text("lengths")
    model, is_line = terms.model, not origins.strip().startswith("(")
    # Boxes without a volume overlap nothing, unless the file says otherwise.
    ignores = arguments.contents.attribute("zeroIgnored", "true") == "true"
    if is_line:
        starts, spans = terms.items(origins), terms.items(lengths)
        together(arguments.name, starts, spans)  # raises an error if the lengths differ
        model.no_overlap(starts, spans, strict=not ignores)
        return
    boxes = list(together(arguments.name, terms.matrix(origins), terms.matrix(lengths)))
    if boxes and all(len(numbers) == 2 for box in boxes for numbers in box):
        columns = zip(*((*origin, *size) for origin, size in boxes), strict=True)
        model.no_overlap_2d(*columns, strict=not ignores)
        return
    for (starts, sizes), (others, extents) in itertools.combinations(boxes, 2):
        apart: list[Operand] = []
        for a, m, b, n in together(arguments.name, starts, sizes, others, extents):
            apart.append(model.holds(model.expression(a) + m <= b))
            apart.append(model.holds(model.expression(b) + n <= a))
            if ignores:
                apart += [terms.truth("eq", size, 0) for size in (m, n) if model.bounds(size)[0] <= 0]
        model.clause(apart)


def _cumulative(terms: Terms, arguments: Arguments) -> None:
    starts, lengths, heights = (terms.items(arguments.text(tag)) for tag in ("origins", "lengths", "heights"))
    condition = arguments.text("condition")
    upper = re.fullmatch(r"\s*\(\s*(le|lt)\s*,(.*)\)\s*", condition, re.DOTALL)
    if upper is None:
        raise UnsupportedError(
            f"the condition {condition.strip()[:40]} of <cumulative> is not supported; (le,...) and (lt,...) are"
        )
    limit = terms.model.expression(terms.value(upper[2])) - (upper[1] == "lt")
    terms.model.cumulative(starts, lengths, heights, limit)
    ends = arguments.contents.get("ends")
    if ends is not None:
        for start, length, end in together(arguments.name, starts, lengths, terms.items(ends.text)):
            terms.model.add(terms.relation("eq", terms.model.sum([start, length]), end))


def _clause(terms: Terms, arguments: Arguments) -> None:
    positive: list[Operand] = []
    negative: list[Operand] = []
    for token in tokens(arguments.contents.main.text):
        inner = re.fullmatch(r"not\((.*)\)", token)
        if inner is None:
            positive += terms.items(token)
        else:
            negative += terms.items(inner[1])
    terms.model.clause([terms.boolean(x) for x in positive], [terms.boolean(x) for x in negative])


def _bin_packing(terms: Terms, arguments: Arguments) -> None:
    model, contents, bins = terms.model, arguments.contents, terms.items(arguments.text("list"))
    sizes = arguments.numbers("sizes")
    if not bins or sizes is None:
        raise TextError("expected items in the list of <binPacking>, and <sizes>")
    loads_at, limits_at = contents.get("loads"), contents.get("limits")
    if loads_at is not None:
        start, loads = 0, terms.items(loads_at.text)
    elif limits_at is not None:
        start, loads = 0, list(model.int_vars(len(terms.items(limits_at.text)), 0, sum(sizes)))
    else:
        lo, hi = (end(ends) for end, ends in zip((min, max), zip(*map(model.bounds, bins), strict=True), strict=True))
        start = min(lo, 0)
        loads = list(model.int_vars(hi - start + 1, 0, sum(sizes)))
    model.bin_packing_load(loads, [model.expression(x) - start for x in bins], sizes)
    if limits_at is not None:
        for load, limit in together(arguments.name, loads, terms.items(limits_at.text)):
            model.add(terms.relation("le", load, limit))
    if contents.get("condition") is not None:
        for load in loads:
            arguments.condition(terms, load)


def _knapsack(terms: Terms, arguments: Arguments) -> None:
    xs = terms.items(arguments.text("list"))
    conditions = [each.text for each in arguments.contents.all("condition")]
    limit = arguments.contents.get("limit")
    if limit is not None:
        conditions.insert(0, f"(le,{limit.text})")
    for tag, condition in together(arguments.name, ("weights", "profits"), conditions):
        factors = terms.items(arguments.text(tag))
        terms.meet(terms.model.sum(terms.product([f, x]) for f, x in together(arguments.name, factors, xs)), condition)


CONSTRAINTS: dict[str, Callable[[Terms, Arguments], None]] = {
    "intension": _intension,
    "extension": _extension,
    "allDifferent": _all_different,
    "allEqual": _all_equal,
    "ordered": _ordered,
    "lex": _lex,
    "precedence": _precedence,
    "sum": _sum,
    "count": _count,
    "nValues": _distinct_values,
    "cardinality": _cardinality,
    "minimum": _extreme,
    "maximum": _extreme,
    "minimumArg": _extreme_place,
    "maximumArg": _extreme_place,
    "element": _element,
    "channel": _channel,
    "instantiation": _instantiation,
    "regular": _automaton,
    "mdd": _automaton,
    "circuit": _circuit,
    "flow": _flow,
    "noOverlap": _no_overlap,
    "cumulative": _cumulative,
    "clause": _clause,
    "binPacking": _bin_packing,
    "knapsack": _knapsack,
}
"""Element -> function that posts it."""
