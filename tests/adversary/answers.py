"""Checks of a result of ``solve`` against all assignments."""

from __future__ import annotations

import math
from typing import Any

from elimina.model.model import Model
from elimina.result import Result
from tests.adversary.case import Case, Defect
from tests.adversary.evidence import observed_of, state_of
from tests.adversary.oracle import Oracle

LOG_10 = math.log(10)
LIMITS = {"time_limit", "memory", "interrupt"}
"""Options that may end a run before anything is known."""


def expected(case: Case, oracle: Oracle) -> str:
    """Return what brute force says."""
    task = case["task"]
    if task in ("mpe", "dcop"):
        return f"optimum {oracle.optimum()!r}"
    if task == "bottleneck":
        return f"worst values {sorted(oracle.worst_values())}"
    if task == "count":
        return f"count {oracle.count()}"
    total = oracle.log_sum()
    if task == "mmap":
        sums = oracle.log_sums(case["query"])
        best = max(sums, key=lambda values: sums[values], default=None)
        return f"best {sums.get(best)!r} at {best} of variables {case['query']}, log10 Z {total / LOG_10!r}"
    if task == "mar":
        asked = range(len(oracle.sizes)) if case["query"] is None else case["query"]
        marginals = {v: oracle.marginals(v) for v in asked} if oracle.is_possible() else "none"
        return f"log10 Z {total / LOG_10!r}, marginals {marginals}"
    return f"log10 Z {total / LOG_10!r}"


