"""Samples of a model's variables, with weights unless they are exact."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elimina import arguments
from elimina.display import Displayed, sample
from elimina.errors import InputError
from elimina.io.files import save
from elimina.io.sample_files import LOG_WEIGHT, csv_chunks
from elimina.model.variable import Variable, state_array
from elimina.system import frame_of

if TYPE_CHECKING:
    from elimina.system import Library


def check_samples_file(path: Path) -> None:
    """Raise ``InputError`` if samples cannot be written to files with this suffix."""
    if not any(path.name.lower().endswith(suffix) for suffix in (".csv", ".csv.gz", ".csv.xz")):
        raise InputError(f"{path}: samples are written to .csv, .csv.gz and .csv.xz files")


@arguments.with_checked_methods
class Samples(Displayed, Mapping[str, NDArray[Any]]):
    """Samples of all variables of a model: a mapping from the name of a variable to its state in each sample.

    Attributes:
        variables: Variables of the model.
        indices: Indices of the states, int32 of shape ``(samples, variables)``.
        log_weights: Natural logarithm of each sample's weight, up to a constant: divide weights by their sum. All are 0
            if the samples are exact.
        is_exact: True if the samples follow the posterior; otherwise, averages need the weights.
        effective_size: Number of exact samples with about as much information: an estimate, which is too large if the
            proposal misses probable assignments.
        log10_z: Base-10 logarithm of the model's sum given the evidence; for weighted samples, an unbiased estimate of
            the sum.

    Examples:
        >>> import elimina
        >>> samples = elimina.sample("examples/pump.bif", 5, evidence={"Alarm": "on"}, seed=1)
        >>> samples.indices.shape, samples.is_exact
        ((5, 12), True)
        >>> set(samples["Alarm"].tolist())
        {'on'}
    """

    def __init__(
        self,
        variables: tuple[Variable, ...],
        indices: NDArray[np.int32],
        log_weights: NDArray[np.float64],
        *,
        is_exact: bool,
        effective_size: float,
        log10_z: float,
    ) -> None:
        self.variables, self.indices, self.log_weights = variables, indices, log_weights
        self.is_exact, self.effective_size, self.log10_z = is_exact, effective_size, log10_z
        self._columns = {v.name: column for column, v in enumerate(variables)}

    def __getitem__(self, name: str) -> NDArray[Any]:
        """Return the states of a variable as an array of int64, bool, or objects."""
        if name not in self._columns:
            raise arguments.unknown_key("sample", name, self._columns)
        column = self._columns[name]
        return state_array(self.variables[column], self.indices[:, column])

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the number of variables; ``count`` is the number of samples."""
        return len(self.variables)

    @property
    def count(self) -> int:
        """Number of samples."""
        return len(self.log_weights)

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weights, normalised to a sum of 1; empty if there are no samples."""
        if not self.count:
            return np.zeros(0)
        weights: NDArray[np.float64] = np.exp(self.log_weights - self.log_weights.max())
        weights /= weights.sum()
        return weights

    def to_frame(self, library: Library = "pandas") -> Any:
        """Return a data frame with a row for each sample and a column for each variable.

        Weighted samples have a last column ``log_weight``.

        Args:
            library: ``pandas``, ``polars`` or ``pyarrow`` (a ``Table``).

        Raises:
            TypeError: ``library`` is not text.
            InputError: ``library`` is unknown or not installed, or a variable is called ``log_weight``.
        """
        columns: dict[str, Any] = dict(self)
        if not self.is_exact:
            self._check_free(LOG_WEIGHT)
            columns[LOG_WEIGHT] = self.log_weights
        return frame_of(columns, library)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with a row for each sample; weighted samples have a last column ``log_weight``.

        ``elimina solve --cases`` and ``elimina.io.cases.read_cases`` read the file. A file with weights requires
        ``--ignore-extra`` or ``ignore_extra=True``.

        Args:
            path: File with suffix .csv, .csv.gz or .csv.xz.

        Raises:
            TypeError: ``path`` is neither text nor a path.
            InputError: The suffix is another one, the file cannot be written, or a variable is called ``log_weight``.
        """
        file = arguments.file("path", path)
        check_samples_file(file)
        save(file, self.csv_chunks())

    @property
    def log_z(self) -> float:
        """Natural logarithm of the model's sum given the evidence: see ``log10_z``."""
        return self.log10_z * math.log(10)

    def csv_chunks(self) -> Iterator[str]:
        """Yield the text of a CSV file in chunks."""
        if not self.is_exact:
            self._check_free(LOG_WEIGHT)
        return csv_chunks(self.variables, self.indices, None if self.is_exact else self.log_weights)

    def to_json(self) -> str:
        """Return the samples as one JSON object on one line: ``docs/how-to/samples.md`` describes its keys."""
        return json.dumps(
            {
                "samples": self.count,
                "is_exact": self.is_exact,
                "effective_size": self.effective_size,
                "log10_z": self.log10_z if math.isfinite(self.log10_z) else None,
                "states": {name: states.tolist() for name, states in self.items()},
                "log_weights": [log if math.isfinite(log) else None for log in self.log_weights.tolist()],
            }
        )

    def _check_free(self, name: str) -> None:
        if name in self._columns:
            raise InputError(
                f"a variable is called {name!r}, which is the column of the weights: rename it, or take the states and "
                "log_weights one by one"
            )

    def _figures(self) -> list[tuple[str, str]]:
        kind = "exact" if self.is_exact else f"weighted, effective size about {self.effective_size:,.0f}"
        return [("samples", f"{self.count:,}, {kind}"), ("variables", sample(self._columns, len(self._columns)))]
