"""Construction of a pseudo-tree: a root is elected, and a token goes from neighbour to neighbour depth first.

Every edge of the graph of cost functions then leads from a variable to an ancestor of it. Where the token comes, all
neighbours are told before it goes on, so that it takes edges of the tree only (Awerbuch 1985, "A new distributed
depth-first-search algorithm"). Messages may come in any order, and the tree does not depend on it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Sequence

from elimina.dcop.messages import Body, Elect, Mark, Marked, Rank, Return, Visit

Send = Callable[[int, Body], None]
"""Sends something to another variable."""


class Traversal:
    """One variable's part in it.

    Attributes:
        visit: Number of the token's first visit within this component, from 0 on; -1 before it.
        parent: The variable that it came from; -1 if there is none.
        children: Those that it went to from here, in this order.
        above: Neighbours that are ancestors, and their visits.
        is_done: True if the token has left for good.
        key: The variable's own wave: its rank and its number.

    Args:
        variable: The variable.
        rank: Its rank.
        neighbours: Those that share a cost function with it.
        prefers_reached: True if the token goes first to those neighbours that have most visited ones of their own,
            whatever their ranks.
    """

    def __init__(self, variable: int, rank: int, neighbours: Sequence[int], prefers_reached: bool) -> None:
        self.key = Elect(rank, variable)
        self.visit, self.parent, self.is_done = -1, -1, False
        self.children: list[int] = []
        self.above: dict[int, int] = {}
        self._neighbours, self._prefers_reached = neighbours, prefers_reached
        self._keys: dict[int, Elect] = {}
        self._knows_all, self._highest = False, self.key
        self._early: list[tuple[int, Body]] = []
        # Of the best wave so far: its key, where it came from, and who has not answered.
        self._wave: Elect | None = None
        self._from = -1
        self._silent: dict[int, None] = {}
        # Of the token: neighbours that said it came, those that it may go to, and how many were not heard of.
        self._reached: set[int] = set()
        self._untried: list[tuple[int, Elect]] = []
        self._unknown = 0
        self._visits = 0

    def start(self, send: Send) -> None:
        """Tell the neighbours the own rank."""
        rank = Rank(self.key.rank)
        for neighbour in self._neighbours:
            send(neighbour, rank)
        if not self._neighbours:
            self._become_root(send)

    def receive(self, source: int, body: Body, send: Send) -> None:
        """Continue with a message of another variable."""
        if isinstance(body, Elect) and self._knows_all:
            self._hear(source, body, send)
        elif isinstance(body, Mark) and self._knows_all:
            self._reached.add(source)
            send(source, Marked(self.visit, len(self._reached)))
        elif isinstance(body, Marked):
            self._note(source, body, send)
        elif isinstance(body, Rank):
            self._keys[source] = Elect(body.rank, source)
            if len(self._keys) == len(self._neighbours):
                self._knows_all = True
                self._begin(send)
        elif not self._knows_all:
            self._early.append((source, body))
        elif isinstance(body, Visit):
            self._become_visited(source, body, send)
        elif isinstance(body, Return):
            self.children.append(source)
            self._visits = body.visits
            self._pass_on(send)

    def _begin(self, send: Send) -> None:
        """Begin a wave, if no neighbour is higher: others cannot win."""
        self._highest = max(self.key, *self._keys.values())
        if self._highest == self.key:
            self._join_wave(self.key, -1, send)
        early, self._early = self._early, []
        for source, body in early:
            self.receive(source, body, send)

    def _join_wave(self, key: Elect, source: int, send: Send) -> None:
        self._wave, self._from = key, source
        self._silent = dict.fromkeys(self._neighbours)
        self._silent.pop(source, None)
        for neighbour in self._silent:
            send(neighbour, key)

    def _hear(self, source: int, key: Elect, send: Send) -> None:
        """Take a wave or its echo. It ends here if it cannot win: it is lower than the best so far, or a neighbour."""
        if key < self._highest:
            return
        if self._wave is None or key > self._wave:
            self._join_wave(key, source, send)
        elif key == self._wave:
            self._silent.pop(source, None)
        else:
            return
        if self._silent:
            return
        if self._from >= 0:
            send(self._from, key)
        else:
            self._become_root(send)

    def _become_root(self, send: Send) -> None:
        self._visits = 0
        self._mark(send)

    def _become_visited(self, source: int, body: Visit, send: Send) -> None:
        self.parent, self._visits = source, body.visits
        self.above[source] = body.visit
        self._mark(send)

    def _mark(self, send: Send) -> None:
        """Tell the other neighbours before the token goes on."""
        self.visit = self._visits
        self._visits += 1
        self._unknown = len(self._neighbours) - (self.parent >= 0)
        mark = Mark(self.visit)
        for neighbour in self._neighbours:
            if neighbour != self.parent:
                send(neighbour, mark)
        if not self._unknown:
            self._pass_on(send)

    def _note(self, source: int, body: Marked, send: Send) -> None:
        """Know a neighbour as an ancestor, or as one that the token may go to; those to be preferred come last."""
        if body.visit >= 0:
            self.above[source] = body.visit
        else:
            reached = body.reached if self._prefers_reached else 0
            insort(self._untried, (reached, self._keys[source]))
        self._unknown -= 1
        if not self._unknown:
            self._pass_on(send)

    def _pass_on(self, send: Send) -> None:
        """Send the token to the neighbour that comes last of those that have not had it, or back."""
        while self._untried:
            _, key = self._untried.pop()
            if key.root not in self._reached:
                send(key.root, Visit(self.visit, self._visits))
                return
        self.is_done = True
        if self.parent >= 0:
            send(self.parent, Return(self._visits))
