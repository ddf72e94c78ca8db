"""Losses of formats are reported, and large constants take no space."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elimina
from elimina import dcop
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable

quick = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("constant", [10**9, 10**12, 1e40, -(10**12), -1e40])
def test_constants_that_no_few_numbers_hold(tmp_path, caplog, constant):
    model = Model.from_arrays([2], [([0], [1.0, 2.0])], constant=constant)
    elimina.write(model, tmp_path / "m.uai")
    assert (tmp_path / "m.uai").stat().st_size < 1000
    assert "is not written: it would take over 64 numbers" in caplog.text
    assert elimina.solve(tmp_path / "m.uai").assignment == {"x0": 0}


def test_large_costs_of_a_file(tmp_path):
    (tmp_path / "m.wcsp").write_text("m 1 2 1 9000000000000\n2\n1 0 1000000000000 1\n1 1000000000005\n")
    elimina.write(elimina.read(tmp_path / "m.wcsp"), tmp_path / "m.uai")
    assert (tmp_path / "m.uai").stat().st_size < 1000
    assert elimina.solve(tmp_path / "m.uai").assignment == {"x0": 0}


@quick
@given(st.floats(-40_000, 40_000))
def test_constants_that_are_held(tmp_path, constant):
    model = Model.from_arrays([2], [([0], [0.25, 0.5])], sense="probability", constant=constant)
    elimina.write(model, tmp_path / "m.uai")
    assert elimina.read(tmp_path / "m.uai").score([0]) == pytest.approx(model.score([0]), rel=1e-12, abs=1e-9)


@quick
@given(st.sampled_from([2.0**63, 1e19, 1.5 * 2**63, 1e25, 1e300]) | st.floats(1e18, 1e200), st.booleans())
def test_defaults_beyond_64_bits_in_a_cfn_file(tmp_path, default, negative):
    if abs(default - 2.0**63) <= 2**53:
        return
    default = -default if negative else default
    table = Table([0, 1], [1.5, 2], sizes=[50, 100], rows=[[5, 7], [8, 9]], default=default)
    model = Model([Variable("a", 50), Variable("b", 100)], [table])
    elimina.write(model, tmp_path / "m.cfn")
    back = elimina.read(tmp_path / "m.cfn")
    assert [back.score(at) for at in ([5, 7], [8, 9], [0, 0])] == [1.5, 2, default]


def test_names_and_states(tmp_path, caplog):
    named = Model([Variable("a", 2, ["low", "high"])], [Table([0], [1, 2])])
    for suffix in ("wcsp", "uai"):
        elimina.write(named, tmp_path / f"m.{suffix}")
        assert f"m.{suffix} lacks the names of variables and states" in caplog.text
    caplog.clear()
    elimina.write(named, tmp_path / "m.cfn")
    elimina.write(Model.from_arrays([2], [([0], [1, 2])]), tmp_path / "m.wcsp")
    assert not caplog.messages


@pytest.mark.parametrize("suffix", ["bif", "xmlbif"])
@pytest.mark.parametrize(("states", "text"), [([1, 2], "1"), ([False, True], "False"), (None, "0"), (["1", 2], "2")])
def test_states_that_become_text(tmp_path, caplog, suffix, states, text):
    table = Table([0], [0.25, 0.75])
    elimina.write(
        Model([Variable("a", 2, states)], [table], sense="probability", children=[0]), tmp_path / f"m.{suffix}"
    )
    assert f"m.{suffix} holds states as text: the state {text} of variable 'a' is read back as '{text}'" in caplog.text
    assert text in elimina.read(tmp_path / f"m.{suffix}")["a"].states
    caplog.clear()
    names = Model([Variable("a", 2, ["1", "x"])], [table], sense="probability", children=[0])
    elimina.write(names, tmp_path / f"m.{suffix}")
    assert elimina.read(tmp_path / f"m.{suffix}")["a"].states == ("1", "x")
    assert not caplog.messages


def test_states_of_costs(tmp_path, caplog):
    elimina.write(Model([Variable("a", 2)], [Table([0], [1, 2])]), tmp_path / "m.cfn")
    assert not caplog.messages
    elimina.write(Model([Variable("a", 2, [3, 4])], [Table([0], [1, 2])]), tmp_path / "m.cfn")
    assert "m.cfn holds states as text: the state 3 of variable 'a' is read back as '3'" in caplog.text


def test_scaled_costs(tmp_path, caplog):
    """Costs with decimals become integers in a WCSP file; the factor is said."""
    decimal = Model.from_arrays([2], [([0], [0.25, 1.5])])
    elimina.write(decimal, tmp_path / "m.cfn")
    assert not caplog.messages
    elimina.write(decimal, tmp_path / "m.wcsp")
    assert "costs are multiplied by 10^2" in caplog.text
    assert elimina.read(tmp_path / "m.wcsp").score([1]) == 150


def test_upper_bounds(tmp_path, caplog):
    bounded = Model.from_arrays([2], [([0], [1, 2])], upper_bound=2)
    problem = dcop.Problem.from_model(bounded)
    elimina.write(bounded, tmp_path / "m.wcsp")
    dcop.write(problem, tmp_path / "m.xml")
    assert not caplog.messages
    elimina.write(bounded, tmp_path / "m.uai")
    assert "m.uai lacks the upper bound 2" in caplog.text
    for suffix in ("yaml", "json"):
        dcop.write(problem, tmp_path / f"m.{suffix}")
        assert f"m.{suffix} lacks the upper bound 2" in caplog.text


def test_agents(tmp_path, caplog):
    """YAML has a place for all that is known of agents; a file of another format lacks it, and it is said."""
    model = Model.from_arrays([2, 2], [([0, 1], [[1, 2], [3, 4]])])
    plain = dcop.Problem.from_model(model)
    for suffix in ("yaml", "xml", "json"):
        dcop.write(plain, tmp_path / f"m.{suffix}")
    assert not caplog.messages
    agents = [dcop.AgentProfile(agent.name, capacity=3) for agent in plain.agents]
    problem = dcop.Problem(model, agents, plain.owners)
    dcop.write(problem, tmp_path / "m.yaml")
    assert not caplog.messages
    for suffix in ("xml", "json"):
        dcop.write(problem, tmp_path / f"m.{suffix}")
    assert [message.split("/")[-1] for message in caplog.messages] == [
        f"m.{suffix} lacks the agents' capacities: the format has no place for them" for suffix in ("xml", "json")
    ]
