#!/usr/bin/env bash
# Check the core with clang and all warnings as errors, without making objects: all files of core.
# Usage: .ci/clang.sh [PYTHON]; the interpreter has NumPy's and nanobind's headers.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
clang=${CLANG:-clang++}
read -r headers nanobind < <("$python" -c 'import sysconfig, nanobind; print(sysconfig.get_paths()["include"], nanobind.include_dir())')
flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-missing-braces -Icore -Isrc/elimina/include -isystem "$headers" -isystem "$nanobind")
sources() { find core -name '*.cpp' "$@" | sort; }
check() { printf '%s\0' "${@:2}" | xargs -0 -P "${JOBS:-2}" -I{} bash -c '"$@" || { echo "failed: $*" >&2; exit 255; }' _ "$clang" "${flags[@]}" $1 {}; }

mapfile -t plain < <(sources ! -path core/exec/dense/isa.cpp ! -path 'core/launcher/*')
check "-DELIMINA_ISA=baseline" core/exec/dense/isa.cpp
check "-DELIMINA_MODULE=\"elimina.cli\" -DELIMINA_PYTHON=\"python3\"" core/launcher/launcher.cpp
check "" "${plain[@]}"
check "-DELIMINA_PORTABLE" core/exec/sparse/words.cpp core/search/cache.cpp
echo "clang takes all files of core"
