"""Messages between agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from elimina._core import Traversal

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from elimina.backends.sparse.device import Rows

_WORD = 8
"""Bytes of a number."""

_HEADER = 4 * _WORD
"""Bytes of a message besides its body: its kind, the two variables, and its number."""


class Utility(NamedTuple):
    """A table of costs above the best ones known, which are added separately; minimised whatever the problem's sense.

    Attributes:
        scope: Variables, the one eliminated first (of the largest visit) first.
        visits: Number of the traversal's visit to each of them.
        values: An array with an axis for each, on the host or on a device.
        forbidden: Cells from this on are forbidden; infinity among floats.
        spread: No other cell is above it.
        origin: The visit of the variable that was eliminated, and the number of its mini-bucket; of cost functions,
            what comes before all of these.
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
        return int(self.values.nbytes) + _WORD * (3 * len(self.scope) + 4)


class Rank(NamedTuple):
    """A variable's rank, to each neighbour."""

    rank: int


class Elect(NamedTuple):
    """A wave that looks for the highest rank: on the way out, and back (echo with extinction: Chang 1982).

    Attributes:
        rank: Rank of the variable that began it; a fixed permutation of the numbers settles ties.
        root: Number of the variable that began the wave.
    """

    rank: int
    root: int


class Visit(NamedTuple):
    """The token of the depth-first traversal on its way down: the sender's visit, and how many there were."""

    visit: int
    visits: int


class Mark(NamedTuple):
    """The token has come, for the first time: to all neighbours but the one that it came from."""

    visit: int


class Marked(NamedTuple):
    """The answer: the own visit, or -1; and how many neighbours were visited so far."""

    visit: int
    reached: int


class Return(NamedTuple):
    """The token comes back from a child: how many visits there were."""

    visits: int


class Util(NamedTuple):
    """Least costs of a subtree, for the parent.

    Attributes:
        tables: One; or several, where buckets are divided.
        best: Constant to add to them.
        possible: False if the subtree allows nothing.
    """

    tables: tuple[Utility, ...]
    best: int | float
    possible: bool

    @property
    def size(self) -> int:
        """Bytes: of the tables, and two numbers."""
        return 2 * _WORD + sum(table.size for table in self.tables)


class Value(NamedTuple):
    """The values of those variables that a subtree depends on, to a child; None: nothing is allowed."""

    values: tuple[tuple[int, int], ...] | None

    @property
    def size(self) -> int:
        """Bytes: two numbers for each variable, and their number."""
        return _WORD + 2 * _WORD * len(self.values or ())


class Label(NamedTuple):
    """Variables that a subtree depends on, for the parent, where tables may be too large (MB-DPOP: ``dcop/dpop.py``).

    Attributes:
        separator: Ancestors, each with its visit and its number of values.
        cuts: Those of them that have to be fixed before the subtree is eliminated.
    """

    separator: tuple[tuple[int, int, int], ...]
    cuts: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes: three numbers for each variable, one for each cut, and two more."""
        return _WORD * (2 + 3 * len(self.separator) + len(self.cuts))


class Context(NamedTuple):
    """Values of a child's cuts: it is to send its tables for them."""

    values: tuple[tuple[int, int], ...]

    @property
    def size(self) -> int:
        """Bytes: two numbers for each variable, and their number."""
        return _WORD + 2 * _WORD * len(self.values)


class Cost(NamedTuple):
    """Costs in a subtree of the values that bounds chose, for the parent; None: they are not allowed."""

    total: int | None

    @property
    def size(self) -> int:
        """Bytes: a number, and whether there is one."""
        return 2 * _WORD


class Limit(NamedTuple):
    """Limit on the costs of the tuples that a child sends (filtering: see ``dcop/tuple_filter.py``).

    Attributes:
        worst: A total that is known to be reached; only better ones are wanted. None: none is known.
        best: Lower bound on the costs outside of the subtree.
        bounds: ... and these tables besides: scopes within what the subtree depends on, and arrays with an axis for
            each variable.
        spread: No sum of their cells that is allowed is above it.
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
    """Exact costs of a subtree, for the parent: the tuples that may be part of a wanted assignment.

    Attributes:
        rows: Assignments and costs, on the host.
        best: Constant to add to the costs.
        spread: No cost is above it.
    """

    rows: Rows
    best: int
    spread: int

    @property
    def size(self) -> int:
        """Bytes: of keys and values, two numbers for each variable, and three more."""
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
"""Bytes of messages that are all of one size."""


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
        """Bytes: of the body, and four numbers more."""
        body = self.body
        return FIXED[type(body)] if isinstance(body, TRAVERSAL) else _HEADER + body.size


Send = Callable[[int, Body], None]
"""Sends something to another variable."""

_NUMBERS = {kind: number for number, kind in enumerate(TRAVERSAL)}
_FIELDS = [len(kind._fields) for kind in TRAVERSAL]


def begin(place: Traversal, send: Send) -> None:
    """Let a variable begin to build the pseudo-tree: it tells its neighbours its rank."""
    _forward(place.start(), send)


def hear(place: Traversal, source: int, body: Body, send: Send) -> None:
    """Let a variable react to what another one sent, which is of a kind of ``TRAVERSAL``."""
    fields = cast("tuple[int, ...]", body)
    _forward(place.receive(source, _NUMBERS[type(body)], fields[0], fields[1] if len(fields) > 1 else 0), send)


def _forward(sent: Iterable[tuple[int, int, int, int]], send: Send) -> None:
    for target, kind, *fields in sent:
        send(target, TRAVERSAL[kind](*fields[: _FIELDS[kind]]))
