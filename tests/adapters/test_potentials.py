"""log Z and its gradient: against brute force, PyTorch's gradcheck and JAX's check_grads where these are installed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from elimina.adapters.potentials import LogPartition, jax_log_z, torch_log_z
from elimina.errors import ImpossibleEvidenceError, InputError


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


@pytest.mark.parametrize("seed", range(8))
def test_weights_that_stay_on_a_device(seed):
    """NumPy's arrays stand for those of a GPU."""
    sizes, scopes, tables = problem(seed)
    partition = LogPartition(sizes, scopes)
    for shift in (0.0, 900.0, -900.0):
        shifted = [tables[0] + shift, *tables[1:]]
        log_z, marginals = partition.on_device("cpu", shifted, np.concatenate)
        expected, probabilities = brute(sizes, scopes, shifted)
        assert log_z == pytest.approx(expected)
        for found, wanted in zip(marginals, probabilities, strict=True):
            np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_large_tables_that_stay_on_a_device():
    rng = np.random.default_rng(0)
    sizes, scopes = [20, 15, 4], [[0, 1], [1], [1, 2]]
    tables = [rng.normal(size=[sizes[v] for v in scope]) for scope in scopes]
    log_z, marginals = LogPartition(sizes, scopes).on_device("cpu", tables, np.concatenate)
    expected, probabilities = brute(sizes, scopes, tables)
    assert log_z == pytest.approx(expected)
    for found, wanted in zip(marginals, probabilities, strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-10)


def test_errors_of_weights_that_stay_on_a_device():
    partition = LogPartition([2, 2], [[0, 1], [0]])
    with pytest.raises(InputError, match=r"table 0 has the shape \(2,\); its scope has \(2, 2\)"):
        partition.on_device("cpu", [np.zeros(2), np.zeros(2)], np.concatenate)
    with pytest.raises(InputError, match="NaN or plus infinity"):
        partition.on_device("cpu", [np.zeros((2, 2)), np.array([0, np.nan])], np.concatenate)
    with pytest.raises(ImpossibleEvidenceError, match="no assignment is allowed"):
        partition.on_device("cpu", [np.zeros((2, 2)), np.full(2, -np.inf)], np.concatenate)
    log_z, marginals = partition.on_device("cpu", [np.zeros((2, 2)), np.array([0, -np.inf])], np.concatenate)
    assert log_z == pytest.approx(np.log(2))
    np.testing.assert_allclose(marginals[1], [1, 0])


def test_which_device_computes():
    class On:
        def __init__(self, *where):
            self.where = where

        def __dlpack_device__(self):
            return self.where

    devices = {"auto": ["cuda:0", "cuda:1"], "cuda": ["cuda:0", None], "cuda:1": [None, "cuda:1"], "cpu": [None, None]}
    for device, wanted in devices.items():
        partition = LogPartition([2], [[0]])
        partition._device = device
        assert [partition.device_of([On(2, n), On(2, n)]) for n in (0, 1)] == wanted
    assert LogPartition([2], [[0]]).device_of([On(1, 0)]) is None
    assert LogPartition([2], [[0]]).device_of([On(2, 0), On(2, 1)]) is None


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(4))
def test_tensors_on_a_gpu_stay_there(seed, monkeypatch):
    torch = pytest.importorskip("torch")
    sizes, scopes, tables = problem(seed)
    log_z = torch_log_z(LogPartition(sizes, scopes))
    expected, probabilities = brute(sizes, scopes, tables)
    for kind, accuracy in ((torch.float64, 1e-10), (torch.float32, 1e-5)):
        tensors = [torch.tensor(table, dtype=kind, device="cuda", requires_grad=True) for table in tables]
        with monkeypatch.context() as patch:
            patch.setattr(torch.Tensor, "cpu", None)
            patch.setattr(torch.Tensor, "numpy", None)
            found = log_z(*tensors)
            found.backward()
        assert found.is_cuda
        assert found.dtype == kind
        assert found.item() == pytest.approx(expected, rel=accuracy)
        for tensor, wanted in zip(tensors, probabilities, strict=True):
            assert tensor.grad.is_cuda
            np.testing.assert_allclose(tensor.grad.cpu().numpy(), wanted, atol=accuracy)
    tensors = [torch.tensor(table, dtype=torch.float64, device="cuda", requires_grad=True) for table in tables]
    assert torch.autograd.gradcheck(log_z, tensors)


@pytest.mark.gpu
@pytest.mark.parametrize("seed", range(2))
def test_arrays_of_jax_on_a_gpu_stay_there(seed, monkeypatch):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    jax.config.update("jax_enable_x64", True)
    sizes, scopes, tables = problem(seed)
    partition = LogPartition(sizes, scopes)
    log_z = jax_log_z(partition)
    expected, probabilities = brute(sizes, scopes, tables)
    arrays = tuple(map(jax.numpy.asarray, tables))
    with monkeypatch.context() as patch:
        patch.setattr(LogPartition, "__call__", None)
        value, gradients = jax.value_and_grad(log_z, argnums=range(len(arrays)))(*arrays)
    assert float(value) == pytest.approx(expected)
    for found, wanted in zip(gradients, probabilities, strict=True):
        assert found.devices() == arrays[0].devices()
        np.testing.assert_allclose(found, wanted, atol=1e-10)
    assert float(jax.jit(log_z)(*arrays)) == pytest.approx(expected)


def test_errors():
    with pytest.raises(InputError, match="scope 1 is empty"):
        LogPartition([2], [[0], []])
    partition = LogPartition([2, 2], [[0, 1]])
    with pytest.raises(InputError, match=r"table 0 has the shape \(2,\); its scope has \(2, 2\)"):
        partition([np.zeros(2)])
    with pytest.raises(InputError, match="not finite"):
        partition([np.full((2, 2), -np.inf)])
    partition = LogPartition([2, 2, 2], [[0, 1], [1, 2]])
    with pytest.raises(
        ImpossibleEvidenceError, match="every product of the tables is 0; a value counts as 0 if its logarithm"
    ):
        partition([np.array([[-5000.0, 3000.0], [0.0, -1e4]])] * 2)


def test_lists():
    log_z, marginals = LogPartition([2, 2], [[0, 1]])([[[0, 0], [0, 0]]])
    assert log_z == pytest.approx(np.log(4))
    np.testing.assert_allclose(marginals[0], 0.25)


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
