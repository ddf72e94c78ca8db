"""The real benchmark files: all are read, and hold what their collection says."""

from __future__ import annotations

import csv
import time

import pytest

import elimina
import elimina.io as eio
from elimina.errors import FormatError, MemoryLimitError, UnsupportedError
from elimina.io.posteriors import read_marginals
from elimina.model.table import FORBIDDEN
from tests.io import foreign
from tests.io.models import assert_same_network

pytestmark = pytest.mark.data
# The XML files there hold constraint problems, not networks.
SUFFIXES = tuple(f".{name}{packed}" for name in eio.FORMATS if name != "xml" for packed in ("", ".gz", ".xz"))
UNSUPPORTED = {
    "weightedcspconstraint.wcsp",
    "weightedcspconstraintc.cfn",
}
REPEATED_SCOPE = "sf.wcsp"  # toulbar2 refuses it too


def rows(path):
    with path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_every_model_is_read_in_seconds_and_is_what_its_collection_says(data_dir):
    """Each file is read once, for all that is known about it: its row in a list, and its marginals by others."""
    files = [p for p in sorted(data_dir.rglob("*")) if p.name.endswith(SUFFIXES)]
    assert len(files) > 400
    described = {
        data_dir / collection / row["file"]: (check, row)
        for collection, check in (("wcsp", check_wcsp), ("uai", check_uai))
        for row in rows(data_dir / collection / "REFERENCE.tsv")
    }
    marginals = {path.with_suffix(""): path for path in (data_dir / "uai").rglob("*.MAR")}
    assert len(marginals) > 60
    checked = {check_wcsp: 0, check_uai: 0}
    for path in files:
        start = time.process_time()
        if path.name in UNSUPPORTED:
            with pytest.raises(
                UnsupportedError, match=f"{path.name}:[0-9]+: the (keyword|type) '[a-z]+' is not handled"
            ):
                eio.read(path)
        elif path.name == REPEATED_SCOPE:
            with pytest.raises(FormatError, match="names a variable twice"):
                eio.read(path)
        else:
            model = eio.read(path)
            if path in described:
                check, row = described[path]
                checked[check] += check(model, path, row)
            of = marginals.pop(path.with_suffix("") if path.suffix in (".gz", ".xz") else path, None)
            if of is not None:
                check_marginals(model, of)
        assert time.process_time() - start < 10, path
    assert checked[check_wcsp] > 60
    assert checked[check_uai] > 250
    assert not marginals


def check_wcsp(model, path, row):
    """Compare a problem with its row; return whether the row has what is compared."""
    if not row["n"] or not row["max_cost"] or not row["dmin"] or not path.name.endswith((".wcsp", ".wcsp.xz")):
        return False
    assert len(model.variables) == int(row["n"]), path
    assert (min(model.sizes), max(model.sizes)) == (int(row["dmin"]), int(row["dmax"])), path
    assert len(model.factors) == int(row["m"]), path
    arities: dict[int, int] = {}
    for factor in model.factors:
        arities[len(factor.scope)] = arities.get(len(factor.scope), 0) + 1
    assert str(dict(sorted(arities.items()))) == str(dict(sorted(eval(row["arities"]).items()))), path
    bound = FORBIDDEN if model.upper_bound is None else model.upper_bound
    assert bound == int(row["header_ub"]), path
    scopes = [tuple(sorted(f.scope)) for f in model.factors]
    assert len(scopes) - len(set(scopes)) == int(row["duplicate_scopes"]), path
    return True


def check_uai(model, path, row):
    """Compare a network with its row."""
    assert len(model.variables) == int(row["n"]), path
    assert len(model.factors) == int(row["factors"]), path
    assert (min(model.sizes), max(model.sizes)) == (int(row["card_min"]), int(row["card_max"])), path
    assert max(len(f.scope) for f in model.factors) == int(row["max_arity"]), path
    assert (model.children is None) == (row["type"] == "MARKOV"), path
    return True


