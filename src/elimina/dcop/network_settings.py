"""Settings of a simulated network, their checks, and delays drawn by them."""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from elimina import arguments
from elimina.errors import InputError

Order = Literal["time", "fifo", "random"]
"""Order of deliveries: by the agents' clocks, as sent, or at random."""
ORDERS: tuple[Order, ...] = get_args(Order)

_SHOWN_NAMES = 8
"""Largest number of names in an error."""

SEEDS = (-(2**63), 2**63 - 1)
"""Smallest and largest random seed: integers of 64 bits."""


@arguments.with_checked_methods
@dataclass(frozen=True)
class Network:
    """Settings of the simulated network.

    Attributes:
        order: Order of deliveries: see ``ORDERS``.
        delay: Simulated delay of a message, in seconds.
        jitter: Maximum random delay added to each message, in seconds (uniform), so that messages overtake each other.
        loss: Share of transmissions that are lost; they are repeated until they are acknowledged.
        duplicate: Share of transmissions that arrive twice.
        retries: Number of repeats of a message before the run fails.
        crashes: Agent -> number of the received message at which it crashes; it keeps only its log of messages.
        downtime: Simulated time until a crashed agent restarts, in seconds; infinity for never.
        seed: Random seed.

    Examples:
        >>> from elimina import dcop
        >>> problem = dcop.read("examples/meetings.yaml")
        >>> network = dcop.Network(delay=0.1, loss=0.2, seed=1)
        >>> dcop.solve(problem, network=network).status
        'optimal'
    """

    order: Order = "time"
    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    duplicate: float = 0.0
    retries: int = 30
    crashes: Mapping[str, int] = field(default_factory=dict)
    downtime: float = 0.1
    seed: int = 0


def is_reliable(network: Network) -> bool:
    """Return whether no transmission is lost or arrives twice, and no agent crashes."""
    return not (network.loss or network.duplicate or network.crashes)


def drawn_delay(network: Network, generator: random.Random) -> float:
    """Return the delay of a message, in seconds."""
    return network.delay + (generator.uniform(0, network.jitter) if network.jitter else 0.0)


def delivery_settings(network: Network) -> tuple[Order, float, float, int]:
    """Return the order and delays of a reliable network, and the seed, as the core takes them."""
    return network.order, network.delay, network.jitter, network.seed


def repeat_seconds(network: Network) -> float:
    """Return the seconds before a message is first repeated: more than it and its acknowledgement take."""
    return 4 * (network.delay + network.jitter) + 1e-3


def check_network(network: Network, names: frozenset[str]) -> None:
    """Check the fields for agents of these names.

    Raises:
        TypeError: A field has the wrong type.
        InputError: A field has an invalid value.
    """
    if network.order not in ORDERS:
        raise InputError(f"unknown order of delivery {network.order!r}; it is one of {', '.join(ORDERS)}")
    for name in ("delay", "jitter", "downtime"):
        seconds = arguments.number(name, getattr(network, name), "a number of seconds")
        if seconds < 0:
            raise InputError(f"{name} is {seconds} s; it cannot be negative")
        if sys.float_info.max < seconds < math.inf:
            raise InputError(f"{name} is {arguments.shown(seconds)} s; that is out of the range of a float")
    for name in ("loss", "duplicate"):
        if not 0 <= arguments.number(name, getattr(network, name), "a share from 0 to 1") <= 1:
            raise InputError(f"{name} is {getattr(network, name)}; it is a share from 0 to 1")
    arguments.integer("retries", network.retries, 0)
    arguments.integer("seed", network.seed, *SEEDS)
    if not isinstance(network.crashes, Mapping):
        raise arguments.wrong_type("crashes", network.crashes, "a mapping from agents to numbers of messages")
    for name, number in network.crashes.items():
        if name not in names:
            listing = ", ".join(sorted(names)[:_SHOWN_NAMES]) + (", ..." if len(names) > _SHOWN_NAMES else "")
            raise InputError(f"there is no agent {name!r} that could crash; agents are {listing}")
        if arguments.integer(f"crashes[{name!r}]", number) < 1:
            raise InputError(f"agent {name!r} is to crash at its message {number}; they count from 1 on")
