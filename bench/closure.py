"""AllDifferent's two ways on a GPU: the residual graph's closure by blocked Warshall, and searches from pivots.

    python bench/closure.py [--sizes 200 500 1000 2000 5000]

The closure (Tardivo et al. 2022, section 3.2): bits in tiles of 64 by 64, three kernels for each tile on the diagonal,
all in one CUDA graph; its time has neither the changes' way to the device nor that of the lost values back. The other
one is a whole call of the solver's device, after a value was taken from a permutation.
"""

from __future__ import annotations

import argparse
import time

import cupy
import numpy as np

from elimina import cp
from elimina.cp.gpu_filtering import accelerate

SOURCE = r"""
typedef unsigned long long u64;
__device__ u64 joined(u64 bits, const u64* rows) {
  u64 result = 0;
  for (; bits; bits &= bits - 1) result |= rows[__ffsll(bits) - 1];
  return result;
}
extern "C" __global__ void diagonal(u64* a, int words, int k) {
  __shared__ u64 rows[64];
  const int i = threadIdx.x;
  rows[i] = a[(64 * k + i) * (size_t)words + k];
  for (int b = 0; b < 64; ++b) {
    __syncthreads();
    if (rows[i] >> b & 1) rows[i] |= rows[b];
  }
  a[(64 * k + i) * (size_t)words + k] = rows[i];
}
extern "C" __global__ void panels(u64* a, int words, int k) {
  __shared__ u64 rows[64];
  const int i = threadIdx.x, t = blockIdx.x;
  if (t == k) return;
  const bool across = blockIdx.y == 0;
  rows[i] = a[(64 * k + i) * (size_t)words + (across ? t : k)];
  __syncthreads();
  u64* const cell = across ? a + (64 * k + i) * (size_t)words + t : a + (64 * t + i) * (size_t)words + k;
  *cell |= joined(across ? a[(64 * k + i) * (size_t)words + k] : *cell, rows);
}
extern "C" __global__ void others(u64* a, int words, int k) {
  __shared__ u64 rows[64];
  const int i = threadIdx.x, column = blockIdx.x, row = blockIdx.y;
  if (column == k || row == k) return;
  rows[i] = a[(64 * k + i) * (size_t)words + column];
  __syncthreads();
  u64* const cells = a + (64 * row + i) * (size_t)words;
  cells[column] |= joined(cells[k], rows);
}
"""


def closure(n: int, rounds: int = 20) -> float:
    """Seconds of the closure of a complete graph without one edge; checked where it is small."""
    words = (n + 63) // 64
    rng = np.random.default_rng(0)
    bits = rng.random((64 * words, 64 * words)) < (2.5 / n if n <= 500 else 1 - 1 / n)
    bits[n:], bits[:, n:] = False, False
    rows = np.packbits(bits, axis=1, bitorder="little").view(np.uint64)
    module = cupy.RawModule(code=SOURCE)
    diagonal, panels, others = map(module.get_function, ("diagonal", "panels", "others"))
    given, matrix = cupy.asarray(rows), cupy.empty_like(cupy.asarray(rows))
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        stream.begin_capture()
        for k in range(words):
            diagonal((1,), (64,), (matrix, words, k))
            panels((words, 2), (64,), (matrix, words, k))
            others((words, words), (64,), (matrix, words, k))
        graph = stream.end_capture()
        times = []
        for _ in range(rounds):
            matrix[...] = given
            stream.synchronize()
            start = time.perf_counter()
            graph.launch(stream)
            stream.synchronize()
            times.append(time.perf_counter() - start)
    if n <= 500:
        check(bits, matrix.get())
    return min(times)


def check(bits: np.ndarray, rows: np.ndarray) -> None:
    reach = bits.astype(np.float32)
    for _ in range(int(np.ceil(np.log2(len(bits))))):
        reach = np.minimum(reach + reach @ reach, 1)
    if not np.array_equal(np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little"), reach > 0):
        raise AssertionError("the closure is wrong")


def searches(n: int, rounds: int = 20) -> float:
    """Seconds of the device's call after a value was taken from a permutation."""
    model = cp.Model()
    model.all_different(model.int_vars(n, 0, n - 1))
    solver, _ = model._build()
    accelerate(solver, "cuda")
    solver.propagate()
    times = []
    for value in range(rounds):
        before = solver.device_calls().seconds
        solver.decide(1, 7 + value, False)
        times.append(solver.device_calls().seconds - before)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 500, 1000, 2000, 5000])
    for n in parser.parse_args().sizes:
        by_closure, by_search = closure(n), searches(n)
        print(
            f"{n} variables: closure {1e3 * by_closure:.3f} ms, a whole call by searches {1e3 * by_search:.3f} ms, "
            f"{by_closure / by_search:.1f} times less"
        )


if __name__ == "__main__":
    main()
