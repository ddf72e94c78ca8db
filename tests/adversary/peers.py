"""Objects of other packages in all their forms, against the answers of these packages and against brute force.

A form whose package is not installed is left out.
"""

from __future__ import annotations

import itertools
import random
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from elimina import from_pgmpy, from_pyagrum, read, solve, to_pgmpy, to_pyagrum
from elimina.errors import FormatError, ImpossibleEvidenceError, InputError
from elimina.model.model import Model
from tests.adversary.case import Case, Defect, Setting

WEIGHTED = ("NoisyORNet", "NoisyORCompound", "NoisyOR", "NoisyAND", "Logit")
LOGICAL = ("AND", "OR")
COUNTING = ("EXISTS", "FORALL", "COUNT")
NUMERICAL = ("MAX", "MIN", "MEDIAN", "AMPLITUDE", "SUM")
VARIABLES = ("labelized", "labelized", "range", "integer", "discretized", "numerical")
NUMBERS = ("range", "integer", "numerical")
"""Types of variables that aggregators such as MAX take."""
FILES = ("bif", "bifxml", "net", "uai", "xdsl")
MAY_BE_REFUSED = ("uai", "xdsl")
"""Formats in which pyAgrum orders parents in another way than other programs."""

FORMS = {
    "pyagrum": ["network", "network", "network", "markov", "adapter", "adapter", "file", "back"],
    "pgmpy": ["network", "markov", "factors", "cliques", "back"],
    "pandas": ["table", "table", "likelihoods", "costs"],
}
"""Package -> forms of its objects."""

STATES: dict[str, list[Any]] = {
    "words": ["low", "mid", "high"],
    "integers": [3, 0, 1],
    "booleans": [True, False],
    "floats": [0.5, 1.5, 2.0],
    "pairs": [("a", 1), ("b", 2), ("c", 3)],
    "digits": ["1", "0", "2"],
    "places": [0, 1, 2],
}
TOLERANCE = 1e-9
FILE_TOLERANCE = 1e-4
"""pyAgrum writes six digits in some formats."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a network, or a table with labels."""
    installed = [peer for peer in FORMS if find_spec(peer)]
    peer = rng.choice(installed) if installed else ""
    form = rng.choice(FORMS[peer]) if peer else ""
    nodes = []
    count = rng.randint(1, 5)
    kinds = rng.choice([VARIABLES, NUMBERS])
    for number in range(count):
        size = rng.choice([1, 2, 2, 2, 3, 3])
        parents = sorted(rng.sample(range(number), rng.randint(0, min(number, 3))), key=lambda _: rng.random())
        table = rng.choice(["", *WEIGHTED, *LOGICAL, *COUNTING, *NUMERICAL]) if parents else ""
        nodes.append(
            {
                "kind": rng.choice(kinds),
                "states": rng.choice(list(STATES)),
                "size": 2 if table in WEIGHTED else size,
                "parents": parents,
                "table": table,
                "order": rng.randrange(6),
            }
        )
    evidence = []
    for v in rng.sample(range(count), rng.choice([0, 1, 1, 2]) if count > 2 else 0):
        weights = [round(rng.random(), 3) + 0.001 for _ in range(3)]
        evidence.append([v, rng.randrange(nodes[v]["size"]) if rng.random() < 0.6 else weights])
    return {"peer": peer, "form": form, "nodes": nodes, "evidence": evidence, "seed": rng.randrange(10**6)}


def check(case: Case) -> None:
    """Build the object, convert it, and compare answers."""
    checks: dict[str, Callable[[Case], None]] = {
        "pyagrum": _check_pyagrum,
        "pgmpy": _check_pgmpy,
        "pandas": _check_pandas,
    }
    if case["peer"]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            checks[case["peer"]](case)


def _name(number: int) -> str:
    """Return a name; some end as those of time slices do."""
    return "abcde"[number] + ("", "t", "0", "_1", "")[number]


def _states(node: dict[str, Any]) -> list[Any]:
    """Return the states of a node, in an order of its own; at most as many as its type has."""
    states = STATES[node["states"]][: node["size"]]
    return [states[x] for x in list(itertools.permutations(range(len(states))))[node["order"] % len(states)]]


