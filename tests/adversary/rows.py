"""Sparse tables in models that are large enough for packed steps, against sums over all assignments in one array."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina import JunctionTree
from elimina.errors import MemoryLimitError
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.result import Result
from tests import calls
from tests.adversary.case import Case, Defect, Setting

MOST_CELLS = 400_000
"""Assignments of a model, few enough for an array over all of them."""

ERROR_FACTOR = 10.0
"""Largest distance of estimated posteriors from the exact ones, as a multiple of the error that is stated."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random call: tables of a few scopes, permuted, and filled by a seed."""
    is_star = rng.random() < 0.6
    sizes: list[int] = []
    for _ in range(14 if is_star else rng.randint(3, 14)):
        size = rng.choice([2, 3, 5] if is_star else [1, 2, 2, 2, 3, 3, 4, 5, 8, 20])
        sizes += [size] if math.prod(sizes) * size <= MOST_CELLS else []
    everything = range(len(sizes))
    hub = rng.sample(everything, rng.randint(1, min(8, len(sizes))))
    scopes = []
    if is_star:
        # Its middle goes first, so that one large step joins all tables around it.
        scopes = [rng.sample(hub, len(hub)), *(rng.sample([hub[0], v], 2) for v in everything if v not in hub)]
    for _ in range(rng.choice([0, 0, 0, 2]) if is_star else rng.randint(1, 12)):
        like = rng.choice(scopes) if scopes and rng.random() < 0.3 else everything
        scopes.append(rng.sample(like, rng.randint(1, min(len(like), rng.choice([1, 2, 2, 3, 4, 6])))))
    rng.shuffle(scopes)
    options: dict[str, Any] = {"device": setting.device, "threads": rng.choice([1, 2])}
    options["tables"] = rng.choice(["sparse", "sparse", "sparse", "auto"])
    shuffled = rng.sample(everything, len(sizes))
    options["order"] = rng.choice([shuffled, shuffled, "min-fill"])
    if is_star:
        options["order"] = [hub[0], *(v for v in shuffled if v != hub[0])]
    if rng.random() < 0.25:
        options["slices"] = rng.choice([2, 10, 100])
    if rng.random() < 0.25:
        options["memory"] = int(10 ** rng.uniform(4.5, 7))
    return {
        "sizes": sizes,
        "scopes": scopes,
        "seed": rng.randrange(10**6),
        "share": rng.choice([0.0, 0.0, 0.1, 0.5, 0.9]),
        "is_listed": rng.random() < 0.3,
        "task": rng.choice(["pr", "pr", "mar", "mar", "mpe", "count", "tree", "batch"]),
        "options": options,
    }


def model_of(case: Case) -> Model:
    """Return the model: probabilities, a share of them 0."""
    rng = np.random.default_rng(case["seed"])
    tables = []
    for scope in case["scopes"]:
        shape = [case["sizes"][v] for v in scope]
        values = rng.integers(1, 5, shape) / 4 * (rng.random(shape) >= case["share"] * rng.random())
        if case["is_listed"]:
            rows = np.argwhere(values)
            tables.append(Table(scope, values[tuple(rows.T)], sizes=shape, rows=rows, default=0.0))
        else:
            tables.append(Table(scope, values))
    empty = Model.from_arrays(case["sizes"], [])
    return Model(empty.variables, tables, sense="probability")


def products(model: Model) -> NDArray[np.float64]:
    """Return the product of all tables at each assignment."""
    total = np.ones(model.sizes)
    for table in model.factors:
        axes = sorted(range(len(table.scope)), key=table.scope.__getitem__)
        shape = [size if v in table.scope else 1 for v, size in enumerate(model.sizes)]
        total *= table.dense().transpose(axes).reshape(shape)
    return total


def check(case: Case) -> None:
    """Solve and compare."""
    model, options, task = model_of(case), dict(case["options"]), case["task"]
    total = products(model)
    try:
        if task in ("tree", "batch"):
            _check_tree(case, model, total)
            return
        found = calls.solve(model, task, **options)
    except MemoryLimitError:
        if "memory" in options:
            return
        raise
    if found.status == "infeasible" and not total.any():
        return
    if task == "mpe":
        if found.status != "optimal":
            if "memory" in options:
                return
            raise Defect(f"{found.status}, though nothing stops the call")
        chosen = total[tuple(model.indices_of(found.assignment))]
        if not math.isclose(chosen, total.max(), rel_tol=1e-9):
            raise Defect(f"the best product is {total.max()}, not {chosen}")
    elif found.status in ("bounded", "estimated") and "memory" in options:
        _check_bounds(found, np.count_nonzero(total) if task == "count" else total.sum())
    elif task == "count":
        if found.value != np.count_nonzero(total):
            raise Defect(f"the count is {np.count_nonzero(total)}, not {found.value}")
    elif not _is_close(found.log10_z, math.log10(total.sum()) if total.any() else -math.inf):
        raise Defect(f"the sum is {total.sum()}, not 10^{found.log10_z}")
    elif task == "mar":
        _compare(model, total, {name: list(own.values()) for name, own in found.marginals.items()})


