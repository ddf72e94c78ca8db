"""Known answers of the benchmark files: whatever is small enough to be solved in a moment."""

from __future__ import annotations

import csv

import pytest

import elimina
from elimina.io.posteriors import read_marginals
from tests import calls

pytestmark = pytest.mark.data
MEMORY = 8 << 30
SECONDS = 0.1
"""Memory of an instance, by its plan's estimate."""

# relational_*: the references disagree with one another; linkage_15: two independent eliminations give -73.872907;
# sat-grid-pbl-0010: the file holds factors of arity 0 and value 0.
UNRELIABLE = ("relational_", "linkage_15", "sat-grid-pbl-0010")


LARGEST_FILE = 60_000


def rows(path):
    with open(path, newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def answer(path, task, evidence=None):
    """The answer, or None where it would take too much."""
    model = elimina.read(path)
    given = elimina.read_evidence(evidence, model) if evidence else {}
    # How long rows take is not known before.
    options = {"evidence": given, "device": "cpu", "memory": MEMORY, "tables": "dense"}
    plan = calls.plan(model, task, order_seconds=0.05, **options)
    if not plan.fits or plan.seconds > SECONDS:
        return None
    return calls.solve(model, task, order=plan.order, **options)


def test_proven_optima(data_dir):
    solved = 0
    for row in rows(data_dir / "wcsp" / "REFERENCE.tsv"):
        path = data_dir / "wcsp" / row["file"]
        if row["status"] != "proven" or ".wcsp" not in row["file"] or path.stat().st_size > LARGEST_FILE:
            continue
        result = answer(path, "mpe")
        if result is not None:
            assert result.value == int(row["optimum"]), row["file"]
            solved += 1
    assert solved >= 20


def test_partition_functions(data_dir):
    """The references are printed with six digits."""
    solved = 0
    for row in rows(data_dir / "uai" / "REFERENCE.tsv"):
        path = data_dir / "uai" / row["file"]
        reference = row["ref_log10Z(.PR)"]
        if not reference or any(name in row["file"] for name in UNRELIABLE) or path.stat().st_size > LARGEST_FILE:
            continue
        evidence = path.with_name(path.name.removesuffix(".xz").removesuffix(".gz") + ".evid")
        result = answer(path, "pr", evidence if evidence.exists() else None)
        if result is not None:
            assert result.log10_z == pytest.approx(float(reference), rel=5e-6), row["file"]
            solved += 1
    assert solved >= 20


def test_marginals(data_dir):
    solved = 0
    for path in sorted((data_dir / "uai").rglob("*.uai.MAR")):
        if any(name in path.name for name in UNRELIABLE):
            continue
        file = next(f for f in path.parent.glob(f"{path.stem}*") if f.suffix in (".uai", ".xz", ".gz"))
        evidence = path.with_suffix(".evid")
        if file.stat().st_size > LARGEST_FILE:
            continue
        result = answer(file, "mar", evidence if evidence.exists() else None)
        if result is not None:
            for values, expected in zip(result.marginals.values(), read_marginals(path), strict=True):
                assert list(values.values()) == pytest.approx(expected, rel=0, abs=1e-6), path.name
            solved += 1
    assert solved >= 10


def test_bounds_on_partition_functions(data_dir):
    """The published value lies between the bounds, for files that take long otherwise."""
    for name in ("DBN_11", "Grids_11", "Grids_16", "ObjectDetection_11", "Pedigree_11"):
        path = data_dir / "uai" / "2014_MAR" / f"{name}.uai"
        model = elimina.read(path)
        published = float(path.with_suffix(".uai.PR").read_text().split()[1])
        result = calls.solve(
            model, "pr", evidence=elimina.read_evidence(f"{path}.evid", model), method="mbe", ibound=5, device="cpu"
        )
        assert result.lower_bound - 1e-3 <= published <= result.upper_bound + 1e-3, name
        assert result.upper_bound - result.lower_bound < 60, name
