"""Random sequences of evidence and queries for a junction tree, against brute force."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from elimina.errors import ImpossibleEvidenceError, MemoryLimitError
from elimina.model.model import Model
from tests.adversary.case import Case, Defect, Setting
from tests.adversary.evidence import as_mapping, make_evidence, smaller_evidence, state_of
from tests.adversary.models import Spec, build, make_model, smaller_models, text
from tests.adversary.oracle import Oracle
from tests.calls import junction_tree

OFF = 1e-9
"""Rounding of a probability."""

QUERIES = (
    "marginals",
    "max_marginals",
    "log10_evidence",
    "mpe",
    "joint",
    "entropy",
    "conditional",
    "mutual_information",
    "sample",
)

LARGEST_JOINT = 3_000
"""Joint values of the variables of a query."""

FREQUENT = 3_000
"""Samples from which their frequencies are compared with posteriors."""

DEVIATIONS = 7
"""Standard deviations that a frequency may be off: chance exceeds them once in some 10^11 comparisons."""

MakeOracle = Callable[[dict[int, int], dict[int, list[float]]], Any]

Known = dict[int, Any]
"""Variable -> number of the observed value, or likelihoods."""


def make(rng: random.Random, setting: Setting) -> Case:
    """Make a random session."""
    spec = make_model(rng, ("probability",))
    names = range(len(spec["variables"]))
    options: dict[str, Any] = {"device": setting.device, "threads": rng.choice([1, 1, 2]), "order_seconds": 0.01}
    if rng.random() < 0.3:
        options |= {"memory": int(10 ** rng.uniform(0, 6)), "exact": True}
    if rng.random() < 0.3:
        options["order"] = rng.choice(["min-fill", "min-weight", rng.sample(names, len(names))])
    return {"model": spec, "options": options, "calls": make_calls(rng, spec)}


def make_calls(rng: random.Random, spec: Spec) -> list[list[Any]]:
    """Draw changes of evidence and queries."""
    calls: list[list[Any]] = []
    for _ in range(rng.randint(1, 8)):
        if rng.random() < 0.4:
            calls.append(_change(rng, spec))
        elif rng.random() < 0.15:
            calls.append(_batch(rng, spec))
        else:
            calls.append(_query(rng, spec))
    return calls


def _change(rng: random.Random, spec: Spec) -> list[Any]:
    evidence = make_evidence(rng, spec, soft=True)
    if rng.random() < 0.5:
        return ["set_evidence", evidence]
    return ["update", [[v, how, None if rng.random() < 0.3 else known] for v, how, known in evidence]]


def _query(rng: random.Random, spec: Spec) -> list[Any]:
    names = range(len(spec["variables"]))
    what = rng.choice(QUERIES)
    some = rng.sample(names, rng.randint(0, min(3, len(names))))
    while math.prod(spec["variables"][v][1] for v in some) > LARGEST_JOINT:
        some.pop()
    if what in ("joint", "entropy"):
        return [what, some]
    if what in ("conditional", "mutual_information"):
        return [what, some[:1], some[1:]]
    if what == "sample":
        return [what, rng.choice([0, 1, 20, FREQUENT]), rng.randrange(3), None if rng.random() < 0.5 else some]
    if what in ("marginals", "max_marginals"):
        return [what, None if rng.random() < 0.5 else some]
    return [what]


def _batch(rng: random.Random, spec: Spec) -> list[Any]:
    names = range(len(spec["variables"]))
    columns = rng.sample(names, rng.randint(0, len(names)))
    sizes = [spec["variables"][v][1] for v in columns]
    rows = [
        [None if rng.random() < 0.3 else rng.randrange(size) for size in sizes]
        for _ in range(rng.choice([1, 2, 5, 20]))
    ]
    if rng.random() < 0.2:
        rows = rng.choices(rows, k=300)
    return [
        "batch",
        columns,
        rows if columns else [],
        None if rng.random() < 0.5 else rng.sample(names, len(names) // 2),
    ]


class Session:
    """A tree, and the evidence that it has.

    Args:
        case: Options, and the variables of the model.
        model: The model.
        make_oracle: Function that returns the oracle of the model, given its hard and its soft evidence.
    """

    def __init__(self, case: Case, model: Model, make_oracle: MakeOracle) -> None:
        self.spec = case["model"]
        self.model, self.make_oracle = model, make_oracle
        self.names = [name for name, *_ in self.spec["variables"]]
        self.known: Known = {}
        self.tree = junction_tree(self.model, **case["options"])
        self._oracles: dict[str, Oracle] = {}
        self._log_sums: dict[str, float] = {}
        self._posteriors: dict[tuple[int, str], list[float]] = {}

    def oracle(self, known: Known | None = None) -> Oracle:
        """Brute force with the evidence."""
        known = self.known if known is None else known
        if repr(known) not in self._oracles:
            hard = {v: value for v, value in known.items() if isinstance(value, int)}
            soft = {v: value for v, value in known.items() if isinstance(value, list)}
            self._oracles[repr(known)] = self.make_oracle(hard, soft)
        return self._oracles[repr(known)]

    def run(self, call: list[Any]) -> None:
        """Make a call and compare."""
        what, *arguments = call
        if what in ("set_evidence", "update"):
            self.change(what, *arguments)
        elif what == "batch":
            self.batch(*arguments)
        elif what == "log10_evidence":
            close([self.tree.log10_evidence], [self.oracle().log_sum() / math.log(10)], what, 1e-9 * self.scale())
        else:
            try:
                answer = getattr(self.tree, what)(*(self.named(argument) for argument in arguments))
            except ImpossibleEvidenceError:
                if self.oracle().is_possible():
                    raise
                return
            if not self.oracle().is_possible():
                raise Defect(f"{what} answers {answer}, but the evidence is impossible")
            getattr(self, what)(answer, *arguments)

    def in_case(self, observed: dict[int, int]) -> Known:
        """The evidence and the observations of a case together, as likelihoods where both are about a variable."""
        known = {**observed, **self.known}
        for v in observed.keys() & self.known.keys():
            earlier, size = self.known[v], self.spec["variables"][v][1]
            before = earlier if isinstance(earlier, list) else [float(x == earlier) for x in range(size)]
            known[v] = [weight * (x == observed[v]) for x, weight in enumerate(before)]
        return known

    def log_sum(self, known: Known) -> float:
        """Return the natural logarithm of the probability of evidence."""
        if repr(known) not in self._log_sums:
            self._log_sums[repr(known)] = self.oracle(known).log_sum()
        return self._log_sums[repr(known)]

    def posterior(self, v: int, known: Known | None = None) -> list[float]:
        """Return the posterior of a variable; zeros under impossible evidence."""
        oracle = self.oracle(known)
        key = v, repr(self.known if known is None else known)
        if key not in self._posteriors:
            self._posteriors[key] = oracle.marginals(v) if oracle.is_possible() else [0.0] * oracle.sizes[v]
        return self._posteriors[key]

    def scale(self) -> float:
        """The size of logarithms, as far as they exceed usual ones."""
        return max(1.0, 1e-3 * self.oracle().magnitude)

    def named(self, argument: Any) -> Any:
        """Variables by their names."""
        return [self.names[v] for v in argument] if isinstance(argument, list) else argument

    def change(self, what: str, evidence: list[Any]) -> None:
        """Change the evidence on both sides."""
        if what == "set_evidence":
            self.known = {}
        for v, _, known in evidence:
            self.known.pop(v, None)
            if known is not None:
                self.known[v] = known
        getattr(self.tree, what)(as_mapping(self.spec, evidence))

    def marginals(self, answer: Any, asked: list[int] | None) -> None:
        """Check posteriors."""
        asked = list(range(len(self.names))) if asked is None else asked
        if list(answer) != self.named(asked):
            raise Defect(f"marginals are of {list(answer)}, not of {self.named(asked)}")
        for v in asked:
            close(answer[self.names[v]], self.posterior(v), f"marginals of {self.names[v]!r}", OFF)

    def max_marginals(self, answer: Any, asked: list[int] | None) -> None:
        """Check the best probabilities."""
        for v in range(len(self.names)) if asked is None else asked:
            truth = self.oracle().max_marginals(v)
            close(answer[self.names[v]], truth, f"max-marginals of {self.names[v]!r}", OFF)

    def joint(self, answer: Any, asked: list[int]) -> None:
        """Check a joint distribution."""
        close(answer.reshape(-1), self.joint_of(asked), f"the joint of {self.named(asked)}", OFF)

    def joint_of(self, asked: list[int]) -> list[float]:
        """Return the joint distribution of variables, the last one fastest."""
        total, parts = self.oracle().log_sum(), self.oracle().log_sums(asked)
        places = np.ndindex(*(self.spec["variables"][v][1] for v in asked))
        return [math.exp(parts.get(place, -math.inf) - total) for place in places]

    def conditional(self, answer: Any, asked: list[int], given: list[int]) -> None:
        """Check a conditional distribution, by the joint one that it is a share of."""
        joint = np.reshape(self.joint_of([*asked, *given]), answer.shape)
        totals = joint.sum(axis=tuple(range(len(asked))), keepdims=True)
        # Products with the totals have no quotients of rounding errors, and no NaN where a total is 0.
        shares = np.where(totals > 0, answer.array, 0.0) * totals
        close(shares.ravel(), joint.ravel(), f"the posterior of {self.named(asked)} given {self.named(given)}", OFF)

    def entropy(self, answer: float, asked: list[int]) -> None:
        """Check an entropy."""
        close([answer], [self.entropy_of(asked)], f"the entropy of {self.named(asked)}", 1e-8)

    def entropy_of(self, asked: list[int]) -> float:
        """Return the entropy of variables, in bits."""
        return -math.fsum(p * math.log2(p) for p in self.joint_of(asked) if p > 0)

    def mutual_information(self, answer: float, one: list[int], other: list[int]) -> None:
        """Check the information of two sets of variables about each other."""
        truth = self.entropy_of(one) + self.entropy_of(other) - self.entropy_of([*one, *other])
        close([answer], [truth], "the mutual information", 1e-8)

    def mpe(self, answer: Any) -> None:
        """Check the most probable assignment."""
        assignment, value = answer
        states = [
            [state_of(self.spec, v, x) for x in range(size)] for v, (_, size, _) in enumerate(self.spec["variables"])
        ]
        numbers = [states[v].index(assignment[name]) for v, name in enumerate(self.names)]
        off = 1e-9 * max(1.0, self.oracle().magnitude)
        close([value], [self.oracle().optimum()], "the best logarithm", off)
        score = self.oracle().score(numbers)
        close([value], [-math.inf if score is None else score], f"the logarithm of {assignment}", off)

    def sample(self, answer: Any, count: int, seed: int, asked: list[int] | None) -> None:
        """Check that samples are possible."""
        asked = list(range(len(self.names))) if asked is None else asked
        if list(answer) != self.named(asked) or any(len(column) != count for column in answer.values()):
            raise Defect(f"samples are of {list(answer)} with {[len(column) for column in answer.values()]} rows")
        states = [[state_of(self.spec, v, x) for x in range(self.spec["variables"][v][1])] for v in asked]
        columns = [[own.index(x) for x in answer[n].tolist()] for own, n in zip(states, answer, strict=True)]
        for row in sorted(set(zip(*columns, strict=True))) if asked else ():
            if not self.is_possible(asked, row):
                raise Defect(f"the sample {row} of {self.named(asked)} is impossible")
        for v, column in zip(asked, columns, strict=True) if count >= FREQUENT else ():
            for x, p in enumerate(self.posterior(v)):
                share, off = (
                    column.count(x) / count,
                    DEVIATIONS * math.sqrt(p * (1 - p) / count) + DEVIATIONS**2 / count,
                )
                if abs(share - p) > off:
                    raise Defect(f"{share:.4f} of {count} samples have {self.names[v]!r} = {x}, not {p:.4f}")

    def is_possible(self, asked: list[int], row: tuple[int, ...]) -> bool:
        """Return whether values of variables have a positive probability."""
        if len(asked) == len(self.names):
            values = dict(zip(asked, row, strict=True))
            return self.oracle().score([values[v] for v in range(len(values))]) is not None
        if math.prod(self.spec["variables"][v][1] for v in asked) <= LARGEST_JOINT:
            return row in self.oracle().log_sums(asked)
        return all(self.posterior(v)[x] > 0 for v, x in zip(asked, row, strict=True))

    def batch(self, columns: list[int], rows: list[list[Any]], asked: list[int] | None) -> None:
        """Check posteriors of many cases."""
        cases = {
            self.names[v]: [None if row[i] is None else state_of(self.spec, v, row[i]) for row in rows]
            for i, v in enumerate(columns)
        }
        answer = self.tree.batch(cases, None if asked is None else self.named(asked))
        if answer.log10_evidence.shape != (len(rows),):
            raise Defect(f"the batch has {answer.log10_evidence.shape} cases of {len(rows)}")
        for i, row in enumerate(rows):
            known = self.in_case({v: x for v, x in zip(columns, row, strict=True) if x is not None})
            truth = self.log_sum(known) / math.log(10)
            close([answer.log10_evidence[i]], [truth], f"log10 of case {i}", 1e-9 * self.scale())
            for v in range(len(self.names)) if asked is None else asked:
                close(
                    answer.marginals[self.names[v]][i], self.posterior(v, known), f"case {i} of {self.names[v]!r}", OFF
                )


def close(found: Any, truth: Any, what: str, off: float) -> None:
    """Compare numbers."""
    found = [float(x) for x in found]
    if len(found) != len(truth) or not all(x == y or abs(x - y) <= off for x, y in zip(found, truth, strict=True)):
        raise Defect(f"wrong {what}: {found}, not {list(truth)}")


def check(case: Case) -> None:
    """Run a session."""
    run_session(case, build(case["model"]), functools.partial(Oracle, case["model"]))


def run_session(case: Case, model: Model, make_oracle: MakeOracle) -> None:
    """Make the calls of a case, and compare.

    Raises:
        Defect: An answer is wrong.
    """
    try:
        session = Session(case, model, make_oracle)
        for call in case["calls"]:
            session.run(call)
        session.tree.close()
    except MemoryLimitError:
        if "memory" not in case["options"]:
            raise


def smaller(case: Case) -> Iterator[Case]:
    """Yield simpler sessions."""
    yield from simpler_sessions(case, smaller_models)


def simpler_sessions(case: Case, models: Callable[[Spec], Iterator[tuple[Spec, int | None]]]) -> Iterator[Case]:
    """Yield simpler sessions, on simpler models too.

    Args:
        case: The session.
        models: Function that yields simpler models, each with the index of the variable that it lacks, or None.
    """
    calls = case["calls"]
    for i, (what, *arguments) in enumerate(calls):
        yield {**case, "calls": calls[:i] + calls[i + 1 :]}
        if what in ("set_evidence", "update"):
            for evidence in smaller_evidence(arguments[0]):
                yield {**case, "calls": [*calls[:i], [what, evidence], *calls[i + 1 :]]}
        if what == "batch":
            columns, rows, asked = arguments
            for r in range(len(rows) if len(rows) > 1 else 0):
                yield {**case, "calls": [*calls[:i], [what, columns, rows[:r] + rows[r + 1 :], asked], *calls[i + 1 :]]}
    for name in case["options"]:
        yield {**case, "options": {key: value for key, value in case["options"].items() if key != name}}
    if isinstance(case["options"].get("order"), list):
        return
    for spec, gone in models(case["model"]):
        if spec["sense"] == "probability" and len(spec["variables"]) == len(case["model"]["variables"]):
            if [s for _, s, _ in spec["variables"]] == [s for _, s, _ in case["model"]["variables"]]:
                yield {**case, "model": spec}
        elif gone is not None and (fewer := _without(calls, gone)) is not None:
            yield {**case, "model": spec, "calls": fewer}


def _without(calls: list[Any], gone: int) -> list[Any] | None:
    """The calls where a variable is not named; None if one is about it."""
    fewer = []
    for what, *arguments in calls:
        if what in ("set_evidence", "update"):
            fewer.append([what, [[v - (v > gone), how, known] for v, how, known in arguments[0] if v != gone]])
        elif any(isinstance(argument, list) and gone in argument for argument in arguments):
            return None
        elif what == "sample":
            asked = arguments[2]
            fewer.append([what, *arguments[:2], None if asked is None else [v - (v > gone) for v in asked]])
        elif what == "batch":
            columns, rows, asked = arguments
            moved = None if asked is None else [v - (v > gone) for v in asked]
            fewer.append([what, [v - (v > gone) for v in columns], rows, moved])
        else:
            fewer.append(
                [
                    what,
                    *(
                        [v - (v > gone) for v in argument] if isinstance(argument, list) else argument
                        for argument in arguments
                    ),
                ]
            )
    return fewer


def script(case: Case) -> str:
    """Return a program that makes the calls."""
    return program(case, text(case["model"]))


def program(case: Case, model_lines: list[str]) -> str:
    """Return a program that makes the calls.

    Args:
        case: The session.
        model_lines: Lines that make the model.
    """
    spec = case["model"]
    names = [name for name, *_ in spec["variables"]]
    options = "".join(f", {k}={v!r}" for k, v in case["options"].items() if (k, v) != ("device", "cpu"))
    lines = [
        "from math import inf, nan",
        "import numpy as np",
        "from elimina import FORBIDDEN, Model, Table, Variable",
        "from tests.calls import junction_tree",
        *model_lines,
        f"tree = junction_tree(model{options})",
    ]
    for what, *arguments in case["calls"]:
        if what in ("set_evidence", "update"):
            lines.append(f"tree.{what}({as_mapping(spec, arguments[0])!r})")
        elif what == "batch":
            columns, rows, asked = arguments
            cases = {
                names[v]: [None if row[i] is None else state_of(spec, v, row[i]) for row in rows]
                for i, v in enumerate(columns)
            }
            lines.append(f"print(tree.batch({cases!r}, {None if asked is None else [names[v] for v in asked]!r}))")
        elif what == "log10_evidence":
            lines.append("print(tree.log10_evidence)")
        else:
            given = ", ".join(repr([names[v] for v in a] if isinstance(a, list) else a) for a in arguments)
            lines.append(f"print(tree.{what}({given}))")
    return "\n".join(lines)
