"""The pictures of the documentation in ``docs/images``, without the charts of benchmarks.

    python bench/pictures.py [FOLDER]

Needs matplotlib, and Chromium for the pictures of reports. The graph of 1,000 variables is a random Bayesian network.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import elimina

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
WINDOW = 900  # width of a page in pixels


def network(count: int, seed: int) -> elimina.Model:
    """Return a random network whose parents are near in its order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 4, count).tolist()
    tables = []
    for child, size in enumerate(sizes):
        near = np.arange(max(0, child - 60), child)
        parents = rng.choice(near, min(child, int(rng.choice([1, 1, 2]))), replace=False).tolist()
        values = rng.dirichlet(np.full(size, 0.5), [sizes[v] for v in parents])
        tables.append(elimina.Table([*parents, child], values))
    variables = [elimina.Variable(f"x{v}", size) for v, size in enumerate(sizes)]
    return elimina.Model(variables, tables, sense="probability", children=range(count))


def photograph(page: Path, target: Path, height: int, section: str = "") -> None:
    """Save the top of a page, or one of its sections alone, as a picture of 256 colours."""
    if section:
        hidden = f"header, nav, footer, section:not(#{section}) {{ display: none !important }}"
        page.write_text(page.read_text().replace("</head>", f"<style>{hidden}</style></head>"))
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WINDOW},{height}"]
    flags += [f"--user-data-dir={page.parent / 'profile'}", f"--screenshot={target}"]
    subprocess.run([browser, *flags, page.as_uri()], check=True, capture_output=True)
    Image.open(target).convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE).save(target, optimize=True)


def run(folder: str, command: str) -> None:
    """Run a command of elimina in a folder."""
    subprocess.run([sys.executable, "-m", "elimina", *command.split()], cwd=folder, check=True, capture_output=True)


def main() -> None:
    target = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "docs" / "images").resolve()
    elimina.viz.plot(EXAMPLES / "pump.bif").save(target / "pump.svg")
    elimina.viz.plot(EXAMPLES / "pump.bif", "posteriors", evidence={"Alarm": "on"}).save(target / "posteriors.svg")
    elimina.viz.plot(EXAMPLES / "radio.wcsp", "tree").save(target / "radio-tree.svg")
    with tempfile.TemporaryDirectory() as folder:
        run(folder, "generate grid grid.wcsp --side 14 -d 10")
        run(folder, "solve grid.wcsp --time-limit 60 --trace run.jsonl")
        run(folder, f"plot run.jsonl -o {target / 'run.svg'}")
        shutil.copy(Path(folder) / "run.jsonl", target)  # the README quotes its last bounds
        page = Path(folder) / "report.html"
        evidence = {"Alarm": "on", "Noise": "loud"}
        elimina.report(EXAMPLES / "pump.bif", evidence=evidence).save(page)
        photograph(page, target / "report.png", 1400)
        seen = {f"x{v}": 0 for v in (250, 500, 700, 999)}
        elimina.report(network(1000, 3), evidence=seen).save(page)
        photograph(page, target / "report-graph.png", 745, "graph")


if __name__ == "__main__":
    main()
