"""What agents say to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

_WORD = 8
"""Bytes of a number."""

_HEADER = 4 * _WORD
"""Bytes of a message besides its body: what it is, and the two variables and the sender's count that it bears."""

Key = tuple[int, int]
"""Who is to be a root: a variable's rank, then its number."""


class Utility(NamedTuple):
    """A table of costs above the best ones known, which are added separately; minimised whatever the problem's sense.

    Attributes:
        scope: Variables, the one eliminated first (of the largest visit) first.
        visits: When the traversal reached each of them.
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


@dataclass(frozen=True, slots=True)
class Rank:
    """A variable's rank, to each neighbour."""

    kind: ClassVar[str] = "rank"
    rank: int

    @property
    def size(self) -> int:
        """Bytes."""
        return _WORD


@dataclass(frozen=True, slots=True)
class Elect:
    """A wave that looks for the highest rank: on the way out, and back (echo with extinction: Chang 1982)."""

    kind: ClassVar[str] = "elect"
    key: Key

    @property
    def size(self) -> int:
        """Bytes."""
        return 2 * _WORD


@dataclass(frozen=True, slots=True)
class Visit:
    """The token of the depth-first traversal on its way down: the sender's visit, and how many there were."""

    kind: ClassVar[str] = "visit"
    visit: int
    count: int

    @property
    def size(self) -> int:
        """Bytes."""
        return 2 * _WORD


@dataclass(frozen=True, slots=True)
class Visited:
    """The token comes back at once, from an ancestor: its visit."""

    kind: ClassVar[str] = "visited"
    visit: int

    @property
    def size(self) -> int:
        """Bytes."""
        return _WORD


@dataclass(frozen=True, slots=True)
class Return:
    """The token comes back from a child: how many visits there were."""

    kind: ClassVar[str] = "return"
    count: int

    @property
    def size(self) -> int:
        """Bytes."""
        return _WORD


@dataclass(frozen=True, slots=True)
class Util:
    """What a subtree costs at least, to the parent.

    Attributes:
        tables: One; or several, where buckets are divided.
        best: What has to be added to them.
        possible: False if the subtree allows nothing.
    """

    kind: ClassVar[str] = "util"
    tables: tuple[Utility, ...]
    best: int | float
    possible: bool

    @property
    def size(self) -> int:
        """Bytes."""
        return 2 * _WORD + sum(table.size for table in self.tables)


@dataclass(frozen=True, slots=True)
class Value:
    """The values of those variables that a subtree depends on, to a child; None: nothing is allowed."""

    kind: ClassVar[str] = "value"
    values: tuple[tuple[int, int], ...] | None

    @property
    def size(self) -> int:
        """Bytes."""
        return _WORD + 2 * _WORD * len(self.values or ())


Body = Rank | Elect | Visit | Visited | Return | Util | Value
KINDS = ("rank", "elect", "visit", "visited", "return", "util", "value")


@dataclass(frozen=True, slots=True)
class Message:
    """From one agent to another.

    Attributes:
        sender: An agent's name.
        receiver: Another one's.
        source: The sender's variable that it comes from.
        target: The receiver's variable that it is for.
        body: What it says.
    """

    sender: str
    receiver: str
    source: int
    target: int
    body: Body

    @property
    def kind(self) -> str:
        """One of ``KINDS``."""
        return self.body.kind

    @property
    def size(self) -> int:
        """Bytes: of the body, and four numbers more."""
        return _HEADER + self.body.size
