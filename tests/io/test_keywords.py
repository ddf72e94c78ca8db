"""Functions given by keywords: against costs that toulbar2 1.1.1 computes and against plain definitions."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina.io as eio
import elimina.io.cost_function_tables
from elimina.errors import FormatError, UnsupportedError
from elimina.model.table import FORBIDDEN
from tests.reference import brute

BOUND = 100000
FIXED = math.inf

# The variables' size, keyword and parameters, assignment, its cost (FIXED: forbidden) according to toulbar2 1.1.1.
KNOWN = [
    (5, ">= 0 1", (2, 3), 1),
    (5, ">= 0 1", (2, 4), FIXED),
    (5, "= 0 1", (2, 4), FIXED),
    (5, "disj 1 2 9", (2, 3), 0),
    (5, "disj 2 2 9", (2, 3), 9),
    (5, "sdisj 2 2 4 4 7 8", (2, 3), FIXED),
    (5, "sdisj 2 2 4 4 7 8", (4, 3), 7),
    (5, "sdisj 2 2 4 4 7 8", (4, 4), 15),
    (5, "sdisj 2 2 3 4 7 8", (4, 4), FIXED),
    (3, "sgcc var 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 14),
    (3, "sgcc dec 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 21),
    (3, "sgcc wdec 7 2 0 0 1 3 4 1 2 3 5 6", (0, 0, 0, 1), 13),
    (3, "sgcc var 7 2 0 0 1 1 3 3", (0, 0, 1, 1), 7),
    (3, "sgcc var 7 2 0 1 1 1 2 3", (2, 2, 2, 2), 21),
    (3, "sgccdp var 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 21),
    (3, "salldiff var 7", (0, 0, 0, 1), 14),
    (3, "salldiff dec 7", (0, 0, 0, 0), 42),
    (3, "salldiff decbi 7", (0, 0, 0, 0), 42),
    (3, "ssame 7 2 2 0 1 2 3", (0, 0, 0, 1), 7),
    (3, "ssame 7 2 2 0 1 2 3", (0, 0, 1, 2), 14),
    (3, "walldiff hard 7", (0, 0, 0, 0), 7),
    (3, "walldiff lin 7", (0, 0, 0, 0), 21),
    (3, "walldiff quad 7", (0, 0, 0, 0), 63),
    (3, "walldiff hard 7", (0, 0, 1, 1), 14),
    (3, "wgcc hard 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 14),
    (3, "wgcc lin 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 21),
    (3, "wgcc quad 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 35),
    (3, "wsame hard 7", (0, 0, 1, 1), 14),
    (3, "wsame lin 7", (0, 0, 1, 1), 28),
    (3, "wsame quad 7", (0, 0, 1, 1), 56),
    (3, "wsame lin 7", (0, 0, 0, 1), 14),
    (3, "wsamegcc hard 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 35),
    (3, "wsamegcc lin 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 42),
    (3, "wsamegcc quad 7 2 0 0 1 1 2 3", (0, 0, 0, 1), 56),
    (3, "woverlap hard 7 < 1", (1, 2, 1, 2), 7),
    (3, "woverlap lin 7 < 1", (1, 2, 1, 2), 14),
    (3, "woverlap quad 7 < 1", (1, 1, 1, 1), 28),
    (3, "woverlap lin 7 < 1", (0, 0, 0, 0), 0),
    (3, "sregular var 7 2 1 0 2 0 1 3 0 0 0 0 1 1 1 1 1", (1, 1, 2, 1), 7),
    (3, "sregulardp var 7 2 1 0 2 0 1 3 0 0 0 0 1 1 1 1 1", (1, 0, 2, 1), 14),
    (3, "wregular 2 1 0 3 2 0 4 1 5 3 0 0 0 10 0 1 1 20 1 1 1 30", (0, 1, 1, 1), 98),
    (3, "wregular 2 1 0 3 2 0 4 1 5 3 0 0 0 10 0 1 1 20 1 1 1 30", (1, 0, 2, 1), FIXED),
    (4, "smaxdp 3 4 0 0 4 1 1 3 2 2 2 3 3 1", (0, 1, 2, 3), 4),
    (4, "smaxdp 0 4 0 0 4 1 1 3 2 2 2 3 3 1", (1, 2, 3, 0), 0),
    (2, "knapsack 10 2 3 4 5", (1, 1, 0, 0), FIXED),
    (2, "knapsack 10 2 3 4 5", (1, 1, 0, 1), 0),
    (2, "knapsack -10 -2 -3 -4 -5", (1, 1, 0, 1), 0),
    (2, "knapsack -10 -2 -3 -4 -5", (1, 1, 1, 1), FIXED),
    (2, "samong var 7 1 1 1 1", (1, 1, 0, 0), 7),
    (2, "samong var 7 1 1 1 1", (1, 1, 1, 1), 21),
    (2, "wamong hard 7 1 1 2 3", (0, 0, 0, 0), 7),
    (2, "wamong lin 7 1 1 2 3", (0, 0, 0, 0), 14),
    (2, "wamong quad 7 1 1 2 3", (0, 0, 0, 0), 28),
    (2, "clique 1 1 1 1 1 1 1 1 1", (1, 1, 0, 0), FIXED),
    (2, "clique 1 1 1 1 1 1 1 1 1", (1, 0, 0, 0), 0),
    (5, "wvaramong hard 7 1 1", (1, 1, 0, 0, 2), 0),
    (5, "wvaramong hard 7 1 1", (1, 1, 0, 0, 3), 7),
    (5, "wvarsum hard 7 <", (1, 1, 0, 3), 0),
    (5, "wvarsum hard 7 <", (1, 1, 0, 2), 7),
    *[
        (2, f"wsum lin 7 {op} {k}", (1, 1, 0), c)
        for op, k, c in [
            ("<", 1, 14),
            ("<", 2, 7),
            (">", 1, 0),
            (">", 2, 7),
            ("<=", 1, 7),
            (">=", 2, 0),
            ("==", 1, 7),
            ("!=", 2, 7),
        ]
    ],
]


def read(tmp_path, sizes, function, bound=BOUND):
    scope = " ".join(map(str, range(len(sizes))))
    path = tmp_path / "m.wcsp"
    sizes_text = " ".join(map(str, sizes))
    path.write_text(f"k {len(sizes)} {max(sizes)} 1 {bound}\n{sizes_text}\n{len(sizes)} {scope} -1 {function}\n")
    return eio.read(path)


def cost(model, values):
    """Cost of an assignment of the file's own variables: the best over the auxiliary ones, eliminated one by one."""
    tables = [f.restrict(dict(enumerate(values))) for f in model.factors]
    costs = [(t.scope, np.where(t.dense() == FORBIDDEN, FIXED, t.dense().astype(float))) for t in tables]
    for v in range(len(values), len(model.sizes)):
        scope = sorted({u for s, _ in costs if v in s for u in s} - {v})
        axes = [v, *scope]
        joint = np.zeros([model.sizes[u] for u in axes])
        for s, t in costs:
            if v in s:
                order = sorted(range(len(s)), key=lambda a: axes.index(s[a]))
                joint = joint + t.transpose(order).reshape([model.sizes[u] if u in s else 1 for u in axes])
        costs = [(s, t) for s, t in costs if v not in s] + [(tuple(scope), joint.min(axis=0))]
    total = sum(float(t) for _, t in costs)
    return total if model.upper_bound is None or total < model.upper_bound else FIXED


