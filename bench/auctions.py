"""Combinatorial auctions of time on a machine: reject bids so that the least is lost.

The distribution 'scheduling' of CATS (K. Leyton-Brown, M. Pearson, Y. Shoham, "Towards a universal test suite for
combinatorial auction algorithms", EC 2000): a bidder asks for a number of adjacent slots, and bids for each place of
them; later ends are worth less. At most one bid of a bidder is accepted, and no slot is sold twice: each pair of bids
that exclude each other forbids two values.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from elimina import Model
from elimina.model.table import FORBIDDEN

LONGEST, DEVIATION, ADDITIVITY, MORE = 10, 0.5, 0.2, 0.9
"""Most slots of a bid, spread of a bidder's values, gain by each slot, and chance of a later end."""

PRICE = 1000
"""Units of a price of 1."""

AUCTIONS = ((20, 0), (20, 1), (20, 2), (40, 0), (40, 1), (60, 0))
"""Slots and seeds."""

BIDS = 234


class Bid(NamedTuple):
    bidder: int
    first: int
    last: int
    price: int

    def excludes(self, other: Bid) -> bool:
        return self.bidder == other.bidder or (self.first <= other.last and other.first <= self.last)


def bids(slots: int, count: int, seed: int) -> list[Bid]:
    """Return so many bids."""
    rng = np.random.default_rng(seed)
    made: list[Bid] = []
    bidder = 0
    while len(made) < count:
        length = int(rng.integers(1, LONGEST + 1))
        first_end = end = int(rng.integers(length, slots + 1))
        value = rng.uniform(1 - DEVIATION, 1 + DEVIATION) * length ** (1 + ADDITIVITY) * first_end
        start = 0
        while True:
            price = round(PRICE * value / end)
            made += [Bid(bidder, last - length + 1, last, price) for last in range(max(start + 1, length), end + 1)]
            start = end
            if end == slots or rng.random() > MORE:
                break
            end = int(rng.integers(end + 1, slots + 1))
        bidder += 1
    return made[:count]


def auction(slots: int, seed: int) -> Model:
    """Return the model of an auction: value 1 accepts a bid."""
    offered = bids(slots, BIDS, seed)
    factors = [((n,), np.array([bid.price, 0])) for n, bid in enumerate(offered)]
    both = np.array([[0, 0], [0, FORBIDDEN]])
    factors += [((n, m), both) for (n, a), (m, b) in itertools.combinations(enumerate(offered), 2) if a.excludes(b)]
    return Model.from_arrays([2] * len(offered), factors, sense="min-cost")
