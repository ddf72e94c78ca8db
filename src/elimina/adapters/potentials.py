"""log Z, the logarithm of the partition function, as a differentiable function of the tables, for PyTorch and JAX.

The derivative of log Z with respect to the logarithm of a cell is the probability of the cell's assignment. Therefore,
an auxiliary variable represents each table of several variables. Its states are the table's cells, and its posterior is
the gradient. The junction tree is compiled once, and each call passes the tables to it as likelihoods. Tables on a CUDA
device stay there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elimina.errors import ImpossibleEvidenceError, InputError
from elimina.methods.junction_tree import JunctionTree
from elimina.model.labels import without_labels
from elimina.model.model import Model
from elimina.model.table import Table, unmasked
from elimina.model.variable import Variable
from elimina.planning.machine import KEPT_TREE_RUNS
from elimina.planning.option_checks import check_options
from elimina.planning.options import Options
from elimina.problem.preparation import prepare, with_units
from elimina.running.advice import check_kept
from elimina.running.plan_choice import plan_problem
from elimina.running.propagator import Resident
from elimina.system import import_package

Array = NDArray[np.float64]

_NOTHING = (
    "no assignment is allowed: every product of the tables is 0; a value counts as 0 if its logarithm lies 745 or more "
    "below the largest one of its table, because float64 holds no smaller number"
)

_CUDA = 2
"""DLPack's number for the memory of CUDA devices."""


