"""Agents of DPOP, which receive and send messages; the pseudo-tree of all agents; the forecast of MB-DPOP."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, cast

from elimina._core import PlannedTree, TableList, Traversal, make_traversals, tree_of_traversals
from elimina._core import agree_on_tree as build_pseudo_tree
from elimina.dcop.dpop import Bucket, CycleBucket, Effort, cut_ancestors
from elimina.dcop.engine import Engine
from elimina.dcop.problem import (
    TRAVERSAL,
    AgentView,
    Body,
    Heuristic,
    Message,
    Problem,
    Settings,
    Util,
    Value,
    begin,
    process_message,
)
from elimina.dcop.tuple_filter import FilterBucket
from elimina.errors import DcopError, InternalError, MemoryLimitError
from elimina.number_texts import count_text, counted, seconds_text
from elimina.option_names import option
from elimina.planning.machine import CONTEXT_SECONDS, cpu_machine
from elimina.planning.tree import Tree, tree_of


class Finished(Protocol):
    """Results of an agent that has finished: see ``Agent``."""

    @property
    def values(self) -> Mapping[int, int | None]:
        """The value of each of the agent's variables."""

    @property
    def bounds(self) -> Mapping[int, int | float]:
        """Lower bound on the cost of each root's tree."""

    @property
    def traversals(self) -> Mapping[int, Traversal]:
        """Positions of the agent's variables in the pseudo-tree."""

    @property
    def efforts(self) -> Sequence[Effort]:
        """Work of eliminating each variable."""


