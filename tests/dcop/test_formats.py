"""Files of distributed problems: what each feature means, conversions, and what is refused."""

from __future__ import annotations

import dataclasses
import gc
import gzip
import itertools
import math
import time
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina import FORBIDDEN, Model, Table, Variable
from elimina.dcop import AgentProfile, Problem, read, write
from elimina.dcop.formats.pydcop import NOISE_SEED
from elimina.errors import FormatError, InputError, MemoryLimitError
from elimina.io.formats import format_of
from elimina.model.variable import texts_of
from tests.dcop.problems import EXAMPLES, JSON, XCSP, YAML, all_costs, parse, random_problems, total

SLOW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_yaml(tmp_path):
    problem = parse(tmp_path, YAML, "yaml")
    assert [(v.name, v.states) for v in problem.model.variables] == [
        ("v1", ("R", "G", "B")),
        ("v2", ("R", "G", "B")),
        ("l1", (0, 1, 2)),
        ("w1", ("0.5", "1.5")),
    ]
    assert total(problem, "R", "G", "0", "0.5") == -0.5 + 0 + 0 + 2 * 0.5 + 3 + 1 + 2 + 1
    assert total(problem, "B", "B", "2", "1.5") == 0.5 + 4 + 10 + 0 + 3 + 2.5 + 2 + 7
    assert total(problem, "G", "R", "2", "0.5") == math.inf
    assert problem.model.sense == "min-cost"
    assert problem.model.name == "everything"


def test_agents_of_yaml(tmp_path):
    problem = parse(tmp_path, YAML, "yaml")
    assert problem.agents == (
        AgentProfile("a1", 10),
        AgentProfile("a2"),
        AgentProfile("a3", 2.5),
    )
    # Costs of hosts and messages are ignored, whatever they are.
    others = YAML.replace("a1: {a2: 0.5}", "a9: none").replace("a1: {default: 1", "a9: {default: many")
    assert parse(tmp_path, others, "yaml").agents == problem.agents
    # a2 must host v1; v2 and l1 are together with the first free agent; w1 has the next.
    assert [problem.agents[owner].name for owner in problem.owners] == ["a2", "a1", "a1", "a3"]


@pytest.mark.parametrize(
    ("agents", "owners"),
    [
        ("[b, a]", ["b", "a", "b"]),
        ("[p, q, r, s]", ["p", "q", "r"]),
        ("{p: , q: ~}", ["p", "q", "p"]),
        ("[p, q]\ndistribution_hints: {must_host: {q: [x, y]}}", ["q", "q", "p"]),
        ("[p, q]\ndistribution_hints: {must_host: {q: x}, host_with: {z: [x], y: y}}", ["q", "p", "q"]),
        ("[p, q]\ndistribution_hints: {must_host: {q: x, p: z}, host_with: {x: [z, y]}}", ["q", "q", "p"]),
        ("[p, q, r]\ndistribution_hints: {host_with: {x: z}}", ["p", "q", "p"]),
        ("[]", ["x", "y", "z"]),
    ],
)
def test_owners(tmp_path, agents, owners):
    variables = "variables: {x: {domain: d}, y: {domain: d}, z: {domain: d}}"
    text = f"domains: {{d: {{values: [0, 1]}}}}\n{variables}\nagents: {agents}"
    problem = parse(tmp_path, text, "yml")
    assert [problem.agents[owner].name for owner in problem.owners] == owners


def small(constraint, objective="min", domain="[0, 1]"):
    return (
        f"objective: {objective}\ndomains: {{d: {{values: {domain}}}}}\n"
        f"variables: {{x: {{domain: d}}, y: {{domain: d}}}}\nconstraints:\n  c: {constraint}\n"
    )


