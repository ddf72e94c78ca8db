"""Solving a distributed problem by its agents, and answers of runs with an early end."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, get_args

from elimina import arguments
from elimina._core import PlannedTree
from elimina.backends.cpu import CpuBackend
from elimina.dcop.agent import Agent, Agreement, Finished, Forecast, agree, checked_forecast, pseudo_tree
from elimina.dcop.dpop import Efforts
from elimina.dcop.engine import Engine, GpuPool
from elimina.dcop.network_settings import Network, check_network, delivery_settings, is_reliable
from elimina.dcop.problem import HEURISTICS, Heuristic, Problem, Settings, names_in_errors, views
from elimina.dcop.simulator import Figures, Simulation
from elimina.dcop.together import exact_answer, solve_together
from elimina.errors import DeviceError, InputError, TimeLimitError
from elimina.methods.first_bounds import first_bounds
from elimina.model.model import Model
from elimina.model.table import Ends
from elimina.option_names import option
from elimina.planning.devices import device_name
from elimina.planning.option_table import MAX_THREADS
from elimina.planning.option_values import MAX_IBOUND
from elimina.problem.merging import BEST
from elimina.problem.preparation import prepare
from elimina.problem.rewriting import is_rewritten, with_needed_values
from elimina.problem.unpacked import rows_of
from elimina.result import Delivery, EndedBy, Result, optimistic_bound
from elimina.running.bounded_results import result_between
from elimina.running.combination import combine
from elimina.running.garbage_collection import without_collection
from elimina.running.rounding import check_sum, check_value, epsilon
from elimina.strategies.direct_call import DirectCall
from elimina.system import memory_errors_in_words

logger = logging.getLogger("elimina")

_OTHER_ROUNDINGS = 8
"""Number of roundings that are allowed for in a sum besides those of its additions."""


def early_answer(problem: Problem, agents: Iterable[Finished] = ()) -> Result:
    """Return bounds on the optimum before the agents have finished.

    The bound is the sum of the bounds of the pseudo-trees' roots if all roots have one, otherwise the sum of the cost
    functions' best costs. The assignment is that of a local search, or the agents' one if it is complete and better.

    Args:
        problem: Problem of the agents.
        agents: State of the agents at the end of the run; empty if it did not begin.
    """
    model, agents = problem.model, list(agents)
    simple_bounds = first_bounds(prepare(model, "mpe", {}), math.inf)
    assert simple_bounds is not None
    if simple_bounds.status == "infeasible":
        return Result("infeasible", "dcop")
    sign = model.sign
    bound = _bound_of_roots(model, agents)
    if bound is None:
        bound = optimistic_bound(simple_bounds, sign)
    values = {v: value for agent in agents for v, value in agent.values.items()}
    assignment = [x for v in range(len(model.variables)) if (x := values.get(v)) is not None]
    agents_result = result_between(model, bound, assignment if len(assignment) == len(model.variables) else None)
    return combine(simple_bounds, agents_result, sign).replace(task="dcop")


def _bound_of_roots(model: Model, agents: Sequence[Finished]) -> int | float | None:
    """Return the bound by the roots of the pseudo-trees; None unless each root has a finite bound."""
    traversals = {v: traversal for agent in agents for v, traversal in agent.traversals.items()}
    roots = {v: bound for agent in agents for v, bound in agent.bounds.items()}
    if len(traversals) < len(model.variables) or not all(traversal.is_done for traversal in traversals.values()):
        return None
    if any(traversal.parent < 0 and v not in roots for v, traversal in traversals.items()) or any(
        map(math.isinf, roots.values())
    ):
        return None
    sign = model.sign
    return bound_of(model, [model.constant, *_constants(model), *(sign * bound for bound in roots.values())])


def bound_of(model: Model, terms: Iterable[int | float]) -> int | float:
    """Return a bound that is the sum of the agents' bounds, widened by the possible rounding of floats."""
    if model.is_integer:
        return sum(terms)
    total = math.fsum(terms)
    return total - model.sign * rounding_of(model, total)


def rounding_of(model: Model, total: float) -> float:
    """Return the largest rounding error of the agents' optimum, if costs are floats.

    Agents add the best cost of each function, and differences from the best costs, all of one sign. An addition has an
    error of 2^-53 of its sum. No cell takes part in more additions than there are functions and variables.
    """
    additions = len(model.factors) + len(model.variables) + _OTHER_ROUNDINGS
    bests = [model.constant, *Ends.of(model.tables.listed, model.sense).numbers(highest=model.sign == -1)]
    distance = abs(total - math.fsum(bests))
    return additions * epsilon("float64") * (distance + math.fsum(map(abs, bests)))


