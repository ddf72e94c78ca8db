"""Construction of a pseudo-tree by messages: see ``core/dcop/traversal.hpp``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

from elimina._core import Traversal
from elimina.dcop.messages import TRAVERSAL, Body

Send = Callable[[int, Body], None]
"""Sends something to another variable."""

_NUMBERS = {kind: number for number, kind in enumerate(TRAVERSAL)}
_FIELDS = [len(kind._fields) for kind in TRAVERSAL]


def begin(place: Traversal, send: Send) -> None:
    """Let a variable begin: it tells its neighbours its rank."""
    _forward(place.start(), send)


def hear(place: Traversal, source: int, body: Body, send: Send) -> None:
    """Let a variable react to what another one sent, which is of a kind of ``TRAVERSAL``."""
    fields = cast("tuple[int, ...]", body)
    _forward(place.receive(source, _NUMBERS[type(body)], fields[0], fields[1] if len(fields) > 1 else 0), send)


def _forward(sent: Iterable[tuple[int, int, int, int]], send: Send) -> None:
    for target, kind, *fields in sent:
        send(target, TRAVERSAL[kind](*fields[: _FIELDS[kind]]))
