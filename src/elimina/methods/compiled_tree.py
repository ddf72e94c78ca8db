"""A compiled model whose evidence may change between queries, and the propagation of this evidence."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import Displayed, bar, sample
from elimina.errors import ImpossibleEvidenceError, MemoryLimitError
from elimina.io.sources import EvidenceLike, ModelLike, as_evidence, as_model
from elimina.methods.information import rounding_of
from elimina.methods.small_networks import SmallAnswer, SmallNetwork, is_small
from elimina.model.model import names_of, variable_indices
from elimina.model.named_table import ArraySlices
from elimina.model.states import State
from elimina.number_texts import bytes_text, counted, seconds_text
from elimina.option_names import option
from elimina.planning.machine import KEPT_TREE_RUNS
from elimina.planning.option_checks import check_options, options_of
from elimina.planning.options import DEFAULT, Options
from elimina.planning.plan import Plan
from elimina.planning.tree_statistics import Statistics, tree_statistics
from elimina.problem.observations import changes_of, evidence_of, impossible_text
from elimina.problem.preparation import prepare, with_units
from elimina.problem.rewriting import is_rewritten
from elimina.problem.semirings import SEMIRINGS
from elimina.running.advice import check_kept
from elimina.running.plan_choice import plan_problem
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagated_tables import PropagatedTables
from elimina.running.propagator import WHOLE_SECONDS, Propagator
from elimina.system import cached_property, memory_errors_in_words

logger = logging.getLogger("elimina")

_MIN_QUERIES_FOR_PLAN = 3
"""Number of sets of evidence after which a small network gets a plan. Making the plan takes as long as this many
queries."""

_PART_SECONDS = 4e-4
"""A query of a few variables computes all posteriors if a propagation takes less time than this: computing only a few
posteriors would not be faster."""

Observations = dict[int, int | NDArray[Any]]
"""Variable -> index of its observed state, or likelihoods of its states."""

Method = TypeVar("Method", bound=Callable[..., Any])

memory_errors_of_trees = memory_errors_in_words("while it propagated")


def one_call_at_a_time(method: Method) -> Method:
    """Make a method of a compiled tree run in one thread at a time, because it changes the tree's messages."""

    @functools.wraps(method)
    def called(self: CompiledTree, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, called)


class _Outputs(NamedTuple):
    """Outputs of a plan for a query.

    Attributes:
        names: Names of the query's variables.
        numbers: Numbers of the plan's outputs for those variables that have an output.
        missing: Positions in ``names`` of the other variables, which have one state.
    """

    names: list[str]
    numbers: tuple[int, ...]
    missing: list[int]


