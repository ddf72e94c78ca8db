"""Posteriors, assignments and samples of many cases; plans are cached between calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.io.cases import Cases, as_cases, labels_of
from elimina.io.filled_frames import filled_frame
from elimina.methods.compiled_tree import CompiledTree, Observations, memory_errors_of_trees, one_call_at_a_time
from elimina.methods.small_networks import rewritten_for_sums
from elimina.model.model import Model, names_of, variable_indices
from elimina.model.variable import state_array
from elimina.planning.options import replace
from elimina.problem.evidence import Observed, with_factors
from elimina.problem.preparation import with_scopes
from elimina.problem.rewriting import is_rewritten

if TYPE_CHECKING:
    from elimina.methods.batch import Batch, ObservedCases
    from elimina.methods.estimated_batch import EstimatedBatch
    from elimina.methods.row_assignments import RowAssignments, RowDecoder
    from elimina.running.propagated_tables import Posteriors

Array = NDArray[Any]


@arguments.with_checked_methods
class CaseQueries(CompiledTree):
    """Queries about the rows of data frames; the tree's evidence applies to each row."""

    _batch: Batch | EstimatedBatch | None = None
    _decoder: RowDecoder | None = None

    _weighted: tuple[Observations, Observed] | None = None
    """Evidence, and the model with the evidence's likelihoods as factors."""

    _joined: tuple[Model, tuple[tuple[int, ...], ...], Model] | None = None
    """A model, families, and this model with a table over each family."""

    _summed: tuple[Model, frozenset[int], Model] | None = None
    """A model, variables that keep all of their states, and an equivalent model with fewer states of other
    variables."""

    @one_call_at_a_time
    @memory_errors_of_trees
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

        The evidence of the tree, including likelihoods, applies to each case. A case that contradicts the evidence has
        probability 0. Cases are propagated in batches. Calls with the same columns share the plan, unless likelihoods
        have changed. If the plan does not fit into memory, each case is exact if it fits alone, and otherwise
        estimated: ``Posteriors.statuses`` states this, and ``Posteriors.errors`` the errors.

        Args:
            cases: ``elimina.io.cases.Cases``, or an argument of ``elimina.io.cases.cases_from_frame``: a data frame, a
                mapping from names to sequences, a list of mappings, or an array of shape ``(cases, variables)``.
            names: The queried variables; None: all.
            progress: Function to call repeatedly with the finished share of the cases.
            joints: Sets of variables whose joint posteriors are also computed: ``Posteriors.joints``.
            indices: Read cells as indices of states (-1: unobserved) instead of states.
            ignore_extra: Ignore columns that are not variables of the model.

        Raises:
            InputError: A column is not a variable, or a cell is not a state of its variable, or fits several states.
            MemoryLimitError: Not even a few cases fit, and the options ask for exact answers or a GPU.
        """
        from elimina.methods.estimated_batch import batch_of

        observed, model = self._observed_cases(cases, indices, ignore_extra)
        columns, values = observed.columns, observed.values
        asked = None if names is None else tuple(dict.fromkeys(variable_indices(self.model, names, "names")))
        scopes = arguments.elements("joints", joints, "a sequence of sets of variables, such as [['a', 'b']]")
        families = tuple(self._joint_scope(scope) for scope in scopes)
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
                options = replace(options, order=self.plan.order)
            self._batch = None
            batch = batch_of(model, columns, asked, options, len(values), families)
            self.make_room(batch.peak_bytes)
            self._batch = batch
        posteriors = self._batch.run(values, progress)._replace(labels=labels_of(cases))
        posteriors.mark_impossible(observed.contradicted)
        return posteriors

    def _observed_cases(self, cases: Any, indices: bool, ignore_extra: bool) -> tuple[ObservedCases, Model]:
        """Return cases with the tree's evidence, and the model with the tree's likelihoods as factors."""
        from elimina.methods.batch import with_observations

        named, codes = as_cases(cases, self.model, indices=indices, ignore_extra=ignore_extra)
        if self._weighted is None or self._weighted[0] is not self._observations:
            self._weighted = self._observations, with_factors(self.model, self._observations)
        observed = self._weighted[1]
        return with_observations(named, codes, observed.values), observed.model

    def _joint_scope(self, names: Sequence[str | int]) -> tuple[int, ...]:
        """Return the variables of a joint posterior; raise ``InputError`` if one is unknown or named twice."""
        scope = tuple(variable_indices(self.model, names, "joints"))
        for position, v in enumerate(scope):
            if v in scope[:position]:
                raise InputError(f"joints names {self.model.variables[v].name!r} twice in {list(names)}; write it once")
        return scope

    def _with_joints(self, model: Model, families: tuple[tuple[int, ...], ...]) -> Model:
        """Return the model with a table over each family; it is cached for further cases."""
        if self._joined is None or self._joined[0] is not model or self._joined[1] != families:
            self._joined = model, families, with_scopes(model, families)
        return self._joined[2]

    def log_likelihoods(self, cases: Any, *, indices: bool = False, ignore_extra: bool = False) -> Array:
        """Return the natural logarithm of the probability of each case and the tree's evidence; see ``batch``.

        Examples:
            >>> import elimina
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds({"a": [0.25, 0.75]}))
            >>> tree.log_likelihoods({"a": [1, None]}).round(4).tolist()
            [-0.2877, 0.0]
        """
        return self.batch(cases, (), indices=indices, ignore_extra=ignore_extra).log_evidence

    def predict_proba(self, cases: Any, name: str | int, *, indices: bool = False, ignore_extra: bool = False) -> Array:
        """Return the posterior of a variable in each case, shape ``(cases, states)``; zeros if a case is impossible.

        A column of the variable is ignored. See ``batch`` for the arguments.

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
        (name,) = names_of(self.model, [target])
        return np.ascontiguousarray(self.batch(features, [name]).marginals[name])

    def predict_log_proba(
        self, cases: Any, name: str | int, *, indices: bool = False, ignore_extra: bool = False
    ) -> Array:
        """Return the natural logarithms of ``predict_proba``; minus infinity for 0."""
        with np.errstate(divide="ignore"):
            logs: Array = np.log(self.predict_proba(cases, name, indices=indices, ignore_extra=ignore_extra))
        return logs

    def predict(self, cases: Any, name: str | int, *, indices: bool = False, ignore_extra: bool = False) -> Array:
        """Return the most probable state of a variable in each case, given the other cells; see ``predict_proba``.

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

    @one_call_at_a_time
    @memory_errors_of_trees
    def mpe_batch(
        self,
        cases: Any,
        progress: Callable[[float], None] | None = None,
        *,
        indices: bool = False,
        ignore_extra: bool = False,
    ) -> RowAssignments:
        """Return the most probable assignment of all variables in each case; see ``batch`` for the arguments.

        Raises:
            InputError: See ``batch``.
            MemoryLimitError: Not even a few cases fit.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> tree.mpe_batch({"wet": [1, 0]}).states["rain"].tolist()
            [1, 0]
        """
        return self._assigned(cases, None, progress, indices, ignore_extra, is_drawn=False)

    def map_batch(
        self,
        cases: Any,
        names: Sequence[str | int],
        progress: Callable[[float], None] | None = None,
        *,
        indices: bool = False,
        ignore_extra: bool = False,
    ) -> RowAssignments:
        """Return the most probable joint states of some variables in each case, with the other variables summed out.

        This is marginal MAP, computed from the joint posterior of the variables: see ``batch`` for the arguments.

        Raises:
            InputError: See ``batch``; or no variable is named.
            MemoryLimitError: The joint posterior of a few cases does not fit.

        Examples:
            >>> import elimina
            >>> cpds = {"rain": [0.8, 0.2], ("wet", "rain"): [[0.9, 0.3], [0.1, 0.7]]}
            >>> tree = elimina.JunctionTree(elimina.Model.from_cpds(cpds))
            >>> tree.map_batch({"wet": [1, 0]}, ["rain"]).states["rain"].tolist()
            [1, 0]
        """
        from elimina.methods.row_assignments import most_probable_joint

        asked = variable_indices(self.model, names, "names")
        if not asked:
            raise InputError("names is empty: name the variables whose most probable states are asked for")
        joints = [names_of(self.model, asked)]
        answer = self.batch(cases, (), progress, joints=joints, indices=indices, ignore_extra=ignore_extra)
        variables = [self.model.variables[v] for v in asked]
        assert answer.joints is not None
        joint = answer.joints[tuple(variable.name for variable in variables)]
        return most_probable_joint(variables, joint, answer.log10_evidence, answer.labels)

    @one_call_at_a_time
    @memory_errors_of_trees
    def sample_batch(
        self,
        cases: Any,
        seed: int | None = None,
        progress: Callable[[float], None] | None = None,
        *,
        indices: bool = False,
        ignore_extra: bool = False,
    ) -> RowAssignments:
        """Draw an assignment of all variables in each case from the case's posterior.

        Args:
            cases: Cases, as in ``batch``.
            seed: Random seed; None: a new seed for each call.
            progress: Function to call repeatedly with the finished share of the cases.
            indices: Read cells as indices of states.
            ignore_extra: Ignore columns that are not variables of the model.

        Raises:
            InputError: See ``batch``; or ``seed`` is negative.
            MemoryLimitError: Not even a few cases fit.
        """
        seed = None if seed is None else arguments.integer("seed", seed, 0, taken="an integer, or None for any")
        return self._assigned(cases, seed, progress, indices, ignore_extra, is_drawn=True)

    def fill(self, frame: Any, *, ignore_extra: bool = False) -> Any:
        """Return the frame with missing cells filled by the states of each row's most probable assignment.

        Args:
            frame: A data frame of pandas, Polars or Arrow, or a mapping from names to sequences. Observed cells and
                extra columns do not change. Columns keep their types if these can represent the states; missing columns
                are added.
            ignore_extra: Keep columns that are not variables of the model; otherwise, they are an error.

        Raises:
            InputError: See ``batch``.
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
            self.make_room(decoder.peak_bytes)
            self._decoder = decoder
        return self._decoder.assignments(observed, labels_of(cases), seed, progress)

    def _model_of_cases(self, model: Model, whole: frozenset[int]) -> Model:
        """Return an equivalent model with fewer states of variables not in ``whole``, cached for further cases."""
        if self._summed is None or self._summed[0] is not model or self._summed[1] != whole:
            self._summed = model, whole, rewritten_for_sums(Observed(model, {}), whole).model
        return self._summed[2]

    @one_call_at_a_time
    def close(self) -> None:
        """Release the device's memory; the next query allocates it again."""
        for kept in (self._batch, self._decoder):
            if kept is not None:
                kept.close()
        super().close()

    @property
    def _kept_bytes(self) -> int:
        return super()._kept_bytes + sum(kept.peak_bytes for kept in (self._batch, self._decoder) if kept is not None)
