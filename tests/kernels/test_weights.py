"""The semiring of weighted mini-buckets, and its levels, on the host: the header that core and kernels share."""

from __future__ import annotations

import math
import shutil
import subprocess

import numpy as np
import pytest

from elimina.backends.cuda import compilation

WEIGHTS = (1.0, 0.5, 0.25, 0.0, 1.3, -0.3, -2.0)
INFINITE = -math.inf
ROWS = (
    (0.5,),
    (0.5, 0.5),
    (-1e300, 3.0),
    (-700.0, 700.0, 699.0),
    (INFINITE,),
    (INFINITE, INFINITE),
    (INFINITE, 1.5, -2.5),
    (1.5, INFINITE, INFINITE, -2.5),
)
PROGRAM = """
#include <cstdio>
#include <initializer_list>
#include <elimina/matching.hpp>
#include <elimina/program.hpp>
using namespace elimina;
template <class T> void row(T weight, std::initializer_list<T> values) {
  const auto ring = weighed(LogSumExp<T>{}, weight);
  auto sum = ring.start(), left = ring.start(), right = ring.start();
  bool turn = false;
  for (const T value : values) ring.add(sum, value), ring.add((turn = !turn) ? left : right, value);
  ring.add(left, right);
  ring.add(left, ring.start());
  std::printf("%.17g %.17g %.17g\\n", double(ring.finish(sum)), double(ring.finish(left)),
              double(matched_cell(ring, T(6), T(0), *values.begin(), 0, int(values.size()))));
}
int main() {
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the sum, the sum by halves, and the level of the first value, for each weight and row."""
    gxx = shutil.which("g++") or shutil.which("c++")
    if gxx is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("weights")
    source, binary = folder / "weights.cpp", folder / "weights"
    infinity = "-std::numeric_limits<double>::infinity()"
    calls = [
        f"row<double>({w!r}, {{{', '.join(infinity if v == INFINITE else repr(v) for v in row)}}});"
        for w in WEIGHTS
        for row in ROWS
    ]
    source.write_text(PROGRAM + "\n".join(calls) + "\n}\n")
    flags = ["-std=c++20", "-Wall", "-Wextra", "-Werror", f"-I{compilation.INCLUDE}"]
    done = subprocess.run([gxx, *flags, "-o", str(binary), str(source)], capture_output=True, text=True)
    assert done.stderr == ""
    lines = subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout.split("\n")
    return np.array([[float(word) for word in line.split()] for line in lines if line]).reshape(len(WEIGHTS), -1, 3)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_sums_of_powers(results, weight):
    for row, (found, merged, _) in zip(ROWS, results[WEIGHTS.index(weight)], strict=True):
        if weight == 0:
            expected = max(row)
        else:
            with np.errstate(over="ignore"):
                expected = weight * np.logaddexp.reduce(np.array(row) / weight)
        assert found == pytest.approx(expected, rel=1e-14, abs=1e-14)
        assert merged == pytest.approx(expected, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_levels_are_shares_of_the_sum(results, weight):
    for row, (_, _, level) in zip(ROWS, results[WEIGHTS.index(weight)], strict=True):
        assert level == weight * 6 - row[0]
