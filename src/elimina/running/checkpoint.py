"""Checkpoints: the state of a run in a directory, from which another process can resume."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elimina import system
from elimina.errors import InputError
from elimina.model.model import Model
from elimina.planning.checked_options import CheckedOptions
from elimina.planning.option_table import OPTIONS
from elimina.planning.options import replace
from elimina.planning.packed_steps import Steps
from elimina.planning.plan import Plan
from elimina.problem.preparation import Problem
from elimina.running.call_thread import shielded
from elimina.running.planned_problem import PlannedProblem, PlanRecipe, recipe_of

State = dict[str, Any]
"""State of a run."""

SAVE_SECONDS = 1.0
"""Least seconds between two writes of the state."""

WRITING_SHARE = 0.05
"""Largest share of a run's time for writing its state: with many slices, each write takes long."""

_LOCK_SECONDS, _LOOK_SECONDS = 1.0, 0.02
"""Seconds to wait for a directory in use, because interrupted work may outlast its call; seconds between checks."""

_FILE = "elimina-checkpoint.json"
_MESSAGES = "elimina-messages-"
_VERSION = 3


class Checkpoint:
    """A directory for the state of one run.

    The state is written to a temporary file, synchronised with the disk, and then renamed, so that the last complete
    state survives if the process is killed at any moment.

    Args:
        directory: Path of the directory, which is created if it does not exist.
        memory: Memory limit of the call, which must be the same when the run is resumed. (The limits in the options of
            the run are not compared, because they exclude memory that the call already uses.)

    Raises:
        InputError: The directory is not writable, is in use by another process, or contains a checkpoint that is
            damaged or of another version.

    Attributes:
        state: State of the run to resume; empty for a new one.
    """

    def __init__(self, directory: str | os.PathLike[str], memory: int | str | None = None) -> None:
        self._directory, self._memory = Path(directory), memory
        self._made = False
        self._saved = self._writing_seconds = 0.0
        self._waiting: State | None = None
        # Interrupted work may outlast its call. It may still write or close the checkpoint while the call removes it.
        self._guard = threading.RLock()
        self.state: State = {}
        with self._writing():
            if not self._directory.exists():
                self._directory.mkdir()
                self._made = True
            try:
                self._lock = self._locked()
            except BlockingIOError as error:
                problem = f"another process uses the checkpoint in {directory}; wait for it or end it"
                raise InputError(problem) from error
        try:
            self._contents = self._read()
        except BaseException:
            self.close()
            raise

    def _locked(self) -> int:
        until = time.monotonic() + _LOCK_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(BlockingIOError):
                return system.lock(self._directory)
            time.sleep(_LOOK_SECONDS)
        return system.lock(self._directory)

    @property
    def is_new(self) -> bool:
        """True if no run has stored a state."""
        return not self._contents

    @property
    def choice(self) -> PlanRecipe:
        """Data from which the plan of the run to resume can be made again."""
        return PlanRecipe(*self._contents["choice"])

    def check(self, model: Model, problem: Problem, options: CheckedOptions) -> None:
        """Check that the run to resume has the same problem and options.

        Raises:
            InputError: The checkpoint belongs to another model, task or evidence, or to other options.
        """
        asked = _identity(model, problem, replace(options, memory=self._memory))
        for name, value in asked.items():
            if self._contents["asked"][name] != value:
                shown = f", {self._contents['asked'][name]}, not {value}" if name not in _DIGESTS else ""
                raise InputError(
                    f"the checkpoint in {self._directory} was made for another {name}{shown}: "
                    "go on with the same one, or give another directory"
                )

    def begin(self, model: Model, problem: Problem, planned: PlannedProblem, options: CheckedOptions) -> None:
        """Begin to store the run of a plan, or resume a stored one.

        Raises:
            InputError: The run to resume has another plan, or the directory is not writable.
        """
        digest = _plan_digest(planned.plan)
        if not self._contents:
            asked = _identity(model, problem, replace(options, memory=self._memory))
            self._contents = {"asked": asked, "choice": list(recipe_of(planned)), "plan": digest, "state": {}}
            self._write({})
        elif self._contents["plan"] != digest:
            raise InputError(
                f"the checkpoint in {self._directory} was made with another plan, perhaps by another release of "
                "elimina: remove it to start again"
            )
        self.state = self._contents["state"]

    def save(self, state: State) -> None:
        """Store the state so far; it is written at most once a second, and less often if a write takes long."""
        self._waiting = state
        if time.monotonic() - self._saved > max(SAVE_SECONDS, self._writing_seconds / WRITING_SHARE):
            self.flush()

    @property
    def steps(self) -> State:
        """State of the unfinished slice of a sweep; empty if there is none."""
        steps: State = self._contents["state"].get("steps", {})
        return steps

    def save_steps(self, steps: State) -> None:
        """Write the state of an unfinished slice immediately."""
        self._write({**(self._waiting or self._contents["state"]), "steps": steps})
        self._waiting = None

    def flush(self) -> None:
        """Write the latest state if it has not been written yet."""
        if self._waiting is not None:
            self._write(self._waiting)
            self._waiting = None

    def save_messages(self, number: int, arrays: Iterable[NDArray[Any]]) -> list[Any]:
        """Write arrays to a new file; return its description for ``read_messages``."""
        size = crc = 0
        with self._replacing(f"{_MESSAGES}{number}") as file:
            for array in arrays:
                data = np.ascontiguousarray(array).view(np.uint8).data
                file.write(data)
                size, crc = size + data.nbytes, zlib.crc32(data, crc)
        return [number, size, crc]

    def read_messages(self, saved: Sequence[int]) -> NDArray[np.uint8]:
        """Read a file of messages.

        Raises:
            InputError: The file is missing or damaged.
        """
        number, size, crc = saved
        path = self._directory / f"{_MESSAGES}{number}"
        try:
            data = np.fromfile(path, dtype=np.uint8)
        except OSError as error:
            raise self._damaged(f"{path.name}: {error.strerror}") from error
        if data.nbytes != size or zlib.crc32(data.data) != crc:
            raise self._damaged(path.name)
        return data

    def drop_messages(self, kept: Collection[int]) -> None:
        """Remove the files of messages except those whose numbers are in ``kept``."""
        for path in self._directory.glob(f"{_MESSAGES}*"):
            if path.name not in {f"{_MESSAGES}{number}" for number in kept}:
                path.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the files, and the directory if elimina created it and it is empty; then close the checkpoint."""
        with shielded(), self._guard:
            self.drop_messages(())
            (self._directory / _FILE).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                if self._made or self._contents.get("made"):
                    self._directory.rmdir()
            self.close()

    def close(self) -> None:
        """Release the directory for other processes; remove it if elimina created it and it is empty."""
        with shielded(), self._guard:
            if self._lock < 0:
                return
            if self._made and not self._contents:
                with contextlib.suppress(OSError):
                    self._directory.rmdir()
            os.close(self._lock)
            self._lock = -1

    def _read(self) -> State:
        path = self._directory / _FILE
        try:
            digest, _, payload = path.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}") from error
        if _sha256(payload).hexdigest().encode() != digest:
            raise self._damaged(_FILE)
        contents: State = json.loads(payload)
        if contents["version"] != _VERSION:
            raise InputError(
                f"the checkpoint in {self._directory} is of version {contents['version']}, this release of elimina "
                f"reads {_VERSION}: remove it to start again"
            )
        return contents

    def _damaged(self, name: str) -> InputError:
        return InputError(f"the checkpoint in {self._directory} is damaged ({name}): remove it to start again")

    def _write(self, state: State) -> None:
        started = time.monotonic()
        self._contents = {"version": _VERSION, "made": self._made, **self._contents, "state": state}
        payload = json.dumps(self._contents).encode()
        with self._replacing(_FILE) as file:
            file.write(_sha256(payload).hexdigest().encode() + b"\n" + payload)
        self._saved = time.monotonic()
        self._writing_seconds = self._saved - started

    @contextlib.contextmanager
    def _replacing(self, name: str) -> Iterator[BinaryIO]:
        """Open a file that gets its final name when it is complete on disk."""
        partial = self._directory / f"{name}.part"
        with shielded(), self._guard, self._writing():
            if self._lock < 0:
                raise InputError(f"the checkpoint in {self._directory} is closed, because its call has ended")
            try:
                with open(partial, "wb") as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(partial, self._directory / name)
            finally:
                partial.unlink(missing_ok=True)
            os.fsync(self._lock)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise InputError(f"cannot write the checkpoint in {self._directory}: {error.strerror or error}") from error


_DIGESTS = ("model", "evidence")


def _identity(model: Model, problem: Problem, options: CheckedOptions) -> State:
    """Return the identity of a run; its keys are used in error texts."""
    return {
        "model": _model_digest(model),
        "task": problem.task,
        "evidence": _digest(repr(sorted(problem.fixed.items())), _model_digest(problem.model)),
        **_options_of(options),
    }


def _options_of(options: CheckedOptions) -> State:
    """Return the options that a checkpoint stores; a run resumes only with equal ones."""
    stored = {record.name: getattr(options, record.name) for record in OPTIONS if record.is_of_checkpoint}
    # The numbers of the GPUs are left out, because a GPU may be missing when the run resumes.
    device = "cuda" if options.needs_gpu else options.device
    order = options.order if isinstance(options.order, str) else " ".join(map(str, options.order))
    return {**stored, "device": device, "order": order}


def _sha256(data: bytes = b"") -> Any:
    # Imported on first use, because the import is slow and few calls have a checkpoint.
    import hashlib

    return hashlib.sha256(data)


def _digest(*items: str | bytes) -> str:
    digest = _sha256()
    for item in items:
        data = item.encode() if isinstance(item, str) else item
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return str(digest.hexdigest())


def _model_digest(model: Model) -> str:
    variables = [(v.name, v.size, v.states) for v in model.variables]
    items: list[str | bytes] = [repr((variables, model.sense, model.constant, model.upper_bound, model.children))]
    for table in model.factors:
        items += [repr((table.scope, table.sizes, table.default, table.values.dtype.str)), table.values.tobytes()]
        items += [b"" if table.rows is None else table.rows.tobytes()]
    return _digest(*items)


def _plan_digest(plan: Plan) -> str:
    packed = Steps.packed(plan.steps)
    factors = [(factor.members, factor.scope, factor.offset) for factor in plan.factors]
    fixed = (plan.form.variables, plan.form.levels) if plan.form.variables else None
    rest = (plan.task, plan.semiring, plan.dtype, plan.forbidden, factors, tuple(plan.outputs), plan.arena_cells, fixed)
    return _digest(packed.words.tobytes(), packed.starts.tobytes(), repr(rest))
