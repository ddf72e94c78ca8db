"""The same bucket by GpuBE's kernels, torch.compile and jax.jit; each returns seconds and an output to check."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from kernel_bench import Bench, Bucket


def tables(bench: Bench, bucket: Bucket, dtype: str):
    """Device tables, axis 0 the eliminated variable, with values 0 ... 99."""
    arrays = []
    for scope in bucket.scopes:
        array = bench.cupy.empty((bucket.domain, *(bucket.sizes[v - 1] for v in scope)), dtype)
        bench.fill(array)
        arrays.append(array)
    return arrays


def expanded(bucket: Bucket, arrays):
    """Views with every axis of the bucket, of size 1 where a table lacks it."""
    return [
        array.reshape(bucket.domain, *(size if v in scope else 1 for v, size in enumerate(bucket.sizes, 1)))
        for scope, array in zip(bucket.scopes, arrays, strict=True)
    ]


def gpube(bench: Bench, bucket: Bucket, dtype: str):
    """Thread-per-row kernels that store the joint table (variable 0 last there and in the tables)."""
    cupy = bench.cupy
    last = [cupy.ascontiguousarray(cupy.moveaxis(array, 0, -1)) for array in tables(bench, bucket, dtype)]
    cell = {"int32": "int", "float32": "float"}[dtype]
    sizes = [*bucket.sizes, bucket.domain]
    div = [math.prod(sizes[axis + 1 :]) for axis in range(len(sizes))]
    record = np.dtype(
        [("values", "u8"), ("axes", "i4"), ("mul", "i4", 12), ("div", "i8", 12), ("mod", "i4", 12)], align=True
    )
    packed = np.zeros(len(last), record)
    for row, scope, array in zip(packed, bucket.scopes, last, strict=True):
        axes = [*(v - 1 for v in scope), len(sizes) - 1]
        row["values"], row["axes"] = array.data.ptr, len(axes)
        row["mul"][: len(axes)] = [math.prod(array.shape[n + 1 :]) for n in range(len(axes))]
        row["div"][: len(axes)] = [div[axis] for axis in axes]
        row["mod"][: len(axes)] = [sizes[axis] for axis in axes]
    aggregate, eliminate = f"aggregate<{cell}, {len(last)}>", f"eliminate<{cell}>"
    source = Path(__file__).with_name("gpube.cu").read_text()
    module = cupy.RawModule(code=source, options=("--std=c++20",), name_expressions=[aggregate, eliminate])
    cells = math.prod(bucket.sizes)
    joint, out = cupy.empty(bucket.rows, dtype), cupy.empty(cells, dtype)
    described = cupy.asarray(packed.view(np.uint8))
    first, second = module.get_function(aggregate), module.get_function(eliminate)

    def call():
        first((-(-bucket.rows // 256),), (256,), (joint, np.int64(bucket.rows), described))
        second((-(-cells // 256),), (256,), (out, joint, np.int64(cells), np.int32(bucket.domain)))

    return bench.seconds(call, 5), out.reshape(bucket.sizes)


def _timed(call: Callable[[], object], finish: Callable[[], object], repeats: int = 10) -> float:
    for _ in range(3):
        call()
    finish()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        call()
        finish()
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def torch_compile(bench: Bench, bucket: Bucket, dtype: str):
    """torch.compile of the sum of broadcast tables and the minimum over axis 0."""
    import torch

    parts = [torch.from_dlpack(array) for array in expanded(bucket, tables(bench, bucket, dtype))]

    @torch.compile
    def eliminate(*parts):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total.amin(0)

    out = eliminate(*parts)
    return _timed(lambda: eliminate(*parts), torch.cuda.synchronize), bench.cupy.from_dlpack(out)


def jax_jit(bench: Bench, bucket: Bucket, dtype: str):
    """jax.jit of the same."""
    import jax

    parts = [jax.dlpack.from_dlpack(array) for array in expanded(bucket, tables(bench, bucket, dtype))]

    @jax.jit
    def eliminate(*parts):
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total.min(0)

    last = [eliminate(*parts)]

    def call():
        last[0] = eliminate(*parts)

    return _timed(call, lambda: last[0].block_until_ready()), bench.cupy.from_dlpack(last[0])