@pytest.mark.parametrize(
    ("constraint", "domain", "costs"),
    [
        ("{type: intention, function: x - y}", "[0, 1]", [0, -1, 1, 0]),
        ("{type: intention, function: 'y * 2'}", "[0, 1]", [0, 2]),
        ("{type: intention, function: 3}", "[0, 1]", 3),
        ("{type: intention, function: x == 'yes'}", "['yes', 'no']", [1, 0]),
        ("{type: intention, function: x is_not}", "[0]", None),
        ("{type: intention, function: 1 if x else 0}", "[yes, no]", [1, 0]),
        ("{type: intention, function: x + 0.5}", "['1 .. 3']", [1.5, 2.5, 3.5]),
        ("{type: intention, function: float('inf') if x == y else 0}", "[0, 1]", [FORBIDDEN, 0, 0, FORBIDDEN]),
        ("{type: extensional, variables: [x, x], default: 5, values: {1: 0 0 | 0 1, 2: 1 1}}", "[0, 1]", [1, 2]),
        ("{type: extensional, variables: [y, x], default: 5, values: {1: 0 1}}", "[0, 1]", [5, 1, 5, 5]),
        ("{type: extensional, variables: x, values: {-0.5: 1, 7: 0}}", "[0, 1]", [7, -0.5]),
        ("{type: extensional, variables: x, values: {-0.5: a b, 7: c | d}}", "['a b', c, d]", [-0.5, 7, 7]),
        ("{type: extensional, variables: [x], values: {1: 1.5, 7: 2}}", "[1.5, 2]", [1, 7]),
        ("{type: extensional, variables: [x], default: 4, values: {}}", "[0, 1]", [4, 4]),
        ("{type: extensional, variables: [], values: {5: ''}}", "[0, 1]", 5),
        ("{type: extensional, variables: [], default: 6, values: {}}", "[0, 1]", 6),
    ],
)
def test_constraints_of_yaml(tmp_path, constraint, domain, costs):
    text = small(constraint, domain=domain)
    if costs is None:
        with pytest.raises(FormatError, match=r":5: 'c': expected a Python expression.*\(column 34\)"):
            parse(tmp_path, text, "yaml")
        return
    (table,) = parse(tmp_path, text, "yaml").model.factors
    assert table.dense().ravel().tolist() == np.ravel(costs).tolist()


def test_maximisation(tmp_path):
    text = small("{type: extensional, variables: [x], values: {-.inf: 1, 7: 0}}", "max")
    model = parse(tmp_path, text, "yaml").model
    assert model.sense == "max-cost"
    assert model.factors[0].values.tolist() == [7, -FORBIDDEN]
    with pytest.raises(FormatError, match=r"expected costs that are numbers or, where forbidden, -inf; found inf"):
        parse(tmp_path, text.replace("-.inf", ".inf"), "yaml")
    assert elimina.solve(
        parse(tmp_path, XCSP.replace('"false"', '"true"').replace("infinity:", "-infinity:"), "xml").model
    )


def test_equal_expressions_of_different_variables_are_not_mixed_up(tmp_path):
    text = (
        "domains: {d: {values: [v1, v2]}, e: {values: [v2, v1]}, n: {values: [1, 2]}}\n"
        "variables: {v1: {domain: d}, v2: {domain: d}, v3: {domain: e}, n1: {domain: n},\n"
        "  max: {domain: n}, e5: {domain: n}}\n"
        "constraints:\n"
        "  a: {type: intention, function: v1 == 'v1'}\n  b: {type: intention, function: v2 == 'v1'}\n"
        "  c: {type: intention, function: v3 == 'v1'}\n  d: {type: intention, function: 'v1 == \"v2\"'}\n"
        "  e: {type: intention, function: 'max(max, n1) + 1.e5'}\n  f: {type: intention, function: v2 == v1}\n"
        "  g: {type: intention, function: v3 == v1}\n"
    )
    tables = parse(tmp_path, text, "yaml").model.factors
    assert [t.scope for t in tables] == [(0,), (1,), (2,), (0,), (4, 3), (1, 0), (2, 0)]
    assert [t.values.ravel().tolist() for t in tables] == [
        [1, 0],
        [1, 0],
        [0, 1],
        [0, 1],
        [100001, 100002, 100002, 100002],
        [1, 0, 0, 1],
        [0, 1, 1, 0],
    ]


def test_noise_is_the_documented_one(tmp_path):
    text = "domains: {d: {values: [0, 1, 2]}}\nvariables: {x: {domain: d, cost_function: x, noise_level: 0.2}}"
    costs, noise = parse(tmp_path, text, "yaml").model.factors
    assert costs.values.tolist() == [0, 1, 2]
    drawn = np.random.default_rng([NOISE_SEED, zlib.crc32(b"x")]).uniform(0, 0.2, 3)
    assert noise.values.tolist() == drawn.tolist()
    assert ((drawn > 0) & (drawn < 0.2)).all()


