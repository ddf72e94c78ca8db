"""CFN files against values written down by hand."""

from __future__ import annotations

import json
import math
import random
import time

import numpy as np
import pytest

import elimina
import elimina.dcop
import elimina.io as eio
from elimina.errors import FormatError, InputError, UnsupportedError
from elimina.model.model import Model
from elimina.model.table import FORBIDDEN
from tests.seeds import run_seed

STRICT = """{"problem": {"name": "toy", "mustbe": "<10.00"},
 "variables": {"v1": ["a", "b", "c"], "v2": 2, "v3": ["x"]},
 "functions": {
  "f1": {"scope": ["v1", "v2"], "costs": [1.5, 2, 3.25, 0, 10, 6.999]},
  "f2": {"scope": [2, "v1"], "defaultcost": 0.5, "costs": ["x", "a", 5, 0, 2, 1.25]},
  "f3": {"scope": [], "costs": [0.25]},
  "f4": {"scope": ["v1"], "costs": "f5"},
  "f5": {"scope": ["v1"], "costs": [0, 1, 2]}
 }}
"""
RELAXED = """# comment
{ problem: {name: toy, mustbe: <10.00 }
  variables: [v1: [a b c] v2 2 v3: {x}}   // mixed brackets
  functions: {
   f1 { scope [v1 v2] costs: [1.5 2 3.25 0 10 6.999] }
   f2 : { scope: [v3 0] defaultcost 0.5 costs: [x a 5 x c 1.25] }
   { scope: [] costs: [0.25] }
   f4 : { scope: [v1] costs: f5 }
   f5 : { scope: [v1] costs: [0 "1" 2] }
 /* block */ } }
# end
"""


def read(tmp_path, text):
    path = tmp_path / "m.cfn"
    path.write_text(text)
    return eio.read(path)


@pytest.mark.parametrize(
    "text", [STRICT, RELAXED, STRICT.replace("\n", "\r\n"), STRICT.replace("{", "[").replace("}", "]")]
)
def test_strict_and_relaxed(tmp_path, text):
    if text.startswith("["):
        text = text.replace('"variables": [', '"variables": {')
    model = read(tmp_path, text)
    assert model.sense == "min-cost"
    assert model.name == "toy"
    assert model.upper_bound == 10.0
    assert [v.name for v in model.variables] == ["v1", "v2", "v3"]
    assert model.variables[0].states == ("a", "b", "c")
    assert model.variables[1].states is None
    assert [f.scope for f in model.factors] == [(0, 1), (2, 0), (), (0,), (0,)]
    np.testing.assert_array_equal(model.factors[0].values, [[1.5, 2], [3.25, 0], [math.inf, 6.99]])
    np.testing.assert_array_equal(model.factors[1].values, [[5, 0.5, 1.25]])
    np.testing.assert_array_equal(model.factors[3].values, [0, 1, 2])
    assert model.score([1, 1, 0]) == 0 + 0.5 + 0.25 + 1 + 1


def test_maximisation(tmp_path):
    model = read(
        tmp_path,
        '{"problem": {"name": "m", "mustbe": ">-5.0"}, "variables": {"a": 2}, '
        '"functions": {"f": {"scope": ["a"], "costs": [-5.5, 7.5]}, "g": {"scope": [], "costs": [-1.0]}}}',
    )
    assert model.sense == "max-cost"
    assert model.upper_bound == -5.0
    np.testing.assert_array_equal(model.factors[0].values, [-math.inf, 7.5])
    assert model.score([1]) == 6.5


def test_integer_costs_stay_integers(tmp_path):
    model = read(
        tmp_path,
        "{problem {n <1000000000000000000} variables {a 2} functions {f {scope [a] costs [9007199254740993 3]}}}",
    )
    assert model.is_integer
    assert model.score([0]) == 9007199254740993
    cut = read(tmp_path, "{problem {n <5} variables {a 2} functions {f {scope [a] costs [1.9 5]}}}")
    assert cut.is_integer
    assert cut.factors[0].values.tolist() == [1, FORBIDDEN]


def test_an_entry_is_forbidden_only_if_no_solution_can_use_it(tmp_path):
    text = "{problem {n <10} variables {a 2} functions {f {scope [a] costs [12 9]} g {scope [] costs [-5]}}}"
    assert read(tmp_path, text).factors[0].values.tolist() == [12, 9]
    text = text.replace("-5", "1")
    assert read(tmp_path, text).factors[0].values.tolist() == [FORBIDDEN, FORBIDDEN]


