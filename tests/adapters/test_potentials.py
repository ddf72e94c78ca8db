"""log Z and its gradient: against brute force, PyTorch's gradcheck and JAX's check_grads where these are installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from elimina.adapters.potentials import LogPartition, jax_log_z, torch_log_z
from elimina.errors import InputError


def problem(seed):
    """Sizes, scopes and random logarithms of tables, some scopes of one variable, some repeated."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, 5).tolist()
    scopes = [rng.permutation(5)[: rng.integers(1, 4)].tolist() for _ in range(5)]
    scopes += [[0], scopes[0]]
    return sizes, scopes, [rng.normal(size=[sizes[v] for v in scope]) * 2 for scope in scopes]


def brute(sizes, scopes, tables):
    states = np.array(list(itertools.product(*map(range, sizes))))
    scores = sum(table[tuple(states[:, scope].T)] for scope, table in zip(scopes, tables, strict=True))
    weights = np.exp(scores - scores.max())
    marginals = []
    for scope, table in zip(scopes, tables, strict=True):
        sums = np.zeros_like(table)
        np.add.at(sums, tuple(states[:, scope].T), weights / weights.sum())
        marginals.append(sums)
    return scores.max() + np.log(weights.sum()), marginals


@pytest.mark.parametrize("seed", range(8))
def test_against_brute_force(seed):
    sizes, scopes, tables = problem(seed)
    partition = LogPartition(sizes, scopes)
    for shift in (0.0, 900.0, -900.0):
        shifted = [tables[0] + shift, *tables[1:]]
        log_z, marginals = partition(shifted)
        expected, probabilities = brute(sizes, scopes, shifted)
        assert log_z == pytest.approx(expected)
        for found, wanted in zip(marginals, probabilities, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-10)


class Foreign:
    """An array of another package: it can be read by DLPack alone."""

    def __init__(self, array):
        self.array, self.reads = array, 0

    def __dlpack__(self, **options):
        self.reads += 1
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_foreign_arrays():
    sizes, scopes, tables = problem(1)
    partition = LogPartition(sizes, scopes)
    foreign = [Foreign(table) for table in tables]
    assert partition(foreign)[0] == partition(tables)[0]
    assert [table.reads for table in foreign] == [1] * len(tables)


def test_tensors_are_read_in_place(monkeypatch):
    torch = pytest.importorskip("torch")
    partition = LogPartition([2, 3], [[0, 1]])
    tensor = torch.zeros(2, 3, dtype=torch.float64)
    seen = []
    log_z = torch_log_z(lambda tables: (seen.extend(tables), partition(tables))[1])
    log_z(tensor)
    assert np.shares_memory(seen[0], tensor.numpy())
    assert partition([tensor])[0] == pytest.approx(np.log(6))


def test_errors():
    with pytest.raises(InputError, match="scope 1 is empty"):
        LogPartition([2], [[0], []])
    partition = LogPartition([2, 2], [[0, 1]])
    with pytest.raises(InputError, match=r"table 0 has the shape \(2,\); its scope has \(2, 2\)"):
        partition([np.zeros(2)])
    with pytest.raises(InputError, match="not finite"):
        partition([np.full((2, 2), -np.inf)])


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_torch(seed):
    torch = pytest.importorskip("torch")
    sizes, scopes, tables = problem(seed)
    log_z = torch_log_z(LogPartition(sizes, scopes))
    tensors = [torch.tensor(table, dtype=torch.float64, requires_grad=True) for table in tables]
    assert torch.autograd.gradcheck(log_z, tensors)


@pytest.mark.parametrize("seed", range(4))
def test_gradients_of_jax(seed):
    jax = pytest.importorskip("jax")
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    sizes, scopes, tables = problem(seed)
    log_z = jax_log_z(LogPartition(sizes, scopes))
    check_grads(log_z, tuple(map(jax.numpy.asarray, tables)), order=1, modes=["rev"])
    assert float(jax.jit(log_z)(*tables)) == pytest.approx(brute(sizes, scopes, tables)[0])