Algorithm = Literal["dpop", "adpop", "mb-dpop"]
ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
RELIABLE = Network()

_BYTES_OF_A_CELL = 32
"""Bytes of an agent's memory for each cell of an MB-DPOP message: it holds several tables, some larger."""


@arguments.with_checked_methods
@dataclass(frozen=True)
class AgentOptions:
    """Settings of agents for experts: options of ``elimina.dcop.solve`` besides its arguments.

    Attributes:
        ibound: Largest number of variables in a table (``adpop``).
        filtering: Number of variables of the tables that first bound the costs (``dpop`` on integer costs). Messages
            then hold only the tuples that may be part of an assignment better than the best one found. None: exact
            tables are sent whole.
        agents: Device that agents compute on: ``cpu``, ``cuda``, a GPU such as ``cuda:1``, or several such as
            ``cuda:0,cuda:1``. Several eliminate variables at the same time, those of different subtrees of the
            pseudo-tree. If one fails, all agents start again on the others.
        heuristic: Heuristic for the roots and for the traversal's next neighbour.
        seed: Random seed of the heuristic ``random``.
        timer: Clock in seconds that measures the agents' work for the simulated clocks.
        listener: Function that receives each delivery.
        on_forecast: Function that receives the forecast of ``mb-dpop`` before it begins.
        progress: Function that receives the share of the work done (``mb-dpop``), again and again.

    Examples:
        >>> from elimina import dcop
        >>> problem = dcop.read("examples/meetings.yaml")
        >>> dcop.solve(problem, "adpop", options=dcop.AgentOptions(ibound=1)).status
        'bounded'
    """

    ibound: int | None = None
    filtering: int | None = None
    agents: str | Sequence[str] = "cpu"
    heuristic: Heuristic = "max-degree"
    seed: int = 0
    timer: Callable[[], float] = time.perf_counter
    listener: Callable[[Delivery], None] | None = None
    on_forecast: Callable[[Forecast], None] | None = None
    progress: Callable[[float], None] | None = None


DEFAULT = AgentOptions()


