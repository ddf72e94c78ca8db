"""Small files and random problems for the tests of the formats."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from elimina import FORBIDDEN, Model, Table, Variable
from elimina.dcop import AgentProfile, Problem, read
from elimina.model.variable import index_of_text

YAML = """\
name: everything
objective: min
domains:
  colors: {values: [R, G, B], type: color}
  levels: {values: [0 .. 2]}
  weights: {values: [0.5, 1.5]}
variables:
  v1: {domain: colors, cost_function: "-0.5 if v1 == 'R' else 0.5"}
  v2: {domain: colors, initial_value: G}
  l1: {domain: levels, cost_function: 2 * l1}
  w1: {domain: weights}
external_variables:
  sun: {domain: levels, initial_value: 2}
constraints:
  different: {type: intention, function: 10 if v1 == v2 else 0}
  light: {type: intention, function: abs(l1 - sun) * w1}
  branches:
    type: intention
    function: |
      if l1 == 0:
        return 3
      x = l1 * 2
      return x - 1
  table:
    type: extensional
    variables: [v1, l1]
    default: .inf
    values:
      1: R 0 | G 1
      2.5: B 2
  single: {type: extensional, variables: v2, values: {1: R, 2: G | B}}
  outside: {type: extensional, variables: [sun, w1], default: 7, values: {1: 2 0.5, 9: 0 0.5 | 1 1.5}}
agents:
  a1: {capacity: 10}
  a2: {}
  a3: {capacity: 2.5, color: red}
hosting_costs:
  default: 5
  a1: {default: 1, computations: {v1: 0, table: 2}}
routes:
  default: 3
  a1: {a2: 0.5}
distribution_hints:
  must_host: {a2: [v1, table]}
  host_with: {l1: [v2, light]}
"""

XCSP = """\
<?xml version="1.0"?>
<instance>
  <presentation name="p" maximize="false" format="XCSP 2.1_FRODO"/>
  <agents nbAgents="2"><agent name="a"/><agent name="b"/></agents>
  <domains nbDomains="3">
    <domain name="d" nbValues="3">1..2 5</domain>
    <domain name="e" nbValues="2"/>
    <domain name="f">red green</domain>
  </domains>
  <variables nbVariables="4">
    <variable name="x" domain="d" agent="b"/>
    <variable name="y" domain="e" agent="a"/>
    <variable name="z" domain="f" agent="a"/>
    <variable name="w" domain="e"/>
  </variables>
  <relations nbRelations="5">
    <relation name="soft" arity="2" semantics="soft" defaultCost="4">0: 1 1|5 2 |infinity: 2 1|2.5:2
       2</relation>
    <relation name="no" arity="2" semantics="conflicts">red 1|green 2</relation>
    <relation name="yes" arity="1" semantics="supports">red</relation>
    <relation name="all" arity="2">3:1 1|2:1 2|0:2 1|1:2 2|</relation>
    <relation name="none" arity="1" semantics="conflicts"/>
  </relations>
  <constraints nbConstraints="7" initialCost="100" maximalCost="infinity">
    <constraint name="c0" arity="2" scope="x y" reference="soft"/>
    <constraint name="c1" arity="2" scope="z w" reference="no"/>
    <constraint name="c2" arity="1" scope="z" reference="yes"/>
    <constraint name="c3" arity="2" scope="y w" reference="all"/>
    <constraint name="c4" arity="2" scope="w y" reference="all"/>
    <constraint name="c5" arity="2" scope="w w" reference="all"/>
    <constraint name="c6" arity="1" scope="z" reference="none"/>
  </constraints>