@pytest.mark.parametrize("sense", ["min-cost", "max-cost"])
@pytest.mark.parametrize("size", [1.5, 1e11, 1e13, 1e15, 1e17, 1e30])
def test_large_floats_are_no_bound(tmp_path, sense, size):
    sign = 1 if sense == "min-cost" else -1
    model = Model.from_arrays([2], [((0,), [0.5, sign * size]), ((), sign * size)], sense=sense)
    eio.write(model, tmp_path / "large.cfn")
    back = eio.read(tmp_path / "large.cfn")
    for x in range(2):
        assert back.score([x]) == model.score([x])
        assert not back.is_beyond_bound(back.score([x]))


def test_states_come_before_indices(tmp_path):
    model = read(
        tmp_path, '{problem {n <9} variables {a ["1" "0"]} functions {f {scope [a] defaultcost 0 costs ["0" 5]}}}'
    )
    assert model.factors[0].values.tolist() == [0, 5]


def test_unnamed_variables(tmp_path):
    model = read(tmp_path, "{{test <12.100} [[a b] 2 -3] {{scope [0 2] defaultcost 0 costs [a 2 1.5]}}}")
    assert [v.name for v in model.variables] == ["x0", "x1", "x2"]
    assert model.sizes == (2, 2, 3)
    assert model.factors[0].values[0, 2] == 1.5


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"problem"', '"problems"', "1: expected 'problem', found 'problems'"),
        ("<10.00", "=10.00", "1: expected a bound such as"),
        ("<10.00", "<1e2", "1: expected a bound such as"),
        ("<10.00", "<nan", "1: expected a bound such as"),
        ('"mustbe": "<10.00"', "", "expected 'mustbe', found '}'"),
        ('"v2": 2', '"v2": 0', "2: expected a domain size from 1"),
        ('"v2": 2', '"v2": 99999999999', "2: expected a domain size from 1"),
        ('"v2": 2', '"v1": 2', "two variables are named 'v1'"),
        ('["x"]', "[]", "variable 'v3' has 0 values"),
        ('["a", "b", "c"]', '["a", "b", "a"]', "variable 'v1' has the state 'a' twice"),
        ('["v1", "v2"]', '["v1", "v9"]', "4: expected a variable's name or index, found 'v9'"),
        ('["v1", "v2"]', '["v1", "v1"]', "4: a function names a variable twice"),
        ("1.5, 2, 3.25", "1.5, 2", "4: expected 6 costs"),
        ("1.5, 2, 3.25", "1.5, x, 3.25", "4: expected a cost, found 'x'"),
        ("1.5, 2, 3.25", "1.5, nan, 3.25", "4: expected a cost, found 'nan'"),
        ("1.5, 2, 3.25", "1.5, 1e999, 3.25", "range of a double"),
        ('"x", "a", 5', '"y", "a", 5', "expected a value of variable 'v3', found 'y'"),
        ("0, 2, 1.25", "0, 3, 1.25", "expected a value from 0 to 2 of variable 'v1', found 3"),
        (
            "0, 2, 1.25",
            "x, 99999999999999999999, 1.25",
            "expected a value of variable 'v1', found '99999999999999999999'",
        ),
        ("0, 2, 1.25", "0, 1.25", "expected tuples of 2 values and a cost"),
        ("0, 2, 1.25", "0, 0, 1.25", "listed with two costs"),
        ('"costs": "f5"', '"costs": "f6"', "expected a function named 'f6'"),
        ('["v1"], "costs": "f5"', '["v2"], "costs": "f5"', "shares 'f5', which has domain sizes (3,)"),
        ('"f3": {"scope"', '"f3": {"scop"', "6: expected 'scope', found 'scop'"),
        ('"costs": [0.25]', '"cost": [0.25]', "6: expected 'costs', 'defaultcost' or 'type'"),
        ("}}\n", "}} x", "9: expected the end of the file, found 'x'"),
        ("}}\n", "}", "9: expected '}' or ']', but the file ends here"),
        ("[0.25]", "[0.25, [1]]", "6: expected a list item"),
    ],
)
def test_malformed(tmp_path, old, new, problem):
    assert old in STRICT
    with pytest.raises(FormatError) as caught:
        read(tmp_path, STRICT.replace(old, new, 1))
    assert problem in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "m.cfn"))


@pytest.mark.parametrize(
    ("bound", "function", "problem"),
    [
        ("<9", "type: MST params: []", "the type 'MST' is not handled"),
        ("<9.0", 'type: ">=" params: [0 1]', "without decimals"),
        (">9", "type: walldiff params: {metric: lin cost: 1}", "minimised"),
    ],
)
def test_unsupported(tmp_path, bound, function, problem):
    with pytest.raises(UnsupportedError, match=problem):
        read(tmp_path, f"{{problem {{n {bound}}} variables {{a 2 b 2}} functions {{f {{scope [a b] {function}}}}}}}")