@pytest.mark.parametrize("small_cells", [10**6, 0], ids=["dense", "chains"])
@pytest.mark.parametrize(("size", "function", "values", "expected"), KNOWN)
def test_toulbar2_agrees(tmp_path, monkeypatch, small_cells, size, function, values, expected):
    monkeypatch.setattr(elimina.io.cost_function_tables, "_MAX_SINGLE_TABLE_CELLS", small_cells)
    model = read(tmp_path, [size] * len(values), function)
    own = len(values)
    assert [v.name for v in model.variables[own:]] == [f"_s{i}" for i in range(len(model.variables) - own)]
    assert cost(model, values) == expected


PLAIN = {
    "salldiff var 3": lambda x: 3 * (len(x) - len(set(x))),
    "salldiff dec 3": lambda x: 3 * sum(a == b for a, b in itertools.combinations(x, 2)),
    "walldiff quad 3": lambda x: 3 * sum((n - 1) ** 2 for n in Counter(x).values()),
    "walldiff hard 100000": lambda x: 0 if len(set(x)) == len(x) else FIXED,
    "alldiff 0": lambda x: 0 if len(set(x)) == len(x) else FIXED,
    "gcc 2 0 1 2 1 0 1": lambda x: 0 if 1 <= x.count(0) <= 2 and x.count(1) <= 1 else FIXED,
    "samongdp var 4 1 1 2 0 2": lambda x: 4 * max(0, 1 - (n := sum(a in (0, 2) for a in x)), n - 1),
    "wsum quad 2 <= 2": lambda x: 2 * max(0, sum(x) - 2) ** 2,
    "walldifferent lin 3": lambda x: 3 * (len(x) - len(set(x))),
    "salldiffkp hard 100000": lambda x: 0 if len(set(x)) == len(x) else FIXED,
    "alldiff 0 0": lambda x: 0 if len(set(x)) == len(x) else FIXED,
    "alldiff 2 0 1": lambda x: 0 if x.count(2) <= 1 else FIXED,
    "alldiff 1 2 0": lambda x: 0 if x.count(0) <= 1 and x.count(1) <= 1 else FIXED,
    "gcc 2 0 1 2 1 0 1 0": lambda x: 0 if 1 <= x.count(0) <= 2 and x.count(1) <= 1 else FIXED,
    "sgcckp hard 100000 2 0 1 2 1 0 1": lambda x: 0 if 1 <= x.count(0) <= 2 and x.count(1) <= 1 else FIXED,
    "knapsackv 4 3 0 0 2 0 1 -1 0 2 5": lambda x: 0 if (2, -1, 5)[x[0]] >= 4 else FIXED,
    "wregular 2 1 0 0 1 1 5 3 0 0 0 1 0 1 1 2 1 0 1 3": lambda x: (
        x.count(0) * 0 + 1 * x.index(1) + 2 + 3 * (len(x) - x.index(1) - 1) + 5
        if x.count(1) == 1 and set(x) <= {0, 1}
        else FIXED
    ),
}