class Agent:
    """An agent of DPOP, of ADPOP if the settings have an i-bound, or of MB-DPOP if they limit cells.

    With filtering, ADPOP runs first.

    Its host calls ``start``, then ``receive`` for each message, and after each of these calls ``work`` as long
    as it ``has_work``. The host sends the messages of a call before the next call, so that their receivers do not wait
    for unrelated work. Each message has to arrive once, and may overtake others.

    Each variable is a node of the pseudo-tree; variables of one agent exchange no messages.
    Agents are deterministic: a restarted agent that receives the same messages in the same order sends the same ones.
    An agent can be pickled between two calls, without its engine.

    Attributes:
        name: Name of the agent.
        engine: Engine that computes; the agent's host sets it.
        operations: Number of table reads so far: one for each table and combination of values.

    Args:
        view: The agent's part of the problem.
        engine: Engine that computes; None if it is set before the agent starts.
        traversals: Traversals of the agent's variables, if the whole pseudo-tree is known. The agent then receives only
            UTIL and VALUE messages.
    """

    def __init__(
        self, view: AgentView, engine: Engine | None = None, traversals: Mapping[int, Traversal] | None = None
    ) -> None:
        self.name, self.engine, self.operations = view.name, engine, 0
        self._view, self._owners = view, view.owners
        self._traversals: dict[int, Traversal] = {}
        self._buckets: dict[int, Bucket] = {}
        self._inside: deque[tuple[int, int, Body]] = deque()
        self._ready: deque[int] = deque()
        self._outgoing: list[Message] = []
        self._send = {variable: partial(self._pass, variable) for variable in view.variables}
        for variable in view.variables:
            functions = [table for table in view.constraints if variable in table.scope]
            neighbours = sorted({v for table in functions for v in table.scope} - {variable})
            rank = view.settings.rank(variable, len(neighbours))
            traversal = Traversal(variable, rank, neighbours, view.settings.heuristic == "most-connected")
            if traversals is not None:
                traversal = traversals[variable]
            self._traversals[variable] = traversal
            kind = Bucket if view.settings.most_cells is None else CycleBucket
            kind = FilterBucket if view.settings.is_filtered else kind
            self._buckets[variable] = kind(variable, traversal, functions, view.sizes, view.settings)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": None}

    def start(self) -> list[Message]:
        """Start; return the messages to send."""
        for variable, traversal in self._traversals.items():
            if not traversal.is_done:
                begin(traversal, self._send[variable])
            self._queue_if_ready(variable)
        return self._handle_own_messages()

    def receive(self, message: Message) -> list[Message]:
        """React to a message; return the messages to send before any work is done."""
        _, _, source, target, body = message
        self._handle(source, target, body)
        return self._handle_own_messages()

    @property
    def has_work(self) -> bool:
        """True if a variable is to be eliminated."""
        return bool(self._ready)

    @property
    def next_bucket(self) -> Bucket:
        """Bucket of the variable that is eliminated next, while the agent ``has_work``."""
        return self._buckets[self._ready[0]]

    def work(self, engine: Engine | None = None) -> list[Message]:
        """Eliminate the next variable; return the messages to send.

        Args:
            engine: Engine that computes this time; None: the agent's own.

        Raises:
            InputError: Costs are too far apart for exact integers.
            MemoryLimitError: A table does not fit the agent's memory; nothing was allocated.
            DeviceError: The device failed or is out of memory.
            DcopError: The agent has no engine.
        """
        self._eliminate(self._ready.popleft(), engine or self.engine)
        return self._handle_own_messages()

    @property
    def is_done(self) -> bool:
        """True if each variable of the agent has its value, or is known to have no solution."""
        return all(bucket.is_done for bucket in self._buckets.values())

    @property
    def values(self) -> dict[int, int | None]:
        """The value of each of the agent's variables; None if the value is unknown, or no value is allowed."""
        return {variable: bucket.value for variable, bucket in self._buckets.items()}

    @property
    def bounds(self) -> dict[int, int | float]:
        """Lower bound on the cost of the tree of each root among the agent's variables; costs are minimised."""
        return {v: bucket.bound for v, bucket in self._buckets.items() if bucket.bound is not None}

    @property
    def traversals(self) -> dict[int, Traversal]:
        """Positions of the agent's variables in the pseudo-tree."""
        return self._traversals

    @property
    def efforts(self) -> list[Effort]:
        """Work of eliminating each variable."""
        return [bucket.effort for bucket in self._buckets.values()]

    def _handle_own_messages(self) -> list[Message]:
        """Handle messages between the agent's variables; return the messages for other agents."""
        while self._inside:
            self._handle(*self._inside.popleft())
        outgoing, self._outgoing = self._outgoing, []
        return outgoing

    def _handle(self, source: int, target: int, body: Body) -> None:
        """Deliver a message to one of the agent's variables."""
        traversal, send = self._traversals[target], self._send[target]
        if isinstance(body, TRAVERSAL):
            process_message(traversal, source, body, send)
            if not traversal.is_done:
                return
        elif isinstance(body, Util):
            self._buckets[target].receive_util(source, body, send)
        elif isinstance(body, Value):
            self._buckets[target].decide(body, send)
        else:
            cast(Any, self._buckets[target]).receive_request(source, body, send)
        if traversal.is_done:
            self._queue_if_ready(target)

    def _queue_if_ready(self, variable: int) -> None:
        """Queue a variable if it can be eliminated."""
        bucket = self._buckets[variable]
        if bucket.is_done:
            return
        try:
            if bucket.becomes_ready(self._send[variable]):
                self._ready.append(variable)
        except MemoryLimitError as error:
            raise self._completed(error) from error

    @property
    def _other_way(self) -> str:
        if self._view.settings.is_filtered:
            first = f"use larger tables of bounds ({option('filtering')})"
        else:
            first = f"send fewer tuples ({option('filtering')})"
        return f"{first}, condition on variables ({option('algorithm', 'mb-dpop')})"

    def _completed(self, error: MemoryLimitError) -> MemoryLimitError:
        """Return an out-of-memory error of a variable, completed by the agent's name and by advice."""
        return MemoryLimitError(
            f"agent {self.name!r} {error}; give more ({option('memory')}), {self._other_way}, bound the tables "
            f"({option('algorithm', 'adpop')} with {option('ibound')}), or try another {option('heuristic')}"
        )

    def _eliminate(self, variable: int, engine: Engine | None) -> None:
        bucket = self._buckets[variable]
        if engine is None:
            raise DcopError(f"agent {self.name!r} has no engine; set one before it starts")
        memory, operations_before = self._view.settings.memory, bucket.effort.operations
        held_bytes = 0 if memory is None else sum(other.held for other in self._buckets.values())
        try:
            bucket.eliminate(engine, None if memory is None else memory - held_bytes, self._send[variable])
        except MemoryLimitError as error:
            raise self._completed(error) from error
        self.operations += bucket.effort.operations - operations_before

    def _pass(self, source: int, target: int, body: Body) -> None:
        owner = self._owners[target]
        if owner == self.name:
            self._inside.append((source, target, body))
        else:
            self._outgoing.append(Message(self.name, owner, source, target, body))