def check(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    """Compare a result with brute force."""
    if result.task != case["task"]:
        raise Defect(f"the task is {result.task}")
    if case["options"].get("exact") and result.status not in ("exact", "optimal", "infeasible") and not _may_end(case):
        raise Defect(f"the status is {result.status}, though only an exact answer is asked for")
    if result.status == "unknown":
        if not LIMITS & case["options"].keys():
            raise Defect("unknown, though nothing stops the run")
        if result.value is not None or result.assignment is not None or result.marginals:
            raise Defect(f"unknown, with {result.value}, {result.assignment}, {result.marginals}")
        return
    checks = {"mpe": _optimum, "dcop": _optimum, "bottleneck": _bottleneck, "mmap": _marginal_map}
    checks |= {"pr": _sum, "mar": _marginals, "count": _count}
    checks[case["task"]](case, model, oracle, result)


def _may_end(case: Case) -> bool:
    """Return whether a search for an exact answer may end before it is proven."""
    return bool({"gap", "interrupt"} & case["options"].keys())


def slack(case: Case, oracle: Oracle, truth: float) -> float:
    """Return the rounding that an answer may have: none of integers."""
    if isinstance(truth, int) and case["options"].get("dtype") not in ("float32", "float64"):
        return 0
    share = 1e-4 if case["options"].get("dtype") == "float32" else 1e-9
    rounding = oracle.magnitude if case["options"].get("dtype") in ("float32", "float64") else 0.0
    return share * max(1.0, abs(truth), rounding)


def is_out_of_reach(case: Case, oracle: Oracle) -> bool:
    """Return whether a bound is given that no assignment reaches."""
    best, given = oracle.optimum(), case["options"].get("upper_bound")
    sign = 1 if oracle.spec["sense"] == "min-cost" else -1
    return given is not None and (best is None or sign * best > sign * given)


def check_bounds(case: Case, oracle: Oracle, lower: Any, upper: Any, source: str) -> None:
    """Check that bounds are in order and hold the optimum between them."""
    best = oracle.optimum()
    sign = -1 if oracle.spec["sense"] in ("max-cost", "probability") else 1
    if lower is not None and upper is not None and lower - upper > slack(case, oracle, lower):
        raise Defect(f"the bounds of {source} are out of order: {lower} to {upper}")
    if best is None:
        return
    ends = [(lower, best - _number(lower, best)), (upper, _number(upper, best) - best)]
    for end, distance in ends:
        is_worse_side = (end is upper) == (sign == 1)
        if (
            end is not None
            and distance < -slack(case, oracle, best)
            and not (is_worse_side and is_out_of_reach(case, oracle))
        ):
            raise Defect(f"the bounds of {source}, {lower} to {upper}, exclude the optimum {best}")


def _number(end: Any, best: Any) -> Any:
    return best if end is None else end


def is_rounding(oracle: Oracle, result: Result, given: Any = None) -> bool:
    """Return whether bounds lie apart by what sums of the floats in the tables may be rounded by."""
    # Where nothing is found below a bound, that bound is the other end.
    beyond = None
    if result.value is None:
        beyond = oracle.spec["upper_bound"] if given is None else given
    lower, upper = (beyond if end is None else end for end in (result.lower_bound, result.upper_bound))
    if isinstance(oracle.optimum(), int) or lower is None or upper is None:
        return False
    return bool(upper - lower <= 1e-12 * math.fsum(oracle.largest_terms()))


def _is_exact_in_floats(oracle: Oracle, dtype: str) -> bool:
    """Return whether the rounding of a number type is too small to hide which integer is the optimum."""
    share = {"float32": 1e-5, "float64": 1e-13}.get(dtype, 0.0)
    return isinstance(oracle.optimum(), int | None) and share * oracle.magnitude < 0.1


def _optimum(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    best, sense, options = oracle.optimum(), oracle.spec["sense"], case["options"]
    given = options.get("upper_bound")
    sign = 1 if sense == "min-cost" else -1
    is_lost = is_out_of_reach(case, oracle)
    check_bounds(case, oracle, result.lower_bound, result.upper_bound, "the result")
    if result.status == "infeasible":
        if best is not None and not is_lost:
            raise Defect(f"infeasible, but {best} is reached")
        if result.assignment is not None or result.value is not None:
            raise Defect("infeasible with an assignment")
        return
    if result.status == "optimal":
        if best is None:
            raise Defect("optimal, but nothing is allowed")
        if is_lost and options.get("method") != "search" and not LIMITS & options.keys():
            raise Defect(f"optimal {result.value}, which is worse than the upper bound {given}")
        if abs(result.value - best) > slack(case, oracle, best):
            raise Defect(f"the optimum is {best!r}, not {result.value!r}")
        if isinstance(best, int) and not isinstance(result.value, int) and "dtype" not in options:
            raise Defect(f"the value {result.value!r} is not an int")
        if result.assignment is None:
            raise Defect("optimal without an assignment")
    elif not (
        is_rounding(oracle, result, given)
        or options.get("method") == "mbe"
        or {"gap", "time_limit", "memory", "interrupt"} & options.keys()
        or ("dtype" in options and not _is_exact_in_floats(oracle, options["dtype"]))
    ):
        raise Defect(f"the status is {result.status}, though nothing stops the search")
    if result.assignment is None:
        if result.value is not None:
            raise Defect("a value without an assignment")
        return
    numbers = _assigned(case, model, result, range(len(oracle.sizes)))
    score = oracle.score(numbers)
    if score is None:
        raise Defect(f"the assignment {result.assignment} is forbidden")
    bound = oracle.spec["upper_bound"]
    if bound is not None and sign * score >= sign * bound + (0 if isinstance(score, int) else 1e-9 * abs(bound)):
        raise Defect(f"the assignment is worth {score}, beyond the upper bound {bound}")
    if abs(result.value - score) > slack(case, oracle, score):
        raise Defect(f"the assignment is worth {score!r}, not {result.value!r}")


def _check_ends(result: Result, best: float | None, off: float) -> None:
    """Check that bounds hold, where the memory is too little for more."""
    for end, sign in ((result.lower_bound, 1), (result.upper_bound, -1)):
        if best is not None and end is not None and sign * (end - best) > off:
            raise Defect(f"the bounds {result.lower_bound} to {result.upper_bound} exclude the best, {best}")


def _bottleneck(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    worst, is_least = oracle.worst_values(), oracle.spec["sense"] == "min-cost"
    best = (min if is_least else max)(worst, default=None)
    if result.status == "bounded" and LIMITS & case["options"].keys():
        _check_ends(result, best, slack(case, oracle, best) if best is not None else 0)
        return
    if best is None or model.is_beyond_bound(best):
        if result.status != "infeasible" or result.assignment is not None or result.value is not None:
            raise Defect(f"{result.status} {result.value}, but nothing is allowed")
        return
    if result.status != "optimal":
        raise Defect(f"the status is {result.status}, though nothing stops the elimination")
    if abs(result.value - best) > slack(case, oracle, best):
        raise Defect(f"the best worst value is {best!r}, not {result.value!r}")
    if isinstance(best, int) and "dtype" not in case["options"] and not isinstance(result.value, int):
        raise Defect(f"the value {result.value!r} is not an int")
    numbers = _assigned(case, model, result, range(len(oracle.sizes)))
    number = 0
    for value, size in zip(numbers, oracle.sizes, strict=True):
        number = number * size + value
    at = oracle.allowed.tolist().index(number) if number in oracle.allowed else None
    if at is None or worst[at] != result.value:
        raise Defect(f"the assignment {result.assignment} is not worth {result.value!r}")


def _assigned(case: Case, model: Model, result: Result, variables: Any) -> list[int]:
    """Values' numbers of an assignment of just these variables that agrees with the evidence."""
    names = [model.variables[v].name for v in variables]
    if result.assignment is None or sorted(result.assignment) != sorted(names):
        raise Defect(f"the assignment {result.assignment} is not of {names}")
    numbers = []
    for v, name in zip(variables, names, strict=True):
        states = [state_of(case["model"], v, x) for x in range(model.variables[v].size)]
        if result.assignment[name] not in states:
            raise Defect(f"the state {result.assignment[name]!r} is none of variable {name!r}")
        numbers.append(states.index(result.assignment[name]))
    observed = observed_of(case)
    if any(observed.get(v, x) != x for v, x in zip(variables, numbers, strict=True)):
        raise Defect(f"the assignment {result.assignment} does not agree with the evidence")
    return numbers


def _log_slack(case: Case, oracle: Oracle) -> float:
    return (1e-3 if case["options"].get("dtype") == "float32" else 1e-9) * max(1.0, 1e-3 * oracle.magnitude)


def _is_infeasible(oracle: Oracle, result: Result) -> bool:
    """Return whether it is the answer, rightly."""
    if result.status == "infeasible":
        if oracle.is_possible():
            raise Defect(f"infeasible, but log10 Z is {oracle.log_sum() / LOG_10}")
        return True
    return False


def _sum(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    truth, off = oracle.log_sum() / LOG_10, _log_slack(case, oracle)
    if _is_infeasible(oracle, result):
        return
    for end, sign in ((result.lower_bound, 1), (result.upper_bound, -1)):
        if result.status == "bounded" and end is not None and sign * (end - truth) > off:
            raise Defect(f"the bounds {result.lower_bound} to {result.upper_bound} exclude log10 Z, {truth}")
    if result.status == "estimated":
        if not LIMITS & case["options"].keys():
            raise Defect("an estimate, though there is no limit")
    elif result.status != "bounded":
        _check_log(result, truth, off)
        if (
            result.value is not None
            and -300 < truth < 300
            and not math.isclose(result.value, 10**truth, rel_tol=1e-6 + 3 * off)
        ):
            raise Defect(f"the sum is {10**truth!r}, not {result.value!r}")
    elif case["options"].get("method") != "mbe" and not {"memory", "time_limit"} & case["options"].keys():
        raise Defect("bounded, though nothing stops the sum")


def _check_log(result: Result, truth: float, off: float) -> None:
    if result.log10_z is None or not (result.log10_z == truth or abs(result.log10_z - truth) <= off):
        raise Defect(f"log10 Z is {truth!r}, not {result.log10_z!r}")


def _marginals(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    off = 1e-3 if case["options"].get("dtype") == "float32" else 1e-9
    is_local = case["model"]["children"] is not None and case["query"] is not None
    if _is_infeasible(oracle, result):
        return
    if is_local and not oracle.is_possible() and LIMITS & case["options"].keys():
        # To find out would take more than a limit allows.
        return
    is_estimated = result.status == "estimated"
    if is_estimated and not LIMITS & case["options"].keys():
        raise Defect("an estimate, though there is no limit")
    if not oracle.is_possible() and not is_estimated:
        raise Defect(f"{result.status}, but the evidence is impossible")
    if result.status not in ("bounded", "estimated") and (result.log10_z is not None or not is_local):
        _check_log(result, oracle.log_sum() / LOG_10, _log_slack(case, oracle))
    asked = range(len(oracle.sizes)) if case["query"] is None else case["query"]
    names = [model.variables[v].name for v in asked]
    if sorted(result.marginals) != sorted(names):
        raise Defect(f"marginals are of {list(result.marginals)}, not of {names}")
    for v, name in zip(asked, names, strict=True):
        found = list(result.marginals[name].items())
        states = [state_of(case["model"], v, x) for x in range(model.variables[v].size)]
        if [state for state, _ in found] != states:
            raise Defect(f"the states of {name!r} are {[state for state, _ in found]}")
        if min(p for _, p in found) < 0 or abs(sum(p for _, p in found) - 1) > max(off, 1e-6):
            raise Defect(f"the marginals of {name!r} do not add up to 1: {dict(found)}")
        truth = oracle.marginals(v)
        if truth is None:
            continue
        bounds = result.marginal_bounds.get(name, {})
        for (state, _), q in zip(found, truth, strict=True):
            low, high = bounds.get(state, (0.0, 1.0))
            if not low - off <= q <= high + off:
                raise Defect(f"the bounds {low} to {high} on {name!r} = {state!r} exclude {q}")
        if is_estimated:
            continue
        if not all(abs(p - q) <= off for (_, p), q in zip(found, truth, strict=True)):
            raise Defect(f"the marginals of {name!r} are {truth}, not {dict(found)}")


def _marginal_map(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    if _is_infeasible(oracle, result):
        return
    sums = oracle.log_sums(case["query"])
    if not sums:
        if result.status == "optimal" or result.assignment is not None:
            raise Defect(f"{result.status}, but the evidence is impossible")
        return
    best, off = max(sums.values()), _log_slack(case, oracle)
    for end, sign in ((result.lower_bound, 1), (result.upper_bound, -1)):
        if end is not None and sign * (end - best) > off:
            raise Defect(f"the bounds {result.lower_bound} to {result.upper_bound} exclude the best, {best}")
    if result.status == "optimal" and (result.value is None or abs(result.value - best) > off):
        raise Defect(f"the best is {best!r}, not {result.value!r}")
    if result.assignment is not None:
        score = sums.get(tuple(_assigned(case, model, result, case["query"])))
        if score is None or (result.value is not None and abs(result.value - score) > off):
            raise Defect(f"the assignment is worth {score}, not {result.value}")
    if result.log10_z is not None:
        _check_log(result, oracle.log_sum() / LOG_10, off)


def _count(case: Case, model: Model, oracle: Oracle, result: Result) -> None:
    if result.status == "infeasible" and not oracle.count():
        return
    if result.status in ("bounded", "estimated"):
        low, high = result.lower_bound, result.upper_bound
        if not LIMITS & case["options"].keys():
            raise Defect(f"{result.status}, though nothing stops the count")
        if not (low is None or low <= oracle.count()) or not (high is None or high >= oracle.count()):
            raise Defect(f"the bounds {low} to {high} exclude {oracle.count()} assignments")
        return
    if result.value != oracle.count() or not isinstance(result.value, int):
        raise Defect(f"{oracle.count()} assignments are allowed, not {result.value!r}")