def test_anchors_and_quotes_of_yaml(tmp_path):
    text = "domains: {d: &d {values: &v ['1', \"2\"]}, e: {values: *v}}\nvariables: {x: &x {domain: e}, 'no': *x}"
    assert [(v.name, v.states) for v in parse(tmp_path, text, "yaml").model.variables] == [
        ("x", ("1", "2")),
        ("no", ("1", "2")),
    ]


def test_xcsp(tmp_path):
    problem = parse(tmp_path, XCSP, "xml")
    assert [v.states for v in problem.model.variables] == [(1, 2, 5), (1, 2), ("red", "green"), (1, 2)]
    assert [agent.name for agent in problem.agents] == ["a", "b", "w"]
    assert problem.owners == (1, 0, 0, 2)
    model = problem.model
    assert model.constant == 100
    assert [f.scope for f in model.factors] == [(0, 1), (2, 3), (2,), (1, 3), (3, 1), (3,), (2,)]
    assert model.factors[0].values.tolist() == [[0, 4], [math.inf, 2.5], [4, 0]]
    assert model.factors[1].values.tolist() == [[FORBIDDEN, 0], [0, FORBIDDEN]]
    assert model.factors[2].values.tolist() == [0, FORBIDDEN]
    assert model.factors[4].values.tolist() == [[3, 2], [0, 1]]
    assert model.factors[5].values.tolist() == [3, 1]
    assert model.factors[6].values.tolist() == [0, 0]
    assert total(problem, "5", "2", "red", "2") == 100 + 0 + 0 + 0 + 1 + 1 + 1


def test_xdiscsp_leaves_its_initial_cost_out(tmp_path):
    problem = parse(
        tmp_path, XCSP.replace("XCSP 2.1_FRODO", "XDisCSP 1.0").replace('Cost="infinity"', 'Cost="7"'), "xml"
    )
    assert problem.model.constant == 0
    assert problem.model.upper_bound == 7


def test_functions_of_no_variables(tmp_path):
    text = XCSP.replace("3:1 1|2:1 2|0:2 1|1:2 2|", "3:").replace('name="all" arity="2"', 'name="all"')
    for constraint in ('arity="2" scope="y w"', 'arity="2" scope="w y"', 'arity="2" scope="w w"'):
        text = text.replace(constraint, 'scope=""')
    problem = parse(tmp_path, text, "xml")
    assert [f.values.tolist() for f in problem.model.factors if not f.scope] == [3, 3, 3]
    with pytest.raises(FormatError, match="function 'c3' of no variables is listed with two costs"):
        parse(tmp_path, text.replace(">3:<", ">3:|4:<"), "xml")
    write(problem, tmp_path / "x.yaml")
    assert all_costs(read(tmp_path / "x.yaml").model) == all_costs(problem.model)


def test_external_variables_in_tables(tmp_path):
    text = (
        small("{type: extensional, variables: [e], values: {5: 1, 2: 0}}")
        + "external_variables: {e: {domain: d, initial_value: 1}}"
    )
    (table,) = parse(tmp_path, text, "yaml").model.factors
    assert (table.scope, table.values.tolist()) == ((), 5)


def test_json(tmp_path):
    problem = parse(tmp_path, JSON, "json")
    assert [v.states for v in problem.model.variables] == [(0, 1), ("p", 5, "0.5")]
    assert [agent.name for agent in problem.agents] == ["a", "b"]
    assert problem.owners == (0, 1)
    assert problem.model.factors[0].values.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert problem.model.factors[1].values.tolist() == [7, 8]
    assert problem.model.factors[2].values.tolist() == [0.5, math.inf, 2]
    unowned = parse(tmp_path, '{"agents": {}, "variables": {"x": {"domain": [0]}}, "constraints": {}}', "json")
    assert [agent.name for agent in unowned.agents] == ["x"]


@pytest.mark.parametrize("suffix", EXAMPLES)
@pytest.mark.parametrize("target", EXAMPLES)
def test_examples_convert(tmp_path, suffix, target):
    problem = parse(tmp_path, EXAMPLES[suffix], suffix)
    write(problem, tmp_path / f"other.{target}.gz")
    assert format_of(tmp_path / f"other.{target}.gz").content == "distributed problem"
    again = read(tmp_path / f"other.{target}.gz")
    assert all_costs(again.model) == pytest.approx(all_costs(problem.model), rel=1e-15)
    assert again.owners == problem.owners
    if target == "yaml":
        assert again.agents == problem.agents


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_blanks_around_names(tmp_path, suffix):
    model = Model([Variable(" a", 2), Variable("b\t", 2)], [Table((0,), [1, 2]), Table((0, 1), [[3, 4], [5, 0]])])
    write(Problem.from_model(model), tmp_path / f"x.{suffix}")
    again = read(tmp_path / f"x.{suffix}").model
    assert [v.name for v in again.variables] == [" a", "b\t"]
    assert all_costs(again) == pytest.approx(all_costs(model))