class Agreement(NamedTuple):
    """The pseudo-tree that the agents have agreed on, and the messages of its construction.

    Attributes:
        listed: The problem's cost functions.
        traversals: Traversal of each variable, in the order of the variables.
        messages: Number of messages of each kind of ``TRAVERSAL``.
        clocks: Clock of each agent, in seconds.
    """

    listed: TableList
    traversals: Sequence[Traversal]
    messages: Sequence[int]
    clocks: Sequence[float]


def agree(
    problem: Problem,
    settings: Settings,
    order: str = "fifo",
    delay: float = 0.0,
    jitter: float = 0.0,
    seed: int = 0,
    watch: Callable[[int], None] = lambda operations: None,
) -> Agreement:
    """Let the core deliver the messages that build the pseudo-tree, on a reliable network.

    Args:
        problem: Problem whose variables belong to agents.
        settings: Settings that all agents share.
        order: Order of deliveries, as of ``Network``.
        delay: Delay of a message, as of ``Network``.
        jitter: Random delay, as of ``Network``.
        seed: Random seed of delays and deliveries.
        watch: Function to call now and then, with 0 operations, to check the time.
    """
    listed, count = problem.model.tables.listed, len(problem.owners)
    ranks = [settings.rank(variable, 0) for variable in range(count)] if settings.heuristic == "random" else []
    prefers_reached = settings.heuristic == "most-connected"
    traversals = make_traversals(listed, count, settings.degree_weight, ranks, prefers_reached)
    messages_and_clocks = build_pseudo_tree(
        traversals, problem.owners, len(problem.agents), order, delay, jitter, seed, watch
    )
    return Agreement(listed, traversals, messages_and_clocks.messages, messages_and_clocks.clocks)


def agree_on_tree(problem: Problem, heuristic: Heuristic = "max-degree", seed: int = 0) -> Tree:
    """Let agents build their pseudo-tree, and return it.

    Args:
        problem: Problem whose variables belong to agents.
        heuristic: Heuristic for the roots and for the traversal's next neighbour.
        seed: Random seed of the heuristic ``random``.
    """
    settings = Settings(problem.model.sense, problem.model.is_integer, heuristic=heuristic, seed=seed)
    agreement = agree(problem, settings)
    return tree_of(planned_tree(problem, agreement.listed, agreement.traversals))


def pseudo_tree(problem: Problem, agents: Iterable[Finished]) -> PlannedTree:
    """Return the pseudo-tree that agents have built: see ``planned_tree``."""
    traversals = {v: traversal for agent in agents for v, traversal in agent.traversals.items()}
    return planned_tree(problem, problem.model.tables.listed, [traversals[v] for v in range(len(traversals))])


def planned_tree(problem: Problem, listed: TableList, traversals: Sequence[Traversal]) -> PlannedTree:
    """Return the pseudo-tree from the traversal of each variable; its order has children before parents.

    Args:
        problem: Problem whose variables belong to agents.
        listed: Its cost functions.
        traversals: Traversal of each variable, in the order of the variables.

    Raises:
        InternalError: The traversals do not make a pseudo-tree of the problem.
    """
    built = tree_of_traversals(traversals, listed, problem.model.sizes)
    child = built.misplaced
    if child >= 0:
        parent = traversals[child].parent
        raise InternalError(
            f"variable {child} is a child of {parent} in the pseudo-tree, but not by the cost functions; please "
            "report this"
        )
    return built.tree


