"""A distributed problem (a model of costs with an owner for each variable), the views of agents, and messages."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args

from elimina import arguments
from elimina._core import Traversal
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.model.table import Sense, Table
from elimina.number_texts import counted
from elimina.option_names import by_interface

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from elimina.backends.sparse.device import SparseTable


class CostsError(InputError):
    """Error about costs too far apart for their number type.

    Args:
        owner: Words before the variable's name in the message, such as ``variable`` or ``the subtree of variable``.
        variable: Index of the variable, because agents have no names of variables.
        problem: Description of the error, and advice.
    """

    def __init__(self, owner: str, variable: int, problem: str) -> None:
        self.owner, self.variable, self.problem = owner, variable, problem
        super().__init__(f"the costs of {owner} {variable} {problem}")

    def __reduce__(self) -> tuple[type[CostsError], tuple[str, int, str]]:
        """Return the parts from which pickle rebuilds the error: a cluster sends errors of workers to the client."""
        return type(self), (self.owner, self.variable, self.problem)


@contextlib.contextmanager
def names_in_errors(model: Model) -> Iterator[None]:
    """Replace numbers of variables by names in agents' errors."""
    try:
        yield
    except CostsError as error:
        name = model.variables[error.variable].name
        raise InputError(f"the costs of {error.owner} {name!r} {error.problem}") from None


@arguments.with_checked_methods
@dataclass(frozen=True)
class AgentProfile:
    """Properties of an agent in a file, besides its variables.

    Attributes:
        name: Name, unique in its problem.
        capacity: Room for computations, in the file's unit; None if it is not limited.

    Examples:
        >>> from elimina import dcop
        >>> dcop.AgentProfile("Ada", capacity=20.0)
        AgentProfile(name='Ada', capacity=20.0)
    """

    name: str
    capacity: float | None = None


@arguments.with_checked_methods
class Problem:
    """A distributed constraint optimisation problem (GpuBE paper, section 2.2): a model and an owner for each variable.

    Attributes:
        model: Variables and cost functions; its sense is ``min-cost`` or ``max-cost``.
        agents: Agents in index order; an agent may own several variables, or none.
        owners: Index of the agent that owns each variable of the model.

    Examples:
        >>> import elimina
        >>> from elimina import dcop
        >>> model = elimina.Model.from_arrays({"a": 2, "b": 2}, [(("a", "b"), [[3, 0], [1, 2]])])
        >>> problem = dcop.Problem(model, [dcop.AgentProfile("Ada"), dcop.AgentProfile("Bob")], owners=[0, 1])
        >>> dcop.solve(problem).assignment
        {'a': 0, 'b': 1}
    """

    def __init__(self, model: Model, agents: Sequence[AgentProfile], owners: Sequence[int]) -> None:
        """Check that every variable has an owner.

        Raises:
            InputError: The model is one of probabilities, two agents share a name, or a variable's owner is missing or
                unknown.
        """
        if model.sense == "probability":
            converter = by_interface("elimina.io.convert_sense(model, 'min-cost')", "elimina convert MODEL OUT.wcsp")
            raise InputError(
                f"a distributed problem has costs, but the model has probabilities; convert it first ({converter})"
            )
        self.model, self.agents, self.owners = model, tuple(agents), tuple(owners)
        names = [agent.name for agent in self.agents]
        if len(set(names)) != len(names):
            raise InputError(f"two agents are named {next(name for name in names if names.count(name) > 1)!r}")
        if len(self.owners) != len(model.variables):
            raise InputError(
                f"{len(self.owners)} owners are given for {counted(len(model.variables), 'variable')}; one each "
                f"is needed"
            )
        for variable, owner in zip(model.variables, self.owners, strict=True):
            if not 0 <= owner < len(self.agents):
                raise InputError(
                    f"variable {variable.name!r} belongs to agent {owner}, but there are {len(self.agents)}"
                )

    @classmethod
    def from_model(cls, model: Model, agents: int | None = None) -> Problem:
        """Give the variables of a model to agents.

        Args:
            model: Model of costs.
            agents: Number of agents, "a0" and so on, that get variables in turn. None: each variable gets a separate
                agent with the variable's name.

        Raises:
            InputError: The model is one of probabilities, or there is no agent for its variables.
        """
        count = len(model.variables)
        if agents is None:
            return cls(model, [AgentProfile(variable.name) for variable in model.variables], range(count))
        if agents < min(count, 1):
            raise InputError(f"{count} variables need at least 1 agent, not {agents}")
        return cls(model, [AgentProfile(f"a{i}") for i in range(agents)], [v % agents for v in range(count)])


