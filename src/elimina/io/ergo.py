"""ERGO files of the UAI competitions of 2006 and 2008, Bayesian networks (.erg).

The file holds the number of variables, their domain sizes, for each variable its parents ("k p1 .. pk"), then for each
variable its conditional distribution ("k x1 .. xk"; parents in the file's order, the variable itself varies fastest).
The variables' names and each variable's states may follow. Comments are between "/*" and "*/".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

from elimina._core import Text, TextError
from elimina.io.codecs import Codec
from elimina.io.network import conditional_tables, is_network, not_a_network
from elimina.io.uai import numbered, read_sizes, read_tables, table_text
from elimina.model.distributions import find_cycle
from elimina.model.model import Model
from elimina.model.variable import Variable


def parse_ergo(text: Text) -> Model:
    """Read a model; factor i is the conditional distribution of variable i."""
    sizes = read_sizes(text)
    offsets, members = text.lists(len(sizes), len(sizes), "a list of parents")
    flat, ends = members.tolist(), offsets.tolist()
    scopes = [[*flat[a:b], v] for v, (a, b) in enumerate(pairwise(ends))]
    for scope in scopes:
        if scope[-1] in scope[:-1]:
            raise TextError(f"variable {scope[-1]} is its own parent")
    cycle = find_cycle(dict(enumerate(map(tuple, scopes))))
    if cycle:
        raise TextError(f"a cycle of parents: {' <- '.join(map(str, cycle))}")
    factors = read_tables(text, scopes, sizes)
    variables = numbered(sizes) if text.at_end() else _named(text, sizes)
    return Model(variables, factors, sense="probability", children=range(len(sizes)), check=False)


def _named(text: Text, sizes: list[int]) -> list[Variable]:
    text.need(len(sizes) + sum(sizes), "a name")
    names = [text.token("a variable's name").decode() for _ in sizes]
    states = [[text.token("a value's state").decode() for _ in range(size)] for size in sizes]
    return [Variable(*described) for described in zip(names, sizes, states, strict=True)]


def render_ergo(model: Model) -> Iterator[str]:
    """Yield the file's text, without names and states; numbers are exact.

    Raises:
        InputError: The model is not a Bayesian network with one factor for each variable, or a distribution is too
            large to be written out.
    """
    if not is_network(model):
        raise not_a_network("an ERGO file")
    tables = {scope[-1]: (scope[:-1], values) for scope, values in conditional_tables(model)}
    yield f"{len(tables)}\n" + " ".join(map(str, model.sizes)) + "\n"
    for v in range(len(tables)):
        parents = tables[v][0]
        yield " ".join(map(str, (len(parents), *parents))) + "\n"
    yield "\n/* Probabilities */\n"
    for v in range(len(tables)):
        yield table_text(tables[v][1])


CODEC = Codec(("probability",), partial(Text, block_comments=True), parse_ergo, render_ergo)
