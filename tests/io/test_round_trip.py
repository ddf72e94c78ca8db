"""A model that is written and read again is the same model, in every format and compression."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import elimina.io as eio
from elimina.model.variable import texts_of
from tests.io import foreign
from tests.io.models import (
    WORDS,
    XML_NAMES,
    assert_same_factors,
    assert_same_network,
    assert_same_objective,
    decimal_models,
    integer_models,
    named_variables,
    networks,
    probability_models,
    random_network,
)

ENDINGS = st.sampled_from(["", ".gz", ".xz"])
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def through(model, path):
    eio.write(model, path)
    assert not list(path.parent.glob("*.part"))
    return eio.read(path, check=False)


@quick
@given(model=probability_models(), ending=ENDINGS)
def test_uai(tmp_path, model, ending):
    back = through(model, tmp_path / f"m.uai{ending}")
    assert_same_factors(model, back)
    assert back.children is None


@quick
@given(model=networks(), suffix=st.sampled_from(["uai", "erg"]), ending=ENDINGS)
def test_bayesian_networks(tmp_path, model, suffix, ending):
    back = through(model, tmp_path / f"m.{suffix}{ending}")
    if suffix == "erg":
        assert back.children == tuple(range(len(model.sizes)))
        factors = [model.factors[model.children.index(v)] for v in back.children]
        model = type(model)(model.variables, factors, sense="probability", children=back.children, check=False)
    assert_same_factors(model, back)
    assert back.children == (None if suffix == "uai" and model.unnormalised else model.children)


def assert_same_names(left, right):
    assert left.children == right.children
    assert [v.name for v in left.variables] == [v.name for v in right.variables]
    for a, b in zip(left.variables, right.variables, strict=True):
        assert texts_of(a) == texts_of(b)


@quick
@given(model=networks(named_variables()), ending=ENDINGS)
def test_bif(tmp_path, model, ending):
    back = through(model, tmp_path / f"m.bif{ending}") if model.variables else model
    assert_same_factors(model, back)
    assert_same_names(model, back)


@quick
@given(model=networks(named_variables(XML_NAMES, XML_NAMES)), name=XML_NAMES, ending=ENDINGS)
def test_xmlbif(tmp_path, model, name, ending):
    if not model.variables:
        return
    model.name = name
    back = through(model, tmp_path / f"m.xmlbif{ending}")
    assert back.name == model.name
    assert_same_factors(model, back)
    assert_same_names(model, back)


@quick
@given(model=networks(named_variables(WORDS, XML_NAMES)), name=XML_NAMES, suffix=st.sampled_from(["net", "xdsl"]))
def test_formats_that_are_only_read(tmp_path, model, name, suffix):
    if not model.variables:
        return
    model.name = name
    if suffix == "net":  # whose rows are normalised when they are read
        assume(all(f.values.max(axis=-1).all() for f in model.factors))
        scaled = [f.values / f.values.max(axis=-1, keepdims=True) for f in model.factors]
        factors = [
            type(f)(f.scope, values / values.sum(axis=-1, keepdims=True))
            for f, values in zip(model.factors, scaled, strict=True)
        ]
        model = type(model)(model.variables, factors, sense="probability", children=model.children, name=name)
    if suffix == "xdsl":  # its nodes hold both the variable and the distribution
        model = type(model)(
            [model.variables[c] for c in model.children],
            [type(f)([model.children.index(u) for u in f.scope], f.values) for f in model.factors],
            sense="probability",
            children=range(len(model.children)),
            check=False,
            name=name,
        )
    path = tmp_path / f"m.{suffix}"
    path.write_bytes(getattr(foreign, suffix)(model).encode())
    back = eio.read(path, check=False)
    assert back.name == model.name
    assert_same_factors(model, back)
    assert_same_names(model, back)


@pytest.mark.parametrize("seed", range(5))
def test_larger_networks(tmp_path, seed):
    model = random_network(seed, 40)
    for suffix in ("bif", "xmlbif", "xmlbif.gz"):
        assert_same_network(model, through(model, tmp_path / f"m.{suffix}"))
    for suffix in ("net", "xdsl"):
        (tmp_path / f"m.{suffix}").write_text(getattr(foreign, suffix)(model))
        assert_same_network(model, eio.read(tmp_path / f"m.{suffix}"))


@quick
@given(model=integer_models(), ending=ENDINGS)
def test_wcsp(tmp_path, model, ending):
    back = through(model, tmp_path / f"m.wcsp{ending}")
    assert_same_objective(model, back)
    assert len(back.factors) == len(model.factors) + bool(model.constant)
    assert back.is_integer


@quick
@given(data=st.data(), sense=st.sampled_from(["min-cost", "max-cost"]), ending=ENDINGS)
def test_integer_cfn(tmp_path, data, sense, ending):
    model = data.draw(integer_models(lowest=-(2**60), sense=sense))
    back = through(model, tmp_path / f"m.cfn{ending}")
    assert_same_objective(model, back)
    assert back.is_integer


@quick
@given(model=decimal_models(), ending=ENDINGS)
def test_decimal_cfn(tmp_path, model, ending):
    back = through(model, tmp_path / f"m.cfn{ending}")
    model.decimals = back.decimals  # totals of both are rounded alike
    assert_same_objective(model, back)
    assert [v.name for v in back.variables] == [v.name for v in model.variables]
    assert [v.states for v in back.variables] == [v.states for v in model.variables]


@quick
@given(model=decimal_models())
def test_written_cfn_is_strict_json(tmp_path, model):
    import json

    path = tmp_path / "m.cfn"
    eio.write(model, path)
    document = json.loads(path.read_text())
    assert list(document) == ["problem", "variables", "functions"]


def test_constant_of_a_probability_model_is_kept(tmp_path):
    import elimina

    for constant in (-2.5, 1234.5, -5000.0, -math.inf):
        variables = [elimina.Variable("x0", 2)]
        model = elimina.Model(variables, [elimina.Table([0], [0.25, 0.75])], sense="probability", constant=constant)
        back = through(model, tmp_path / "m.uai")
        assert back.score([1]) == pytest.approx(model.score([1]), rel=1e-12)
