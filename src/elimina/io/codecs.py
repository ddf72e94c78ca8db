"""Readers and writers of formats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from elimina.model.table import Sense

Subject = TypeVar("Subject")

Held = Literal["names", "upper bound", "capacities"]


class Codec(NamedTuple, Generic[Subject]):
    """The reader and the writer of a format, and the possible contents of its files.

    Attributes:
        senses: Possible senses of a file.
        open_text: Function that turns a file's content into the source of ``parse``.
        parse: Function that reads a model or another problem.
        render: Function that yields a file's text; None if the format is only read.
        holds: Content that only some formats can hold: names of variables and states, an upper bound on totals,
            the agents' capacities.
        is_of_networks: True if the format holds Bayesian networks alone, and not also products of tables that only
            look like networks.
        is_often_latin1: True if programs write the format in the encoding of their system.
    """

    senses: tuple[Sense, ...]
    open_text: Callable[[bytes], Any]
    parse: Callable[[Any], Subject]
    render: Callable[[Subject], Iterator[str]] | None = None
    holds: tuple[Held, ...] = ()
    is_of_networks: bool = False
    is_often_latin1: bool = False