@SLOW
@given(random_problems(), st.sampled_from(sorted(EXAMPLES)))
def test_round_trip(tmp_path, problem, suffix):
    write(problem, tmp_path / f"x.{suffix}")
    again = read(tmp_path / f"x.{suffix}")
    old, new = problem.model, again.model
    assert (new.sense, new.name) == (old.sense, old.name)
    for a, b in zip(old.variables, new.variables, strict=True):
        assert (a.name, texts_of(a)) == (b.name, texts_of(b))
        if suffix != "xml":  # XCSP has no types: values are integers where all of a domain are
            assert [a.state(x) for x in range(a.size)] == [b.state(x) for x in range(b.size)]
    assert all_costs(new) == pytest.approx(all_costs(old), rel=1e-12, abs=1e-6)
    factors = [f for f in old.factors if f.scope]
    for a, b in zip(factors, new.factors, strict=False):
        assert a.scope == b.scope
        assert as_reals(a) == as_reals(b)
    assert again.owners == problem.owners
    assert [agent.name for agent in again.agents] == [agent.name for agent in problem.agents]
    if suffix == "yaml":
        assert again.agents == problem.agents


def as_reals(table):
    """Values as doubles, forbidden ones infinite."""
    values = table.dense().ravel().tolist()
    return [math.copysign(math.inf, v) if isinstance(v, int) and abs(v) == FORBIDDEN else v for v in values]


def test_upper_bound_is_kept_by_xml(tmp_path):
    model = Model([Variable("x", 2)], [Table([0], [1, 5])], constant=-3, upper_bound=2)
    write(Problem.from_model(model), tmp_path / "x.xml")
    again = read(tmp_path / "x.xml").model
    assert (again.constant, again.upper_bound) == (-3, 2)


@pytest.mark.parametrize("suffix", EXAMPLES)
def test_sparse_tables_stay_sparse(tmp_path, suffix):
    rows = np.arange(8, dtype=np.int32).reshape(2, 4)
    table = Table(range(4), [1, 2], sizes=[9] * 4, rows=rows, default=FORBIDDEN)
    write(Problem.from_model(Model([Variable(f"x{i}", 9) for i in range(4)], [table])), tmp_path / f"x.{suffix}")
    (again,) = read(tmp_path / f"x.{suffix}").model.factors
    assert (again.dense() == table.dense()).all()
    assert (again.rows is None) == (suffix == "json")


@pytest.mark.parametrize(
    ("variable", "suffix", "message"),
    [
        (Variable("a b", 2), "xml", "variable name 'a b'"),
        (Variable("", 2), "xml", "variable name ''"),
        (Variable("a\x01", 2), "xml", r"the character '\\x01'"),
        (Variable("a", 2, ["x|", "y"]), "xml", r"value 'x\|'"),
        (Variable("a", 2, ["1..3", "y"]), "xml", "value '1..3'"),
        (Variable("a", 2, ["x y", "y"]), "yaml", "value 'x y'"),
        (Variable("a", 2, ["x|", "y"]), "yaml", r"value 'x\|'"),
        (Variable("a", 1, ["1..3"]), "yaml", "is a range"),
    ],
)
def test_names_that_a_format_cannot_hold(tmp_path, variable, suffix, message):
    with pytest.raises(InputError, match=message):
        write(Problem.from_model(Model([variable], [])), tmp_path / f"x.{suffix}")
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_written(tmp_path):
    for suffix in ("yaml", "json"):
        with pytest.raises(InputError, match="constant cost 3 but no variable"):
            write(Problem.from_model(Model([], [], constant=3)), tmp_path / f"x.{suffix}")
    wide = [Variable(f"x{i}", 10) for i in range(9)]
    empty = Table(range(9), np.zeros(0), sizes=[10] * 9, rows=np.zeros((0, 9), dtype=int), default=0)
    with pytest.raises(MemoryLimitError, match="1000000000 costs"):
        write(Problem.from_model(Model(wide, [empty])), tmp_path / "x.json")
    with pytest.raises(InputError, match=r"unknown suffix '.txt' of a distributed problem"):
        write(Problem.from_model(Model([], [])), tmp_path / "x.txt")