class CompiledTree(Displayed):
    """A model with its evidence and the messages of its bucket tree, which are stored between queries.

    ``elimina.JunctionTree`` describes the arguments and the attributes.
    """

    @memory_errors_of_trees
    @arguments.with_checked_keywords(Options, "elimina.Options")
    def __init__(
        self,
        model: ModelLike,
        *,
        evidence: EvidenceLike | None = None,
        device: str | None = None,
        memory: int | str | None = None,
        options: Options = DEFAULT,
    ) -> None:
        self.model = as_model(model)
        self.lock = threading.RLock()
        self.error = 0.0
        self._options = check_options(options_of(options, device, memory), engine="a junction tree")
        self._observations: Observations = {}
        self._propagators: dict[str, Propagator] = {}
        # Semiring -> the evidence that its propagator has taken into account.
        self._applied: dict[str, Observations] = {}
        self._small_answers = 0
        self._small: SmallNetwork | None = None
        self._small_answer: SmallAnswer | None = None
        if is_small(self.model, self._options) and self.model.sense == "probability":
            self._small = SmallNetwork(self.model)
            self._small_answer = self._small.answer({})
        if self._small_answer is None:
            # Small networks need no plan at first; others are planned immediately, so that errors are raised here.
            self._small = None
            _ = self.is_exact
        if evidence is not None:
            self.set_evidence(evidence)

    def __getstate__(self) -> dict[str, Any]:
        """Return the model, the options and the evidence; a copy plans and propagates again."""
        return {"model": self.model, "options": self._options, "observations": self._observations}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"], options=state["options"])  # type: ignore[misc]
        if state["observations"]:
            self._set_observations(state["observations"])

    @cached_property
    def _planned(self) -> PlannedProblem:
        try:
            planned = plan_problem(prepare(with_units(self.model), "mar", {}), self._options, runs=KEPT_TREE_RUNS)
            check_kept(planned.plan, self._options)
        except MemoryLimitError as error:
            if not is_rewritten(self.model):
                raise
            raise MemoryLimitError(
                "a junction tree keeps all states, because later evidence may name any of them, and needs more memory "
                "for this model's large domains than it may use: elimina.solve merges states that no table tells "
                "apart, and may need less"
            ) from error
        return planned

    @cached_property
    def is_exact(self) -> bool:
        """True if the messages fit into memory, so that answers are exact; otherwise they are estimates.

        Raises:
            MemoryLimitError: The messages do not fit, and the options ask for exact answers or a GPU.
        """
        if self._small is not None or self._small_answer is not None:
            return True
        try:
            _ = self._planned
        except MemoryLimitError as error:
            if self._options.exact or self._options.needs_gpu:
                raise
            logger.warning("%s. Until then, posteriors are estimated; %s refuses that", error, option("exact", True))
            return False
        return True

    @cached_property
    def _slices_by_name(self) -> dict[str, slice]:
        """Name of each variable, and the slice of its states in an array of all states."""
        ends = itertools.pairwise(itertools.accumulate(self.model.sizes, initial=0))
        return {v.name: slice(*ends_of_v) for v, ends_of_v in zip(self.model.variables, ends, strict=True)}

    @cached_property
    def _output_numbers(self) -> dict[int, int]:
        return {output.scope[0]: n for n, output in enumerate(self.plan.outputs) if output.scope}

    @property
    def plan(self) -> Plan:
        """Plan of a propagation; ``print`` it to see its figures."""
        return self._planned.plan

    def _details(self) -> str:
        if not self.is_exact:
            return ""
        return f"<p>memory, of its limit</p>{bar(self.plan.filled)}"

    def _figures(self) -> list[tuple[str, str]]:
        observed = [self.model.variables[v].name for v in self._observations]
        if not self.is_exact:
            return [
                ("variables", f"{len(self.model.variables):,}"),
                ("answers", "estimated: the messages do not fit into memory"),
                ("evidence", sample(observed, len(observed)) or "none"),
            ]
        plan = self.plan
        return [
            ("variables", f"{len(self.model.variables):,}"),
            ("width", f"{plan.width} (largest table: {counted(plan.largest_table, 'cell', is_rounded=True)})"),
            ("memory", f"{bytes_text(plan.peak_bytes)} on {plan.device}, {plan.dtype}"),
            ("propagation", f"about {seconds_text(plan.seconds)}"),
            ("evidence", sample(observed, len(observed)) or "none"),
        ]

    @property
    def statistics(self) -> Statistics:
        """Sizes of the junction tree."""
        return tree_statistics(self._planned.problem, self.plan.order)

    @property
    @one_call_at_a_time
    def evidence(self) -> dict[str, State | NDArray[np.float64]]:
        """The evidence in the form of ``set_evidence``: name -> state, or a copy of the likelihoods."""
        pairs = [(self.model.variables[v], observation) for v, observation in self._observations.items()]
        return {
            v.name: np.array(observation) if isinstance(observation, np.ndarray) else v.state(observation)
            for v, observation in pairs
        }

    @one_call_at_a_time
    @arguments.with_checked_keywords()
    def set_evidence(self, evidence: EvidenceLike) -> None:
        """Replace all evidence.

        Args:
            evidence: Evidence, as in ``elimina.solve``.

        Raises:
            InputError: A variable or state is unknown, a file cannot be read, or likelihoods are negative, NaN or of
                the wrong number.
            TypeError: ``evidence`` has the wrong type.
        """
        self._set_observations(evidence_of(self.model, as_evidence(evidence, self.model)))

    @one_call_at_a_time
    @arguments.with_checked_keywords()
    def update(self, changes: EvidenceLike) -> None:
        """Change a part of the evidence, in the forms of ``set_evidence``; None as a state removes an observation."""
        observations = {**self._observations, **changes_of(self.model, as_evidence(changes, self.model, "changes"))}
        self._set_observations({v: state for v, state in observations.items() if state is not None})

    def _set_observations(self, observations: Observations) -> None:
        self._observations, self._small_answer = observations, None

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of the last propagation of posteriors by phase; ``upload`` is the model's initial transfer."""
        propagator = self._propagators.get("sum-product")
        return {} if propagator is None else dict(propagator.seconds)

    @one_call_at_a_time
    def close(self) -> None:
        """Release the device's memory; the next query allocates it again."""
        for propagator in self._propagators.values():
            propagator.close()
        self._propagators.clear()
        self._applied.clear()

    @property
    def _kept_bytes(self) -> int:
        """Bytes of tables from earlier queries, for trees whose messages fit."""
        return len(self._propagators) * self.plan.peak_bytes

    def make_room(self, size: int) -> None:
        """Release the memory of earlier queries if ``size`` further bytes would not fit."""
        if self.is_exact and self._kept_bytes + size > self.plan.memory_limit:
            self.close()

    def _answer_of_small(self, asks_all: bool = True) -> SmallAnswer | None:
        """Return the answer of the small network; None if there is none, so that a propagator has to answer.

        Args:
            asks_all: False if only a few posteriors are queried. A propagator may then be faster, because it computes
                only the messages that they need.
        """
        if self._small_answer is None and self._small is not None:
            if self._small_answers == _MIN_QUERIES_FOR_PLAN and not self._small.keeps_plan:
                self._keep_plan(self._small)
            if self._small is None or not (
                asks_all or self._small_answers < _MIN_QUERIES_FOR_PLAN or self.plan.seconds < _PART_SECONDS
            ):
                return None
            observed = {v: state for v, state in self._observations.items() if isinstance(state, int)}
            if len(observed) == len(self._observations):
                self._small_answers += 1
                self._small_answer = self._small.answer(observed)
        return self._small_answer

    def _keep_plan(self, small: SmallNetwork) -> None:
        """Use one plan for all queries of a small network, or propagators if the plan takes long or does not fit."""
        order = self.plan.order
        others = set(range(len(self.model.variables))).difference(order)
        if self.plan.seconds > WHOLE_SECONDS or not small.keep([*order, *others]):
            self._small = None

    def _propagator(self, semiring: str) -> Propagator:
        """Return the propagator of a semiring with the current evidence."""
        if semiring not in self._applied:
            if semiring in self._propagators:  # an interrupt left the propagator between two sets of evidence
                self._propagators.pop(semiring).close()
            self.make_room(self.plan.peak_bytes)
            self._propagators[semiring] = Propagator(self._planned, semiring)
            self._applied[semiring] = {}
        propagator, evidence = self._propagators[semiring], self._observations
        if self._applied.pop(semiring) is not evidence:
            fixed = self._planned.problem.fixed
            propagator.observe({v: state for v, state in evidence.items() if v not in fixed})
        self._applied[semiring] = evidence
        return propagator

    @memory_errors_of_trees
    def _run(self, semiring: str, outputs: Sequence[int]) -> PropagatedTables:
        answer = self._propagator(semiring).run(outputs)
        if not answer.sound:
            answer = self._propagator("log-sum-exp").run(outputs)
        return answer

    @property
    def _fixed_log_sum(self) -> float:
        """Sum of the logarithms of the likelihoods of variables with one state, which are in no table."""
        likelihoods = (self._observations.get(v) for v in self._planned.problem.fixed)
        values = [float(likelihood[0]) for likelihood in likelihoods if isinstance(likelihood, np.ndarray)]
        return sum(math.log(likelihood) if likelihood > 0 else -math.inf for likelihood in values)

    def _tables(self, semiring: str, variables: Sequence[str | int] | None) -> Mapping[str, NDArray[np.float64]]:
        small_answer = self._answer_of_small(variables is None) if SEMIRINGS[semiring].is_product else None
        indices = None if variables is None else variable_indices(self.model, variables, "variables")
        if small_answer is not None:
            if small_answer.log_sum == -math.inf:
                raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))
            shares, slices = small_answer.shares.copy(), self._slices_by_name
            if indices is not None:
                slices = {name: slices[name] for name in names_of(self.model, indices)}
            return ArraySlices(shares, slices)
        outputs = self._all_outputs if indices is None else self._outputs_of(indices)
        answer = self._run(semiring, outputs.numbers)
        if not answer.is_possible or self._fixed_log_sum == -math.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))
        vectors = answer.vectors("max" if SEMIRINGS[semiring].is_idempotent else "sum")
        for position in outputs.missing:
            vectors.insert(position, np.ones(1))
        return dict(zip(outputs.names, vectors, strict=True))

    @cached_property
    def _all_outputs(self) -> _Outputs:
        return self._outputs_of(range(len(self.model.variables)))

    def _outputs_of(self, variables: Sequence[int]) -> _Outputs:
        outputs = self._output_numbers
        return _Outputs(
            names=names_of(self.model, variables),
            numbers=tuple([outputs[v] for v in variables if v in outputs]),
            missing=[position for position, v in enumerate(variables) if v not in outputs],
        )

    @property
    def _rounding(self) -> float:
        return rounding_of(self._options.dtype)
