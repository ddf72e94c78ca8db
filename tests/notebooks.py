"""Notebooks of the examples: their cells run in turn, and their outputs beside those that are stored.

``python -m tests.notebooks`` runs them, and stores the outputs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))

Output = dict[str, Any]


def outputs_of(notebook: dict[str, Any]) -> list[list[Output]]:
    """Run the cells with code in the folder of the project, and return the outputs of each, as Jupyter stores them."""
    names: dict[str, Any] = {"__name__": "notebook"}
    with contextlib.chdir(ROOT):
        return [_run("".join(cell["source"]), names) for cell in code_cells(notebook)]


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the cells with code."""
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _run(source: str, names: dict[str, Any]) -> list[Output]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "notebook", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "notebook", "eval"), names)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines_of(printed.getvalue())})
    if value is not None:
        data = {"text/plain": lines_of(repr(value))}
        if hasattr(value, "_repr_mimebundle_"):
            data.update({kind: lines_of(text) for kind, text in value._repr_mimebundle_().items()})
        elif hasattr(value, "_repr_svg_"):
            data["image/svg+xml"] = lines_of(value._repr_svg_())
        elif hasattr(value, "_repr_html_"):
            data["text/html"] = lines_of(value._repr_html_())
        outputs.append({"data": data, "execution_count": None, "metadata": {}, "output_type": "execute_result"})
    return outputs


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, as notebooks store them."""
    return text.splitlines(keepends=True)


def main() -> None:
    """Store the outputs of all notebooks."""
    os.environ["ELIMINA_CALIBRATION"] = ""
    for path in NOTEBOOKS:
        notebook = json.loads(path.read_text())
        for number, (cell, outputs) in enumerate(zip(code_cells(notebook), outputs_of(notebook), strict=True), 1):
            cell["execution_count"], cell["outputs"] = number, outputs
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