Heuristic = Literal["max-degree", "min-degree", "most-connected", "random"]
HEURISTICS: tuple[Heuristic, ...] = get_args(Heuristic)
"""Heuristics that choose the root, and the next neighbour to visit.

``max-degree`` prefers variables with most neighbours (GpuBE paper, section 6), ``min-degree`` those with fewest.
``most-connected`` prefers variables with fewest neighbours and, among equals, with most neighbours already visited.
``random`` prefers variables at random.
"""


class Settings(NamedTuple):
    """Settings known to all agents from the start.

    Attributes:
        sense: ``min-cost`` or ``max-cost``.
        is_integer: True if all costs are integers.
        ibound: Largest number of variables of a table in a message; None: no limit.
        heuristic: Heuristic that ranks the variables for the pseudo-tree.
        seed: Random seed of the heuristic ``random``.
        memory: Usable bytes of each agent; None: no limit.
        most_cells: Largest number of cells of a message's table (MB-DPOP); None: no limit.
        is_filtered: True if tables within the i-bound only give bounds, by which exact tables leave out tuples.
    """

    sense: Sense
    is_integer: bool
    ibound: int | None = None
    heuristic: Heuristic = "max-degree"
    seed: int = 0
    memory: int | None = None
    most_cells: int | None = None
    is_filtered: bool = False

    @property
    def degree_weight(self) -> int:
        """Weight of the number of neighbours in a variable's rank."""
        return {"max-degree": 1, "random": 0}.get(self.heuristic, -1)

    def rank(self, variable: int, degree: int) -> int:
        """Return the rank of a variable: variables of higher rank are closer to the root."""
        random_rank = zlib.crc32(f"{self.seed} {variable}".encode()) if self.heuristic == "random" else 0
        return random_rank + self.degree_weight * degree


class AgentView(NamedTuple):
    """An agent's part of a problem, with variables by number.

    Attributes:
        name: Name of the agent.
        settings: Settings of all agents.
        variables: Variables of the agent.
        owners: Name of the owner of each of these variables, and of each variable that shares a cost function with one.
        sizes: Number of values of each variable in ``owners``.
        constraints: The cost functions that depend on the agent's variables.
    """

    name: str
    settings: Settings
    variables: tuple[int, ...]
    owners: dict[int, str]
    sizes: dict[int, int]
    constraints: tuple[Table, ...]


def views(problem: Problem, settings: Settings) -> list[AgentView]:
    """Give each agent its part of a problem; functions without variables belong to no agent."""
    model = problem.model
    variables_of: list[list[int]] = [[] for _ in problem.agents]
    for variable, owner in enumerate(problem.owners):
        variables_of[owner].append(variable)
    functions: list[list[Table]] = [[] for _ in problem.agents]
    for table in model.factors:
        for owner in {problem.owners[v] for v in table.scope}:
            functions[owner].append(table)
    result = []
    for profile, variables, tables in zip(problem.agents, variables_of, functions, strict=True):
        visible = dict.fromkeys([*variables, *(v for table in tables for v in table.scope)])
        owners = {v: problem.agents[problem.owners[v]].name for v in visible}
        sizes = {v: model.variables[v].size for v in visible}
        result.append(AgentView(profile.name, settings, tuple(variables), owners, sizes, tuple(tables)))
    return result


_WORD = 8
"""Bytes of a number."""

_HEADER = 4 * _WORD
"""Bytes of a message besides its body: its kind, the two variables, and its number."""