def _rows(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Return distributions over the last axis, with some zeros."""
    values = rng.random(shape) * (rng.random(shape) < 0.8)
    values[values.sum(axis=-1) == 0] = 1.0
    return values / values.sum(axis=-1, keepdims=True)


def _joint(sizes: list[int], factors: list[tuple[list[int], np.ndarray]]) -> np.ndarray:
    """Return the product of factors over all variables."""
    joint = np.ones(sizes)
    for scope, values in factors:
        joint = np.einsum(joint, list(range(len(sizes))), values, scope, list(range(len(sizes))))
    return joint


def _marginals(joint: np.ndarray) -> list[np.ndarray]:
    axes = range(joint.ndim)
    return [joint.sum(axis=tuple(u for u in axes if u != v)) / joint.sum() for v in axes]


def _compare(what: str, ours: Any, expected: Any, tolerance: float = TOLERANCE) -> None:
    ours, expected = np.asarray(ours, dtype=float), np.asarray(expected, dtype=float)
    if ours.shape != expected.shape or not np.allclose(ours, expected, rtol=tolerance, atol=tolerance):
        raise Defect(f"{what}: {ours.tolist()}, not {expected.tolist()}")


def _posteriors(model: Model, evidence: dict[str, Any]) -> dict[str, list[float]]:
    result = solve(model, "mar", evidence=evidence)
    return {name: list(posterior.values()) for name, posterior in (result.marginals or {}).items()}


def _check_pyagrum(case: Case) -> None:
    gum = import_module("pyagrum")
    try:
        network = _pyagrum_network(gum, case)
    except gum.GumException:
        return  # The table does not take these variables.
    nodes = case["nodes"]
    names = [_name(v) for v in range(len(nodes))]
    sizes = [network.variable(name).domainSize() for name in names]
    factors = [_cells(gum, network.cpt(name), names) for name in names]
    known = {
        names[v]: what if isinstance(what, int) else what[: sizes[v]]
        for v, what in case["evidence"]
        if not isinstance(what, int) or what < sizes[v]
    }
    for name, what in known.items():
        v = names.index(name)
        factors.append(([v], np.array(what if isinstance(what, list) else [x == what for x in range(sizes[v])], float)))
    joint = _joint(sizes, factors)
    if case["form"] == "file":
        _check_file(gum, case, network, names, sizes, factors)
        return
    source = gum.MarkovRandomField.fromBN(network) if case["form"] == "markov" else network
    model = from_pyagrum(source)
    if case["form"] == "back":
        source = to_pyagrum(model)
        model = from_pyagrum(source)
    evidence = {name: what if isinstance(what, list) else model[name].state(what) for name, what in known.items()}
    if joint.sum() == 0:
        if solve(model, "mar", evidence=evidence).status != "infeasible":
            raise Defect("evidence of probability 0 has an answer")
        return
    ours = _posteriors(model, evidence)
    for name, expected in zip(names, _marginals(joint), strict=True):
        _compare(f"P({name})", ours[name], expected)
    if case["form"] in ("adapter", "network"):
        _check_lazy(gum, network, names, known, joint)


def _check_lazy(gum: Any, network: Any, names: list[str], known: dict[str, Any], joint: np.ndarray) -> None:
    from elimina.adapters.pyagrum import LazyPropagation

    ours, theirs = LazyPropagation(network), gum.LazyPropagation(network)
    pair = set(names[-2:])
    for engine in (ours, theirs):
        engine.setEvidence(known)
        engine.addAllTargets()
        if len(pair) == 2:
            engine.addJointTarget(pair)
        engine.makeInference()
    for name, expected in zip(names, _marginals(joint), strict=True):
        _compare(f"posterior({name})", ours.posterior(name).toarray(), expected)
        # pyAgrum does not normalise the posterior of a variable of one state.
        posterior = theirs.posterior(name).toarray().ravel()
        _compare(f"pyAgrum's posterior({name})", posterior / posterior.sum(), expected, 1e-6)
    _compare("evidenceProbability", ours.evidenceProbability(), joint.sum())
    if len(pair) == 2:
        left, right = ours.jointPosterior(pair), theirs.jointPosterior(pair)
        cells = [dict(zip(left.names, states, strict=True)) for states in np.ndindex(*left.shape)]
        _compare("jointPosterior", [left[cell] for cell in cells], [np.sum(right[cell]) for cell in cells], 1e-6)


def _pyagrum_network(gum: Any, case: Case) -> Any:
    network, rng = gum.BayesNet(), np.random.default_rng(case["seed"])
    for number, node in enumerate(case["nodes"]):
        variable, table = _variable(gum, _name(number), node), node["table"]
        if not table:
            network.add(variable)
        elif table in WEIGHTED:
            getattr(network, f"add{table}")(variable, float(rng.random()) / 10)
        elif table in COUNTING:
            getattr(network, f"add{table}")(variable, int(rng.integers(2)))
        else:
            getattr(network, f"add{table}")(variable)
        for parent in node["parents"]:
            if table in WEIGHTED:
                network.addWeightedArc(_name(parent), _name(number), float(rng.uniform(0.05, 1)))
            else:
                network.addArc(_name(parent), _name(number))
        if not table:
            cpt = network.cpt(_name(number))
            cpt.fillWith(np.ascontiguousarray(_rows(rng, tuple(reversed(cpt.shape)))))
    return network


def _variable(gum: Any, name: str, node: dict[str, Any]) -> Any:
    size, kind = node["size"], node["kind"]
    if kind == "range":
        return gum.RangeVariable(name, name, node["order"] - 2, node["order"] - 3 + size)
    if kind == "integer":
        return gum.IntegerVariable(name, name, [-3, 1, 7][:size])
    if kind == "discretized":
        return gum.DiscretizedVariable(name, name, [0.0, 1.0, 2.5, 4.0][: size + 1])
    if kind == "numerical":
        return gum.NumericalDiscreteVariable(name, name, [0.5, 1.0, 3.25][:size])
    return gum.LabelizedVariable(name, name, ["no", "yes", "2"][:size])


def _cells(gum: Any, tensor: Any, names: list[str]) -> tuple[list[int], np.ndarray]:
    """Return the scope and the cells of a tensor, each asked for by itself."""
    values, cell = np.empty(tensor.shape), gum.Instantiation(tensor)
    for states in np.ndindex(*tensor.shape):
        for axis, state in enumerate(states):
            cell.chgVal(axis, state)
        values[states] = tensor.get(cell)
    return [names.index(name) for name in tensor.names], values


def _check_file(
    gum: Any, case: Case, network: Any, names: list[str], sizes: list[int], factors: list[tuple[list[int], np.ndarray]]
) -> None:
    suffix = FILES[case["seed"] % len(FILES)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"network.{suffix}"
        try:
            gum.saveBN(network, str(path))
        except gum.GumException:
            return
        try:
            model = read(path)
        except FormatError:
            if suffix in MAY_BE_REFUSED or any(node["kind"] in ("discretized", "numerical") for node in case["nodes"]):
                return
            raise
    joint = _joint(sizes, factors[: len(names)])
    ours = list(_posteriors(model, {}).values())
    order = [int(v.name[1:]) if suffix == "uai" else names.index(v.name) for v in model.variables]
    for v, expected in zip(order, ours, strict=True):
        _compare(f"P({names[v]}) of the file", expected, _marginals(joint)[v], FILE_TOLERANCE)


def _check_pgmpy(case: Case) -> None:
    models, discrete = import_module("pgmpy.models"), import_module("pgmpy.factors.discrete")
    inference = import_module("pgmpy.inference")
    from elimina.adapters.pgmpy import VariableElimination

    nodes, rng = case["nodes"], np.random.default_rng(case["seed"])
    names: list[Any] = [_name(v) for v in range(len(nodes))]
    states = [_states(node) for node in nodes]
    network = models.DiscreteBayesianNetwork()
    network.add_nodes_from(names)
    for v, node in enumerate(nodes):
        parents = node["parents"]
        network.add_edges_from([(names[u], names[v]) for u in parents])
        shape = (*(len(states[u]) for u in parents), len(states[v]))
        rows = np.moveaxis(_rows(rng, shape), -1, 0).reshape(len(states[v]), -1)
        listed = {names[u]: list(states[u]) for u in (v, *parents)}
        if parents and case["form"] == "network" and node["order"] % 2:
            first = parents[0]  # pgmpy reads states by their names, so their order may differ from the parent's own.
            listed[names[first]] = listed[names[first]][::-1]
        sizes = [len(states[u]) for u in parents]
        network.add_cpds(
            discrete.TabularCPD(
                names[v],
                len(states[v]),
                rows,
                [names[u] for u in parents] or None,
                sizes or None,
                state_names=listed,
            )
        )
    if case["form"] == "back":
        model = from_pgmpy(network)
        _check_there_and_back(model)
        return
    convert = {"markov": "to_markov_model", "factors": "to_markov_model", "cliques": "to_junction_tree"}
    source = network
    if case["form"] in convert:
        try:
            source = getattr(network, convert[case["form"]])()
            source = source.to_factor_graph() if case["form"] == "factors" else source
        except (ValueError, IndexError, KeyError):
            return  # pgmpy refuses networks of several components.
    known = {names[v]: states[v][what % len(states[v])] for v, what in case["evidence"] if isinstance(what, int)}
    asked = [name for name in names if name not in known][: 1 + case["seed"] % 3]
    if not asked:
        return
    joint, at = _pgmpy_joint(discrete, source, network, names, states)
    for name, state in known.items():
        joint = np.take(joint, [states[at[name]].index(state)], axis=at[name])
    expected = joint.sum(axis=tuple(at[name] for name in names if name not in asked), keepdims=True)
    expected = expected.squeeze(axis=tuple(at[name] for name in names if name not in asked))
    expected = expected.transpose(np.argsort(np.argsort([at[name] for name in asked])))
    engine = VariableElimination(source)
    is_normalised = case["form"] in ("network", "cliques")
    if expected.sum() == 0:
        try:
            answer = engine.query(asked, known)
        except ImpossibleEvidenceError:
            if is_normalised:
                return
            raise
        if is_normalised or answer.values.any():
            raise Defect(f"evidence of probability 0 has the answer {answer.values.tolist()}")
        return
    answer = engine.query(asked, known)
    if list(answer.variables) != asked or any(answer.state_names[name] != states[at[name]] for name in asked):
        raise Defect(f"the answer is over {answer.variables} with {answer.state_names}")
    _compare(f"query({asked}, {known})", answer.values, expected / (expected.sum() if is_normalised else 1))
    if case["form"] != "factors" and not any(listed_otherwise(network, names, states)):
        theirs = inference.VariableElimination(source).query(asked, known, show_progress=False)
        _compare(f"query({asked}, {known}) of pgmpy", answer.values, theirs.values)
    best = engine.map_query(asked, known)
    place = tuple(states[at[name]].index(best[name]) for name in asked)
    if not np.isclose(expected[place], expected.max(), rtol=1e-9):
        raise Defect(f"map_query({asked}, {known}): {best} has {expected[place]}, and the best has {expected.max()}")


def listed_otherwise(network: Any, names: list[str], states: list[list[Any]]) -> Iterator[bool]:
    """Yield whether each distribution lists states in another order than their variables do."""
    for cpd in network.get_cpds():
        for name in cpd.variables:
            yield cpd.state_names[name] != states[names.index(name)]


def _pgmpy_joint(
    discrete: Any, source: Any, network: Any, names: list[str], states: list[list[Any]]
) -> tuple[np.ndarray, dict[str, int]]:
    """Return the product of all factors over the variables in the order of their names, and each one's axis."""
    factors = source.get_cpds() if hasattr(source, "get_cpds") else source.get_factors()
    at = {name: axis for axis, name in enumerate(names)}
    joint = np.ones([len(own) for own in states])
    for factor in factors:
        values = np.asarray(factor.values, dtype=float)
        for axis, name in enumerate(factor.variables):
            own = list(factor.state_names[name])
            values = np.take(values, [own.index(state) for state in states[at[name]]], axis=axis)
        axes = list(range(len(names)))
        joint = np.einsum(joint, axes, values, [at[name] for name in factor.variables], axes)
    return joint, at


def _check_there_and_back(model: Model) -> None:
    """Compare a model with itself after a way through each installed package."""
    expected = _posteriors(model, {})
    ways = {"pgmpy": (to_pgmpy, from_pgmpy), "pyagrum": (to_pyagrum, from_pyagrum)}
    for package, (to_theirs, to_ours) in ways.items():
        if find_spec(package):
            back = to_ours(to_theirs(model))
            ours = _posteriors(back, {})
            for variable in model.variables:
                there = back[variable.name]
                places = [[str(there.state(x)) for x in range(there.size)].index(str(s)) for s in variable.all_states]
                _compare(
                    f"P({variable.name}) by {package}",
                    [ours[variable.name][x] for x in places],
                    expected[variable.name],
                )


def _check_pandas(case: Case) -> None:
    """Build one model of arrays and of the same tables with labels in any order; both have equal tables."""
    pandas = import_module("pandas")
    rng, nodes = random.Random(case["seed"]), case["nodes"]
    sizes = {_name(v): _labels(node) for v, node in enumerate(nodes)}
    scope = rng.sample(list(sizes), min(len(sizes), rng.randint(1, 3)))
    values = np.random.default_rng(case["seed"]).integers(0, 10, [len(sizes[name]) for name in scope])
    values = values.astype(rng.choice([np.int64, np.float64]))
    if case["form"] == "likelihoods":
        name = scope[0]
        weights = np.arange(1.0, len(sizes[name]) + 1)
        row = pandas.Series(weights, index=sizes[name]).sample(frac=1, random_state=case["seed"])
        model = Model.from_arrays(sizes, [([name], np.ones(len(weights)))], sense="probability")
        _compare("likelihoods", _posteriors(model, {name: row})[name], weights / weights.sum())
        return
    labels = {name: list(range(len(of))) if case["form"] == "costs" else of for name, of in sizes.items()}
    table = _labelled(pandas, rng, scope, values, labels)
    if case["form"] == "costs":
        _check_costs(scope, values, table)
        return
    ours = Model.from_arrays(sizes, [(scope, table)]).factors[0]
    if ours.values.dtype != values.dtype or not np.array_equal(ours.values, values):
        raise Defect(f"{table!r} became {ours.values.tolist()}, not {values.tolist()}")
    if len(table) > 1:
        try:
            Model.from_arrays(sizes, [(scope, table.iloc[1:])])
        except InputError as error:
            if "no cell" not in str(error):
                raise Defect(f"a table without its first row: {error}") from None
        else:
            raise Defect("a table without its first row was taken")


def _labels(node: dict[str, Any]) -> list[Any]:
    states = _states(node)
    return states if all(isinstance(state, str | int) for state in states) else [str(state) for state in states]


def _labelled(pandas: Any, rng: random.Random, scope: list[str], values: np.ndarray, labels: dict[str, Any]) -> Any:
    """Return a Series or DataFrame of the values, its levels and labels in any order."""
    is_named = rng.random() < 0.5
    order = rng.sample(range(len(scope)), len(scope)) if is_named else list(range(len(scope)))
    names = [scope[axis] for axis in order]
    split = rng.randint(1, len(scope))
    cells = values.transpose(order)

    def index(members: list[str]) -> Any:
        if len(members) == 1:
            kind = pandas.CategoricalIndex if rng.random() < 0.2 else pandas.Index
            return kind(labels[members[0]], name=members[0] if is_named else None)
        return pandas.MultiIndex.from_product([labels[v] for v in members], names=members if is_named else None)

    rows, columns = index(names[:split]), index(names[split:]) if split < len(scope) else None
    if columns is None:
        return pandas.Series(cells.ravel(), index=rows).sample(frac=1, random_state=rng.randrange(2**31))
    frame = pandas.DataFrame(cells.reshape(len(rows), len(columns)), index=rows, columns=columns)
    frame = frame.iloc[rng.sample(range(len(rows)), len(rows)), rng.sample(range(len(columns)), len(columns))]
    return frame.T if is_named and rng.random() < 0.3 else frame


def _check_costs(scope: list[str], values: np.ndarray, table: Any) -> None:
    from elimina import cp

    problem = cp.Model()
    xs = [problem.int_var(0, size - 1, name=name) for name, size in zip(scope, values.shape, strict=True)]
    problem.minimize(problem.add_cost(xs, table))
    solution = problem.solve()
    place = tuple(solution.assignment[name] for name in scope)
    if solution.value != values.min() or values[place] != values.min():
        raise Defect(f"{table!r}: the least cost is {values.min()}, not {solution.value} at {place}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler cases."""
    for i in range(len(case["evidence"])):
        yield {**case, "evidence": case["evidence"][:i] + case["evidence"][i + 1 :]}
    nodes = case["nodes"]
    last = len(nodes) - 1
    if last and all(v != last for v, _ in case["evidence"]):
        yield {**case, "nodes": nodes[:last]}
    for v, node in enumerate(nodes):
        changes = [{"table": ""}, {"kind": "labelized"}, {"states": "words"}, {"order": 0}, {"size": 2}]
        changes += [{"parents": [u for u in node["parents"] if u != parent]} for parent in node["parents"]]
        for change in changes:
            simple = {**node, **change}
            if simple["parents"] == [] and simple["table"]:
                simple["table"] = ""
            if simple != node:
                yield {**case, "nodes": [*nodes[:v], simple, *nodes[v + 1 :]]}


def script(case: Case) -> str:
    """Return a program that checks the case."""
    return f"from tests.adversary.peers import check\ncheck({case!r})"