@pytest.mark.parametrize("function", PLAIN)
@pytest.mark.parametrize("small_cells", [10**6, 0], ids=["dense", "chains"])
@given(sizes=st.lists(st.integers(1, 3), min_size=1, max_size=3))
@settings(max_examples=12, deadline=None)
def test_plain_definitions(tmp_path_factory, function, small_cells, sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elimina.io.cost_function_tables, "_MAX_SINGLE_TABLE_CELLS", small_cells)
        model = read(tmp_path_factory.getbasetemp(), sizes, function)
    for values in itertools.product(*map(range, sizes)):
        assert cost(model, values) == PLAIN[function](values), values


@pytest.mark.parametrize("small_cells", [10**6, 0], ids=["dense", "chains"])
def test_chains_keep_the_number_of_solutions(tmp_path, monkeypatch, small_cells):
    monkeypatch.setattr(elimina.io.cost_function_tables, "_MAX_SINGLE_TABLE_CELLS", small_cells)
    model = read(tmp_path, [2, 2, 2, 2], "knapsack 7 2 3 4 5")
    expected = sum(2 * a + 3 * b + 4 * c + 5 * d >= 7 for a, b, c, d in itertools.product(range(2), repeat=4))
    assert brute.count(model) == expected


def test_functions_of_four_variables(tmp_path):
    model = read(tmp_path, [3] * 4, "knapsackp 10 1 0 2 1 1 3 1 2 4 2 0 5 1 5")
    apart = read(tmp_path, [3] * 4, "wtdiverse 2 1 1 0 0")
    for x in itertools.product(range(3), repeat=4):
        weight = 2 * (x[0] == 0) + 3 * (x[1] == 1) + 4 * (x[2] == 2) + 5 * (x[3] in (0, 1))
        assert cost(model, x) == (0 if weight >= 10 else FIXED), x
        distance = sum(a != b for a, b in zip(x, (1, 1, 0, 0), strict=True))
        assert cost(apart, x) == (0 if distance >= 2 else FIXED), x


BALANCED = [(0, 0, 1, 1), (0, 1, 0, 1)]


def test_grammars(tmp_path):
    soft = read(tmp_path, [2] * 4, "sgrammardp var 7 4 2 0 6 1 0 0 0 1 0 1 2 1 0 1 3 1 2 0 3 0 1 0 0 3 1")
    rules = "3 0 0 0 6 3 0 1 2 5 3 0 1 3 4 3 2 0 3 1 2 1 0 2 2 3 1 3"
    weighted = read(tmp_path, [2] * 4, f"sgrammar weight 7 4 2 0 6 {rules}")
    # ()() is two pairs joined; (()) is a pair around a pair.
    derivations = {(0, 1, 0, 1): 6 + 2 * (4 + 2 + 3), (0, 0, 1, 1): 5 + 2 + 1 + (4 + 2 + 3) + 3}
    for x in itertools.product(range(2), repeat=4):
        changes = min(sum(a != b for a, b in zip(x, word, strict=True)) for word in BALANCED)
        assert cost(soft, x) == 7 * changes, x
        assert cost(weighted, x) == derivations.get(x, FIXED), x


