"""Every kernel compiles for AMD's GPUs, too; none has run on one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.kernels import hip, nvrtc

from elimina.backends.cuda import kernels
from elimina.planning.key_layout import DTYPES
from elimina.problem.semirings import SEMIRINGS

pytestmark = pytest.mark.skipif(not hip.has_hipcc(), reason="there is no hipcc")

KINDS = [(name, dtype) for name, semiring in SEMIRINGS.items() for dtype in semiring.dtypes]
WAVES = [f"elimina::waves_{name}" for name in ("beliefs", "messages", "sums")]


@pytest.mark.parametrize(("semiring", "dtype"), KINDS)
def test_each_semiring_and_dtype(semiring: str, dtype: str, tmp_path: Path) -> None:
    kind = semiring, np.dtype(dtype)
    names = [
        *(kernels.forest_kernel(*kind, tree) for tree in (True, False)),
        *(nvrtc.matching_kernels(semiring, dtype) if SEMIRINGS[semiring].is_matched else ()),
        kernels.decode_kernel(*kind),
        *nvrtc.tile_kernels(*kind),
        *nvrtc.product_kernels(*kind),
        *nvrtc.faces_kernels(semiring, dtype),
        *(nvrtc.rows_kernels(semiring, dtype, 2) if dtype in DTYPES else ()),
    ]
    assert hip.check_names(names, tmp_path) == ""


def test_a_faulty_kernel_is_refused(tmp_path: Path) -> None:
    assert "error: " in hip.check_names(["elimina::decode<int>"], tmp_path)


def test_machine_code(tmp_path: Path) -> None:
    """A kernel of each file."""
    names = [
        kernels.tile_kernel("min-sum", np.dtype(np.int16), 1, True, False).name,
        kernels.product_kernel("sum-product", np.dtype(np.float64), 16, True, 0).name,
        *nvrtc.faces_kernels("sum-product", "float32"),
        kernels.forest_kernel("min-sum", np.dtype(np.int32), False),
        kernels.matching_kernel("min-sum", np.dtype(np.int16), 3, True).name,
        kernels.decode_kernel("sum-product", np.dtype(np.float64)),
        kernels.decode_buckets_kernel(np.dtype(np.float64)),
        kernels.scale_kernel("sum-product", np.dtype(np.float64)),
        kernels.place_kernel(np.dtype("int16"), np.dtype("int32"), True),
        nvrtc.rows_kernels("min-sum", "int32", 2)[0],
        kernels.DIVIDE,
        *WAVES,
    ]
    assert len(hip.assembled_kernels(names, tmp_path)) >= len(names)