class Utility(NamedTuple):
    """A table of costs relative to the best ones, which are added separately; always minimised.

    Attributes:
        scope: Variables in their elimination order: by descending visits.
        visits: Position of each variable in the traversal.
        values: An array with an axis for each variable, on the host or on a device.
        forbidden: Cells with at least this value are forbidden; infinity if the values are floats.
        spread: Largest allowed cell.
        origin: Position in the traversal of the variable that was eliminated, and number of its mini-bucket. A cost
            function has infinity and 0. Tables with later positions are joined first, so cost functions come before
            all messages.
    """

    scope: tuple[int, ...]
    visits: tuple[int, ...]
    values: Any
    forbidden: int | float
    spread: int | float
    origin: tuple[float, int]

    @property
    def size(self) -> int:
        """Bytes: the cells, three numbers for each variable (the variable, its visit, its size) and four more."""
        return _table_bytes(int(self.values.nbytes), len(self.scope))


def _table_bytes(cells: int, variables: int) -> int:
    return cells + _WORD * (3 * variables + 4)


class Rank(NamedTuple):
    """A variable's rank, sent to each neighbour."""

    rank: int


class Elect(NamedTuple):
    """A wave that finds the highest rank, on its way out or back (echo with extinction: Chang 1982).

    Attributes:
        rank: Rank of the variable that began it; a fixed permutation of the numbers settles ties.
        root: Number of the variable that began the wave.
    """

    rank: int
    root: int


class Visit(NamedTuple):
    """The token of the depth-first traversal on its way down: the sender's visit, and the number of visits."""

    visit: int
    visits: int


class Mark(NamedTuple):
    """The token's first arrival, announced to all neighbours except the sender."""

    visit: int


class Marked(NamedTuple):
    """The answer to ``Mark``: this variable's visit, or -1; and the number of neighbours visited so far."""

    visit: int
    reached: int


class Return(NamedTuple):
    """The token on its way back from a child, with the number of visits."""

    visits: int


class Util(NamedTuple):
    """Least costs of a subtree, for the parent.

    Attributes:
        tables: One table, or several if buckets are partitioned.
        best: Constant to add to the tables' costs.
        possible: False if the subtree allows nothing.
    """

    tables: tuple[Utility, ...]
    best: int | float
    possible: bool

    @property
    def size(self) -> int:
        """Bytes of the tables and of two numbers."""
        return 2 * _WORD + sum(table.size for table in self.tables)


class Value(NamedTuple):
    """The values of the variables that a child's subtree depends on; None: nothing is allowed."""

    values: tuple[tuple[int, int], ...] | None

    @property
    def size(self) -> int:
        """Bytes: two numbers for each variable, and one for the number of variables."""
        return _values_bytes(len(self.values or ()))


def _values_bytes(variables: int) -> int:
    return _WORD + 2 * _WORD * variables


class Label(NamedTuple):
    """Variables on which a subtree depends, for its parent, if tables may be too large (MB-DPOP: ``dcop/dpop.py``).

    Attributes:
        separator: Ancestors, each with its visit and its number of values.
        cuts: Ancestors that have to be fixed before the subtree is eliminated.
    """

    separator: tuple[tuple[int, int, int], ...]
    cuts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes: three numbers for each variable, one for each cut, and two more."""
        return _WORD * (2 + 3 * len(self.separator) + len(self.cuts))


class Context(NamedTuple):
    """A request to a child for its tables, given these values of its cuts."""

    values: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Bytes: two numbers for each variable, and one for the number of variables."""
        return _WORD + 2 * _WORD * len(self.values)


class Cost(NamedTuple):
    """Cost of a subtree with the values chosen by bounds, for the parent; None: these values are not allowed."""

    total: int | None

    @property
    def size(self) -> int:
        """Bytes of the total, and of a flag that is set if the values are allowed."""
        return 2 * _WORD