def test_negative_costs_of_an_automaton(tmp_path):
    path = tmp_path / "m.cfn"
    path.write_text(
        "{problem {n <12.000} variables {v0 2 v1 2 v2 2} functions {f {scope [v0 v1 v2] type wregular params {"
        "nb_states 2 starts [[0 -0.5]] ends [[0 0.25] [1 -2]] transitions [[0 0 0 -1] [0 1 1 3] [1 0 1 -0.125]]}}}}"
    )
    for small_cells in (10**6, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(elimina.io.cost_function_tables, "_MAX_SINGLE_TABLE_CELLS", small_cells)
            model = eio.read(path)
        for x in itertools.product(range(2), repeat=3):
            zeros, after = (x.index(1), 2 - x.index(1)) if 1 in x else (3, 0)
            runs = {0: -0.5 - 3 + 0.25, 1: -0.5 - zeros + 3 - 0.125 * after - 2}
            assert cost(model, x) == pytest.approx(runs[sum(x)] if sum(x) < 2 else FIXED), x


def test_large_functions_stay_small(tmp_path):
    model = read(tmp_path, [9] * 9, "salldiff var 100000")
    assert len(model.variables) == 9
    assert max(f.cells for f in model.factors) == 81
    model = read(tmp_path, [2] * 200, "wamong hard 100000 1 1 3 3")
    assert len(model.variables) == 399
    assert max(f.cells for f in model.factors) <= 32


@pytest.mark.parametrize(
    ("sizes", "function", "problem"),
    [
        ([2, 2], "salldiff varr 3", "expected the metric var or dec or decbi or hard, found 'varr'"),
        ([2, 2], "salldiff var -3", "expected a cost of at least 0"),
        ([2, 2], "salldiff var", "but the file ends here"),
        ([2, 2, 2], ">= 0 0", "expected 2 variables for '>=', found 3"),
        ([2, 2], "wsum lin 1 => 3", "expected one of ==, <=, <, !=, >, >=, found '=>'"),
        ([2, 2], "sgcc var 1 1000000000000 0 0 1", "bytes follow"),
        ([2, 2], "sgcc var 1 -1 0 0 1", "expected a number of items, found -1"),
        ([2, 2], "sgcc var 1 2 0 0 1 0 0 1", "a value is bounded twice"),
        ([2, 2], "ssame 1 1 1 0 0", "two lists of equal length"),
        ([2, 2], "sregular var 1 2 1 0 1 2 0", "expected a state from 0 to 1, found 2"),
        ([2, 2, 2], "wsame lin 1", "expected an even number of variables, found 3"),
        ([3, 3], "knapsack 2 1 1", "expected variables of 2 values in a knapsack"),
        ([2, 2], "knapsack 2 1", "expected 2 more items, each a weight"),
        ([2, 2], "smaxdp 1 1 5 0 1", "expected a variable of the scope"),
        ([2, 2], "alldiff 2", "expected 2 more items"),
        ([2, 2], "wregular 1 1 0 0 1 0 -1 1 0 0 0 1", "expected costs of at least 0 in the automaton, found -1"),
        ([2, 2], "walldifferent 3 3", "expected the metric hard, lin or quad, found '3'"),
        ([2, 2], "knapsackv 1 1 5 0 1", "expected a variable of the scope and one weight of each value, found 5 0 1"),
        (
            [2, 2],
            "knapsackp 1 2 0 1 0 2 0",
            "expected a variable of the scope and one weight of each value, found 0 0 2",
        ),
        ([2, 2], "knapsackp 1 1 0 1", "but the file ends here"),
        ([2, 2], "wdiverse 1 0", "expected 2 more items, each a value"),
        ([2, 2], "salldiffkp soft 3", "expected the metric hard or hardeq or hardge, found 'soft'"),
        ([2, 2], "sgrammar var 1 2 2 0 1 4 0 0", "expected a kind of rule from 0 to 3, found 4"),
        ([2, 2], "sgrammar var 1 2 2 0 1 0 2 0", "expected a state from 0 to 1, found 2"),
        ([2, 2], ">= 9000000000000000000 0", "expected a number from -2^40 to 2^40"),
    ],
)
def test_malformed_parameters(tmp_path, sizes, function, problem):
    with pytest.raises(FormatError) as caught:
        read(tmp_path, sizes, function)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("sizes", "function"),
    [
        ([10**6, 10**6], ">= 0 0"),
        ([10**9, 10**9], "salldiff var 3"),
        ([5000] * 4, "salldiff dec 1"),
        ([30] * 5, "sgcc var 1 1 0 1 1"),
        ([3000] * 9, "ssame 1 4 5 0 1 2 3 4 5 6 7 8"),
        ([9] * 9, "sgrammar var 1 1 9 0 1 0 0 0"),
        ([2, 2], "alldiff 0 1 0 5"),
        ([2] * 40, "knapsack 1 " + " ".join(str(2**i) for i in range(40))),
    ],
)
def test_functions_too_large_to_be_written_out(tmp_path, sizes, function):
    with pytest.raises(
        (UnsupportedError, FormatError), match=r"too large for|not handled|are not handled|transitions|lists"
    ):
        read(tmp_path, sizes, function)


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        ("type: salldiff params: {metric: var cost: 0.75}", (0, 0, 0, 0), 2.25),
        ("type sgcc params {metric wdec cost 0.5 bounds [[0 1 2 0.2 0.3] [1 3 4 0.2 0.1]]}", (0, 0, 0, 1), 0.7),
        ("type: wamong params: {metric: quad cost: 1.5 values: [0] min: 1 max: 1}", (0, 0, 0, 1), 6),
        ("type: ssame params: {cost: 6.25 vars1: [v0 1] vars2: [v2 v3]}", (0, 1, 1, 1), 6.25),
        ("type: wregular params: {nb_states: 1 starts: [[0 0.5]] ends: [[0 0.25]] "
         "transitions: [[0 0 0 0.1] [0 1 0 0.2]]}", (0, 1, 1, 0), 1.35),
        ("type: smaxdp params: {defaultcost: 3 tuples: [[v0 0 4] [1 1 3.5] [2 0 2] [3 1 1]]}", (1, 1, 1, 1), 3.5),
        ("type: knapsack params: {capacity: 10, weights: [2, 3, 4, 5]}", (1, 1, 0, 0), FIXED),
        ("type: clique params: {rhs: 1 values: [[1] [1] [1] [1]]}", (1, 1, 0, 0), FIXED),
        ("type: wsum params: {metric: lin cost: 0.29 comparator: \"==\" to: 4}", (1, 1, 0, 0), 0.58),
    ],
)  # fmt: skip
def test_cfn_parameters(tmp_path, function, values, expected):
    path = tmp_path / "m.cfn"
    path.write_text(
        "{problem {n <1000.00} variables {v0 2 v1 2 v2 2 v3 2} "
        f"functions {{f {{scope [v0 v1 v2 v3] {function}}}}}}}"
    )
    assert cost(eio.read(path), values) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        ("type: salldiff params: {metric: var}", "'salldiff' lacks the parameter 'cost'"),
        ("type: salldiff params: {metric: var cost: x}", "expected a cost, found 'x'"),
        ("type: salldiff params: {metric: var cost: [1]}", "expected a word or a number, found a list"),
        ("type: salldiff params: {metric: var cost: 1 cost: 1}", "once each, found 'cost'"),
        ("type: salldiff parms: {metric: var cost: 1}", "expected 'params', found 'parms'"),
        ("type: wgcc params: {metric: lin cost: 1 bounds: [[0 1]]}", "expected 3 items in a row"),
        ("type: wgcc params: {metric: lin cost: 1 bounds: 3}", "expected a list for 'bounds', found '3'"),
        ("type: wamong params: {metric: lin cost: 1 values: [0.5] min: 0 max: 1}", "expected an integer, found '0.5'"),
        ("type: wamong params: [[[[[[[[[[[[[[[[", "expected one of the parameters"),
        ("type: wamong params: {values [[[[[[[[[[[[[[[[", "expected a parameter, found '['"),
    ],
)
def test_malformed_cfn_parameters(tmp_path, function, problem):
    path = tmp_path / "m.cfn"
    path.write_text(f"{{problem {{n <1000}} variables {{v0 2 v1 2}} functions {{f {{scope [v0 v1] {function}}}}}}}")
    with pytest.raises(FormatError) as caught:
        eio.read(path)
    assert problem in str(caught.value)


def test_a_chain_of_too_many_links_is_refused(tmp_path):
    weights = " ".join(str(7919 * v % 9973) for v in range(1, 81))
    with pytest.raises(UnsupportedError, match="or 1000000 in all"):
        read(tmp_path, [2] * 80, f"knapsack 100000 {weights}")


@pytest.mark.parametrize("keyword", ["sgcc dec 7 0", "wgcc lin 7 0", "sgcckp hard 7 0"])
def test_a_cardinality_without_bounds_costs_nothing(tmp_path, keyword):
    (tmp_path / "m.wcsp").write_text(f"m 2 3 1 100\n3 3\n2 0 1 -1 {keyword}\n")
    model = eio.read(tmp_path / "m.wcsp")
    for assignment in itertools.product(range(3), repeat=2):
        assert model.score([*assignment, *[0] * (len(model.variables) - 2)]) == 0