def test_reading_shared_functions_takes_time_in_proportion(tmp_path):
    def seconds(count):
        functions = " ".join(["{scope [a] costs z}"] * count)
        path = tmp_path / "q.cfn"
        path.write_text(f"{{problem {{n <9}} variables {{a 2}} functions {{{functions} z {{scope [a] costs [0 1]}}}}}}")
        started = time.process_time()
        assert len(eio.read(path).factors) == count + 1
        return time.process_time() - started

    assert min(seconds(16000) for _ in range(3)) < 9 * min(seconds(4000) for _ in range(3))


@pytest.mark.parametrize(
    ("functions", "shown"),
    [
        ("f {scope [a] costs [1.25 2.999 0]}", "1.25 becomes 1.2"),
        ("f {scope [a] defaultcost 2.05 costs [0 1.5]}", "2.05 becomes 2.0"),
        ("f {scope [a] defaultcost 2 costs [0 1.5 1 0.25]}", "0.25 becomes 0.2"),
        ("f {scope [a] defaultcost 2 costs [u -0.25]}", "-0.25 becomes -0.2"),
        ("f {scope [a] type wregular params {nb_states 1 starts [[0 0]] ends [[0 0.75]] transitions []}}", "0.75"),
    ],
)
def test_lost_decimals_are_told_once(tmp_path, caplog, functions, shown):
    text = "{problem {n <5.0} variables {a [u v w]} functions {%s g {scope [a] costs [0.111 1 0]}}}"
    read(tmp_path, text % functions)
    (record,) = caplog.records
    assert shown in record.getMessage()
    assert "cut to 1 decimal," in record.getMessage()
    caplog.clear()
    read(tmp_path, (text % functions).replace("<5.0", "<5.0000"))
    assert not caplog.records


def test_costs_with_all_decimals_of_the_bound_are_kept(tmp_path, caplog):
    """Products of such costs with a power of ten may round to other integers."""
    rng = np.random.default_rng(run_seed())
    costs = np.array([float(f"{cost:.16f}") for cost in rng.uniform(-0.4, 0.4, 20_000)])
    texts = ", ".join(f"{cost:.16f}" for cost in costs)
    model = read(
        tmp_path, f"{{problem {{n <9.{'0' * 16}}} variables {{a 20000}} functions {{f {{scope [a] costs [{texts}]}}}}}}"
    )
    assert not caplog.records
    np.testing.assert_array_equal(model.factors[0].values, costs)


@pytest.mark.parametrize(("bound", "best"), [("<10", 4), (">-10", 7), ("<10.00", 4), (">-10.00", 7)])
def test_infinite_costs_forbid(tmp_path, bound, best):
    path = tmp_path / "m.cfn"
    path.write_text(
        f'{{problem {{n {bound}}} variables {{a 2 b [x inf]}} functions {{f {{scope [a b] costs [inf 3 "inf" 5]}} '
        "g {scope [a b] defaultcost inf costs [0 inf 1 1 1 2]} h {scope [b] defaultcost 0 costs [x inf]}}}"
    )
    model = eio.read(path)
    result = elimina.solve(model)
    assert (result.value, result.assignment["b"]) == (best, "inf")
    assert elimina.solve(model, "count").value == 2


@pytest.mark.parametrize("costs", ["[inf x]", "[-inf 2]", "[Inf 2]", "[inf]", "[inf 1 2]"])
def test_other_words_are_no_costs(tmp_path, costs):
    path = tmp_path / "m.cfn"
    path.write_text(f"{{problem {{n <10}} variables {{a 2}} functions {{f {{scope [a] costs {costs}}}}}}}")
    with pytest.raises(FormatError, match=r"expected (a cost|2 costs)"):
        eio.read(path)


@pytest.mark.parametrize("start", ["", "\n  ", "# a comment\n", "\ufeff"])
def test_a_json_file_may_be_a_cost_function_network(tmp_path, start):
    path = tmp_path / "m.json"
    path.write_text(
        start
        + '{"problem":{"name":"t","mustbe":"<10"},"variables":{"a":2},"functions":{"f":{"scope":["a"],"costs":[3,2]}}}'
    )
    assert elimina.solve(path).value == 2
    with pytest.raises(FormatError, match=r"found a cost function network, which is for elimina.read|expected JSON"):
        elimina.dcop.read(path)
    path.write_text('{"agents": {}}')
    with pytest.raises(InputError, match="distributed problems are for"):
        eio.read(path)


