"""The answer of one question: computed at once for a small problem, otherwise by a call that runs strategies."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from elimina.errors import InputError, MemoryLimitError, TimeLimitError
from elimina.io.sources import EvidenceLike, ModelLike, as_evidence, as_model
from elimina.methods.first_bounds import bounds_before_preparation
from elimina.methods.small_networks import answer_at_once
from elimina.model.model import Model
from elimina.option_names import option
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.fixed_tables import with_fixed_tables
from elimina.problem.tasks import Task, described
from elimina.result import OPEN_STATUSES, Result, in_terms_of
from elimina.running.garbage_collection import set_aside
from elimina.strategies.call import Call
from elimina.system import loaded_on_use

if TYPE_CHECKING:
    from elimina.running.checkpoint import Checkpoint

# ``independent_posteriors`` is imported on use: only calls that end without another result need it.
_independent_posteriors = loaded_on_use("elimina.methods.independent_marginals", "independent_posteriors")

_NEEDS_LESS = "elimination in segments or with files, which have no checkpoints, may need less: leave out"


def answer_question(
    model: ModelLike,
    task: Task,
    evidence: EvidenceLike | None,
    query: Sequence[str | int] | None,
    time_limit: float | None,
    options: CheckedOptions,
) -> Result:
    """Answer a question.

    Args:
        model: Model, or the path of a file.
        task: Name of the task; aliases must have been resolved.
        evidence: Evidence, as in ``elimina.solve``.
        query: Query, as in ``elimina.solve``; it must allow several iterations.
        time_limit: Time limit of the whole call, in seconds; None: no limit.
        options: Checked options.

    Raises:
        KeyboardInterrupt: The user interrupted the call before its first result.
        EliminaError: The question has no answer within the memory and the time, or no exact one although ``exact`` is
            set; or a value of the question or of the options is invalid.
    """
    started = time.monotonic()
    folder = options.checkpoint
    is_plain = options.solving.may_eliminate and folder is None and options.hint is None
    if is_plain and options.on_plan is None and options.progress is None and isinstance(model, Model):
        evidence = as_evidence(evidence, model)
        result = answer_at_once(model, task, evidence, query, options, time_limit, started)
        if result is not None:
            return result

    call = Call(task, time_limit, options.on_bounds, float(options.gap), started)
    checkpoints: list[Checkpoint] = []
    models: list[Model] = []

    def provide_fallback(read_model: Model) -> None:
        models.append(read_model)
        if options.exact:
            return
        call.fallback_after = math.inf
        if described(task).has_first_bounds:
            call.fallback = lambda _: bounds_before_preparation(
                read_model, task, as_evidence(evidence, read_model), query, options.upper_bound
            )
        elif described(task).is_marginal and options.solving.is_open:
            call.fallback = lambda _: _independent_posteriors(read_model, as_evidence(evidence, read_model), query)

    def work() -> None:
        from elimina.strategies.portfolio import Question, Solver
        from elimina.strategies.strategy import pursue
        from elimina.strategies.task_portfolio import task_portfolio

        with call.phase("read"):
            read_model = as_model(model)
        if not models:
            provide_fallback(read_model)
        question = Question(read_model, task, as_evidence(evidence, read_model), query)
        call_options = options if folder is None else with_fixed_tables(options, task, read_model)
        with contextlib.nullcontext() if folder is None else _checkpoint(str(folder), call_options) as checkpoint:
            checkpoints.extend([] if checkpoint is None else [checkpoint])
            with set_aside(len(read_model.factors)):
                pursue(call, task_portfolio(Solver(question, call_options, call, checkpoint)))

    # A short time limit may pass before the work begins, so the fallback is prepared first.
    if isinstance(model, Model):
        provide_fallback(model)
    try:
        result = call.answer(work)
    except MemoryLimitError as error:
        if folder is None:
            raise
        raise MemoryLimitError(f"{error}; {_NEEDS_LESS} {option('checkpoint')}") from None
    _check_exact(result, options)
    # Elimination removes its checkpoint when it ends. If first bounds answered the call, the checkpoint is removed
    # here.
    if result.ended_by is None and checkpoints:
        checkpoints[0].remove()
    return in_terms_of(result, models[0]) if models else result


def _check_exact(result: Result, options: CheckedOptions) -> None:
    """Refuse bounds and estimates if ``exact`` is set, unless the user or a gap ended the call.

    Raises:
        TimeLimitError: The time limit ended the call.
        InputError: Elimination ended, and its bounds differ because of rounding errors.
        MemoryLimitError: No method found an exact answer within the memory.
    """
    if not options.exact or result.status not in OPEN_STATUSES or result.ended_by in ("interrupt", "gap"):
        return
    if result.ended_by == "time-limit":
        raise TimeLimitError(
            f"the time limit passed before the answer was exact; allow more time, or leave out {option('exact')}"
        )
    if "method" not in result.stats and result.status == "bounded":
        ends = " to ".join(
            "unknown" if end is None else f"{end:.6g}" for end in (result.lower_bound, result.upper_bound)
        )
        raise InputError(
            f"rounding errors of {result.stats['dtype']} leave the answer within the bounds {ends}; scale the largest "
            f"numbers down, or leave out {option('exact')}"
        )
    raise MemoryLimitError(
        f"no method makes the answer exact in the memory that it may use; give more memory ({option('memory')}), or "
        f"leave out {option('exact')}"
    )


def _checkpoint(folder: str, options: CheckedOptions) -> contextlib.closing[Checkpoint]:
    from elimina.running.checkpoint import Checkpoint

    return contextlib.closing(Checkpoint(folder, options.memory))
