"""How variables become a pseudo-tree: a root is elected, and a token goes from neighbour to neighbour depth first.

Every edge of the graph of cost functions then leads from a variable to an ancestor of it (Cheung 1983, "Graph traversal
techniques and the maximum flow problem in distributed computation"). Messages may come in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elimina.dcop.messages import Body, Elect, Rank, Return, Visit, Visited

Send = Callable[[int, Body], None]
"""Sends something to another variable."""


class Traversal:
    """One variable's part in it.

    Attributes:
        visit: When the token came here first, counted in this component from 0 on; -1 before that.
        parent: The variable that it came from; -1 if there is none.
        children: Those that it went to from here, in this order.
        above: Neighbours that are ancestors, and their visits.
        is_done: Whether the token has left for good.
        key: The variable's own wave: its rank and its number.

    Args:
        variable: The variable.
        rank: Its rank.
        neighbours: Those that share a cost function with it.
    """

    def __init__(self, variable: int, rank: int, neighbours: Sequence[int]) -> None:
        self.key = Elect(rank, variable)
        self.visit, self.parent, self.is_done = -1, -1, False
        self.children: list[int] = []
        self.above: dict[int, int] = {}
        self._neighbours = neighbours
        self._keys: dict[int, Elect] = {}
        self._early: list[tuple[int, Body]] = []
        # Of the best wave so far: its key, where it came from, and who has not answered.
        self._wave: Elect | None = None
        self._from = -1
        self._silent: dict[int, None] = {}
        self._untried: list[int] = []
        self._visits = 0

    def start(self, send: Send) -> None:
        """Tell the neighbours the own rank."""
        for neighbour in self._neighbours:
            send(neighbour, Rank(self.key.rank))
        if not self._neighbours:
            self._become_root(send)

    def receive(self, source: int, body: Body, send: Send) -> None:
        """Go on with what another variable sent."""
        if isinstance(body, Rank):
            self._keys[source] = Elect(body.rank, source)
            if len(self._keys) == len(self._neighbours):
                self._know_all(send)
        elif len(self._keys) < len(self._neighbours):
            self._early.append((source, body))
        elif isinstance(body, Elect):
            self._hear(source, body, send)
        elif isinstance(body, Visit):
            self._be_visited(source, body, send)
        elif isinstance(body, Visited):
            self.above[source] = body.visit
            self._pass_on(send)
        elif isinstance(body, Return):
            self.children.append(source)
            self._visits = body.visits
            self._pass_on(send)

    def _know_all(self, send: Send) -> None:
        """Begin a wave, if no neighbour is higher: others cannot win."""
        self._untried = sorted(self._neighbours, key=self._keys.__getitem__)
        if self.key > max(self._keys.values()):
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
        """A wave, or its echo: lower ones than the best so far end here."""
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
        self.visit, self._visits = 0, 1
        self._pass_on(send)

    def _be_visited(self, source: int, body: Visit, send: Send) -> None:
        if self.visit >= 0:
            self._untried.remove(source)
            send(source, Visited(self.visit))
            return
        self.visit, self._visits, self.parent = body.visits, body.visits + 1, source
        self.above[source] = body.visit
        self._untried.remove(source)
        self._pass_on(send)

    def _pass_on(self, send: Send) -> None:
        """Send the token to the highest neighbour that is not known to have had it, or back."""
        if self._untried:
            send(self._untried.pop(), Visit(self.visit, self._visits))
            return
        self.is_done = True
        if self.parent >= 0:
            send(self.parent, Return(self._visits))