KEYS = {
    "top": ["problem", "variables", "functions"],
    "problem": ["name", "mustbe"],
    "function": ["scope", "defaultcost", "costs"],
}


@pytest.mark.parametrize("suffix", ["json", "cfn"])
@pytest.mark.parametrize("seed", range(12))
def test_keys_of_json_come_in_any_order(tmp_path, suffix, seed):
    """Objects of JSON have no order but for the variables, whose order numbers them."""
    rng = random.Random(seed)

    def shuffled(pairs, keys):
        return {key: pairs[key] for key in rng.sample(keys, len(keys)) if key in pairs}

    functions = {
        "f": {"scope": ["costs", "b"], "defaultcost": 0.25, "costs": [0, 1, 0.1234567890123456789, 1, 1, "inf"]},
        "g": {"scope": ["b"], "costs": [3, 1e-1]},
    }
    top = {
        "problem": shuffled({"name": "größe", "mustbe": "<10.000"}, KEYS["problem"]),
        "variables": {"costs": ["x", "y"], "b": 2},
        "functions": {name: shuffled(function, KEYS["function"]) for name, function in functions.items()},
    }
    path = tmp_path / f"m.{suffix}"
    path.write_text(json.dumps(shuffled(top, KEYS["top"]), indent=rng.choice([None, 2]), ensure_ascii=seed % 2 == 0))
    model = eio.read(path)
    assert ([v.name for v in model.variables], model.name) == (["costs", "b"], "größe")
    first = {(0, 0): 0.25, (0, 1): 0.123, (1, 0): 0.25, (1, 1): math.inf}
    for values, cost in first.items():
        expected = cost + (3, 0.1)[values[1]]
        assert model.score(values) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"functions": {}, "variables": {"a": 2}}', "expected 'problem', found 'variables'"),
        ('{"functions": {"f": {"costs": [1]}}, "problem": {"mustbe": "<9"}, "variables": {}}', "expected 'scope'"),
        ('{"functions": [1, 2], "problem": 3, "variables": {"a": 2}}', "expected '{' or"),
        ('{"functions": {"f": {"costs": [1, 2]}}, "problem": {"mustbe": "<9"}', "expected"),
        ('{"functions": 1, "functions": 2}', "expected 'problem'"),
    ],
)
def test_faults_of_json_in_another_order(tmp_path, text, problem):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=problem) as caught:
        eio.read(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


OPTIONS = [
    ("mpe", {}),
    ("mpe", {"method": "search"}),
    ("mpe", {"method": "eliminate"}),
    ("mpe", {"method": "mbe", "ibound": 1}),
    ("kbest", {"k": 3}),
]


@pytest.mark.parametrize(("task", "options"), OPTIONS)
@pytest.mark.parametrize("seed", range(8))
def test_totals_have_the_decimals_of_the_file(tmp_path, task, options, seed):
    """The optimum is found here by integers; a sum of doubles may be 1.4000000000000001."""
    rng = random.Random(seed)
    decimals, sizes, direction = rng.choice([1, 2, 3, 6]), {"a": 2, "b": 2, "c": 3}, rng.choice("<>")
    functions, units = [], []
    for number in range(rng.randint(3, 9)):
        scope = rng.sample("abc", rng.randint(1, 2))
        costs = [rng.randrange(10**decimals) for _ in range(math.prod(sizes[v] for v in scope))]
        units.append((scope, np.reshape(costs, [sizes[v] for v in scope])))
        texts = ", ".join(f"0.{cost:0{decimals}}" for cost in costs)
        functions.append(f'"f{number}": {{"scope": {json.dumps(scope)}, "costs": [{texts}]}}')
    bound = ("<100." if direction == "<" else ">-1.") + "0" * decimals
    text = f'{{"problem": {{"name": "t", "mustbe": "{bound}"}}, "variables": {json.dumps(sizes)}, '
    model = read(tmp_path, text + f'"functions": {{{", ".join(functions)}}}}}')
    totals = sorted(
        sum(int(table[tuple(values["abc".index(v)] for v in scope)]) for scope, table in units)
        for values in np.ndindex(2, 2, 3)
    )
    expected = totals[0] if direction == "<" else totals[-1]
    result = elimina.solve(model, task, options=elimina.Options(**options))
    values = [result.value, *(pair.value for pair in result.ranked)]
    if result.status == "optimal":
        assert result.value == result.lower_bound == result.upper_bound == float(f"{expected}e-{decimals}")
    assert all(repr(value) == repr(round(value, decimals)) for value in values if value is not None)
    if result.assignment:
        assert model.score(model.indices_of(result.assignment)) == result.value
    assert json.loads(result.to_json())["value"] == result.value
