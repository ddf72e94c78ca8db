"""The exceptions that elimina raises on purpose; each message names the culprit, its values and what to do."""

from __future__ import annotations


class EliminaError(Exception):
    """Base of every error that elimina raises on purpose."""


class InputError(EliminaError, ValueError):
    """A model, an option or a piece of evidence that cannot be used as given."""


class FormatError(InputError):
    """A malformed file.

    Args:
        path: The file as the user named it.
        line: The line where reading stopped, from 1; None where lines have no meaning.
        problem: Description of the expected and the actual contents.
    """

    def __init__(self, path: str, line: int | None, problem: str) -> None:
        self.path, self.line, self.problem = path, line, problem
        where = path if line is None else f"{path}:{line}"
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, int | None, str]]:
        """Make the error again from its parts, as process pools do with what a worker raises."""
        return type(self), (self.path, self.line, self.problem)


class UnsupportedError(InputError):
    """A well-formed input that uses something elimina does not handle."""


class ImpossibleEvidenceError(EliminaError, ValueError):
    """The evidence has probability 0, so there is no posterior."""


# Clusters make errors again by the first base, which has to be the one with a memory layout of its own.
class MemoryLimitError(MemoryError, EliminaError):
    """A plan needs more memory than it may use, and nothing was allocated; or the process ran out of memory."""


class DeviceError(EliminaError, RuntimeError):
    """The asked-for device is missing, unusable or out of memory."""


class TimeLimitError(EliminaError, TimeoutError):
    """The time limit passed before the answer was known."""


class DcopError(EliminaError, RuntimeError):
    """Agents could not finish: messages were lost for good, or one of them did not come back."""


class ClusterError(EliminaError, RuntimeError):
    """A Dask cluster cannot be reached or used, or lost all of its workers."""


class InternalError(EliminaError, AssertionError):
    """A self-check failed: a bug in elimina, never a wrong answer."""