class LogPartition:
    """Function that computes log Z of tables over fixed scopes, and the marginals of all tables.

    Args:
        sizes: Number of states of each variable.
        scopes: Variables of each table, by index.
        device: ``cpu``, ``cuda``, ``cuda:1``, or ``auto``.
        memory: Memory limit: bytes, or text such as ``8GiB``; None for what is free.

    Raises:
        InputError: A scope is empty, names a variable that does not exist, or names a variable twice.
        MemoryLimitError: The junction tree does not fit.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        scopes: Sequence[Sequence[int]],
        *,
        device: str = "auto",
        memory: int | str | None = None,
    ) -> None:
        unknown = next((v for scope in scopes for v in scope if not 0 <= v < len(sizes)), None)
        if unknown is not None:
            raise InputError(f"a scope names the variable {unknown}; indices run from 0 to {len(sizes) - 1}")
        self.shapes = [tuple(sizes[v] for v in scope) for scope in scopes]
        self._holders: list[int] = []
        variables = [Variable(f"x{v}", size) for v, size in enumerate(sizes)]
        links = []
        for number, (scope, shape) in enumerate(zip(scopes, self.shapes, strict=True)):
            if not scope:
                raise InputError(f"scope {number} is empty; add its number to the result")
            if len(scope) == 1:
                self._holders.append(scope[0])
                continue
            holder = len(variables)
            self._holders.append(holder)
            variables.append(Variable(f"f{number}", math.prod(shape)))
            states = np.indices(shape).reshape(len(scope), -1)
            for v, axis_states in zip(scope, states, strict=True):
                links.append(Table([holder, v], (axis_states[:, None] == np.arange(sizes[v])).astype(np.float64)))
        self._names = [v.name for v in variables]
        self._device, self._memory = device, memory
        self._residents: dict[str, Resident] = {}
        self._model = Model(variables, links, sense="probability")
        # The gradient is that of the exact log Z, so an estimate of log Z would not match it.
        self._tree = JunctionTree(self._model, device=device, memory=memory, options=Options(exact=True))

    def __call__(self, tables: Sequence[Array]) -> tuple[float, list[Array]]:
        """Return log Z of tables of logarithms, and the marginals of each table's scope.

        Args:
            tables: Natural logarithms of the values, an array for each scope; minus infinity forbids. Arrays of other
                packages in the host's memory are read by DLPack, without a copy if they hold float64.

        Raises:
            InputError: A table has another shape, or forbids everything.
            ImpossibleEvidenceError: No assignment is allowed.
        """
        logs: dict[int, Array] = {}
        for number, (holder, shape, table) in enumerate(zip(self._holders, self.shapes, tables, strict=True)):
            is_foreign = hasattr(table, "__dlpack__") and not hasattr(table, "__array__")
            what = f"the logarithms of table {number}"
            array = np.from_dlpack(table) if is_foreign else without_labels(what, table)
            values = unmasked(what, array)
            if values.dtype.kind not in "biuf":
                raise InputError(f"{what} are not numbers, but {values.dtype}: convert them, by float for instance")
            values = values.astype(np.float64, copy=False)
            _check_shape(number, values.shape, shape)
            logs[holder] = logs[holder] + values.ravel() if holder in logs else values.ravel()
        peaks = {holder: float(values.max()) for holder, values in logs.items()}
        if not all(map(math.isfinite, peaks.values())):
            raise InputError("a table's largest logarithm is not finite, so the sum is 0 or unknown")
        with self._tree.lock:
            self._tree.set_evidence({holder: np.exp(values - peaks[holder]) for holder, values in logs.items()})
            if self._tree.log_evidence == -math.inf:
                raise ImpossibleEvidenceError(_NOTHING)
            marginals = self._tree.marginals(list(logs))
            log_z = self._tree.log_evidence + math.fsum(peaks.values())
        pairs = zip(self._holders, self.shapes, strict=True)
        return log_z, [marginals[self._names[holder]].reshape(shape) for holder, shape in pairs]

    def device_of(self, tables: Sequence[Any]) -> str | None:
        """Return the name of the CUDA device that holds all tables; None if there is none, or its use is not allowed.

        Args:
            tables: Arrays of any package with DLPack.
        """
        devices = {tuple(map(int, table.__dlpack_device__())) for table in tables}
        kind, number = devices.pop() if len(devices) == 1 else (0, 0)
        allowed = ("auto", f"cuda:{number}", *(["cuda"] if number == 0 else []))
        return f"cuda:{number}" if kind == _CUDA and self._device in allowed else None

    def on_device(
        self, device: str, tables: Sequence[Any], join: Callable[[list[Any]], Any]
    ) -> tuple[float, list[Any]]:
        """Compute as in a call, with tables that stay on their device; only log Z comes to the host.

        Args:
            device: See ``device_of``.
            tables: Tables of logarithms, as in a call of ``LogPartition``.
            join: Function that joins arrays of one axis, on the device.

        Returns:
            log Z, and the marginals: float64 arrays of CuPy (of NumPy on the CPU).

        Raises:
            DeviceError: The device cannot be used, or failed.
            ImpossibleEvidenceError: No assignment is allowed.
            InputError: A table has another shape, or holds NaN or plus infinity.
            MemoryLimitError: The propagation does not fit the device.
        """
        for number, (shape, table) in enumerate(zip(self.shapes, tables, strict=True)):
            _check_shape(number, tuple(table.shape), shape)
        if device not in self._residents:
            options = check_options(Options(device=device, memory=self._memory, tables="dense"))
            kept_plan = plan_problem(prepare(with_units(self._model), "mar", {}), options, runs=KEPT_TREE_RUNS)
            check_kept(kept_plan.plan, options)
            self._residents[device] = Resident(kept_plan, self._holders)
        log_z, shares = self._residents[device](join([table.reshape(-1) for table in tables]))
        if log_z == -math.inf:
            raise ImpossibleEvidenceError(_NOTHING)
        ends = itertools.accumulate(map(math.prod, self.shapes), initial=0)
        spans = itertools.starmap(slice, itertools.pairwise(ends))
        return log_z, [shares[span].reshape(shape) for span, shape in zip(spans, self.shapes, strict=True)]


def _check_shape(number: int, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    if shape != expected:
        raise InputError(f"table {number} has the shape {shape}; its scope has {expected}")


def torch_log_z(partition: LogPartition) -> Callable[..., Any]:
    """Return log Z as a differentiable function of PyTorch: tensors of logarithms, one for each scope -> a scalar.

    Raises:
        InputError: PyTorch is not installed.
    """
    torch = import_package("torch", "torch")

    class LogZ(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """log Z, with the marginals as its gradient."""

        @staticmethod
        def forward(context: Any, *tables: Any) -> Any:
            """Return log Z."""
            first, detached = tables[0], [table.detach() for table in tables]
            device = partition.device_of(detached)
            if device is None:
                log_z, marginals = partition([table.cpu().numpy() for table in detached])
            else:
                log_z, marginals = partition.on_device(device, detached, torch.cat)
            gradients = [torch.as_tensor(p) if device is None else torch.from_dlpack(p) for p in marginals]
            context.save_for_backward(*(p.to(table) for p, table in zip(gradients, tables, strict=True)))
            return torch.tensor(log_z, dtype=first.dtype, device=first.device)

        @staticmethod
        def backward(context: Any, outer: Any) -> Any:
            """Return the gradients with respect to the tables."""
            return tuple(outer * marginals for marginals in context.saved_tensors)

    return lambda *tables: LogZ.apply(*tables)


def jax_log_z(partition: LogPartition) -> Callable[..., Any]:
    """Return log Z as a differentiable function of JAX: arrays of logarithms, one for each scope -> a scalar.

    Raises:
        InputError: JAX is not installed.
    """
    jax = import_package("jax", "jax")

    def both(*tables: Any) -> Any:
        kind = tables[0].dtype
        # While JAX compiles a function, its arguments have no values and no device yet.
        is_traced = any(isinstance(table, jax.core.Tracer) for table in tables)
        device = None if is_traced else partition.device_of(tables)
        if device is not None:
            log_z, marginals = partition.on_device(device, tables, jax.numpy.concatenate)
            function = [jax.numpy.from_dlpack(p.astype(kind)) for p in marginals]
            return [jax.device_put(np.asarray(log_z, kind), tables[0].device), function]
        shapes = [jax.ShapeDtypeStruct((), kind), [jax.ShapeDtypeStruct(shape, kind) for shape in partition.shapes]]

        def compute(*arrays: Any) -> Any:
            log_z, marginals = partition([np.asarray(table) for table in arrays])
            return [np.asarray(log_z, kind), [p.astype(kind) for p in marginals]]

        return jax.pure_callback(compute, shapes, *tables)

    log_z = jax.custom_vjp(lambda *tables: both(*tables)[0])

    def forward(*tables: Any) -> Any:
        value, marginals = both(*tables)
        return value, marginals

    log_z.defvjp(forward, lambda marginals, outer: tuple(outer * p for p in marginals))
    function: Callable[..., Any] = log_z
    return function
