"""Posteriors of all variables by propagation on a junction tree, kept between queries."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import Displayed, bar, bytes_text, count_text, sample, seconds_text
from elimina.errors import ImpossibleEvidenceError, InputError, MemoryLimitError
from elimina.io.cases import Cases, as_cases, labels_of
from elimina.io.filled_frames import filled_frame
from elimina.io.sources import EvidenceLike, ModelLike, as_evidence, as_model
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.information import entropy, mutual_information, rounding_of
from elimina.methods.joint_estimation import estimated_joint
from elimina.methods.marginals import joint_table
from elimina.methods.posterior_estimation import ESTIMATE_SECONDS, error_of, posteriors_within
from elimina.methods.small_networks import SmallAnswer, SmallNetwork, is_small, rewritten_for_sums
from elimina.model.model import Model, variable_index, variable_indices
from elimina.model.named_table import NamedTable, NamedTables
from elimina.model.states import State
from elimina.model.variable import state_array
from elimina.planning.machine import KEPT_TREE_RUNS
from elimina.planning.options import DEFAULT, Options, options_of
from elimina.planning.plan import Plan
from elimina.planning.tree_statistics import Statistics, tree_statistics
from elimina.problem.evidence import Observed, with_factors, with_leaves
from elimina.problem.merging import Merged
from elimina.problem.observations import assignment_of, changes_of, evidence_of, impossible_text
from elimina.problem.preparation import Problem, condition, prepare, with_scopes, with_units
from elimina.problem.rewriting import is_rewritten
from elimina.problem.semirings import SEMIRINGS
from elimina.result import Marginals, Result
from elimina.running.advice import check_kept
from elimina.running.execution import Execution
from elimina.running.host import host_memory
from elimina.running.plan_choice import plan_problem
from elimina.running.planned_problem import PlannedProblem
from elimina.running.propagated_tables import PropagatedTables
from elimina.running.propagator import WHOLE_SECONDS, Propagator
from elimina.system import cached_property, memory_errors_in_words

if TYPE_CHECKING:
    from elimina.methods.batch import Batch, ObservedCases
    from elimina.methods.estimated_batch import EstimatedBatch
    from elimina.methods.evidence_cases import EvidenceCases
    from elimina.methods.observation_impact import Conflict, Impacts
    from elimina.methods.observation_value import ObservationValues
    from elimina.methods.parameter_sensitivity import Sensitivities
    from elimina.methods.relevant_explanation import Explanations
    from elimina.methods.row_assignments import RowAssignments, RowDecoder
    from elimina.running.propagated_tables import Posteriors

logger = logging.getLogger("elimina")

Array = NDArray[Any]

_IN_WORDS = memory_errors_in_words("while it propagated")

_MIN_QUERIES_FOR_PLAN = 3
"""Sets of evidence after which a small network gets a plan: it costs about as much as these queries."""

_PART_SECONDS = 4e-4
"""Propagation time up to which all posteriors are computed for a query of a few: finding a part takes as long."""

_TRIAL_ORDER_SECONDS = 0.1
"""Seconds of the search for an order of a joint distribution, where the messages of the model do not fit."""

Method = TypeVar("Method", bound=Callable[..., Any])


def _alone(method: Method) -> Method:
    """Let one thread at a time call the methods of a junction tree, which change its messages."""

    @functools.wraps(method)
    def called(self: JunctionTree, *args: Any, **kwargs: Any) -> Any:
        with self.lock:
            return method(self, *args, **kwargs)

    return cast(Method, called)


class JunctionTree(Displayed):
    """A compiled model that answers one set of evidence after another.

    Both passes run over the bucket tree of one elimination order. After a change of evidence, only the messages that
    change are computed again, and for a query of a few variables only the messages that it needs. On a GPU, the first
    query of a set of variables computes all messages, because a partial run takes longer to prepare than a full one.

    If the messages do not fit into memory, a warning says so, and ``is_exact`` is False: posteriors, joint
    distributions, entropies and the evidence's probability are estimated for about a second, once for each set of
    evidence, and ``error`` states the error. They are exact where the evidence makes the model narrow enough.

    Threads may share a junction tree: it does the work of one call after another.

    Args:
        model: A probability model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        evidence: Evidence to begin with, as in ``elimina.plan``.
        device: Device, as in ``elimina.plan``.
        memory: Memory limit, as in ``elimina.plan``.
        options: Settings for experts: the order and its search, ``threads``, ``dtype`` (``float64`` by default, or
            ``float32``), and ``exact``, which refuses estimates. A junction tree takes no other options.

    Attributes:
        error: Estimated error of the latest posteriors or joint distribution: the mean Hellinger distance from the
            exact ones. 0 if they are exact, NaN if it is unknown.
        lock: Lock that each call holds. Hold it to change the evidence and ask about it without another thread's calls
            in between.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: The model has costs, or an option makes no sense.
        MemoryLimitError: The messages need more memory, and the options ask for exact answers or a GPU; nothing was
            allocated.
        DeviceError: The device is missing or cannot be used.

    Examples:
        >>> import elimina
        >>> tree = elimina.JunctionTree("examples/pump.bif")
        >>> tree.set_evidence({"Alarm": "on", "Noise": "loud"})
        >>> print(tree.marginals(["Bearing"])["Bearing"].round(3))
        [0.147 0.853]
    """

    @_IN_WORDS
    @arguments.with_options(Options._fields, "elimina.Options")
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
        self._options = options_of(options, device, memory).only_for("a junction tree").checked()
        # Index of the observed state, or likelihoods.
        self._known: dict[int, int | Array] = {}
        self._propagators: dict[str, Propagator] = {}
        # The evidence that each propagator has.
        self._applied: dict[str, dict[int, int | Array]] = {}
        self._answers = 0
        self._batch: Batch | EstimatedBatch | None = None
        # Evidence, and the estimated answer.
        self._estimate: tuple[dict[int, int | Array], Result] | None = None
        # Evidence, and the model with its likelihoods as factors.
        self._weighted: tuple[dict[int, int | Array], Observed] | None = None
        # Evidence, a tree of the model at this evidence, with fewer values, the observed values, and the variables that
        # have fewer.
        self._merged: tuple[dict[int, int | Array], JunctionTree, dict[int, int], Mapping[int, Merged]] | None = None
        # A model, families, and the model with a table over each.
        self._joined: tuple[Model, tuple[tuple[int, ...], ...], Model] | None = None
        self._decoder: RowDecoder | None = None
        # A model, the variables of cases, and a model with fewer values of all others.
        self._summed: tuple[Model, frozenset[int], Model] | None = None
        # Free variables and scopes of an optimum, and its plan.
        self._optimum: tuple[tuple[object, ...], PlannedProblem] | None = None
        self._small: SmallNetwork | None = None
        self._answer: SmallAnswer | None = None
        if is_small(self.model, self._options) and self.model.sense == "probability":
            self._small = SmallNetwork(self.model)
            self._answer = self._small.answer({})
        if self._answer is None:
            # A small network is planned at the first question beyond posteriors.
            self._small = None
            _ = self.is_exact
        if evidence is not None:
            self.set_evidence(evidence)

    def __getstate__(self) -> dict[str, Any]:
        """Return the model, the options and the evidence: a copy plans and propagates on its own."""
        return {"model": self.model, "options": self._options, "known": self._known}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"], options=state["options"])  # type: ignore[misc]
        if state["known"]:
            self._known, self._answer = state["known"], None

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
        """True if the messages fit into memory, so that answers are exact; otherwise they are estimates."""
        if self._small is not None or self._answer is not None:
            return True
        try:
            _ = self._planned
        except MemoryLimitError as error:
            if self._options.exact or self._options.needs_gpu:
                raise
            logger.warning("%s. Until then, posteriors are estimated; Options(exact=True) refuses that", error)
            return False
        return True

    @cached_property
    def _parts(self) -> list[tuple[str, slice]]:
        ends = itertools.pairwise(itertools.accumulate(self.model.sizes, initial=0))
        return [
            (v.name, slice(*ends_of_variable)) for v, ends_of_variable in zip(self.model.variables, ends, strict=True)
        ]

    @cached_property
    def _output(self) -> dict[int, int]:
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
        observed = [self.model.variables[v].name for v in self._known]
        if not self.is_exact:
            return [
                ("variables", f"{len(self.model.variables):,}"),
                ("answers", "estimated: the messages do not fit into memory"),
                ("evidence", sample(observed, len(observed)) or "none"),
            ]
        plan = self.plan
        return [
            ("variables", f"{len(self.model.variables):,}"),
            ("width", f"{plan.width} (largest table: {count_text(plan.largest_table)} cells)"),
            ("memory", f"{bytes_text(plan.peak_bytes)} on {plan.device}, {plan.dtype}"),
            ("propagation", f"about {seconds_text(plan.seconds)}"),
            ("evidence", sample(observed, len(observed)) or "none"),
        ]

    @property
    def statistics(self) -> Statistics:
        """Sizes of the junction tree."""
        return tree_statistics(self._planned.problem, self.plan.order)

    @property
    @_alone
    def evidence(self) -> dict[str, State | NDArray[np.float64]]:
        """The evidence, as ``set_evidence`` takes it: name -> state, or a copy of the likelihoods."""
        pairs = [(self.model.variables[v], observation) for v, observation in self._known.items()]
        return {
            v.name: np.array(observation) if isinstance(observation, np.ndarray) else v.state(observation)
            for v, observation in pairs
        }

    @_alone
    def set_evidence(self, evidence: EvidenceLike) -> None:
        """Replace all evidence.

        Args:
            evidence: Evidence, as in ``elimina.plan``.

        Raises:
            InputError: There is no such variable or state, a file cannot be read, or likelihoods are negative, NaN or
                of the wrong number.
            TypeError: ``evidence`` is something else.
        """
        self._known, self._answer = evidence_of(self.model, as_evidence(evidence, self.model)), None

    @_alone
    def update(self, changes: EvidenceLike) -> None:
        """Change some of the evidence, in the forms of ``set_evidence``: what is missing (None) is taken back."""
        changed = changes_of(self.model, as_evidence(changes, self.model, "changes"))
        observations = {**self._known, **changed}
        self._known, self._answer = {v: what for v, what in observations.items() if what is not None}, None

    @_alone
    def marginals(self, variables: Sequence[str | int] | None = None) -> NamedTables:
        """Posterior of each variable given the evidence: name -> ``NamedTable`` of its probabilities. See ``error``.

        Args:
            variables: Names or indices; None: all.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable.
        """
        return NamedTables(self._posteriors(variables), self.model.__getitem__, "probability")

    def _posteriors(self, variables: Sequence[str | int] | None) -> dict[str, NDArray[np.float64]]:
        """Return ``marginals`` as arrays, exact or estimated."""
        self.error = 0.0
        if self.is_exact:
            return self._tables("sum-product", variables)
        indices = None if variables is None else variable_indices(self.model, variables, "variables")
        result = self._estimated()
        if result.status == "infeasible":
            raise ImpossibleEvidenceError(impossible_text(self.model, self._known))
        assert isinstance(result.marginals, Marginals)
        tables = result.marginals.arrays()
        if indices is None:
            return tables
        return {name: tables[name] for name in (self.model.variables[v].name for v in indices)}

    def _estimated(self) -> Result:
        """Return the posteriors of all variables from estimates, made once for a set of evidence."""
        if self._estimate is None or self._estimate[0] is not self._known:
            observed, every = with_leaves(self.model, self._known), range(len(self.model.variables))
            self._estimate = self._known, posteriors_within(observed, every, self._options, ESTIMATE_SECONDS)
        self.error = error_of(self._estimate[1])
        return self._estimate[1]

    @_alone
    def max_marginals(self, variables: Sequence[str | int] | None = None) -> NamedTables:
        """Return the best probability with each state, relative to the best of all: see ``marginals``."""
        return NamedTables(self._tables("min-sum", variables), self.model.__getitem__, "relative_probability")

    @property
    def seconds(self) -> dict[str, float]:
        """Time of the last propagation of posteriors by phase; ``upload`` is that of the whole model, once."""
        propagator = self._propagators.get("sum-product")
        return {} if propagator is None else dict(propagator.seconds)

    @property
    @_alone
    def log_evidence(self) -> float:
        """Natural logarithm of the evidence's probability (of the sum of the model); minus infinity if it is 0."""
        if not self.is_exact:
            log_z = self._estimated().log_z
            return math.nan if log_z is None else log_z
        answer = self._at_once()
        if answer is not None:
            return answer.log_sum
        return float(self._run("sum-product", []).log_sum) + self._fixed_log_sum

    @property
    def log10_evidence(self) -> float:
        """Base-10 logarithm of the evidence's probability: see ``log_evidence``."""
        return self.log_evidence / math.log(10)

    @_alone
    @_IN_WORDS
    def joint(self, variables: Sequence[str | int]) -> NamedTable:
        """Posterior joint distribution of any variables, axes in the given order; each call makes a plan.

        If that does not fit into memory, the distribution is estimated: see ``error``.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable, or one is named twice.
            MemoryLimitError: The plan needs more memory, and the options ask for exact answers or a GPU; or the joint
                distribution itself does.
            TypeError: The variables are a set, which has no order.
        """
        arguments.in_order("variables", variables)
        asked = variable_indices(self.model, variables, "variables")
        return NamedTable(self._joint(asked), [self.model.variables[v] for v in asked])

    @_IN_WORDS
    def conditional(self, variables: Sequence[str | int], given: Sequence[str | int]) -> NamedTable:
        """Return the posterior of some variables at each combination of states of others; each call makes a plan.

        The axes are those of ``variables``, then those of ``given``. Where a combination of states of ``given`` has
        probability 0, the numbers are NaN.

        Args:
            variables: Names or indices.
            given: Likewise, of other variables.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable, or one is named twice.
            MemoryLimitError: The plan needs more memory.
            TypeError: The variables are a set, which has no order.
        """
        arguments.in_order("variables", variables)
        arguments.in_order("given", given)
        asked = variable_indices(self.model, variables, "variables")
        joint = self.joint([*asked, *variable_indices(self.model, given, "given")])
        totals = joint.array.sum(axis=tuple(range(len(asked))), keepdims=True)
        with np.errstate(invalid="ignore"):
            joint.array /= totals
        return joint

    def _joint(self, asked: Sequence[int]) -> NDArray[np.float64]:
        """Return the posterior joint distribution of variables."""
        if len(set(asked)) != len(asked):
            twice = next(v for v in asked if asked.count(v) > 1)
            raise InputError(f"variable {self.model.variables[twice].name!r} is named twice: name each variable once")
        self.error = 0.0
        if len(asked) == 1 and not is_rewritten(self.model) and self.is_exact:
            (posterior,) = self._tables("sum-product", asked).values()
            return posterior
        if self.is_exact:
            self._check_possible()
        model, hard, merged = rewritten_for_sums(with_leaves(self.model, self._known))
        # The plan of a joint distribution sees only what its variables depend on.
        if not self.is_exact and self.log10_evidence == -math.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._known))
        needed, room = 8 * math.prod(self.model.sizes[v] for v in asked), host_memory(self._options)
        if merged.keys() & asked and needed > room:
            raise MemoryLimitError(
                f"the joint distribution takes {bytes_text(needed)}, and {bytes_text(room)} may be used: ask for fewer "
                "variables, or give more memory"
            )
        table = self._joint_table(model, hard, asked)
        for axis, v in enumerate(asked):
            if v in merged:
                table = np.moveaxis(merged[v].spread(np.moveaxis(table, axis, -1)), -1, axis)
            if v in hard:
                spread = np.zeros(self.model.variables[v].size)
                spread[hard[v]] = 1.0
                table = table * np.expand_dims(spread, tuple(a for a in range(len(asked)) if a != axis))
        return table

    def _joint_table(self, model: Model, evidence: Mapping[int, int], asked: Sequence[int]) -> NDArray[np.float64]:
        """Return the joint table of variables, estimated if no plan for it fits; observed ones have length 1."""
        options = self._options._replace(order="auto")
        if not self.is_exact:
            options = options._replace(order_seconds=min(options.order_seconds, _TRIAL_ORDER_SECONDS))
        try:
            return joint_table(model, evidence, asked, options)
        except MemoryLimitError:
            if options.exact or options.needs_gpu:
                raise
        table, result = estimated_joint(model, evidence, asked, options, ESTIMATE_SECONDS)
        if result.status == "infeasible":
            raise ImpossibleEvidenceError(impossible_text(self.model, self._known))
        self.error = error_of(result)
        return table

    @overload
    def sample(
        self, count: int, seed: int | None = None, names: Sequence[str | int] | None = None, *, indices: Literal[True]
    ) -> NDArray[np.int32]: ...

    @overload
    def sample(
        self,
        count: int,
        seed: int | None = None,
        names: Sequence[str | int] | None = None,
        *,
        indices: Literal[False] = False,
    ) -> dict[str, NDArray[Any]]: ...

    @_alone
    @_IN_WORDS
    def sample(
        self, count: int, seed: int | None = None, names: Sequence[str | int] | None = None, *, indices: bool = False
    ) -> dict[str, NDArray[Any]] | NDArray[np.int32]:
        """Draw independent samples from the posterior, exactly.

        Args:
            count: Number of samples.
            seed: Random seed; the same one gives the same samples. None: other samples in each call.
            names: The variables asked for; None: all.
            indices: Return indices of states instead of states.

        Returns:
            Variable name -> its states, an array of ``count`` int64, bool, or objects. With ``indices``, an int32 array
            of shape ``(count, variables)``. ``batch`` takes both.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            TypeError: ``count`` is not an integer, or ``seed`` neither an integer nor None.
            InputError: There is no such variable, or ``count`` or ``seed`` is negative.
            MemoryLimitError: Not all messages fit into the memory limit, or the samples do not fit into the host's
                memory.
        """
        from elimina.methods.sampling import check_room

        count = arguments.integer("count", count, 0)
        seed = None if seed is None else arguments.integer("seed", seed, 0, taken="an integer, or None for any")
        variables = self.model.variables
        asked = list(range(len(variables))) if names is None else variable_indices(self.model, names, "names")
        check_room(count, len(variables), host_memory(self._options))
        if not self.is_exact:
            raise MemoryLimitError(
                "a junction tree draws exact samples, and its messages do not fit into memory: give more memory, or "
                "draw weighted samples (elimina.sample)"
            )
        if is_rewritten(self.model):
            drawn = self._drawn_from_merged(count, seed, asked)
        else:
            drawn = self._drawn(count, seed, asked)
        if indices:
            columns = np.empty((count, len(asked)), dtype=np.int32)
            for place, v in enumerate(asked):
                columns[:, place] = drawn[v]
            return columns
        return {variables[v].name: state_array(variables[v], codes) for v, codes in drawn.items()}

    def _drawn_from_merged(self, count: int, seed: int | None, asked: Sequence[int]) -> dict[int, NDArray[Any]]:
        """Draw from a tree of fewer values, which is kept until the evidence changes."""
        self._check_possible()
        if self._merged is None or self._merged[0] is not self._known:
            model, hard, _ = with_leaves(self.model, self._known)
            small, _, merged = rewritten_for_sums(Observed(condition(model, hard), {}))
            if self._merged is not None:
                self._merged[1].close()
            tree = JunctionTree(small, options=self._options._replace(order="auto"))
            self._merged = self._known, tree, hard, merged
        _, tree, hard, merged = self._merged
        samples = tree._drawn(count, seed, asked)
        samples.update((v, np.full(count, hard[v])) for v in hard.keys() & asked)
        random = np.random.default_rng(None if seed is None else [seed, 1])
        return {v: merged[v].drawn(codes, random) if v in merged else codes for v, codes in samples.items()}

    def _drawn(self, count: int, seed: int | None, asked: Sequence[int]) -> dict[int, NDArray[Any]]:
        """Draw indices of the values of some variables."""
        from elimina.methods.sampling import draw, seed_word

        if not self.plan.keep:
            raise MemoryLimitError(
                f"samples are drawn from all messages together, more than {bytes_text(self.plan.memory_limit)} hold: "
                "give more memory"
            )
        self._check_possible()
        answer = self._propagator("sum-product").run([])
        propagator = self._propagator("sum-product" if answer.sound else "log-sum-exp")
        propagator.run([])
        samples = draw(propagator, self.plan, self.model.sizes, count, seed_word(seed))
        return {v: samples[v] if v in samples else np.zeros(count, dtype=np.int32) for v in asked}

    @_alone
    @_IN_WORDS
    def mpe(self) -> tuple[dict[str, State], float]:
        """Return the most probable assignment given the evidence (name -> state), and the natural log of its product.

        The product is that of all factors and likelihoods. To obtain the logarithm of the assignment's posterior,
        subtract ``log_evidence``.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            MemoryLimitError: The plan does not fit.
        """
        observed = with_factors(self.model, self._known)
        problem = prepare(observed.model, "mpe", observed.values)
        planned = self._planned_optimum(problem)
        result = eliminate(Execution(problem, planned.plan, planned.backend), {})
        if result.assignment is None or result.value is None:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._known))
        return dict(result.assignment), float(result.value)

    def _planned_optimum(self, problem: Problem) -> PlannedProblem:
        """Return the plan of an optimum, kept for other evidence about the same variables."""
        form = problem.free, problem.tables.form
        if self._optimum is None or self._optimum[0] != form:
            planned = plan_problem(problem, self._options)
            # Layouts of sparse tables depend on the tuples.
            if planned.plan.sparse is not None:
                return planned
            self._optimum = form, planned
        return self._optimum[1]

    def entropy(self, variables: Sequence[str | int]) -> float:
        """Entropy of the joint posterior of some variables, in bits."""
        return entropy(self.joint(variables).array)

    def mutual_information(self, one: Sequence[str | int], other: Sequence[str | int]) -> float:
        """Information that two disjoint sets of variables have about each other given the evidence, in bits."""
        one, other = variable_indices(self.model, one, "one"), variable_indices(self.model, other, "other")
        table = self.joint([*one, *other]).array
        rows = math.prod(table.shape[: len(one)])
        return mutual_information(table.reshape(rows, -1), self._rounding)

    @_alone
    @_IN_WORDS
    def impacts(self, query: str | int) -> Impacts:
        """Return the impact of each observation on the posterior of a variable, the largest one first.

        Each observation is compared in two ways: all observations with all others, and the observation alone with none.

        Args:
            query: Name or index of a variable that is not observed.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable, or it is observed.
            MemoryLimitError: The cases do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], "sprinkler": [0.9, 0.1], ("wet", "rain", "sprinkler"): [
            ...     [[0.95, 0.2], [0.1, 0.05]], [[0.05, 0.8], [0.9, 0.95]]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"wet": 1, "sprinkler": 1})
            >>> [(impact.variable, round(impact.divergence, 3)) for impact in tree.impacts("rain")]
            [('sprinkler', 0.519), ('wet', 0.004)]
        """
        from elimina.methods.observation_impact import observation_impacts

        return observation_impacts(self._cases(), variable_index(self.model, query), self._rounding)

    @_alone
    @_IN_WORDS
    def conflict(self) -> Conflict:
        """Return the conflict measure of the evidence, in bits: positive if the observations do not fit together.

        It is infinite if the observations are possible one by one, and impossible together.

        Raises:
            ImpossibleEvidenceError: An observation has probability 0 without the others.
            MemoryLimitError: The cases do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"flu": 1, "fever": 0})
            >>> round(tree.conflict().bits, 3)
            2.129
        """
        from elimina.methods.observation_impact import evidence_conflict

        return evidence_conflict(self._cases())

    @_alone
    @_IN_WORDS
    def observation_values(
        self,
        query: str | int,
        candidates: Sequence[str | int] | None = None,
        costs: Mapping[str, float] | None = None,
    ) -> ObservationValues:
        """Return what an observation of each variable is expected to tell about a query, the best for its cost first.

        Args:
            query: Name or index of a variable that is not observed.
            candidates: Variables that may be observed; None for all others that are not observed yet.
            costs: Cost of an observation of each variable, by name; 1 where there is none.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable, one is observed, a candidate is the query, or a cost is negative or
                not finite.
            MemoryLimitError: The cases do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> value = tree.observation_values("flu")[0]
            >>> value.variable, round(value.information, 3)
            ('fever', 0.214)
        """
        from elimina.methods.observation_value import observation_values

        asked = variable_index(self.model, query)
        if candidates is None:
            variables = [v for v in range(len(self.model.variables)) if v != asked and v not in self._known]
        else:
            variables = list(dict.fromkeys(variable_indices(self.model, candidates, "candidates")))
        return observation_values(self._cases(), asked, variables, _checked_costs(self.model, costs), self._rounding)

    @_alone
    @_IN_WORDS
    def sensitivities(self, query: Mapping[str, State]) -> Sensitivities:
        """Return the sensitivity of a posterior to each number in the tables of a Bayesian network.

        The other numbers of a row change in proportion, so that it sums to 1. Numbers of 0 and 1 count as facts, and
        are left out.

        Args:
            query: Event whose posterior is asked about: variable name -> its state.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable or state, a variable is observed, or the model is not a Bayesian
                network.
            MemoryLimitError: The posteriors of the families do not fit into memory.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"fever": 1})
            >>> sensitivity = tree.sensitivities({"flu": 1})[0]
            >>> sensitivity.name, round(sensitivity.derivative, 3), round(sensitivity.at(0.1), 3)
            ('P(fever=0 | flu=0)', 4.608, 0.09)
        """
        from elimina.methods.parameter_sensitivity import parameter_sensitivities

        event = assignment_of(self.model, query, "query")
        if not event:
            raise InputError("the query is empty: name a variable and its state, such as {'Alarm': 'on'}")
        cases = self._cases()
        for v in event:
            cases.check_unobserved(v, "query")
        if self.model.children is None:
            raise InputError(
                "the model is not a Bayesian network, so its numbers are not probabilities whose change has a meaning: "
                "build it with Model.from_cpds, or with children="
            )
        self._check_exact()
        families, evidence = self._family_marginals(), self._known
        posterior = float(self._joint(list(event))[tuple(event.values())])
        families_with_query = None
        if posterior > 0:
            self._known, self._answer = {**evidence, **event}, None
            try:
                families_with_query = self._family_marginals()
            finally:
                self._known, self._answer = evidence, None
        return parameter_sensitivities(self.model, event, posterior, families, families_with_query, self._rounding)

    @_alone
    @_IN_WORDS
    def relevant_explanations(self, targets: Sequence[str | int], count: int = 10) -> Explanations:
        """Return the assignments of some of the targets that explain the evidence best (most relevant explanations).

        They have the largest generalised Bayes factors, and name only the targets that matter. Assignments that contain
        a better one, or are contained in one, are left out.

        Args:
            targets: Names or indices of variables that may explain the evidence.
            count: Most explanations to return.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no evidence, no such variable, a target is observed or named twice, or the targets have
                too many states.
            MemoryLimitError: The joint distribution of the targets does not fit into memory.
            TypeError: The targets are a set, which has no order.

        Examples:
            >>> import elimina
            >>> cpds = {"flu": [0.9, 0.1], ("fever", "flu"): [[0.95, 0.2], [0.05, 0.8]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds), evidence={"fever": 1})
            >>> best = tree.relevant_explanations(["flu"])[0]
            >>> best.assignment, round(best.bayes_factor, 1)
            ({'flu': 1}, 16.0)
        """
        from elimina.methods.relevant_explanation import check_target_count, relevant_explanations

        arguments.in_order("targets", targets)
        asked, cases = variable_indices(self.model, targets, "targets"), self._cases()
        count = arguments.integer("count", count, 1)
        if not self._known:
            raise InputError("there is no evidence to explain: set it first (set_evidence)")
        for v in asked:
            cases.check_unobserved(v, "targets")
        variables = [self.model.variables[v] for v in asked]
        check_target_count(variables)
        self._check_exact()
        evidence = self._known
        posterior = self._joint(asked)
        self._known, self._answer = {}, None
        try:
            prior = self._joint(asked)
        finally:
            self._known, self._answer = evidence, None
        return relevant_explanations(variables, posterior, prior, count)

    def _cases(self) -> EvidenceCases:
        from elimina.methods.evidence_cases import EvidenceCases

        return EvidenceCases(self.model, self._known, self._options)

    def _check_exact(self) -> None:
        """Check that posteriors are exact: the errors of two estimates would look like a difference."""
        if not self.is_exact:
            raise MemoryLimitError(
                "explanations compare exact posteriors, and the messages of this model do not fit into memory: give "
                "more memory, or a smaller model"
            )

    @property
    def _rounding(self) -> float:
        return rounding_of(self._options.dtype)

    def _family_marginals(self) -> list[NDArray[np.float64]]:
        """Return the posterior of each factor's scope."""
        return [self._joint(factor.scope) for factor in self.model.factors]

    @_alone
    @_IN_WORDS
    def batch(
        self,
        cases: Any,
        names: Sequence[str | int] | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        joints: Sequence[Sequence[str | int]] = (),
        indices: bool = False,
        ignore_extra: bool = False,
    ) -> Posteriors:
        """Compute the posteriors of many cases at once.

        The evidence of the tree holds in each case, likelihoods included. A case that observes another state than the
        evidence has probability 0. Many cases are propagated in one pass. Calls with the same columns share the plan,
        unless likelihoods have changed. If the plan does not fit into memory, each case is exact if it fits alone, and
        otherwise estimated: ``Posteriors.statuses`` and ``errors`` say which, and how well.

        Args:
            cases: ``elimina.io.cases.Cases``, or what ``elimina.io.cases.cases_from_frame`` takes: a data frame, a
                mapping from names to sequences, a list of mappings, or an array of shape ``(cases, variables)``.
            names: The variables whose marginals are computed; None for all.
            progress: Function to call with the share of the cases that is done, now and then.
            joints: Sets of variables whose joint posteriors are computed, too: ``Posteriors.joints``.
            indices: Read the cells as indices of states, -1 unobserved, instead of states.
            ignore_extra: Ignore columns that are not variables of the model.

        Raises:
            InputError: A column is not a variable, or a cell is not a state of its variable or may be one of several.
            MemoryLimitError: Not even a few cases fit, and the options ask for exact answers or a GPU.
        """
        from elimina.methods.estimated_batch import batch_of

        observed, model = self._observed_cases(cases, indices, ignore_extra)
        columns, values = observed.columns, observed.values
        asked = None if names is None else tuple(dict.fromkeys(variable_indices(self.model, names, "names")))
        families = tuple(self._joint_scope(scope) for scope in joints)
        if families:
            model = self._with_joints(model, families)
        if asked is not None and is_rewritten(model):
            model = self._model_of_cases(model, frozenset((*columns, *asked, *itertools.chain(*families))))
        if (
            self._batch is None
            or self._batch.model is not model
            or not self._batch.suits(columns, asked, len(values), families)
        ):
            if self._batch is not None:
                self._batch.close()
            options = self._options
            if asked is None and self.is_exact and not families:
                options = options._replace(order=self.plan.order)
            self._batch = None
            batch = batch_of(model, columns, asked, options, len(values), families)
            self._make_room(batch.peak_bytes)
            self._batch = batch
        posteriors = self._batch.run(values, progress)._replace(labels=labels_of(cases))
        posteriors.mark_impossible(observed.contradicted)
        return posteriors

    def _observed_cases(self, cases: Any, indices: bool, ignore_extra: bool) -> tuple[ObservedCases, Model]:
        """Return cases with the evidence of the tree, and the model with its likelihoods."""
        from elimina.methods.batch import with_observations

        named, codes = as_cases(cases, self.model, indices=indices, ignore_extra=ignore_extra)
        if self._weighted is None or self._weighted[0] is not self._known:
            self._weighted = self._known, with_factors(self.model, self._known)
        observed = self._weighted[1]
        return with_observations(named, codes, observed.values), observed.model

    def _joint_scope(self, names: Sequence[str | int]) -> tuple[int, ...]:
        """Return the variables of a joint posterior, each of them once."""
        scope = tuple(variable_indices(self.model, names, "joints"))
        for position, v in enumerate(scope):
            if v in scope[:position]:
                raise InputError(f"joints names {self.model.variables[v].name!r} twice in {list(names)}; write it once")
        return scope

    def _with_joints(self, model: Model, families: tuple[tuple[int, ...], ...]) -> Model:
        """Return a model with a table over each family, which is kept for the next cases."""
        if self._joined is None or self._joined[0] is not model or self._joined[1] != families:
            self._joined = model, families, with_scopes(model, families)
        return self._joined[2]

    def log_likelihoods(self, cases: Any, *, indices: bool = False, ignore_extra: bool = False) -> Array:
        """Return the natural logarithm of the probability of each case's observations; see ``batch``.

        Examples:
            >>> import elimina
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds({"a": [0.25, 0.75]}))
            >>> tree.log_likelihoods({"a": [1, None]}).round(4).tolist()
            [-0.2877, 0.0]
        """
        return self.batch(cases, (), indices=indices, ignore_extra=ignore_extra).log_evidence

    def predict_proba(self, cases: Any, name: str | int, *, indices: bool = False, ignore_extra: bool = False) -> Array:
        """Return the posterior of a variable in each case, shape ``(cases, states)``; zeros if a case is impossible.

        A column of the variable is left out of the evidence: see ``batch`` for the cases.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> tree.predict_proba({"wet": [1, 0]}, "rain").round(3).tolist()
            [[0.364, 0.636], [0.923, 0.077]]
            >>> tree.predict({"wet": [1, 0]}, "rain").tolist()
            [1, 0]
        """
        target = variable_indices(self.model, [name], "name")[0]
        columns, values = as_cases(cases, self.model, indices=indices, ignore_extra=ignore_extra)
        others = [position for position, v in enumerate(columns) if v != target]
        features = Cases(tuple(columns[position] for position in others), values[:, others])
        posteriors = self.batch(features, [target])
        return np.ascontiguousarray(posteriors.marginals[self.model.variables[target].name])

    def predict_log_proba(
        self, cases: Any, name: str | int, *, indices: bool = False, ignore_extra: bool = False
    ) -> Array:
        """Return the natural logarithms of ``predict_proba``."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.predict_proba(cases, name, indices=indices, ignore_extra=ignore_extra))
        return logs

    def predict(self, cases: Any, name: str | int, *, indices: bool = False, ignore_extra: bool = False) -> Array:
        """Return the most probable state of a variable in each case, given its other cells: see ``predict_proba``.

        Raises:
            ImpossibleEvidenceError: A case has probability 0, so it has no most probable state.
        """
        posteriors = self.predict_proba(cases, name, indices=indices, ignore_extra=ignore_extra)
        impossible = posteriors.sum(axis=1) == 0
        if impossible.any():
            raise ImpossibleEvidenceError(
                f"row {impossible.argmax()}: the case has probability 0, so it has no most probable state"
            )
        return state_array(self.model[name], posteriors.argmax(axis=1))

    @_alone
    @_IN_WORDS
    def mpe_batch(
        self,
        cases: Any,
        progress: Callable[[float], None] | None = None,
        *,
        indices: bool = False,
        ignore_extra: bool = False,
    ) -> RowAssignments:
        """Return the most probable assignment of all variables in each case; for the arguments see ``batch``.

        Raises:
            InputError: As ``batch``.
            MemoryLimitError: Not even a few cases fit.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> tree.mpe_batch({"wet": [1, 0]}).states["rain"].tolist()
            [1, 0]
        """
        return self._assigned(cases, None, progress, indices, ignore_extra, is_drawn=False)

    @_alone
    @_IN_WORDS
    def sample_batch(
        self,
        cases: Any,
        seed: int | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        indices: bool = False,
        ignore_extra: bool = False,
    ) -> RowAssignments:
        """Draw an assignment of all variables in each case from its posterior; for the arguments see ``batch``.

        Args:
            cases: Cases.
            seed: Random seed; None: other samples in each call.
            progress: Function to call with the share of the cases that is done, now and then.
            indices: Read the cells as indices of states.
            ignore_extra: Ignore columns that are not variables of the model.

        Raises:
            InputError: As ``batch``, or ``seed`` is negative.
            MemoryLimitError: Not even a few cases fit.
        """
        seed = None if seed is None else arguments.integer("seed", seed, 0, taken="an integer, or None for any")
        return self._assigned(cases, seed, progress, indices, ignore_extra, is_drawn=True)

    def fill(self, frame: Any, *, ignore_extra: bool = False) -> Any:
        """Return a frame whose missing cells have the states of each row's most probable assignment.

        Args:
            frame: A data frame of pandas, Polars or Arrow, which keeps its other cells and columns, or a mapping from
                names to sequences. Columns keep their types where these can hold the states, and variables without a
                column are added.
            ignore_extra: Keep columns without a variable of the model; otherwise they are an error.

        Raises:
            InputError: As ``batch``.
            ImpossibleEvidenceError: A row has probability 0.
            MemoryLimitError: Not even a few rows fit.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> filled = tree.fill({"wet": [1, 0, None]})
            >>> filled["rain"], filled["wet"]
            ([1, 0, 0], [1, 0, 0])
        """
        cases = as_cases(frame, self.model, ignore_extra=ignore_extra)
        best = self.mpe_batch(cases)
        impossible = np.isneginf(best.log10_probability)
        if impossible.any():
            raise ImpossibleEvidenceError(f"row {impossible.argmax()} has probability 0, so it cannot be filled")
        return filled_frame(frame, self.model, cases, best.indices)

    def _assigned(
        self,
        cases: Any,
        seed: int | None,
        progress: Callable[[float], None] | None,
        indices: bool,
        ignore_extra: bool,
        *,
        is_drawn: bool,
    ) -> RowAssignments:
        from elimina.methods.row_assignments import RowDecoder

        observed, model = self._observed_cases(cases, indices, ignore_extra)
        columns, count = observed.columns, len(observed.values)
        if self._decoder is None or not self._decoder.suits(model, columns, count, is_drawn=is_drawn):
            if self._decoder is not None:
                self._decoder.close()
            self._decoder = None
            decoder = RowDecoder(model, columns, self._options, count, is_drawn=is_drawn)
            self._make_room(decoder.peak_bytes)
            self._decoder = decoder
        return self._decoder.assignments(observed, labels_of(cases), seed, progress)

    def _model_of_cases(self, model: Model, whole: frozenset[int]) -> Model:
        """Return a model with fewer values of all variables but some, which is kept for the next cases."""
        if self._summed is None or self._summed[0] is not model or self._summed[1] != whole:
            self._summed = model, whole, rewritten_for_sums(Observed(model, {}), whole).model
        return self._summed[2]

    @_alone
    def close(self) -> None:
        """Give the device's memory back; the next query takes it again."""
        if self._batch is not None:
            self._batch.close()
        if self._decoder is not None:
            self._decoder.close()
        if self._merged is not None:
            self._merged[1].close()
        for propagator in self._propagators.values():
            propagator.close()
        self._propagators.clear()
        self._applied.clear()

    def _make_room(self, size: int) -> None:
        """Release the memory of earlier queries, if it does not fit beside so many bytes."""
        if not self.is_exact:
            return
        taken = len(self._propagators) * self.plan.peak_bytes
        taken += sum(kept.peak_bytes for kept in (self._batch, self._decoder) if kept is not None)
        if taken + size > self.plan.memory_limit:
            self.close()

    def _at_once(self, asks_all: bool = True) -> SmallAnswer | None:
        """Return the answer of a small network; None if it is not small, or there is soft evidence.

        Args:
            asks_all: False if a few posteriors are asked for, which need a part of a kept plan's messages.
        """
        if self._answer is None and self._small is not None:
            if self._answers == _MIN_QUERIES_FOR_PLAN and not self._small.keeps_plan:
                self._keep_plan(self._small)
            if self._small is None or not (
                asks_all or self._answers < _MIN_QUERIES_FOR_PLAN or self.plan.seconds < _PART_SECONDS
            ):
                return None
            observed = {v: what for v, what in self._known.items() if isinstance(what, int)}
            if len(observed) == len(self._known):
                self._answers += 1
                self._answer = self._small.answer(observed)
        return self._answer

    def _keep_plan(self, small: SmallNetwork) -> None:
        """Let a small network answer by one plan from now on; a long propagation is left to propagators."""
        order = self.plan.order
        others = set(range(len(self.model.variables))).difference(order)
        if self.plan.seconds > WHOLE_SECONDS or not small.keep([*order, *others]):
            self._small = None

    def _propagator(self, semiring: str) -> Propagator:
        """Return the propagator of a semiring, with the present evidence."""
        if semiring not in self._applied:
            if semiring in self._propagators:  # an interrupt left it between two sets of evidence
                self._propagators.pop(semiring).close()
            self._make_room(self.plan.peak_bytes)
            self._propagators[semiring] = Propagator(self._planned, semiring)
            self._applied[semiring] = {}
        propagator, evidence = self._propagators[semiring], self._known
        if self._applied.pop(semiring) is not evidence:
            fixed = self._planned.problem.fixed
            propagator.observe({v: what for v, what in evidence.items() if v not in fixed})
        self._applied[semiring] = evidence
        return propagator

    @_IN_WORDS
    def _run(self, semiring: str, outputs: Sequence[int]) -> PropagatedTables:
        answer = self._propagator(semiring).run(outputs)
        if not answer.sound:
            answer = self._propagator("log-sum-exp").run(outputs)
        return answer

    @property
    def _fixed_log_sum(self) -> float:
        """Logarithm of the likelihoods of variables of one state, which are in no table."""
        likelihoods = (self._known.get(v) for v in self._planned.problem.fixed)
        values = [float(likelihood[0]) for likelihood in likelihoods if isinstance(likelihood, np.ndarray)]
        return sum(math.log(likelihood) if likelihood > 0 else -math.inf for likelihood in values)

    def _check_possible(self) -> None:
        if self.log_evidence == -math.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._known))

    def _tables(self, semiring: str, variables: Sequence[str | int] | None) -> dict[str, NDArray[np.float64]]:
        small_answer = self._at_once(variables is None) if SEMIRINGS[semiring].is_product else None
        indices = None if variables is None else variable_indices(self.model, variables, "variables")
        if small_answer is not None:
            if small_answer.log_sum == -math.inf:
                raise ImpossibleEvidenceError(impossible_text(self.model, self._known))
            shares, parts = small_answer.shares.copy(), self._parts
            return {name: shares[part] for name, part in (parts if indices is None else [parts[v] for v in indices])}
        names, outputs, ones = self._all if indices is None else self._places(indices)
        answer = self._run(semiring, outputs)
        if not answer.is_possible or self._fixed_log_sum == -math.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._known))
        vectors = answer.vectors("max" if SEMIRINGS[semiring].is_idempotent else "sum")
        for place in ones:
            vectors.insert(place, np.ones(1))
        return dict(zip(names, vectors, strict=True))

    @cached_property
    def _all(self) -> tuple[list[str], tuple[int, ...], list[int]]:
        return self._places(range(len(self.model.variables)))

    def _places(self, asked: Sequence[int]) -> tuple[list[str], tuple[int, ...], list[int]]:
        """Return the names of variables, the outputs of those that have one, and the places of the others."""
        names, has = [self.model.variables[v].name for v in asked], self._output
        return names, tuple([has[v] for v in asked if v in has]), [n for n, v in enumerate(asked) if v not in has]


def _checked_costs(model: Model, costs: Mapping[str, float] | None) -> dict[int, float]:
    """Return the costs of observations by the indices of their variables."""
    if costs is None:
        return {}
    arguments.check_mapping("costs", costs)
    checked = {}
    for name, cost in costs.items():
        number = arguments.real(f"costs[{name!r}]", cost)
        if not 0 <= number < math.inf:
            raise InputError(f"costs[{name!r}] is {number}: give a finite cost that is not negative")
        checked[variable_index(model, name)] = number
    return checked
