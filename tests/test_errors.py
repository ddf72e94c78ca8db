"""Exceptions."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from elimina import FormatError, InputError, errors


@pytest.mark.parametrize("with_tracebacks", [False, True])
def test_process_pools_hand_on_what_a_worker_raises(with_tracebacks):
    """An exception that cannot be pickled there and back breaks a pool, or leaves its caller waiting."""
    if with_tracebacks:
        # Dask's workers do so, and nothing takes it back.
        pytest.importorskip("tblib.pickling_support").install()
    found = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.EliminaError)]
    raised = [FormatError("a.uai", 3, "expected a number") if kind is FormatError else kind("why") for kind in found]
    assert len(raised) > 9
    for error in raised:
        for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
    with pytest.raises(InputError, match=r"^a\.uai:3: expected a number$"):
        raise pickle.loads(pickle.dumps(FormatError("a.uai", 3, "expected a number")))