class Limit(NamedTuple):
    """Limit on the costs of the tuples that a child sends (filtering: see ``dcop/tuple_filter.py``).

    Attributes:
        worst: Total of a known assignment: only better ones are searched for. None: there is none.
        best: Lower bound on the costs outside of the subtree.
        bounds: Tables to add to ``best``: scopes among the variables that the subtree depends on, and arrays with an
            axis for each variable.
        spread: Upper bound on the allowed sums of these tables' cells.
    """

    worst: int | None
    best: int
    bounds: tuple[tuple[tuple[int, ...], NDArray[Any]], ...]
    spread: int

    @property
    def size(self) -> int:
        """Bytes: the cells, two numbers for each variable of a table (itself and its size), and four more."""
        return 4 * _WORD + sum(cells.nbytes + 2 * _WORD * len(scope) for scope, cells in self.bounds)


class Listed(NamedTuple):
    """Exact costs of a subtree, for the parent: the tuples that may be part of a better assignment.

    Attributes:
        rows: Assignments and costs, on the host.
        best: Constant to add to the costs.
        spread: Upper bound on the costs.
    """

    rows: SparseTable
    best: int
    spread: int

    @property
    def size(self) -> int:
        """Bytes: those of keys and values, two numbers for each variable, and three more."""
        layout, keys, values = self.rows
        return int(keys.nbytes) + int(values.nbytes) + _WORD * (3 + 2 * len(layout.scope))


Body = Rank | Elect | Visit | Mark | Marked | Return | Util | Value | Label | Context | Cost | Limit | Listed
KINDS: dict[type, str] = {
    Rank: "rank", Elect: "elect", Visit: "visit", Mark: "mark", Marked: "marked", Return: "return", Util: "util",
    Value: "value", Label: "label", Context: "context", Cost: "cost", Limit: "limit", Listed: "rows",
}  # fmt: skip
TRAVERSAL = (Rank, Elect, Mark, Marked, Visit, Return)
"""Messages that build the pseudo-tree, as the core numbers them."""
FIXED: dict[type, int] = {kind: _HEADER + _WORD * len(kind._fields) for kind in TRAVERSAL}
"""Bytes of messages of fixed size."""


class Message(NamedTuple):
    """A message from one agent to another.

    Attributes:
        sender: Name of the sending agent.
        receiver: Name of the receiving agent.
        source: The sender's variable that it comes from.
        target: The receiver's variable that it is for.
        body: Contents of the message.
    """

    sender: str
    receiver: str
    source: int
    target: int
    body: Body

    @property
    def kind(self) -> str:
        """One of ``KINDS``."""
        return KINDS[type(self.body)]

    @property
    def size(self) -> int:
        """Bytes of the body and of four numbers."""
        body = self.body
        return FIXED[type(body)] if isinstance(body, TRAVERSAL) else _HEADER + body.size


def sizes_of_messages(cells: int, variables: int) -> tuple[int, int]:
    """Return the bytes of a ``Util`` message with one table, and of the ``Value`` message that answers it.

    Args:
        cells: Bytes of the table's cells.
        variables: Number of variables of the table.
    """
    return _HEADER + 2 * _WORD + _table_bytes(cells, variables), _HEADER + _values_bytes(variables)


Send = Callable[[int, Body], None]
"""Function that sends a message to another variable."""

_NUMBERS = {kind: number for number, kind in enumerate(TRAVERSAL)}
_FIELDS = [len(kind._fields) for kind in TRAVERSAL]


def begin(traversal: Traversal, send: Send) -> None:
    """Start building the pseudo-tree at a variable: it sends its rank to its neighbours."""
    _forward(traversal.start(), send)


def process_message(traversal: Traversal, source: int, body: Body, send: Send) -> None:
    """Process a variable's message of a kind of ``TRAVERSAL``."""
    fields = cast("tuple[int, ...]", body)
    _forward(traversal.receive(source, _NUMBERS[type(body)], fields[0], fields[1] if len(fields) > 1 else 0), send)


def _forward(sent: Iterable[tuple[int, int, int, int]], send: Send) -> None:
    for target, kind, *fields in sent:
        send(target, TRAVERSAL[kind](*fields[: _FIELDS[kind]]))
