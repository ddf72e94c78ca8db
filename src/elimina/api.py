"""The calls that most programs need: ``plan``, ``solve``, ``sample`` and ``iterate_best``."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from elimina import arguments, system
from elimina.errors import InputError
from elimina.io.sources import EvidenceLike, ModelLike, as_evidence, as_model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_checks import check_options, options_of, plan_options
from elimina.planning.options import DEFAULT, Options, replace
from elimina.planning.plan import Plan
from elimina.problem.tasks import TaskName, task_of
from elimina.progress import Progress
from elimina.result import Bounds, RankedAssignment, Result
from elimina.strategies.answering import answer_question
from elimina.strategies.call import Call
from elimina.system import memory_errors_in_words

if TYPE_CHECKING:
    from elimina.methods.samples import Samples


@memory_errors_in_words("while it planned")
@arguments.with_checked_keywords(Options, "elimina.Options")
def plan(
    model: ModelLike,
    task: TaskName = "mpe",
    *,
    evidence: EvidenceLike | None = None,
    query: Sequence[str | int] | None = None,
    device: str | Sequence[str] | None = None,
    memory: int | str | None = None,
    options: Options = DEFAULT,
) -> Plan:
    """Plan an elimination without allocating its tables; ``print`` the plan to see its figures.

    Args:
        model: Any model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        task: Task, as in ``solve``.
        evidence: Evidence, as in ``solve``.
        query: ``mar``: the variables whose marginals are computed; None for all. ``mmap``: the variables to maximise;
            the plan sums out the others.
        device: Device, as in ``solve``.
        memory: Memory limit, as in ``solve``.
        options: Settings for experts. A plan ignores the settings of a run (``method`` and those after it).

    Returns:
        The plan. ``plan.fits`` is True if it stays within the memory limit.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
        DeviceError: The device is missing or cannot be used.
        UnsupportedError: The task or the dtype has no sparse tables, and the options ask for them.

    Examples:
        >>> import elimina
        >>> plan = elimina.plan("examples/radio.wcsp")
        >>> plan.width, plan.fits
        (6, True)
    """
    from elimina.strategies.call_plan import plan_call

    chosen = task_of(task)
    checked = check_options(plan_options(options_of(options, device, memory)), chosen)
    bytes_before = system.data_memory()
    asked = as_model(model)
    remaining_options = checked.after_growth(system.growth_since(bytes_before))
    task_plan = plan_call(
        asked, chosen, as_evidence(evidence, asked), _listed(query), remaining_options, shift_seconds=0.0
    ).planned.plan
    # Some tasks are planned as another task, so the plan's task is set to the requested one.
    return task_plan._replace(task=chosen)


@memory_errors_in_words("while it solved the model")
@arguments.with_checked_keywords(Options, "elimina.Options")
def solve(
    model: ModelLike,
    task: TaskName = "mpe",
    *,
    evidence: EvidenceLike | None = None,
    query: Sequence[str | int] | None = None,
    k: int | None = None,
    device: str | Sequence[str] | None = None,
    memory: int | str | None = None,
    time_limit: float | None = None,
    options: Options = DEFAULT,
) -> Result:
    """Answer a task: exactly if elimination fits into memory, otherwise with bounds or an estimate.

    Optima may also be found by filtered elimination or search: ``stats["method"]`` names the method. Filtered
    elimination of integer costs stores only tuples that can be part of a solution better than the best known one, and
    splits the problem if there are too many of them.

    Marginals come from one junction tree, or from several eliminations that each leave out the variables irrelevant to
    a group of queries. ``solve`` chooses the structure with the shorter estimated time, and ``stats["structure"]``
    names it. The eliminations need distributions with a sum of 1; this is checked when a network is read or made.

    Args:
        model: Any model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        task: Question to answer. Case is ignored.

            - ``mpe`` or ``map``: the best assignment (the optimum of a WCSP, the most probable explanation of a
              network).
            - ``pr`` or ``partition``: the partition function, or the probability of the evidence.
            - ``mar`` or ``marginals``: the posterior marginals.
            - ``mmap``: the most probable states of the variables in the query, all others summed out.
            - ``count``: the number of allowed assignments.
            - ``count-optima``: the number of optimal assignments.
            - ``kbest``: the ``k`` best assignments.
            - ``bottleneck``: the assignment whose worst table value is best (the largest cost is minimised, the
              smallest utility or degree of satisfaction maximised).
        evidence: Variable (name or index) -> its state, or in probability models its likelihoods: an array with one for
            each state, or a mapping from states (0 for missing ones). An index into named states is written
            ``elimina.StateIndex(1)``. None, NaN, NaT and pandas.NA: not observed. Also a pandas Series of states, or
            the path of an evidence file. If the evidence has probability 0, the answer is ``infeasible``. Evidence that
            the query does not depend on is checked if that is quick; otherwise a warning names it.
        query: Variables to report (``mar``; None for all), or to maximise (``mmap``).
        k: Number of assignments (``kbest``). None: the number of the options, which is 10 by default.
        device: ``cpu``, ``cuda`` (the first GPU), a GPU such as ``cuda:1``, several GPUs as in
            ``["cuda:0", "cuda:1"]``, or ``auto`` for the fastest. None: the device of the options, which is ``auto`` by
            default.
        memory: Memory limit on each device: bytes (at least 1 MiB), or text with a unit such as ``8GiB``. None: the
            limit of the options, which is 80 % of the free memory by default.
        time_limit: Time limit of the whole call, in seconds. A call that reaches it returns the bounds or the estimate
            so far: the status is ``bounded`` or ``estimated``, and ``ended_by`` is ``time-limit``.
        options: Settings for experts, such as the method and a function to call with bounds: see ``elimina.Options``.

    Returns:
        The answer. A call that ends early returns its best assignment, bounds or estimate so far. ``ended_by`` names
        the cause: an interrupt (Ctrl-C), the time limit, the memory limit, a device, or the gap.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An option or the evidence does not fit the model, or the file of the model cannot be read.
        MemoryLimitError: The plan exceeds the memory limit, or the process ran out of memory, without any result.
        DeviceError: The device is missing, unusable or (a GPU) out of memory, without any result.
        TimeLimitError: The time limit passed without any result.
        KeyboardInterrupt: The user interrupted before there was any result.

    Examples:
        >>> import elimina
        >>> result = elimina.solve("examples/pump.bif", "mar", evidence={"Alarm": "on", "Noise": "loud"})
        >>> round(result.marginals["Bearing"]["worn"], 3)
        0.853
        >>> [value for value, _ in elimina.solve("examples/radio.wcsp", "kbest", k=3).ranked]
        [1352, 1353, 1353]
        >>> elimina.solve("examples/radio.wcsp", "count").value
        2689226840840601600
    """
    chosen = task_of(task)
    time_limit = arguments.seconds("time_limit", time_limit)
    checked = check_options(options_of(options, device, memory, k), chosen, is_run=True)
    with _shown(checked) if checked.progress is True else contextlib.nullcontext(checked) as options_with_listeners:
        return answer_question(model, chosen, evidence, _listed(query), time_limit, options_with_listeners)


@memory_errors_in_words("while it drew samples")
@arguments.with_checked_keywords(Options, "elimina.Options")
def sample(
    model: ModelLike,
    count: int,
    *,
    evidence: EvidenceLike | None = None,
    seed: int | None = None,
    device: str | None = None,
    memory: int | str | None = None,
    time_limit: float | None = None,
    options: Options = DEFAULT,
) -> Samples:
    """Draw samples of all variables of a probability model given evidence.

    Samples are exact and independent if the messages of one elimination fit into memory. Variables of a network
    without observed descendants are drawn from their own distributions, and need no messages. Otherwise, samples have
    weights. They are drawn from mini-buckets or, in networks, from the distributions of the variables.

    Args:
        model: A probability model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        count: Number of samples.
        evidence: Evidence, as in ``solve``.
        seed: Random seed; the same one gives the same samples. None: other samples in each call.
        device: Device, as in ``solve``. On a GPU, samples are exact.
        memory: Memory limit, as in ``solve``.
        time_limit: Time limit of the whole call, in seconds.
        options: Settings for experts: the order and its search, ``threads``, and ``exact``, with which there is an
            error instead of weighted samples.

    Returns:
        The samples: states by the variables' names, their weights, and the effective number of exact samples.

    Raises:
        TypeError: An argument has the wrong type.
        ImpossibleEvidenceError: The evidence has probability 0.
        InputError: The model has costs, an argument is out of range, or the evidence does not fit the model.
        MemoryLimitError: The samples do not fit into memory, or no sample has a positive weight.
        DeviceError: The device is missing or cannot be used.
        TimeLimitError: The time limit passed.
        KeyboardInterrupt: The user interrupted.

    Examples:
        >>> import elimina
        >>> samples = elimina.sample("examples/pump.bif", 3, evidence={"Alarm": "on"}, seed=1)
        >>> samples["Alarm"].tolist()
        ['on', 'on', 'on']
    """
    count = arguments.integer("count", count, 0)
    seed = None if seed is None else arguments.integer("seed", seed, 0, taken="an integer, or None for any")
    time_limit = arguments.seconds("time_limit", time_limit)
    checked = check_options(options_of(options, device, memory), engine="elimina.sample")
    call = Call("sample", time_limit)

    def work() -> Samples:
        from elimina.methods.model_sampling import SampleQuestion, draw_samples

        asked = as_model(model)
        question = SampleQuestion(count, seed, checked.exact, call.deadline)
        return draw_samples(asked, as_evidence(evidence, asked), question, checked)

    return call.result(work)


@memory_errors_in_words("while it looked for the best assignments")
@arguments.with_checked_keywords(Options, "elimina.Options")
def iterate_best(
    model: ModelLike,
    *,
    evidence: EvidenceLike | None = None,
    within: float = math.inf,
    distance: int = 1,
    device: str | None = None,
    memory: int | str | None = None,
    options: Options = DEFAULT,
) -> Iterator[RankedAssignment]:
    """Iterate over the allowed assignments, the best first, none of them twice.

    The messages of one elimination guide a best-first search, so that each assignment takes little time. If they do not
    fit into memory, mini-buckets guide it: the search may then take long, or end with a ``MemoryLimitError``.

    Args:
        model: Any model, a network of pgmpy or pyAgrum, or the path of a file that ``elimina.read`` takes.
        evidence: Evidence, as in ``solve``.
        within: Distance from the optimum's value up to which assignments are returned, in the model's units: costs, or
            natural logarithms of probabilities. 0: all optima.
        distance: Least number of variables in which an assignment differs from each earlier one. Each assignment is
            the best of those that differ by as much.
        device: Device of the elimination, as in ``solve``.
        memory: Memory limit, as in ``solve``.
        options: Settings for experts: the order and its search, ``threads`` and ``dtype``.

    Returns:
        An iterator of pairs, ``value`` and ``assignment``. Values of floats that differ by less than 1e-9 of
            their size may come in any order. There are no assignments if none is allowed.

    Raises:
        TypeError: An argument has the wrong type.
        InputError: An argument is out of range, or the evidence does not fit the model.
        MemoryLimitError: Not even small mini-buckets fit, or the search needs more memory.
        DeviceError: The device is missing or cannot be used.
        UnsupportedError: The sum of integer costs may exceed 2^53, or rounding hides which assignment is the next one,
            because large costs cancel.

    Examples:
        >>> import itertools
        >>> import elimina
        >>> model = elimina.Model.from_arrays({"a": ["x", "y"], "b": 2}, [(("a", "b"), [[3, 1], [0, 2]])])
        >>> for value, assignment in itertools.islice(elimina.iterate_best(model), 2):
        ...     print(value, assignment)
        0 {'a': 'y', 'b': 0}
        1 {'a': 'x', 'b': 1}
    """
    from elimina.methods.best_assignments import ranked_assignments

    value_distance = arguments.real("within", within)
    if value_distance < 0:
        raise InputError(f"within is {within}; it must not be negative")
    distance = arguments.integer("distance", distance, 1)
    checked = check_options(options_of(options, device, memory), engine="elimina.iterate_best")
    asked = as_model(model)
    return ranked_assignments(asked, as_evidence(evidence, asked), checked, value_distance, distance)


@contextlib.contextmanager
def _shown(options: CheckedOptions) -> Iterator[CheckedOptions]:
    """Show the progress of a call; yield its options with listeners that also report to a display."""
    with Progress() as shown:

        def on_plan(plan: Plan) -> None:
            shown.start(plan)
            if options.on_plan is not None:
                options.on_plan(plan)

        def on_bounds(bounds: Bounds) -> None:
            shown.bounds(bounds)
            if options.on_bounds is not None:
                options.on_bounds(bounds)

        yield replace(options, on_plan=on_plan, on_bounds=on_bounds, progress=shown.update)


def _listed(query: Sequence[str | int] | None) -> Sequence[str | int] | None:
    """Return a query that can be read more than once; None stays None."""
    return tuple(query) if isinstance(query, Iterator) else query
