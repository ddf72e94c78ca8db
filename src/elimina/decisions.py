"""Influence diagrams and their questions: ``InfluenceDiagram``."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from elimina import arguments
from elimina.display import with_types_as_written
from elimina.errors import FormatError, InputError
from elimina.io.model_files import read_diagram
from elimina.io.pyagrum_diagrams import diagram_from_pyagrum
from elimina.io.sources import EvidenceLike, as_evidence
from elimina.methods.junction_tree import JunctionTree
from elimina.methods.policy_search import best_policies
from elimina.methods.single_policy_updating import DecisionQuestion, PolicySet
from elimina.model.decision_network import DecisionNetwork
from elimina.model.model import names_of, variable_indices
from elimina.model.row_table import RowTable
from elimina.option_names import by_interface
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options, options_of
from elimina.planning.options import DEFAULT, Options, replace
from elimina.problem.observations import assignment_of
from elimina.result import EndedBy, Marginals, NoMarginals, Result, Status
from elimina.strategies.call import Call
from elimina.system import memory_errors_in_words

TASK = "meu"
"""Name of the task in answers: maximum expected utility."""

MAX_ELIMINATIONS = 3_000
"""In a call without a time limit, branch and bound ends after this number of eliminations (some seconds)."""

SEARCH_TIME_SHARE = 0.9
"""Share of the time limit for finding policies; the rest is for the posteriors under these policies."""


@with_types_as_written
class ObservationGain(NamedTuple):
    """Gain of letting a decision observe another variable.

    Attributes:
        variable: Name of the variable that is observed.
        gain: Increase of the maximum expected utility: the most that the observation may cost.
        expected_utility: Maximum expected utility with the observation.
    """

    variable: str
    gain: float
    expected_utility: float


class ObservationGains(RowTable[ObservationGain]):
    """Gains of observations, the largest one first.

    Attributes:
        decision: Name of the decision.
        expected_utility: Maximum expected utility without any of these observations.
        is_optimal: True if all expected utilities are proven to be optimal; otherwise they are lower bounds.
    """

    fields = ObservationGain._fields

    def __init__(
        self, rows: Sequence[ObservationGain], decision: str, expected_utility: float, *, is_optimal: bool
    ) -> None:
        super().__init__(sorted(rows, key=lambda row: -row.gain))
        self.decision, self.expected_utility, self.is_optimal = decision, expected_utility, is_optimal

    def _figures(self) -> list[tuple[str, str]]:
        kind = "" if self.is_optimal else " (not proven to be optimal)"
        return [("decision", self.decision), ("expected utility", f"{self.expected_utility:.6g}{kind}")]


@arguments.with_checked_methods
class InfluenceDiagram(DecisionNetwork):
    """A model of decisions: a Bayesian network with decisions among its variables, and utilities that are added up.

    A decision sees the variables that it lists, and nothing else: the diagram is a limited-memory one (a LIMID). With
    ``no_forgetting``, decisions are made in order, and each also sees all earlier ones and what these saw.

    Args:
        variables: Chance variables and decisions.
        factors: Conditional distributions of the chance variables, over the variables' indices.
        children: Variable of each distribution.
        decisions: Decision -> the variables that it observes, by name or index.
        utilities: Name -> table of numbers, over the variables' indices.
        no_forgetting: True if each decision sees all earlier ones and their observations.
        name: Name of the diagram.
        check: See ``Model``.

    Attributes:
        variables: Chance variables and decisions, in the order of their indices.
        network: Bayesian network of the chance variables, in which each decision is a variable without parents and with
            equal probabilities.
        observed: Index of a decision -> indices of the variables that it sees, including those by ``no_forgetting``.
        utilities: Name -> table of numbers.
        no_forgetting: True if each decision sees all earlier ones and their observations.
        name: Name of the diagram.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: A distribution is wrong (see ``Model``), a variable has none, arcs form a cycle, a utility is not
            finite, there is no decision, or decisions that should not forget have no order.

    Examples:
        >>> import elimina
        >>> diagram = elimina.InfluenceDiagram.from_tables(
        ...     chance={"rain": [0.7, 0.3], ("forecast", "rain"): [[0.8, 0.2], [0.2, 0.8]]},
        ...     decisions={"umbrella": ["forecast"]},
        ...     utilities={("comfort", "rain", "umbrella"): [[10, 6], [0, 7]]},
        ...     states={"rain": ["no", "yes"], "forecast": ["sun", "rain"], "umbrella": ["leave", "take"]},
        ... )
        >>> result = diagram.solve()
        >>> print(result.status, round(result.value, 4))
        optimal 8.12
        >>> result.policies["umbrella"]
        forecast  umbrella  probability
        sun       leave     1
        rain      take      1
    """

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, check: bool = True) -> Self:
        """Read a diagram from a file of pyAgrum (.bifxml) or GeNIe (.xdsl).

        GeNIe's decisions forget nothing: a decision of an .xdsl file sees all earlier decisions and their observations.

        Args:
            path: The file; it may also end in .gz or .xz.
            check: See ``elimina.read``.

        Raises:
            FormatError: The file is truncated or malformed, its diagram is wrong (see the class), or ``elimina.read``
                would raise this error.
            UnsupportedError: The file uses a feature that elimina does not handle.
            InputError: The format is unknown, or the file cannot be read.
        """
        diagram = read_diagram(path)
        try:
            return cls(**diagram._asdict(), check=check)
        except InputError as error:
            raise FormatError(str(path), None, str(error)) from None

    @classmethod
    def from_pyagrum(cls, diagram: Any, *, check: bool = True) -> Self:
        """Build a diagram from an InfluenceDiagram of pyAgrum: its decisions see their parents.

        Args:
            diagram: An object of pyAgrum.
            check: See ``Model``.

        Raises:
            InputError: ``diagram`` is something else, or the diagram is wrong (see the class).
        """
        return cls(**diagram_from_pyagrum(diagram)._asdict(), check=check)

    @memory_errors_in_words("while it solved the influence diagram")
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def solve(
        self,
        *,
        evidence: EvidenceLike | None = None,
        policies: Mapping[str, Any] | None = None,
        restarts: int = 0,
        seed: int = 0,
        time_limit: float | None = None,
        options: Options = DEFAULT,
    ) -> Result:
        """Return policies of maximum expected utility.

        The diagram is solved one decision after another (single policy updating). The answer is optimal if the diagram
        is soluble; diagrams without forgetting always are. Otherwise, the updates are repeated until no single policy
        can be improved. Branch and bound then looks for better policies until the answer is optimal. Its upper bounds
        come from diagrams whose decisions have additional observations. The search ends early, with the status
        ``bounded``, at the time limit or, if there is none, after a number of eliminations.

        Args:
            evidence: Observed variables and their states, as in ``elimina.solve``. No decision may affect them.
            policies: Policies of some decisions, as ``with_policies`` takes them; policies of the other decisions are
                computed. If all decisions have one, the answer is their expected utility, with the status ``exact``.
            restarts: Number of further, random starts where the diagram is not soluble, before branch and bound.
            seed: Random seed of the starts.
            time_limit: Time limit in seconds. At the limit, or after Ctrl-C, the call returns the best policies so
                far.
            options: Settings for experts: ``device``, ``memory``, the order and its search, ``threads`` and ``dtype``.

        Returns:
            The answer: ``value`` is the expected utility, ``upper_bound`` a bound on the expected utility of any
            policies, ``policies`` has the policy of each decision over its relevant observations, ``marginals`` the
            posteriors of all variables under them, and ``stats["utilities"]`` the expected value of each utility. Where
            observations have probability 0, the policy is arbitrary.

        Raises:
            TypeError: An argument has the wrong type.
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: A decision affects an observed variable, or a policy or an option does not fit the diagram.
            MemoryLimitError: A policy, or a joint distribution, does not fit into memory.
            DeviceError: The device is missing or cannot be used.
            TimeLimitError: The time limit passed, and no policies are known.
            KeyboardInterrupt: The user interrupted, and no policies are known.

        Examples:
            >>> import elimina
            >>> diagram = elimina.InfluenceDiagram.from_tables(
            ...     chance={"rain": [0.7, 0.3]},
            ...     decisions={"umbrella": []},
            ...     utilities={("comfort", "rain", "umbrella"): [[10, 6], [0, 7]]},
            ...     states={"umbrella": ["leave", "take"]},
            ... )
            >>> diagram.solve(policies={"umbrella": "take"}).value
            6.3
        """
        time_limit = arguments.seconds("time_limit", time_limit)
        question = self._question(evidence, policies, restarts, seed)
        checked = _checked(options)
        call = Call(TASK, time_limit)
        deadline = math.inf if time_limit is None else time.monotonic() + SEARCH_TIME_SHARE * time_limit
        policy_sets: list[PolicySet] = []

        def report(policy_set: PolicySet) -> None:
            policy_sets[:] = [policy_set]

        def is_over(eliminations: int) -> bool:
            return eliminations >= MAX_ELIMINATIONS if time_limit is None else time.monotonic() > deadline

        def work() -> Result:
            policy_set = best_policies(question, checked, report, is_over)
            ended_by: EndedBy | None = None if policy_set.is_optimal or time.monotonic() < deadline else "time-limit"
            return self._result(question, policy_set, self._marginals(question, policy_set, checked), ended_by)

        def early(cause: EndedBy) -> Result | None:
            if not policy_sets:
                return None
            return self._result(question, policy_sets[-1], NoMarginals("unknown", TASK), cause)

        result = call.result_or_early(work, early)
        return result.replace(stats={**result.stats, "seconds": call.phase_seconds()})

    @arguments.with_checked_keywords(Options, "elimina.Options")
    def observation_gains(
        self,
        decision: str | int,
        candidates: Sequence[str | int] | None = None,
        *,
        evidence: EvidenceLike | None = None,
        restarts: int = 0,
        seed: int = 0,
        time_limit: float | None = None,
        options: Options = DEFAULT,
    ) -> ObservationGains:
        """Return the gains of letting a decision observe another variable (values of information).

        Args:
            decision: The decision, by name or index.
            candidates: Variables that it may observe, by name or index. None: all chance variables that it neither sees
                nor affects.
            evidence: See ``solve``.
            restarts: See ``solve``.
            seed: See ``solve``.
            time_limit: Time limit of the whole call, in seconds.
            options: See ``solve``.

        Raises:
            TypeError: An argument has the wrong type.
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such decision or variable, the decision affects a candidate, or an argument is
                invalid as in ``solve``.
            MemoryLimitError: See ``solve``.
            DeviceError: The device is missing or cannot be used.
            TimeLimitError: The time limit passed.
            KeyboardInterrupt: The user interrupted.

        Examples:
            >>> import elimina
            >>> diagram = elimina.InfluenceDiagram.from_tables(
            ...     chance={"rain": [0.7, 0.3], ("forecast", "rain"): [[0.8, 0.2], [0.2, 0.8]]},
            ...     decisions={"umbrella": []},
            ...     utilities={("comfort", "rain", "umbrella"): [[10, 6], [0, 7]]},
            ...     states={"umbrella": ["leave", "take"]},
            ... )
            >>> for row in diagram.observation_gains("umbrella"):
            ...     print(row.variable, round(row.gain, 4))
            rain 2.1
            forecast 1.12
        """
        d = self.decision_index(decision)
        seconds, checked = arguments.seconds("time_limit", time_limit), _checked(options)
        question = self._question(evidence, None, restarts, seed)
        asked = self._candidates(d, candidates, question.evidence)
        (name,) = names_of(self.network, [d])
        diagrams = [self, *(self.with_observations(name, names_of(self.network, [v])) for v in asked)]

        def work() -> list[PolicySet]:
            questions = [question._replace(diagram=diagram) for diagram in diagrams]
            share = MAX_ELIMINATIONS / len(questions)
            return [best_policies(each, checked, lambda _: None, lambda count: count >= share) for each in questions]

        base, *policy_sets = Call(TASK, seconds).result(work)
        rows = [
            ObservationGain(self.variables[v].name, policy_set.value - base.value, policy_set.value)
            for v, policy_set in zip(asked, policy_sets, strict=True)
        ]
        is_optimal = all(policy_set.is_optimal for policy_set in (base, *policy_sets))
        return ObservationGains(rows, self.variables[d].name, base.value, is_optimal=is_optimal)

    def _candidates(self, decision: int, candidates: Any, evidence: Mapping[int, int]) -> list[int]:
        if candidates is not None:
            return variable_indices(self.network, candidates, "candidates")
        excluded = {*self.observed, *self.observed[decision], *self.graph.descendants(decision), *evidence}
        return [v for v in range(len(self.variables)) if v not in excluded]

    def _question(self, evidence: Any, policies: Any, restarts: Any, seed: Any) -> DecisionQuestion:
        observations = assignment_of(self.network, as_evidence(evidence, self.network), "evidence")
        culprit = next((v for v in observations if v in self.affected), None)
        if culprit is not None:
            name = self.variables[culprit].name
            raise InputError(
                f"evidence names {name!r}, which a decision affects: its state is unknown when the decision is made; "
                f"leave it out, or fix a decision by {by_interface('policies={...}', '--policy DECISION=STATE')}"
            )
        return DecisionQuestion(
            self,
            observations,
            {} if policies is None else self.policy_tables(policies),
            arguments.integer("restarts", restarts, 0),
            arguments.integer("seed", seed, 0),
        )

    def _marginals(self, question: DecisionQuestion, policy_set: PolicySet, options: CheckedOptions) -> Marginals:
        """Return the posteriors of all variables under policies."""
        network = self.network_of(policy_set.policies)
        evidence = {self.variables[v].name: self.variables[v].state(x) for v, x in question.evidence.items()}
        tree = JunctionTree(network, evidence=evidence, options=replace(options, exact=True))
        return Marginals(self.variables, np.concatenate([table.array for table in tree.marginals().values()]))

    def _result(
        self, question: DecisionQuestion, policy_set: PolicySet, marginals: Any, ended_by: EndedBy | None = None
    ) -> Result:
        is_given = len(question.policies) == len(self.observed)
        upper = policy_set.value if is_given or policy_set.is_optimal else policy_set.upper_bound
        status: Status = "exact" if is_given else "optimal" if policy_set.is_optimal else "bounded"
        return Result(
            status,
            TASK,
            policy_set.value,
            policy_set.value,
            upper,
            marginals=marginals,
            policies={self.variables[d].name: self.policy_of(policy_set.policies[d]) for d in self.observed},
            ended_by=ended_by,
            stats={
                "utilities": policy_set.utilities,
                "updates": policy_set.updates,
                "start": policy_set.start,
                "nodes": policy_set.nodes,
            },
        )


def _checked(options: Options) -> CheckedOptions:
    return check_options(options_of(options), engine="an influence diagram")