def _check_bounds(found: Result, total: float) -> None:
    """Compare what memory allowed for: bounds on a number of assignments, or on the logarithm of a sum."""
    truth = total if found.task == "count" else math.log10(total) if total else -math.inf
    low = -math.inf if found.lower_bound is None else found.lower_bound
    high = math.inf if found.upper_bound is None else found.upper_bound
    if found.status == "bounded" and not low - 1e-9 * abs(truth) <= truth <= high + 1e-9 * abs(truth):
        raise Defect(f"the bounds {low} to {high} exclude {truth}")


def _check_tree(case: Case, model: Model, total: NDArray[np.float64]) -> None:
    taken = ("device", "memory", "threads", "order")
    tree = JunctionTree(model, **_tree_options({k: v for k, v in case["options"].items() if k in taken}))
    if not tree.is_exact and "memory" not in case["options"]:
        raise Defect("the tree is estimated, though memory is not limited")
    if not total.any():
        if tree.is_exact and tree.log10_evidence != -math.inf:
            raise Defect(f"the sum is 0, not 10^{tree.log10_evidence}")
        return
    if case["task"] == "tree":
        _compare(model, total, tree.marginals(), tree.error)
        return
    values = np.argwhere(total)[:: max(1, np.count_nonzero(total) // 5)][:5]
    observed = [v for v in range(len(model.sizes)) if v % 2]
    posteriors = tree.batch({model.variables[v].name: values[:, v].tolist() for v in observed}) if observed else None
    for n, row in enumerate(values if observed else []):
        part = total.copy()
        for v in observed:
            others = np.arange(model.sizes[v]) != row[v]
            np.moveaxis(part, v, 0)[others] = 0
        error = 0.0 if posteriors.errors is None else float(posteriors.errors[n])
        _compare(model, part, {name: table[n] for name, table in posteriors.marginals.items()}, error)


def _tree_options(options: dict[str, Any]) -> dict[str, Any]:
    from elimina import Options

    own = {k: options.pop(k) for k in ("threads", "order") if k in options}
    if "memory" in options:
        options["memory"] = f"{options['memory']}B"
    return {**options, "options": Options(**own)}


def _compare(model: Model, total: NDArray[np.float64], marginals: Any, error: float = 0.0) -> None:
    """Compare posteriors with the exact ones.

    Args:
        model: The model.
        total: Product of all tables at each assignment.
        marginals: Variable name -> its posterior.
        error: The stated error, a mean Hellinger distance; 0 if the posteriors are exact, NaN if it is unknown.
    """
    distances = []
    for v, variable in enumerate(model.variables):
        expected = total.sum(axis=tuple(a for a in range(total.ndim) if a != v)) / total.sum()
        given = np.asarray(marginals[variable.name])
        if error == 0:
            if not np.allclose(given, expected, rtol=1e-9, atol=1e-12):
                raise Defect(f"the posterior of {variable.name!r} is {expected}, not {given}")
        elif given.min() < 0 or not math.isclose(given.sum(), 1, rel_tol=1e-6):
            raise Defect(f"the estimated posterior of {variable.name!r} is no distribution: {given}")
        distances.append(math.sqrt(max(0.0, 1 - np.sqrt(given * expected).sum())))
    if np.mean(distances) > ERROR_FACTOR * error + 1e-6:
        raise Defect(f"the posteriors are {np.mean(distances)} off, and the stated error is {error}")


def _is_close(one: float | None, other: float) -> bool:
    return one is not None and (one == other or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9))


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler calls."""
    for name in case["options"]:
        if name != "device":
            yield {**case, "options": {key: value for key, value in case["options"].items() if key != name}}
    for n in range(len(case["scopes"])):
        yield {**case, "scopes": case["scopes"][:n] + case["scopes"][n + 1 :]}
    for simple in ({"share": 0.0}, {"is_listed": False}):
        yield {**case, **simple}
    for v, size in enumerate(case["sizes"]):
        if size > 1:
            yield {**case, "sizes": [*case["sizes"][:v], size - 1, *case["sizes"][v + 1 :]]}


def script(case: Case) -> str:
    """Return a program that makes the call."""
    return "\n".join(
        [
            "from tests.adversary import rows",
            f"case = {case!r}",
            "print(rows.products(rows.model_of(case)).sum())",
            "rows.check(case)",
        ]
    )