class Forecast(NamedTuple):
    """Predicted cost of a run of MB-DPOP.

    Attributes:
        width: Width of the pseudo-tree.
        contexts: Largest number of tables of one variable: one for each combination of its fixed ancestors' values.
        tables: Number of tables of all variables.
        operations: Number of table reads: one for each table and combination of values.
        seconds: Estimated time, on the CPU; infinity if it is beyond a float.
    """

    width: int
    contexts: int
    tables: int
    operations: int
    seconds: float

    def __str__(self) -> str:
        tables = f"{counted(self.tables, 'table', is_rounded=True)}, up to {count_text(self.contexts)} of a variable"
        return f"mb-dpop: width {self.width}, {tables}, about {seconds_text(self.seconds)}"


def forecast(problem: Problem, settings: Settings, threads: int) -> Forecast:
    """Return the forecast of MB-DPOP on a problem.

    Args:
        problem: Problem whose variables belong to agents.
        settings: Settings of all agents, with a limit on a message's cells.
        threads: Number of CPU threads of an agent.
    """
    assert settings.most_cells is not None
    tree, sizes = agree_on_tree(problem, settings.heuristic, settings.seed), problem.model.sizes
    scopes = [table.scope for table in problem.model.factors if table.scope]
    cuts: list[set[int]] = []
    for node in tree.nodes:
        below_cuts = {v for child in node.children for v in cuts[child]} - {node.variable}
        cuts.append(cut_ancestors({v: sizes[v] for v in reversed(node.separator)}, below_cuts, settings.most_cells))
    contexts = [math.prod(sizes[v] for v in context) for context in cuts]
    tables = combinations = operations = 0
    for number, node in enumerate(tree.nodes):
        tables_made = contexts[number] + _resent_tables(tree, cuts, sizes, number)
        cells = math.prod(sizes[v] for v in node.separator if v not in cuts[number]) * sizes[node.variable]
        tables += tables_made
        combinations += tables_made * cells
        operations += (
            tables_made * cells * max(1, len({frozenset(scopes[f]) for f in node.factors}) + len(node.children))
        )
    try:
        seconds = tables * CONTEXT_SECONDS + combinations / cpu_machine(threads).combinations
    except OverflowError:
        seconds = math.inf
    return Forecast(tree.width, max(contexts, default=1), tables, operations, seconds)


MAX_SECONDS = 3600.0
"""A run of MB-DPOP with a longer estimated time, in seconds, needs a time limit."""


def checked_forecast(problem: Problem, settings: Settings, threads: int, is_limited: bool) -> Forecast:
    """Return the forecast of MB-DPOP, unless it would take too long.

    Args:
        problem: Problem whose variables belong to agents.
        settings: Settings of all agents, with a limit on a message's cells.
        threads: Number of CPU threads of an agent.
        is_limited: True if the run has a time limit.

    Raises:
        MemoryLimitError: The run takes over an estimated hour, and there is no time limit.
    """
    prediction = forecast(problem, settings, threads)
    if prediction.seconds > MAX_SECONDS and not is_limited:
        raise MemoryLimitError(
            f"{prediction}, within the memory limit; give agents more ({option('memory')}), try another "
            f"{option('heuristic')}, send fewer tuples ({option('algorithm', 'dpop')} with {option('filtering')}), "
            f"bound the optimum ({option('algorithm', 'adpop')} with {option('ibound')}), or set a "
            f"{option('time_limit')} to start anyway"
        )
    return prediction


def _resent_tables(tree: Tree, cuts: Sequence[set[int]], sizes: Sequence[int], number: int) -> int:
    """Return the largest number of tables that a node sends again once its ancestors have values.

    The node stores its last table, so it sends the others again.
    """
    count, ancestor = 0, tree.nodes[number].parent if cuts[number] else -1
    while ancestor >= 0:
        if cuts[ancestor]:
            count += math.prod(sizes[v] for v in cuts[number] - cuts[ancestor])
        ancestor = tree.nodes[ancestor].parent
    return count
