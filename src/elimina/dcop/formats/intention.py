"""Cost functions given by expressions, as tables."""

from __future__ import annotations

import keyword
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina._core import TextError
from elimina.dcop.formats.build import Builder, Domain
from elimina.dcop.formats.columns import Column
from elimina.dcop.formats.expression import tabulate
from elimina.dcop.formats.syntax import FUNCTIONS, Expression
from elimina.errors import UnsupportedError

MOST_WORK = 2**29
"""Most cells times nodes of their expressions that a file may ask for."""
_WORD = re.compile(r"""'[^'\n]*'|"[^"\n]*"|\w+""")
# With comments, points before letters, long strings or statements, a text's names are not simply its words.
_NOT_WORDS = re.compile(r"""[\\#ξ]|\'{3}|"{3}|\.\s*[^\W\d]|\breturn\b""")


class Expressions:
    """Evaluates the expressions of a file, those that differ only by their variables' names once.

    Attributes:
        external: Variables that are no decisions, with their values.
        values: Values of each domain as expressions see them, by the domain's name.
    """

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.values: dict[str, Column] = {}
        self.external: dict[str, tuple[Domain, int]] = {}
        self._parsed: dict[str, Expression] = {}
        self._tables: dict[tuple[str, ...], NDArray[Any]] = {}
        self._work = 0

    def add(self, owner: str, text: str, only: str | None = None) -> None:
        """Add the costs that an expression gives.

        Args:
            owner: The constraint, or the variable, whose costs they are.
            text: The expression.
            only: The one variable that it may read, if not None.

        Raises:
            TextError: It is no expression, or names something else than a variable.
            UnsupportedError: It uses something of Python that is not handled, or is too much work.
            MemoryLimitError: Its table is too large.
        """
        template, places = self._template(text)
        expression = self._parsed.get(template)
        if expression is None:
            expression = self._parsed[template] = Expression(template)
        names = [places.get(name, name) for name in expression.names]
        for name in names:
            if name not in self.builder.index and name not in self.external:
                raise TextError(f"expected the name of a variable, found {name[:40]!r}")
            if only not in (None, name):
                raise TextError(f"the costs of variable {only!r} depend on {name!r}; use a constraint")
        domains = [self._domain(name) for name in names]
        key = (template, *(part for _, part in domains))
        scope = self.builder.scope(name for name in names if name not in self.external)
        if key not in self._tables:
            cells = self.builder.claim(scope, owner)
            self._work += cells * expression.nodes
            if self._work > MOST_WORK:
                raise UnsupportedError(
                    f"the expressions up to that of {owner!r} have {self._work} operations to evaluate; "
                    f"up to {MOST_WORK} are handled, so list their costs instead"
                )
            costs = tabulate(expression, expression.names, [column for column, _ in domains])
            self._tables[key] = self._costs(costs)
        sizes = [self.builder.variables[v].size for v in scope]
        self.builder.add_full(scope, self._tables[key].reshape(sizes))

    def _template(self, text: str) -> tuple[str, dict[str, str]]:
        """Return the text with variables replaced by slots, and their names; unchanged if that could be ambiguous."""
        if _NOT_WORDS.search(text):
            return text, {}
        index, external = self.builder.index, self.external
        known = [w for w in dict.fromkeys(_WORD.findall(text)) if w in index or w in external]
        if any(word in FUNCTIONS or keyword.iskeyword(word) or not word.isidentifier() for word in known):
            return text, {}
        places = {word: f"ξ{place}" for place, word in enumerate(known)}
        template = _WORD.sub(lambda word: places.get(word[0], word[0]), text)
        return template, {place: word for word, place in places.items()}

    def _domain(self, name: str) -> tuple[Column, str]:
        """Return the values of a variable, and what tells them from those of others."""
        if name in self.external:
            domain, code = self.external[name]
            return self.values[domain.name][code : code + 1], f"{code} of {domain.name}"
        domain = self.builder.domain_of[self.builder.index[name]]
        return self.values[domain.name], f"all of {domain.name}"

    def _costs(self, values: Column) -> NDArray[Any]:
        if values.dtype.kind == "O":
            return self.builder.costs(values.tolist())
        return self.builder.costs(values if values.dtype.kind == "f" else values.astype(np.int64))