def check_marginals(model, path):
    """Compare a file of marginals with its model."""
    marginals = read_marginals(path)
    assert [len(m) for m in marginals] == list(model.sizes), path
    assert max(abs(m.sum() - 1) for m in marginals) < 1e-4, path


def test_every_evidence_file_fits_one_dialect(data_dir):
    anything = elimina.Model([elimina.Variable(f"x{i}", 100) for i in range(20000)], [], sense="probability")
    files = sorted({*data_dir.rglob("*.evid"), *data_dir.rglob("*.evid.gz")})
    assert len(files) > 200
    for path in files:
        name = path.name.removesuffix(".gz").removesuffix(".evid")
        models = [p for p in path.parent.glob(name + "*") if p.name.endswith(SUFFIXES)]
        model = eio.read(models[0]) if models and models[0].stat().st_size < 300_000 else anything
        observed = eio.read_evidence(path, model)
        numbers = path.read_bytes().split() if path.suffix == ".evid" else []
        if path.name in ("paskin.evid", "simple6.evid"):
            assert observed == {}
        elif len(numbers) % 2:
            assert len(observed) == int(numbers[0]), path
        elif numbers:
            assert (numbers[0], len(observed)) == (b"1", int(numbers[1])), path


def test_rows_of_bayesian_networks_nearly_sum_to_one(data_dir):
    files = sorted((data_dir / "bayesnets").rglob("*.bif*"))
    assert len(files) >= 20
    for path in files:
        model = eio.read(path)
        assert model.children == tuple(f.scope[-1] for f in model.factors)
        assert sorted(model.children) == list(range(len(model.variables)))
        for factor in model.factors:
            assert abs(factor.values.sum(axis=-1) - 1).max() < 1e-5, (path, factor)


def test_networks_through_every_format_for_them(data_dir, tmp_path):
    files = [p for p in sorted((data_dir / "bayesnets").rglob("*")) if p.name.endswith(SUFFIXES)]
    assert len(files) >= 24
    for path in files:
        model = eio.read(path)
        for suffix in ("bif", "xmlbif"):
            eio.write(model, tmp_path / f"m.{suffix}")
        for suffix in ("net", "xdsl"):
            (tmp_path / f"m.{suffix}").write_text(getattr(foreign, suffix)(model))
        for suffix in ("bif", "xmlbif", "net", "xdsl"):
            start = time.process_time()
            back = eio.read(tmp_path / f"m.{suffix}")
            assert time.process_time() - start < 5, (path, suffix)
            assert_same_network(model, back)
            assert suffix != "xmlbif" or back.children == model.children


def test_ergo_networks(data_dir):
    sizes = {"cpcs54": 54, "cpcs179": 179, "cpcs360b": 360, "cpcs422b": 422}
    for name, count in sizes.items():
        model = eio.read(data_dir / "bayesnets" / "cpcs" / f"{name}.erg.gz")
        assert model.children == tuple(range(count))
        for factor in model.factors:
            assert abs(factor.values.sum(axis=-1) - 1).max() < 1e-5


def test_optima_of_the_validation_set(data_dir):
    """The .ub files hold the optimum of the .wcsp or .cfn file of the same name."""
    checked = 0
    for bound in sorted((data_dir / "wcsp" / "toulbar2_validation").rglob("*.ub")):
        for path in (bound.with_suffix(".wcsp"), bound.with_suffix(".cfn")):
            if not path.exists() or path.name in UNSUPPORTED:
                continue
            model = eio.read(path)
            if model.sense != "min-cost" or len(model.variables) > 60:
                continue
            try:
                result = elimina.solve(model, "mpe", device="cpu", memory=2**27)
            except MemoryLimitError:
                continue
            assert result.value == pytest.approx(float(bound.read_text()), abs=1e-9), path
            checked += 1
    assert checked >= 25