</instance>
"""

JSON = """\
{
  "constraints": {
    "c0": {"scope": ["x", "y"], "vals": [1, 2, 3, 4, 5, 6]},
    "c1": {"scope": ["x", "x"], "vals": [7, 100, 100, 8]},
    "c2": {"scope": ["y"], "vals": [0.5, "infinity", 2]}
  },
  "agents": {"a": {"vars": ["x"]}, "id": 3, "b": {}},
  "variables": {
    "x": {"domain": [0, 1], "agent": "a", "id": 0, "cons": ["c0"], "type": 1, "value": null},
    "y": {"domain": ["p", 5, 0.5], "agent": "b"}
  }
}
"""
EXAMPLES = {"yaml": YAML, "xml": XCSP, "json": JSON}


def parse(tmp_path: Path, text: str | bytes, suffix: str) -> Problem:
    """Read a problem from a text."""
    path = tmp_path / f"problem.{suffix}"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read(path)


def total(problem: Problem, *states: str) -> float:
    """Cost of an assignment, by the values' names in the order of the variables."""
    variables = problem.model.variables
    return problem.model.score([index_of_text(v, state) for v, state in zip(variables, states, strict=True)])


def all_costs(model: Model) -> list[float]:
    """Cost of every assignment."""
    return [model.score(place) for place in itertools.product(*map(range, model.sizes))]


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=5)
COSTS = st.one_of(
    st.integers(-5, 5), st.integers(-(2**62), 2**62), st.floats(-1e9, 1e9), st.floats(-1e300, 1e300), st.just(math.inf)
)


@st.composite
def tables(draw: st.DrawFn, sizes: list[int], sign: int) -> Table:
    """A table of integers or of doubles, dense or sparse; forbidden costs are infinite."""
    scope = draw(st.permutations(range(len(sizes))).map(lambda order: order[: draw(st.integers(0, len(order)))]))
    shape = [sizes[v] for v in scope]
    costs = draw(st.lists(COSTS, min_size=math.prod(shape), max_size=math.prod(shape)))
    default = draw(COSTS)
    if all(isinstance(cost, int) or math.isinf(cost) for cost in [*costs, default]):
        flat = np.array([sign * (FORBIDDEN if math.isinf(cost) else cost) for cost in costs], dtype=np.int64)
        rest: float = sign * (FORBIDDEN if math.isinf(default) else int(default))
    else:
        flat, rest = sign * np.array(costs, dtype=np.float64), sign * float(default)
    if not scope or draw(st.booleans()):
        return Table(scope, flat.reshape(shape))
    chosen = draw(st.lists(st.integers(0, len(costs) - 1), unique=True))
    rows = np.array([list(np.ndindex(*shape))[place] for place in chosen], dtype=np.int32).reshape(-1, len(scope))
    return Table(scope, flat[chosen], sizes=shape, rows=rows, default=rest)


@st.composite
def random_problems(draw: st.DrawFn) -> Problem:
    """A problem with odd names, any arity, any costs, agents with none or many variables."""
    names = draw(st.lists(NAMES, unique=True, min_size=1, max_size=4))
    sense = draw(st.sampled_from(["min-cost", "max-cost"]))
    variables = []
    for name in names:
        words = NAMES.map(lambda word: word.replace("|", "I").replace(":", "i").replace("..", "_"))
        states = draw(st.lists(st.one_of(words, st.integers(-99, 99)), unique_by=str, min_size=1, max_size=3))
        states = draw(st.sampled_from([states, None]))
        variables.append(Variable(name, 2 if states is None else len(states), states))
    sizes = [variable.size for variable in variables]
    factors = draw(st.lists(tables(sizes, 1 if sense == "min-cost" else -1), max_size=4))
    constant = draw(st.one_of(st.just(0), st.integers(-9, 9), st.floats(-9, 9)))
    model = Model(variables, factors, sense=sense, constant=constant, name=draw(NAMES))
    agents = draw(st.lists(NAMES, unique=True, min_size=1, max_size=3))
    number = st.floats(0, 1e9)
    profiles = [AgentProfile(agent, draw(st.none() | number)) for agent in agents]
    owners = draw(st.lists(st.integers(0, len(agents) - 1), min_size=len(names), max_size=len(names)))
    return Problem(model, profiles, owners)