# Agents and their messages make no reference cycles, so the garbage collector would find nothing.
@without_collection()
@memory_errors_in_words("while its agents solved the problem")
@arguments.with_checked_keywords(AgentOptions, "elimina.dcop.AgentOptions")
def solve(
    problem: Problem,
    algorithm: Algorithm = "dpop",
    *,
    memory: int | str | None = None,
    threads: int | None = None,
    network: Network = RELIABLE,
    time_limit: float | None = None,
    options: AgentOptions = DEFAULT,
) -> Result:
    """Let agents find the best assignment, simulated in this process.

    Args:
        problem: Problem whose variables belong to agents.
        algorithm: ``dpop``: exact. ``adpop``: tables in messages have at most ``ibound`` variables; the roots give one
            bound on the optimum, and the value of the assignment that the agents agree upon gives the other.
            ``mb-dpop``: exact; if a table exceeds ``memory``, it conditions on ancestors of the variable, and makes the
            table again for each combination of their values. A forecast precedes the run.
        memory: Memory limit for the tables of each agent: bytes, or text such as ``8GiB``; None for no limit.
        threads: Number of CPU threads of an agent; None for all.
        network: Simulated network.
        time_limit: Time limit in seconds of wall time. With infinity, a run starts even if its forecast is more than an
            hour.
        options: Settings for experts.

    Returns:
        The answer to the task ``dcop``. If the time limit or Ctrl-C ends the run, the status is ``bounded``, and the
        answer has the best assignment and a bound from the roots (or from the single cost functions). Besides the usual
        figures, ``stats`` has ``algorithm``, ``agents`` (their number), ``gpus`` and ``bytes_between_gpus``
        (several GPUs), ``simulated_seconds``, ``nonconcurrent_operations``, ``messages``, ``message_bytes`` (by kind),
        ``network_load`` (bytes of all), ``largest_message`` (bytes), ``repeated`` (transmissions), ``depth`` (of the
        pseudo-tree), ``ibound``, ``filtering``; with ``filtering`` also ``rows_sent`` and ``dense_rows`` (of the
        whole tables). ``peak_bytes`` is the largest peak of an agent.

    Raises:
        InputError: An option makes no sense, or costs are too far apart for exact integers.
        MemoryLimitError: A table does not fit an agent's memory; or the process ran out of memory; or ``mb-dpop`` would
            take more than an estimated hour with the agents' memory, and there is no time limit.
        DeviceError: The device is missing, unusable or out of memory.
        DcopError: Messages were lost for good, or an agent did not come back.

    Examples:
        >>> from elimina import dcop
        >>> problem = dcop.read("examples/meetings.yaml")
        >>> result = dcop.solve(problem)
        >>> result.status, result.value
        ('optimal', 5)
    """
    begun = time.monotonic()
    if not isinstance(problem, Problem):
        taken = "an elimina.dcop.Problem (elimina.dcop.read reads one; Problem.from_model makes one of a Model)"
        raise arguments.wrong_type("problem", problem, taken)
    time_limit = arguments.seconds("time_limit", time_limit)
    if threads is not None:
        threads = arguments.integer("threads", threads, 1, MAX_THREADS)
    if is_rewritten(problem.model):
        model = with_needed_values(problem.model, {}, BEST).model
        problem = Problem(model, problem.agents, problem.owners)
    settings = settings_of(problem.model, algorithm, options, memory)
    if not isinstance(network, Network):
        raise arguments.wrong_type("network", network, "an elimina.dcop.Network")
    check_network(network, frozenset(agent.name for agent in problem.agents))
    device = device_name(options.agents)
    if device == "auto":
        raise InputError("agents compute on cpu or GPUs, not on 'auto': name them, such as cuda or cuda:0,cuda:1")
    engine, *gpus = _engines(device.split(","), threads)
    call = DirectCall(time_limit, begun)
    for engine_or_gpu in (engine, *gpus):
        engine_or_gpu.deadline = math.inf if call.deadline is None else call.deadline
    labels = {"algorithm": algorithm, "ibound": options.ibound, "filtering": options.filtering, "device": device}
    run = _SimulatedRun(problem, call, labels)

    def work() -> Result:
        with names_in_errors(problem.model):
            agreement = _agreement(problem, settings, network, options, engine.deadline)
            # With several GPUs, buckets are spread over the devices, so one plan cannot eliminate all variables.
            if agreement is not None and not gpus and algorithm == "dpop" and options.filtering is None:
                run.begin()
                together = solve_together(problem, settings, agreement, network, engine, _Watch(engine.deadline))
                if together is not None:
                    result, tree, efforts, figures = together
                    return run.completed(result, _statistics_on(tree, len(problem.agents), efforts, figures))
            agents, figures = _simulated(run, problem, settings, agreement, network, options, (engine, *gpus), threads)
        stats = statistics(problem, agents, figures)
        if gpus:
            stats.update(gpus=run.gpus, bytes_between_gpus=sum(gpu.received for gpu in gpus))
        if options.filtering is not None:
            stats.update(_rows(problem, agents))
        return run.completed(answer(problem, agents), stats)

    return call.answer(work, run.early_result)


def _agreement(
    problem: Problem, settings: Settings, network: Network, options: AgentOptions, deadline: float
) -> Agreement | None:
    """Return the pseudo-tree that the core lets agents build; None if the network has faults, a timer or a listener."""
    if not is_reliable(network) or options.listener is not None or options.timer is not time.perf_counter:
        return None
    return agree(problem, settings, *delivery_settings(network), _Watch(deadline))


def _simulated(
    run: _SimulatedRun,
    problem: Problem,
    settings: Settings,
    agreement: Agreement | None,
    network: Network,
    options: AgentOptions,
    engines: Sequence[Engine],
    threads: int | None,
) -> tuple[list[Agent], Figures]:
    """Run agents, each of which eliminates its own variables, until they have finished."""
    engine, *gpus = engines
    view_of = {view.name: view for view in views(problem, settings)}
    forecast = None
    if settings.most_cells is not None:
        forecast = checked_forecast(problem, settings, CpuBackend(threads).threads, engine.deadline < math.inf)
        if options.on_forecast is not None:
            options.on_forecast(forecast)
    traversals = None if agreement is None else dict(enumerate(agreement.traversals))

    def simulation(shared: GpuPool | None) -> Simulation:
        watch = _Watch(engine.deadline, forecast, options.progress)
        team = [Agent(view, engine, traversals) for view in view_of.values()]
        return Simulation(
            team,
            network,
            options.timer,
            lambda name: Agent(view_of[name], engine),
            options.listener,
            watch,
            shared,
            agreement,
        )

    with contextlib.ExitStack() as stack:
        for used_engine in engines:
            stack.enter_context(used_engine.keeping_memory())
        return run.finished(simulation, gpus)


def _engines(names: Sequence[str], threads: int | None) -> list[Engine]:
    """Return the agents' engine; with several GPUs, one on the CPU for small work, then an engine for each GPU."""
    if len(names) == 1:
        return [Engine(names[0], threads)]
    # A thread makes the context of each GPU, so that all contexts are made at the same time.
    with ThreadPoolExecutor(len(names)) as pool:
        return [Engine("cpu", threads), *pool.map(lambda name: Engine(name, threads), names)]


