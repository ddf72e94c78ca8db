"""The posteriors of a batch of cases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elimina.display import bars_of, html_of, sample, text_of
from elimina.io.posteriors import EVIDENCE, posterior_columns
from elimina.model import Variable

if TYPE_CHECKING:
    from elimina.system import Library

Floats = NDArray[np.float64]


class Posteriors(NamedTuple):
    """Posteriors of a batch.

    Attributes:
        marginals: Variable name -> float64 array of shape ``(cases, size)``, the cases its fastest axis; zeros where a
            case is impossible.
        log10_evidence: float64 array of shape ``(cases,)``: base-10 logarithm of the probability of the case's
            observations; minus infinity where the case is impossible.
        variables: The variables of the marginals.
    """

    marginals: dict[str, Floats]
    log10_evidence: Floats
    variables: tuple[Variable, ...]

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame with a row for each case.

        A column ``NAME=state`` holds the probabilities of a state; the last one is ``log10_evidence``.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: It is another one, or not installed.
        """
        columns = [column for v in self.variables for column in self.marginals[v.name].T]
        named = dict(zip(posterior_columns(self.variables), columns, strict=True))
        from elimina.system import frame_of

        return frame_of({**named, EVIDENCE: self.log10_evidence}, library)

    def __repr__(self) -> str:
        return text_of("Posteriors", self._figures())

    def _repr_html_(self) -> str:
        if not len(self.log10_evidence):
            return html_of("Posteriors", self._figures())
        first = {v.name: dict(zip(v.all_states, self.marginals[v.name][0], strict=True)) for v in self.variables}
        return html_of("Posteriors", self._figures(), "<p>first case</p>", bars_of(first))

    def _figures(self) -> list[tuple[str, str]]:
        impossible = int(np.isneginf(self.log10_evidence).sum())
        return [
            ("cases", f"{len(self.log10_evidence):,}, {impossible:,} of them impossible"),
            ("variables", sample(self.marginals, len(self.marginals))),
        ]
