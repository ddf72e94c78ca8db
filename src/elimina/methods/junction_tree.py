"""The public class ``JunctionTree``, which adds exact samples and the most probable assignment to its base classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import ImpossibleEvidenceError, MemoryLimitError
from elimina.methods.bucket_elimination import eliminate
from elimina.methods.case_queries import CaseQueries
from elimina.methods.compiled_tree import Observations, memory_errors_of_trees, one_call_at_a_time
from elimina.methods.explanation_queries import ExplanationQueries
from elimina.methods.small_networks import rewritten_for_sums
from elimina.model.model import variable_indices
from elimina.model.states import State
from elimina.model.variable import state_array
from elimina.number_texts import bytes_text
from elimina.planning.options import replace
from elimina.problem.evidence import Observed, with_factors, with_leaves
from elimina.problem.merging import Merged
from elimina.problem.observations import impossible_text
from elimina.problem.preparation import Problem, condition, prepare
from elimina.problem.rewriting import is_rewritten
from elimina.running.execution import Execution
from elimina.running.host import host_memory
from elimina.running.plan_choice import plan_problem
from elimina.running.planned_problem import PlannedProblem


class _MergedTree(NamedTuple):
    """A tree of the model given some evidence, in which equivalent states are merged.

    Attributes:
        evidence: The evidence.
        tree: The tree.
        observed: Indices of the observed states.
        merged: Variables with merged states.
    """

    evidence: Observations
    tree: JunctionTree
    observed: dict[int, int]
    merged: Mapping[int, Merged]


@arguments.with_checked_methods
class JunctionTree(ExplanationQueries, CaseQueries):
    """A compiled model that answers one set of evidence after another.

    Messages are passed up and down the bucket tree of one elimination order. After a change of evidence, only the
    messages that depend on it are computed again. A query of a few variables computes only the messages that it needs.
    On a GPU, the first query of a set of variables computes all messages, because preparing a partial run takes longer
    than a full run.

    If the messages do not fit into memory, a warning is issued and ``is_exact`` is False: posteriors, joint
    distributions, entropies and the evidence's probability are estimated for about a second, once for each set of
    evidence, and ``error`` states the error. They are exact where the evidence makes the model narrow enough.

    Threads may share a junction tree, which runs one call at a time.

    Args:
        model: A probability model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        evidence: Evidence to begin with, as in ``elimina.solve``.
        device: Device, as in ``elimina.solve``.
        memory: Memory limit, as in ``elimina.solve``.
        options: Settings for experts: the order and its search, ``threads``, ``dtype`` (``float64`` by default, or
            ``float32``), and ``exact`` to refuse estimates. A junction tree accepts no other options.

    Attributes:
        error: Estimated error of the latest posteriors or joint distribution: the mean Hellinger distance from the
            exact ones. 0 if they are exact, NaN if it is unknown.
        lock: Lock that is held during each call. Hold it to change the evidence and query the tree without calls of
            other threads in between.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: The model has costs, or an option is invalid.
        MemoryLimitError: The messages do not fit into memory, and the options ask for exact answers or a GPU; nothing
            was allocated.
        DeviceError: The device is missing or cannot be used.

    Examples:
        >>> import elimina
        >>> tree = elimina.JunctionTree("examples/pump.bif")
        >>> tree.set_evidence({"Alarm": "on", "Noise": "loud"})
        >>> print(tree.marginals(["Bearing"])["Bearing"].round(3))
        [0.147 0.853]
    """

    _merged: _MergedTree | None = None

    _optimum: tuple[tuple[object, ...], PlannedProblem] | None = None
    """The free variables and scopes of the latest optimum, and its plan."""

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

    @one_call_at_a_time
    @memory_errors_of_trees
    def sample(
        self, count: int, seed: int | None = None, names: Sequence[str | int] | None = None, *, indices: bool = False
    ) -> dict[str, NDArray[Any]] | NDArray[np.int32]:
        """Draw independent samples from the posterior, exactly.

        Args:
            count: Number of samples.
            seed: Random seed; equal seeds give equal samples. None: a new seed for each call.
            names: The variables asked for; None: all.
            indices: Return indices of states instead of states.

        Returns:
            Variable name -> its states, an array of ``count`` int64, bool, or objects. With ``indices``, an int32 array
            of shape ``(count, variables)``. ``batch`` accepts both forms.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            TypeError: ``count`` is not an integer, or ``seed`` neither an integer nor None.
            InputError: A variable is unknown, or ``count`` or ``seed`` is negative.
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
            for column, v in enumerate(asked):
                columns[:, column] = drawn[v]
            return columns
        return {variables[v].name: state_array(variables[v], codes) for v, codes in drawn.items()}

    def _drawn_from_merged(self, count: int, seed: int | None, asked: Sequence[int]) -> dict[int, NDArray[Any]]:
        """Draw from a tree with merged states, which is reused until the evidence changes."""
        self._check_possible()
        if self._merged is None or self._merged.evidence is not self._observations:
            model, hard, _ = with_leaves(self.model, self._observations)
            small, _, merged = rewritten_for_sums(Observed(condition(model, hard), {}))
            if self._merged is not None:
                self._merged.tree.close()
            tree = JunctionTree(small, options=replace(self._options, order="auto"))
            self._merged = _MergedTree(self._observations, tree, hard, merged)
        _, tree, hard, merged = self._merged
        samples = tree._drawn(count, seed, asked)
        samples.update((v, np.full(count, hard[v])) for v in hard.keys() & asked)
        random = np.random.default_rng(None if seed is None else [seed, 1])
        return {v: merged[v].drawn(codes, random) if v in merged else codes for v, codes in samples.items()}

    def _drawn(self, count: int, seed: int | None, asked: Sequence[int]) -> dict[int, NDArray[Any]]:
        """Draw the states of some variables, as indices.

        Raises:
            MemoryLimitError: Not all messages fit the memory.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
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

    @one_call_at_a_time
    @memory_errors_of_trees
    def mpe(self) -> tuple[dict[str, State], float]:
        """Return the most probable assignment given the evidence (name -> state), and the natural log of its product.

        The product is that of all factors and likelihoods. To obtain the logarithm of the assignment's posterior,
        subtract ``log_evidence``.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            MemoryLimitError: The plan does not fit.
        """
        observed = with_factors(self.model, self._observations)
        problem = prepare(observed.model, "mpe", observed.values)
        planned = self._planned_optimum(problem)
        result = eliminate(Execution(problem, planned.plan, planned.backend), {})
        if result.assignment is None or result.value is None:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))
        return dict(result.assignment), float(result.value)

    def _planned_optimum(self, problem: Problem) -> PlannedProblem:
        """Return the plan of an optimum; it is stored for other evidence on the same variables."""
        form = problem.free, problem.tables.form
        if self._optimum is None or self._optimum[0] != form:
            planned = plan_problem(problem, self._options)
            # Layouts of sparse tables depend on their tuples, so such a plan cannot be reused.
            if planned.plan.sparse is not None:
                return planned
            self._optimum = form, planned
        return self._optimum[1]

    @one_call_at_a_time
    def close(self) -> None:
        """Release the device's memory; the next query allocates it again."""
        if self._merged is not None:
            self._merged.tree.close()
        super().close()
