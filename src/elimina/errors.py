"""The exceptions that elimina raises on purpose; each message names the culprit, its values and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def source_text(path: str | Path) -> str:
    """Return the name of an input in messages. The path ``-.uai`` stands for standard input in the UAI format."""
    return "standard input" if str(path).startswith("-.") else str(path)


class EliminaError(Exception):
    """Base of every error that elimina raises on purpose.

    Examples:
        >>> import elimina
        >>> try:
        ...     elimina.read("missing.bif")
        ... except elimina.EliminaError as error:
        ...     print(type(error).__name__, error)
        InputError cannot read missing.bif: No such file or directory
    """


class InputError(EliminaError, ValueError):
    """A model, an option or a piece of evidence that cannot be used as given.

    Examples:
        >>> import elimina
        >>> try:
        ...     elimina.Model.from_arrays({"a": 2}, [(("a",), [1, 2, 3])])
        ... except elimina.InputError as error:
        ...     print(error)
        factor 0 has 3 values for variable 'a', which has 2
    """


class FormatError(InputError):
    r"""A malformed file.

    Args:
        path: The file as the user named it.
        line: The line where reading stopped, from 1; None where lines have no meaning.
        problem: Description of the expected and the actual contents.

    Examples:
        >>> import elimina
        >>> from pathlib import Path
        >>> _ = Path("broken.uai").write_text("MARKOV\n1\ntwo\n")
        >>> try:
        ...     elimina.read("broken.uai")
        ... except elimina.FormatError as error:
        ...     print(error)
        ...     print(error.line)
        broken.uai:3: expected a domain size, found 'two'
        3
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        shown = source_text(path)
        location = shown if line is None else f"{shown}:{line}"
        super().__init__(f"{location}: {problem}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, int | None, str]]:
        """Return the error's parts, from which a process pool recreates the error of a worker."""
        return type(self), (self.path, self.line, self.problem)


class UnsupportedError(InputError):
    """A well-formed input that uses something elimina does not handle.

    Examples:
        >>> import elimina
        >>> costs = elimina.Model.from_arrays({"a": 2, "b": 2}, [(("a", "b"), [[2**54, 0], [0, 2**54]])])
        >>> try:
        ...     next(elimina.iterate_best(costs))
        ... except elimina.UnsupportedError as error:
        ...     print("the costs are too large")
        the costs are too large
    """


class ImpossibleEvidenceError(EliminaError, ValueError):
    """Evidence of probability 0, for which there is no posterior.

    Examples:
        >>> import elimina
        >>> tree = elimina.JunctionTree("examples/pump.bif", evidence={"Power": "out", "Pump": "running"})
        >>> try:
        ...     tree.marginals(["Bearing"])
        ... except elimina.ImpossibleEvidenceError as error:
        ...     print(str(error)[:56])
        the evidence (Power=out, Pump=running) has probability 0
    """


# ``MemoryError`` has its own ``__new__`` and has to be the first base. Otherwise, calling ``__new__`` of this class
# fails, and with it unpickling on clusters.
class MemoryLimitError(MemoryError, EliminaError):
    """A lack of memory: a plan needs more than it may use (nothing was allocated), or the process ran out of memory.

    Examples:
        >>> import elimina
        >>> from elimina.generate import grid_model
        >>> grid = grid_model(20, 4, 0.1)
        >>> try:
        ...     elimina.solve(grid, "count", memory="4MiB", options=elimina.Options(exact=True))
        ... except elimina.MemoryLimitError as error:
        ...     print(str(error)[:14])
        the plan needs
    """


class DeviceError(EliminaError, RuntimeError):
    """A requested device that is missing, unusable or out of memory.

    Examples:
        >>> import elimina
        >>> try:
        ...     elimina.solve("examples/radio.wcsp", device="cuda:4095")
        ... except elimina.DeviceError as error:
        ...     print("no such device")
        no such device
    """


class TimeLimitError(EliminaError, TimeoutError):
    """A time limit that passed before there was any answer or, if ``exact`` is set, before there was an exact one.

    Examples:
        >>> import elimina
        >>> try:
        ...     elimina.solve("examples/pump.bif", "mar", time_limit=1e-9, options=elimina.Options(exact=True))
        ... except elimina.TimeLimitError:
        ...     print("no exact answer in time")
        no exact answer in time
    """


class DcopError(EliminaError, RuntimeError):
    """Agents that could not finish: messages were lost for good, or a crashed agent did not return."""


class ClusterError(EliminaError, RuntimeError):
    """A Dask cluster that cannot be reached or used, or lost all of its workers."""


class InternalError(EliminaError, AssertionError):
    """A self-check that failed: a bug in elimina, never a wrong answer."""
