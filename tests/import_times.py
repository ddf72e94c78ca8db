"""Processor time that each import inside a function keeps out of start-up: ``python -m tests.import_times``.

It is measured in a process that has imported the importer alone, the least of some runs.
"""

from __future__ import annotations

import subprocess
import sys

from tests.imports import imports, library_imports

REPEATS = 4

MEASURE = """
import sys, time
from importlib import import_module
import_module(sys.argv[1])
begun = time.process_time()
import_module(sys.argv[2])
print(1000 * (time.process_time() - begun))
"""


def milliseconds(importer: str, imported: str) -> float:
    """Return the processor time in milliseconds that an import adds to its importer."""
    command = [sys.executable, "-c", MEASURE, importer, imported]
    return min(float(subprocess.check_output(command, text=True)) for _ in range(REPEATS))


def main() -> None:
    """Print a line for each import inside a function."""
    inside = [edge for edge in imports() if edge.is_inside_function]
    for importer, imported in sorted({(edge.importer, edge.imported) for edge in [*inside, *library_imports()]}):
        print(f'    "{importer} -> {imported}": {milliseconds(importer, imported):.1f},', flush=True)


if __name__ == "__main__":
    main()