class _SimulatedRun:
    """A run of agents, and the answer after an early end."""

    def __init__(self, problem: Problem, call: DirectCall, labels: Mapping[str, Any]) -> None:
        self._problem, self._call, self._labels = problem, call, labels
        self._has_begun = False
        self.gpus = 0
        self.simulation: Simulation | None = None

    def finished(
        self, simulation: Callable[[GpuPool | None], Simulation], engines: Sequence[Engine]
    ) -> tuple[list[Agent], Figures]:
        """Run agents until they have finished; if one of several GPUs fails, again on the others.

        Args:
            simulation: Function that makes the agents and their simulation.
            engines: Engines of several GPUs; none if agents use their own.
        """
        while engines:
            self.gpus = len(engines)
            with contextlib.closing(GpuPool(engines)) as gpus:
                try:
                    return self._run(simulation(gpus))
                except DeviceError as error:
                    working = [engine for engine in engines if engine.works()]
                    if len(working) == len(engines):
                        working = [engine for engine in engines if engine is not gpus.failed]
                    if not working or len(working) == len(engines):
                        raise
                    engines = working
                    logger.warning("a device failed, and the others do its work: %s", error)
        return self._run(simulation(None))

    def _run(self, simulation: Simulation) -> tuple[list[Agent], Figures]:
        self.simulation = simulation
        self.begin()
        figures = simulation.run()
        return simulation.agents, figures

    def begin(self) -> None:
        """End the setup, unless it has ended."""
        if not self._has_begun:
            self._has_begun = True
            self._call.mark("setup")

    def completed(self, result: Result, stats: Mapping[str, Any]) -> Result:
        """Return a result with all its figures."""
        self.begin()
        self._call.mark("run")
        return result.replace(stats={**stats, **self._labels, "seconds": self._call.phase_seconds()})

    def early_result(self, cause: EndedBy) -> Result | None:
        """Return the result of a run that the user or the time limit ended; None if it ended for another reason.

        The result has the bounds, the assignment and the work so far.
        """
        if cause not in ("interrupt", "time-limit"):
            return None
        simulation = self.simulation
        agents = [] if simulation is None else simulation.agents
        figures = Figures(0.0, 0, {}, {}, 0, 0) if simulation is None else simulation.figures()
        stats = partial_statistics(len(self._problem.agents), _efforts(agents), figures)
        return self.completed(early_answer(self._problem, agents), stats)