def test_the_other_kind_of_file(tmp_path):
    bif = tmp_path / "net.xml"
    bif.write_text("<BIF><NETWORK/></BIF>")
    with pytest.raises(FormatError, match=r"net.xml:1: expected <instance>, found <BIF>; .*elimina.read"):
        read(bif)
    assert format_of(bif).content != "distributed problem"
    instance = tmp_path / "p.xml"
    instance.write_text(XCSP)
    with pytest.raises(FormatError, match=r"p.xml:2: expected <BIF>, found <instance>; .*elimina.dcop.read$"):
        elimina.read(instance)
    other = tmp_path / "settings.xml"
    other.write_text("<settings/>")
    for reader, tag in ((elimina.read, "BIF"), (read, "instance")):
        with pytest.raises(
            FormatError, match=rf"settings.xml:1: expected <{tag}>, found <settings>; .* XMLBIF, .* XCSP3"
        ):
            reader(other)
    (tmp_path / "p.yaml").touch()
    with pytest.raises(InputError, match=r"unknown suffix '.yaml' of a model .*elimina.dcop.read"):
        elimina.read(tmp_path / "p.yaml")
    with pytest.raises(InputError, match=r"p.wcsp: unknown suffix '.wcsp' of a distributed problem; name one of yaml"):
        read(tmp_path / "p.wcsp")
    with pytest.raises(InputError, match="unknown format 'uai'"):
        read(instance, format="uai")
    assert len(read(instance, format="xml").model.variables) == 4


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read(tmp_path / "absent.yaml")
    damaged = tmp_path / "x.yaml.gz"
    damaged.write_bytes(gzip.compress(YAML.encode())[:-9])
    with pytest.raises(FormatError, match=r"x.yaml.gz: the gzip data are damaged or cut off"):
        read(damaged)
    assert format_of(damaged).content == "distributed problem"


def test_the_collector_is_left_as_it_was(tmp_path):
    for switch in (gc.disable, gc.enable):
        switch()
        was_on = gc.isenabled()
        with pytest.raises(FormatError):
            parse(tmp_path, "a: b", "yaml")
        assert gc.isenabled() == was_on


def test_reading_is_fast(tmp_path):
    n, m = 10_000, 15_000
    rng = np.random.default_rng(0)
    pairs = [(int(a) * 2, int(b) * 2 + 1) for a, b in rng.integers(0, n // 2, (m, 2))]
    text = "domains: {d: {values: [R, G, B]}}\nvariables:\n" + "".join(f"  v{i}: {{domain: d}}\n" for i in range(n))
    text += "constraints:\n"
    text += "".join(
        f"  c{i}: {{type: intention, function: 9 if v{a} == v{b} else 0}}\n" for i, (a, b) in enumerate(pairs)
    )
    start = time.process_time()
    problem = parse(tmp_path, text, "yaml")
    write(problem, tmp_path / "x.xml")
    again = read(tmp_path / "x.xml")
    assert time.process_time() - start < 30
    assert len(problem.model.factors) == len(again.model.factors) == m
    assert again.model.factors[7].scope == pairs[7]


def test_pyyaml_is_asked_for_by_name(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    with pytest.raises(InputError, match=r"pip install 'elimina\[dcop\]'"):
        parse(tmp_path, YAML, "yaml")


def test_agents_in_turn():
    model = Model([Variable(f"x{i}", 2) for i in range(5)], [])
    assert Problem.from_model(model, 2).owners == (0, 1, 0, 1, 0)
    assert [agent.name for agent in Problem.from_model(model, 3).agents] == ["a0", "a1", "a2"]
    assert Problem.from_model(Model([], []), 0).agents == ()
    with pytest.raises(InputError, match="5 variables need at least 1 agent, not 0"):
        Problem.from_model(model, 0)
    assert dataclasses.replace(AgentProfile("a"), name="b").name == "b"


def brute_force(model):
    best = min if model.sense == "min-cost" else max
    return best(model.score(place) for place in itertools.product(*map(range, model.sizes)))


@pytest.mark.parametrize("suffix", EXAMPLES)
def test_solving_what_was_read(tmp_path, suffix):
    model = parse(tmp_path, EXAMPLES[suffix], suffix).model
    assert elimina.solve(model).value == pytest.approx(brute_force(model))
