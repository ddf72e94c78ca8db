"""Random models of constraints and options of search, against brute force."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from elimina import Bounds, InputError, cp
from elimina.cp import search_options
from elimina.cp.decompositions import DECOMPOSITIONS
from tests import calls
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.rules import RELATIONS, RULES

MOST_ASSIGNMENTS = 3000
MAX_COUNT_SECONDS = 2.0
"""Longest estimated time of a count of a graphical model, so that the watchdog ends none on a busy machine."""
POSTED_WITH_CONTROLS = {"linear", "condition"}
"""Constraints that draw a Boolean of their own, which they are equivalent to or follow from."""


MOST_NODES_PER_ASSIGNMENT, MOST_OTHER_NODES = 20, 2000
"""Largest number of nodes of a search without restarts: more of them try values of results of functions."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random model and a search."""
    total, domains = 1, []
    # Results of functions of far values have more values than their operands.
    is_wide = rng.random() < 0.1
    for _ in range(rng.randint(1, 8)):
        lo = rng.choice([0, 0, 0, -3, 1])
        values = range(lo, lo + rng.choice([2, 2, 3, 4, 6]))
        domain = sorted(rng.sample(values, rng.randint(1, len(values)))) if rng.random() < 0.4 else list(values)
        if is_wide and rng.random() < 0.5:
            domain = sorted({*domain, rng.choice([-1, 1]) << rng.randint(9, 20)})
        if total * len(domain) <= MOST_ASSIGNMENTS:
            total *= len(domain)
            domains.append(domain)
    posts = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 4])):
        name = rng.choice(list(RULES))
        data = RULES[name].draw(rng, domains)
        if data is not None:
            control = _control(rng, domains) if has_condition(name, data) and rng.random() < 0.6 else []
            posts.append([name, data, *control])
    objective = None
    if rng.random() < 0.5:
        # Of several objectives, each has a row of factors.
        rows = [[rng.choice([-2, -1, 0, 1, 1, 3]) for _ in domains] for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        objective = [rng.choice([1, -1]), rows, rng.randint(-3, 3)]
    return {
        "domains": domains,
        "posts": posts,
        "objective": objective,
        "hints": {str(rng.randrange(len(domains))): rng.randint(-3, 6) for _ in range(rng.choice([0, 0, 1, 3, 6]))},
        "assumptions": [_assumption(rng, domains) for _ in range(rng.choice([0, 0, 0, 1, 3, 5]))],
        "options": _options(rng, objective is not None, setting.device),
        "rule": [rng.choice(search_options.VARIABLE_ORDERINGS), rng.choice(search_options.VALUE_ORDERINGS)]
        if rng.random() < 0.3
        else None,
        "what": rng.choice(["all", "all", "one"] + ["propagated", "to_model"] * (not is_wide)),
    }


def has_condition(name: str, data: list[Any]) -> bool:
    """Return whether a constraint can be a condition; a clause without a variable belongs to no model."""
    return name not in POSTED_WITH_CONTROLS and (name != "clause" or any(data))


def _control(rng: random.Random, domains: list[list[int]]) -> list[Any]:
    x = rng.randrange(len(domains))
    return [rng.choice(["iff", "only_if", "implied", "equal", "denied"]), x, rng.choice(domains[x])]


def _assumption(rng: random.Random, domains: list[list[int]]) -> list[Any]:
    x = rng.randrange(len(domains))
    return [x, rng.choice(list(RELATIONS)), rng.choice(domains[x]), rng.random() < 0.2]


def _assumed(xs: Sequence[Any], assumption: list[Any]) -> Any:
    """Return a comparison; or a condition that has it on both sides."""
    x, name, value, is_combined = assumption
    relation = RELATIONS[name](xs[x], value)
    return relation | RELATIONS[name](xs[x], value) if is_combined else relation


def _options(rng: random.Random, has_objective: bool, device: str) -> dict[str, Any]:
    options: dict[str, Any] = {"device": device if rng.random() < 0.5 else "cpu"}
    if rng.random() < 0.3:
        options["free"] = True
    if rng.random() < 0.2 and has_objective:
        options["lns"] = True
    if rng.random() < 0.15 and options["device"] == "cpu":
        options["threads"] = rng.choice([2, 2, 4])
    if rng.random() < 0.3:
        options["seed"] = rng.randrange(9)
    if rng.random() < 0.3:
        options["restarts"] = rng.choice(["luby", "geometric", "linear", "constant", "none"])
    # Without restarts of its own, the search is the portfolio, whose stretches the scale makes short.
    if rng.random() < 0.5:
        options["restart_scale"] = rng.choice([1, 3, 100])
    if rng.random() < 0.1:
        options["restart_growth"] = rng.choice([1, 1.1, 3])
    if rng.random() < 0.1 and has_objective:
        options["gap"] = rng.choice([0.01, 0.3, "50%"])
    if rng.random() < 0.1:
        options[rng.choice(["node_limit", "fail_limit"])] = rng.choice([0, 1, 5, 1000])
    if rng.random() < 0.1:
        options["solution_limit"] = rng.choice([0, 1, 2, 5])
    return options


class Recorder:
    """A model for the functions that post a rule: it keeps the condition of the constraint instead."""

    def __init__(self, model: cp.Model) -> None:
        self.model = model
        self.conditions: list[Any] = []

    def add(self, condition: Any) -> None:
        self.conditions.append(condition)

    def __getattr__(self, name: str) -> Any:
        if name not in DECOMPOSITIONS:
            return getattr(self.model, name)

        def record(*arguments: Any, **keywords: Any) -> None:
            self.conditions.append(getattr(cp, name)(*arguments, **keywords))

        return record


def _holds(values: Sequence[int], name: str, data: list[Any], how: str = "", x: int = 0, value: int = 0) -> bool:
    if not RULES[name].is_defined(values, data):
        return False
    is_true = bool(RULES[name].holds(values, data))
    is_demanded = values[x] == value
    if how in ("iff", "equal"):
        return is_true == is_demanded
    if how == "denied":
        return not is_true or is_demanded
    return is_true or (bool(how) and not is_demanded)


class Built:
    """A model, its variables, and all of its solutions by brute force."""

    def __init__(self, case: Case) -> None:
        self.model = cp.Model()
        self.conditions: list[tuple[Any, str, list[Any]]] = []
        self.xs = []
        for number, domain in enumerate(case["domains"]):
            is_whole = domain == list(range(domain[0], domain[-1] + 1))
            self.xs.append(self.model.int_var(*(domain[0], domain[-1]) if is_whole else (domain,), name=f"x{number}"))
        self.posts = case["posts"]
        for name, data, *control in self.posts:
            if control:
                self._post_reified(name, data, *control)
            else:
                RULES[name].post(self.model, self.xs, data)
        self.sign = 0
        if case["objective"] is not None:
            self.sign, self.rows, self.constant = case["objective"]
            aims = [
                self.model.sum(f * x for f, x in zip(row, self.xs, strict=True)) + self.constant for row in self.rows
            ]
            (self.model.minimize if self.sign > 0 else self.model.maximize)(aims if len(aims) > 1 else aims[0])
        self.model.hint({f"x{x}": value for x, value in case.get("hints", {}).items()})
        self.assumptions = case.get("assumptions", [])
        if case["rule"] is not None:
            self.model.search(self.xs, *case["rule"])
        self.solutions = [
            values
            for values in itertools.product(*case["domains"])
            if all(_holds(values, *post) for post in self.posts)
        ]

    def _post_reified(self, name: str, data: list[Any], how: str, x: int, value: int) -> None:
        recorder = Recorder(self.model)
        RULES[name].post(recorder, self.xs, data)  # type: ignore[arg-type]
        (condition,) = recorder.conditions
        control = self.xs[x] == value
        if how == "implied":
            self.model.add(control.implies(condition))
        elif how == "equal":
            self.model.add(condition == control)
        elif how == "denied":
            self.model.add(~condition | control)
        else:
            self.model.add(condition, **{how: control})
        self.conditions.append((condition, name, data))

    def worths(self, values: tuple[int, ...]) -> list[int]:
        """The values of the objectives."""
        return [self.constant + sum(f * x for f, x in zip(row, values, strict=True)) for row in self.rows]

    def best_of_all(self) -> list[int]:
        """The optima of the objectives in turn, where there is a solution."""
        return (min if self.sign > 0 else max)(map(self.worths, self.solutions))

    def best(self) -> int:
        """The optimum of the first objective."""
        return self.best_of_all()[0]

    def assuming(self, numbers: Iterable[int]) -> list[tuple[int, ...]]:
        """The solutions in which some assumptions hold."""
        chosen = [self.assumptions[number] for number in numbers]
        return [values for values in self.solutions if all(_assumed(values, one) for one in chosen)]


def check(case: Case) -> None:
    """Search and compare."""
    built = Built(case)
    if case["what"] == "propagated":
        _check_domains(built)
    elif case["what"] == "to_model":
        _check_bridge(built)
    else:
        _check_search(case, built)


def _check_domains(built: Built) -> None:
    domains = built.model.propagated()
    if domains is None and built.solutions:
        raise Defect(f"infeasible by propagation, but {built.solutions[0]} is a solution")
    for values in built.solutions:
        for x, (value, domain) in enumerate(zip(values, domains or [], strict=False)):
            if value not in domain:
                raise Defect(f"propagation takes {value} from x{x}, but {values} is a solution")


def _check_bridge(built: Built) -> None:
    if built.sign and len(built.rows) > 1:
        return
    try:
        graphical = built.model.to_model()
    except InputError as error:
        # A condition on a power may compare a variable of more values than a table holds.
        if built.conditions and "assignments to check" in str(error):
            return
        raise
    result = calls.solve(graphical, threads=1, device="cpu")
    if (result.status == "infeasible") != (not built.solutions):
        raise Defect(f"the graphical model is {result.status}, with {len(built.solutions)} solutions")
    if built.solutions and built.sign and result.value != built.best():
        raise Defect(f"the optimum of the graphical model is {result.value}, not {built.best()}")
    if calls.plan(graphical, "count", threads=1, device="cpu").seconds > MAX_COUNT_SECONDS:
        return
    count = calls.solve(graphical, "count", threads=1, device="cpu").value
    if (count or 0) != len(built.solutions):
        raise Defect(f"the graphical model has {count} solutions, not {len(built.solutions)}")


def _check_search(case: Case, built: Built) -> None:
    has_limit = bool({"node_limit", "fail_limit", "gap", "solution_limit"} & case["options"].keys())
    bounds: list[Bounds] = []
    options = {**case["options"], "on_bounds": bounds.append} if built.sign else case["options"]
    assumptions = [_assumed(built.xs, one) for one in built.assumptions]
    result = calls.search(
        built.model,
        all_solutions=case["what"] == "all",
        **options,
        **({"assumptions": assumptions} if assumptions else {}),
    )
    if assumptions:
        _check_core(
            built,
            [number for one in result.core for number, other in enumerate(assumptions) if other is one],
            result.status,
        )
        built.solutions = built.assuming(range(len(assumptions)))
    most = MOST_NODES_PER_ASSIGNMENT * math.prod(map(len, case["domains"])) + MOST_OTHER_NODES
    if case["what"] == "all" and result.stats["nodes"] > most:
        raise Defect(f"a search for all solutions took {result.stats['nodes']} nodes, not at most {most}")
    ends = [(one.lower, one.upper) for one in bounds] + [(result.lower_bound, result.upper_bound)]
    for lower, upper in ends if built.sign and built.solutions and len(built.rows) == 1 else ():
        best = built.best()
        if (lower is not None and lower > best) or (upper is not None and upper < best):
            raise Defect(f"the bounds are {lower} to {upper}, but the optimum is {best}")
    known = set(built.solutions)
    found = [tuple(solution[built.xs]) for solution in result.solutions]
    if result.assignment is not None:
        found.append(tuple(result[built.xs]))
    for solution in result.solutions[:3]:
        for condition, name, data in built.conditions:
            if solution[condition] != int(RULES[name].holds(solution[built.xs], data)):
                raise Defect(f"{condition} is {solution[condition]} in {solution[built.xs]}")
    if len(result.solutions) > case["options"].get("solution_limit", len(result.solutions)):
        raise Defect(f"{len(result.solutions)} solutions, beyond the limit")
    wrong = [values for values in found if values not in known]
    if wrong:
        raise Defect(f"{wrong[0]} is not a solution")
    if result.status == "infeasible" and known:
        raise Defect(f"infeasible, but {built.solutions[0]} is a solution")
    if result.status == "unknown" and not has_limit:
        raise Defect("unknown, though nothing stops the search")
    if result.stats["complete"] and not known and result.status != "infeasible":
        raise Defect(f"{result.status}, but there is no solution")
    if built.sign and known:
        values = [one.value for one in result.objectives] or [result.value]
        if result.status == "optimal" and values != built.best_of_all():
            raise Defect(f"the optimum is {built.best_of_all()}, not {values}")
        for one, best in zip(result.objectives, built.best_of_all(), strict=False):
            lower, upper = one.lower_bound, one.upper_bound
            if (lower is not None and lower > best) or (upper is not None and upper < best):
                raise Defect(f"the bounds are {lower} to {upper}, but the optimum is {best}")
            if one.value != best:
                break
        if result.status != "optimal" and not has_limit:
            raise Defect(f"the status is {result.status}, though nothing stops the search")
    elif (
        case["what"] == "all"
        and result.stats["complete"]
        and not (len(set(found)) == len(known) == len(result.solutions))
    ):
        raise Defect(f"{len(result.solutions)} solutions ({len(set(found))} of them distinct), not {len(known)}")


def _check_core(built: Built, core: list[int], status: str) -> None:
    if status != "infeasible":
        if core:
            raise Defect(f"{status}, with a core of {core}")
        return
    if built.assuming(core):
        raise Defect(f"the core {core} has the solution {built.assuming(core)[0]}")
    for number in core:
        if not built.assuming(other for other in core if other != number):
            raise Defect(f"the core {core} does not need {number}")


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler models and searches."""
    posts, domains = case["posts"], case["domains"]
    for i in range(len(posts)):
        yield {**case, "posts": posts[:i] + posts[i + 1 :]}
        if len(posts[i]) > 2:
            yield {**case, "posts": [*posts[:i], posts[i][:2], *posts[i + 1 :]]}
    for name in case["options"]:
        yield {**case, "options": {key: value for key, value in case["options"].items() if key != name}}
    if case["objective"] is not None:
        yield {**case, "objective": None}
    if case["rule"] is not None:
        yield {**case, "rule": None}
    yield from ({**case, name: type(case[name])()} for name in ("hints", "assumptions") if case.get(name))
    for x, domain in enumerate(domains):
        for value in domain if len(domain) > 1 else []:
            yield {**case, "domains": [*domains[:x], [v for v in domain if v != value], *domains[x + 1 :]]}
    last = len(domains) - 1
    is_named = str(last) in case.get("hints", {}) or any(one[0] == last for one in case.get("assumptions", []))
    if last > 0 and not is_named and not any(_names(post[1:], last) for post in posts):
        aim = case["objective"]
        objective = aim and [aim[0], [row[:-1] for row in aim[1]], aim[2]]
        yield {**case, "domains": domains[:-1], "objective": objective}


def _names(data: Any, x: int) -> bool:
    """Return whether a number occurs anywhere, as a variable perhaps."""
    return any(_names(part, x) for part in data) if isinstance(data, list) else data == x


def script(case: Case) -> str:
    """Return a program that posts and searches."""
    return f"from tests.adversary.constraints import check\ncheck({case!r})"
