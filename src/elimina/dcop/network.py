"""Simulated network: delays, losses, duplicates and crashes."""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, get_args

from elimina.errors import InputError

Order = Literal["time", "fifo", "random"]
_SHOWN = 8
"""Names in an error."""

ORDERS: tuple[Order, ...] = get_args(Order)
"""Order of deliveries: by the agents' clocks, as sent, or at random."""


class Network(NamedTuple):
    """Settings of the simulated network.

    Attributes:
        order: See ``ORDERS``.
        delay: Simulated seconds that a message takes.
        jitter: Seconds that it may take longer, uniformly, so that messages overtake each other.
        loss: Share of transmissions that are lost; they are repeated until they are acknowledged.
        duplicate: Share of transmissions that arrive twice.
        retries: Times that a message is repeated before the run fails.
        crashes: Agents that lose all but their log of received messages, each when so many have arrived.
        downtime: Simulated seconds after which such an agent starts again; infinity: never.
        seed: Random seed.
    """

    order: Order = "time"
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    retries: int = 30
    crashes: Mapping[str, int] = {}
    downtime: float = 0.1
    seed: int = 0

    @property
    def is_reliable(self) -> bool:
        """True if each message arrives once by itself."""
        return not (self.loss or self.duplicate or self.crashes)

    @property
    def patience(self) -> float:
        """Seconds until a message is repeated first: more than it and its acknowledgement take."""
        return 4 * (self.delay + self.jitter) + 1e-3

    def check(self, names: frozenset[str]) -> None:
        """Check the fields for agents of these names.

        Raises:
            InputError: A field makes no sense.
        """
        if self.order not in ORDERS:
            raise InputError(f"unknown order of delivery {self.order!r}; it is one of {', '.join(ORDERS)}")
        for name in ("delay", "jitter", "downtime"):
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)} s; it cannot be negative")
        for name in ("loss", "duplicate"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} is {getattr(self, name)}; it is a share from 0 to 1")
        if self.retries < 0:
            raise InputError(f"retries is {self.retries}; it cannot be negative")
        for name, number in self.crashes.items():
            if name not in names:
                known = ", ".join(sorted(names)[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
                raise InputError(f"there is no agent {name!r} that could crash; agents are {known}")
            if number < 1:
                raise InputError(f"agent {name!r} is to crash at its message {number}; they count from 1 on")


class Queue:
    """Messages on their way, and events that are due at some time.

    Args:
        order: Order of deliveries. Events that are due wait until no message is on its way, unless time orders
            everything.
        generator: Draws random ones.
    """

    def __init__(self, order: Order, generator: random.Random) -> None:
        self._order, self._random = order, generator
        self._heap: list[tuple[float, int, Any]] = []
        self._first: deque[tuple[float, Any]] = deque()
        self._any: list[tuple[float, Any]] = []
        self._count = 0

    def put(self, time: float, event: Any, is_due: bool = False) -> None:
        """Add what happens at a time: something arrives, or is due."""
        self._count += 1
        if self._order == "time" or is_due:
            heapq.heappush(self._heap, (time, self._count, event))
        elif self._order == "fifo":
            self._first.append((time, event))
        else:
            self._any.append((time, event))

    def take(self) -> tuple[float, Any] | None:
        """Return the next event and its time; None if none is left."""
        if self._first:
            return self._first.popleft()
        if self._any:
            at = self._random.randrange(len(self._any))
            self._any[at], self._any[-1] = self._any[-1], self._any[at]
            return self._any.pop()
        if self._heap:
            time, _, event = heapq.heappop(self._heap)
            return time, event
        return None
