"""Posteriors of single variables, joint posteriors, and the probability of the evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.errors import ImpossibleEvidenceError, InputError, MemoryLimitError
from elimina.methods.compiled_tree import CompiledTree, Observations, memory_errors_of_trees, one_call_at_a_time
from elimina.methods.information import entropy, mutual_information
from elimina.methods.joint_estimation import estimated_joint
from elimina.methods.marginals import joint_table
from elimina.methods.posterior_estimation import ESTIMATE_SECONDS, error_of, posteriors_within
from elimina.methods.small_networks import rewritten_for_sums
from elimina.model.model import Model, names_of, variable_indices
from elimina.model.named_table import NamedTable, NamedTables
from elimina.number_texts import bytes_text
from elimina.planning.options import replace
from elimina.problem.evidence import with_leaves
from elimina.problem.observations import impossible_text
from elimina.problem.rewriting import is_rewritten
from elimina.result import Marginals, Result
from elimina.running.host import host_memory

_TRIAL_ORDER_SECONDS = 0.1
"""Seconds of the order search for a joint distribution if the messages of the model do not fit."""


@arguments.with_checked_methods
class PosteriorQueries(CompiledTree):
    """Posteriors given the evidence: exact, or estimated if the messages do not fit into memory."""

    _estimate: tuple[Observations, Result] | None = None
    """Evidence, and the estimated answer for it."""

    @one_call_at_a_time
    def marginals(self, variables: Sequence[str | int] | None = None) -> NamedTables:
        """Return the posterior of each variable given the evidence: name -> ``NamedTable``. See ``error``.

        Args:
            variables: Names or indices of variables; None: all.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: There is no such variable.
        """
        self.error = 0.0
        posteriors = self._tables("sum-product", variables) if self.is_exact else self._estimates_of(variables)
        return NamedTables(posteriors, self.model.__getitem__, "probability")

    def _estimates_of(self, variables: Sequence[str | int] | None) -> dict[str, NDArray[np.float64]]:
        """Return estimated posteriors of some variables; None: of all.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        indices = None if variables is None else variable_indices(self.model, variables, "variables")
        result = self._estimated()
        if result.status == "infeasible":
            raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))
        assert isinstance(result.marginals, Marginals)
        tables = result.marginals.arrays()
        if indices is None:
            return tables
        return {name: tables[name] for name in names_of(self.model, indices)}

    def _estimated(self) -> Result:
        """Return estimated posteriors of all variables, computed once for each set of evidence."""
        if self._estimate is None or self._estimate[0] is not self._observations:
            observed, variables = with_leaves(self.model, self._observations), range(len(self.model.variables))
            self._estimate = self._observations, posteriors_within(observed, variables, self._options, ESTIMATE_SECONDS)
        self.error = error_of(self._estimate[1])
        return self._estimate[1]

    @one_call_at_a_time
    def max_marginals(self, variables: Sequence[str | int] | None = None) -> NamedTables:
        """Return, for each state, the largest probability of an assignment with it, relative to the best assignment."""
        return NamedTables(self._tables("min-sum", variables), self.model.__getitem__, "relative_probability")

    @property
    @one_call_at_a_time
    def log_evidence(self) -> float:
        """Natural logarithm of the evidence's probability (the model's sum): minus infinity for 0, NaN if unknown."""
        if not self.is_exact:
            log_z = self._estimated().log_z
            return math.nan if log_z is None else log_z
        answer = self._answer_of_small()
        if answer is not None:
            return answer.log_sum
        return float(self._run("sum-product", []).log_sum) + self._fixed_log_sum

    @property
    def log10_evidence(self) -> float:
        """Base-10 logarithm of the evidence's probability: see ``log_evidence``."""
        return self.log_evidence / math.log(10)

    def _check_possible(self) -> None:
        if self.log_evidence == -math.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))

    @one_call_at_a_time
    @memory_errors_of_trees
    def joint(self, variables: Sequence[str | int]) -> NamedTable:
        """Return the posterior joint distribution of some variables, with axes in this order; each call makes a plan.

        If the plan does not fit into memory, the distribution is estimated: see ``error``.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: A variable is unknown, or named twice.
            MemoryLimitError: The plan does not fit into memory, and the options ask for exact answers or a GPU; or the
                joint distribution itself does not fit.
            TypeError: The variables are a set, which has no order.
        """
        arguments.in_order("variables", variables)
        asked = variable_indices(self.model, variables, "variables")
        return NamedTable(self._joint(asked), [self.model.variables[v] for v in asked])

    @memory_errors_of_trees
    def conditional(self, variables: Sequence[str | int], given: Sequence[str | int]) -> NamedTable:
        """Return the posterior of some variables for each combination of states of others; each call makes a plan.

        The axes are ``variables``, then ``given``. Numbers are NaN where the combination of states of ``given`` has
        probability 0.

        Args:
            variables: Names or indices of variables.
            given: Names or indices of other variables.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
            InputError: A variable is unknown, or named twice.
            MemoryLimitError: The plan needs more memory.
            TypeError: The variables are a set, which has no order.
        """
        arguments.in_order("variables", variables)
        arguments.in_order("given", given)
        asked = variable_indices(self.model, variables, "variables")
        joint = self.joint(names_of(self.model, [*asked, *variable_indices(self.model, given, "given")]))
        totals = joint.array.sum(axis=tuple(range(len(asked))), keepdims=True)
        with np.errstate(invalid="ignore"):
            joint.array /= totals
        return joint

    def _joint(self, asked: Sequence[int]) -> NDArray[np.float64]:
        """Return the posterior joint distribution of variables.

        Raises:
            InputError: A variable is named twice.
            MemoryLimitError: The distribution does not fit the memory.
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        if len(set(asked)) != len(asked):
            twice = next(v for v in asked if asked.count(v) > 1)
            raise InputError(f"variable {self.model.variables[twice].name!r} is named twice: name each variable once")
        self.error = 0.0
        if len(asked) == 1 and not is_rewritten(self.model) and self.is_exact:
            (posterior,) = self._tables("sum-product", names_of(self.model, asked)).values()
            return posterior
        if self.is_exact:
            self._check_possible()
        model, hard, merged = rewritten_for_sums(with_leaves(self.model, self._observations))
        # A plan of a joint distribution leaves out irrelevant factors, so it may not detect that the evidence is
        # impossible.
        if not self.is_exact and self.log10_evidence == -math.inf:
            raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))
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
        """Return the joint table of variables, estimated if no plan for it fits; axes of observed ones have length 1.

        Raises:
            ImpossibleEvidenceError: The evidence has probability 0.
        """
        options = replace(self._options, order="auto")
        if not self.is_exact:
            options = replace(options, order_seconds=min(options.order_seconds, _TRIAL_ORDER_SECONDS))
        try:
            return joint_table(model, evidence, asked, options)
        except MemoryLimitError:
            if options.exact or options.needs_gpu:
                raise
        table, result = estimated_joint(model, evidence, asked, options, ESTIMATE_SECONDS)
        if result.status == "infeasible":
            raise ImpossibleEvidenceError(impossible_text(self.model, self._observations))
        self.error = error_of(result)
        return table

    def entropy(self, variables: Sequence[str | int]) -> float:
        """Return the entropy of the joint posterior of some variables, in bits."""
        return entropy(self.joint(variables).array)

    def mutual_information(self, one: Sequence[str | int], other: Sequence[str | int]) -> float:
        """Return the mutual information of two disjoint sets of variables given the evidence, in bits."""
        rows, columns = variable_indices(self.model, one, "one"), variable_indices(self.model, other, "other")
        table = self.joint(names_of(self.model, [*rows, *columns])).array
        row_count = math.prod(table.shape[: len(rows)])
        return mutual_information(table.reshape(row_count, -1), self._rounding)