class _Watch:
    """A callback that checks the time limit, and reports progress."""

    def __init__(
        self,
        deadline: float,
        forecast: Forecast | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> None:
        self._deadline = deadline
        self._all = 0 if forecast is None else forecast.operations
        self._progress, self._done = progress, 0

    def __call__(self, operations: int) -> None:
        self._done += operations
        share = min(1.0, self._done / self._all) if self._all else None
        if time.monotonic() > self._deadline:
            raise TimeLimitError("the time limit passed")
        if self._progress is not None and share is not None:
            self._progress(share)


def _rows(problem: Problem, agents: Iterable[Finished]) -> dict[str, int]:
    """Return the number of tuples sent, and the number of cells of the same tables if they were dense."""
    agents, sizes = list(agents), problem.model.sizes
    separators = [separator for separator in rows_of(pseudo_tree(problem, agents).separators) if separator]
    return {
        "rows_sent": sum(effort.rows for agent in agents for effort in agent.efforts),
        "dense_rows": sum(math.prod(sizes[v] for v in separator) for separator in separators),
    }


def settings_of(model: Model, algorithm: Algorithm, options: AgentOptions, memory: int | str | None) -> Settings:
    """Return the settings of all agents; for the arguments see ``solve``.

    Raises:
        TypeError: An option has the wrong type.
        InputError: An option makes no sense, or costs may add up to more than a float can hold.
    """
    if not isinstance(options, AgentOptions):
        raise arguments.wrong_type("options", options, "elimina.dcop.AgentOptions")
    if not callable(options.timer):
        raise arguments.wrong_type("timer", options.timer, "a function")
    for name in ("listener", "on_forecast", "progress"):
        arguments.function(name, getattr(options, name))
    if not isinstance(options.agents, str | list | tuple):
        raise arguments.wrong_type("agents", options.agents, "a device such as 'cuda', or a list such as ['cuda:0']")
    ibound, filtering = options.ibound, options.filtering
    algorithm = arguments.choice("algorithm", algorithm, ALGORITHMS)
    heuristic = arguments.choice("heuristic", options.heuristic, HEURISTICS)
    seed, memory = arguments.integer("seed", options.seed), arguments.memory_size("memory", memory)
    if algorithm == "adpop" and ibound is None:
        raise InputError(
            f"adpop needs an i-bound, the largest number of variables in a table, such as {option('ibound', 3)}"
        )
    if algorithm != "adpop" and ibound is not None:
        raise InputError(
            f"{algorithm} takes no i-bound; leave out {option('ibound')}, or use {option('algorithm', 'adpop')}"
        )
    if algorithm == "mb-dpop" and memory is None:
        raise InputError(f"mb-dpop needs a memory limit for each agent, such as {option('memory', '500MB')}")
    if ibound is not None:
        ibound = min(arguments.integer("ibound", ibound, 1), MAX_IBOUND)
    if filtering is not None and algorithm != "dpop":
        raise InputError(
            f"filtering needs the algorithm dpop, not {algorithm}; leave out {option('filtering')}, or use "
            f"{option('algorithm', 'dpop')}"
        )
    if filtering is not None:
        filtering = min(arguments.integer("filtering", filtering, 1), MAX_IBOUND)
    if filtering is not None and not model.is_integer:
        raise InputError(f"filtering needs integer costs; scale and round them, or leave out {option('filtering')}")
    if not model.is_integer:
        check_sum(model, model.factors, "float64")
    most_cells = max(1, memory // _BYTES_OF_A_CELL) if memory is not None and algorithm == "mb-dpop" else None
    return Settings(
        model.sense,
        model.is_integer,
        ibound if filtering is None else filtering,
        heuristic,
        seed,
        memory,
        most_cells,
        filtering is not None,
    )


def answer(problem: Problem, agents: Iterable[Finished]) -> Result:
    """Combine the results of agents that have finished.

    Raises:
        InternalError: The value found is not that of the assignment.
    """
    model, agents = problem.model, list(agents)
    bounds = [bound for agent in agents for bound in agent.bounds.values()]
    constants = [model.constant, *_constants(model)]
    if any(map(math.isinf, [*bounds, *constants])):
        return Result("infeasible", "dcop")
    sign = model.sign
    total = bound_of(model, [*constants, *(sign * bound for bound in bounds)])
    if model.is_beyond_bound(total):
        return Result("infeasible", "dcop")
    values = {v: value for agent in agents for v, value in agent.values.items()}
    chosen = [values[v] or 0 for v in range(len(model.variables))]
    if any(effort.mini_buckets > 1 for agent in agents for effort in agent.efforts):
        return result_between(model, total, chosen).replace(task="dcop")
    score = model.score(chosen)
    if model.is_integer:
        return exact_answer(model, total, chosen, score)
    check_value("float64", total, score, [], 2 * rounding_of(model, score))
    return result_between(model, sign * min(sign * total, sign * score), chosen).replace(task="dcop")


def _constants(model: Model) -> list[int | float]:
    """Return the costs of the functions without variables."""
    return Model([], [table for table in model.factors if not table.scope], sense=model.sense).terms([])


def statistics(problem: Problem, agents: Iterable[Finished], figures: Figures) -> dict[str, Any]:
    """Return the figures of a run, as ``solve`` describes them."""
    agents = list(agents)
    return _statistics_on(pseudo_tree(problem, agents), len(problem.agents), _efforts(agents), figures)


def _efforts(agents: Iterable[Finished]) -> Efforts:
    return Efforts.of([effort for agent in agents for effort in agent.efforts])


def _statistics_on(tree: PlannedTree, number: int, efforts: Efforts, figures: Figures) -> dict[str, Any]:
    """Return the figures of a run on a pseudo-tree: see ``partial_statistics``."""
    figures_of_run = partial_statistics(number, efforts, figures)
    return {**figures_of_run, "induced_width": tree.width, "depth": tree.depth}


def partial_statistics(number: int, efforts: Efforts, figures: Figures) -> dict[str, Any]:
    """Return the figures of a run that may have been ended, without the width and depth of an unknown pseudo-tree.

    Args:
        number: Number of agents.
        efforts: Work of eliminating all variables; zero if a run did not begin.
        figures: Clocks and messages of the run.
    """
    return {
        "induced_width": None,
        "depth": None,
        **efforts._asdict(),
        "agents": number,
        "simulated_seconds": figures.seconds,
        "nonconcurrent_operations": figures.operations,
        "messages": dict(figures.messages),
        "message_bytes": dict(figures.bytes),
        "network_load": sum(figures.bytes.values()),
        "largest_message": figures.largest,
        "repeated": figures.repeated,
    }
