"""CUDA kernels on single buckets, against the device's limits, GpuBE's kernels, torch.compile and jax.jit, in one run.

python bench/kernels.py [--dtypes int32,float32,int16,float64] [--peers gpube,torch_compile,jax_jit]
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, str(Path(__file__).parent))

import kernel_bench
from baselines import peers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtypes", default="int32,float32,int16,float64")
    parser.add_argument("--peers", default="gpube,torch_compile,jax_jit")
    arguments = parser.parse_args()
    dtypes = arguments.dtypes.split(",")

    def report(line: str) -> None:
        print(line, flush=True)

    bench = kernel_bench.report_kernels(report, dtypes)
    bucket = kernel_bench.MEMORY_BOUND["10^9"]
    for dtype in ("int32", "float32"):
        own, _ = bench.bucket(bucket, dtype)
        found = []
        for name in filter(None, arguments.peers.split(",")):
            seconds, out = getattr(peers, name)(bench, bucket, dtype)
            found.append(int(out[:2].astype("int64").sum()))
            report(
                f"10^9 {dtype} {name}: {1e3 * seconds:.3f} ms, "
                f"elimina {1e3 * own:.3f} ms, {seconds / own:.1f} times faster"
            )
            del out
            gc.collect()
            bench.cupy.get_default_memory_pool().free_all_blocks()
        assert len(set(found)) <= 1, f"peers disagree: {found}"


if __name__ == "__main__":
    main()
