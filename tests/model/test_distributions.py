"""Rows of networks' distributions: what is an error, what is normalised, and what stays as it is."""

from __future__ import annotations

import itertools
import logging
import math
import time

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina.errors import FormatError, InputError
from elimina.model import distributions
from elimina.model.model import Model
from elimina.model.table import Table
from elimina.model.variable import Variable

RAIN, WET = Variable("rain", 2, ["no", "yes"]), Variable("wet", 2, ["dry", "wet"])

BIF = """network n {{}}
variable rain {{ type discrete [ 2 ] {{ no, yes }}; }}
variable wet {{ type discrete [ 2 ] {{ dry, wet }}; }}
probability ( rain ) {{ table {rain}; }}
probability ( wet | rain ) {{ (no) {no}; (yes) {yes}; }}
"""


def network(wet, rain=(0.8, 0.2), **options):
    return Model([RAIN, WET], [Table([0], rain), Table([0, 1], wet)], sense="probability", children=[0, 1], **options)


def write_bif(path, rain="0.8, 0.2", no="0.9, 0.1", yes="0.25, 0.75"):
    path.write_text(BIF.format(rain=rain, no=no, yes=yes))
    return path


class TestErrors:
    @pytest.mark.parametrize(
        ("values", "problem"),
        [
            (
                [[0.9, 0.1], [0.3, 0.3]],
                "of 'wet' given rain=yes sums to 0.6, not 1: correct it, or take it as",
            ),
            ([[0, 0], [0.5, 0.5]], "the distribution of 'wet' given rain=no sums to 0, not 1"),
            ([[0.9, 0.2], [0.3, 0.3]], r"given rain=no sums to 1.1, not 1 \(1 more row misses 1, too\)"),
            ([[0.9, 0.1], [0.5, 0.502]], "given rain=yes sums to 1.002, not 1"),
            ([[1, 0], [1, 1]], "given rain=yes sums to 2, not 1"),
        ],
    )
    def test_rows(self, values, problem):
        with pytest.raises(InputError, match=problem):
            network(values)
        assert network(values, check=False).factors[1].dense().tolist() == np.array(values).tolist()

    def test_a_root(self):
        with pytest.raises(InputError, match=r"the distribution of 'rain' sums to 0.7, not 1"):
            network([[0.9, 0.1], [0.5, 0.5]], rain=[0.5, 0.2])

    def test_a_child_that_is_not_last(self):
        table = Table([1, 0], [[0.9, 0.3], [0.1, 0.3]])
        with pytest.raises(InputError, match=r"of 'wet' given rain=yes sums to 0.6"):
            Model([RAIN, WET], [table], sense="probability", children=[1])

    @pytest.mark.parametrize(
        ("rows", "values", "default", "problem"),
        [
            ([[0, 0], [1, 0]], [1.0, 0.5], 0.0, "given rain=yes sums to 0.5"),
            ([[0, 0]], [1.0], 0.0, "given states of its parents that no tuple has sums to 0"),
            ([[0, 0]], [0.9], 0.25, "given rain=no sums to 1.15"),
        ],
    )
    def test_sparse_tables(self, rows, values, default, problem):
        table = Table([0, 1], values, sizes=[2, 2], rows=rows, default=default)
        with pytest.raises(InputError, match=problem):
            Model([RAIN, WET], [table], sense="probability", children=[1])

    def test_files_of_networks(self, tmp_path):
        path = write_bif(tmp_path / "n.bif", yes="0.3, 0.3")
        with pytest.raises(FormatError, match=r"n\.bif: the distribution of 'wet' given rain=yes sums to 0.6, not 1"):
            elimina.read(path)
        assert elimina.read(path, check=False).factors[1].values[1].tolist() == [0.3, 0.3]

    def test_large_tables(self):
        values = np.full((100, 100, 10), 0.1)
        values[41, 7] = 0.2
        variables = [Variable("a", 100), Variable("b", 100), Variable("c", 10)]
        with pytest.raises(InputError, match=r"the distribution of 'c' given a=41, b=7 sums to 2, not 1"):
            Model(variables, [Table([0, 1, 2], values)], sense="probability", children=[2])


class TestRounding:
    @pytest.mark.parametrize("text", ["0.333, 0.667", "0.3333, 0.6666", "0.33333333, 0.66666666", "0.2495, 0.7496"])
    def test_decimals_are_normalised(self, tmp_path, text):
        model = elimina.read(write_bif(tmp_path / "n.bif", yes=text))
        given = [float(number) for number in text.split(",")]
        np.testing.assert_allclose(model.factors[1].values[1], np.array(given) / sum(given), rtol=1e-15)
        assert model.factors[1].values[0].tolist() == [0.9, 0.1]

    def test_three_thirds_of_three_decimals(self):
        third = Model([Variable("a", 3)], [Table([0], [0.333] * 3)], sense="probability", children=[0])
        assert third.factors[0].values.tolist() == [1 / 3] * 3

    def test_what_the_user_gave_is_not_written_to(self):
        values = np.array([[0.9, 0.1], [0.333, 0.666]])
        assert network(values).factors[1].values[1].sum() == pytest.approx(1, abs=1e-15)
        assert values[1].tolist() == [0.333, 0.666]

    def test_zeros_stay(self):
        assert network([[1.0, 0.0], [0.0, 0.9999]]).factors[1].values.tolist() == [[1, 0], [0, 1]]

    @pytest.mark.parametrize("values", [[[0.1, 0.9], [0.7, 0.3]], [[1, 0], [0, 1]]])
    def test_sums_that_are_exact_but_for_additions_stay(self, values):
        table = Table([0, 1], values)
        model = Model([RAIN, WET], [table], sense="probability", children=[1])
        assert model.factors[0] is table

    @given(st.lists(st.lists(st.floats(1e-3, 1), min_size=3, max_size=3), min_size=1, max_size=20))
    @settings(deadline=None)
    def test_normalising_once_is_enough(self, rows):
        values = np.array(rows)
        values /= values.sum(axis=1, keepdims=True)
        values *= 1 + 1e-5 * np.sin(np.arange(len(rows)))[:, None]
        variables = [Variable("a", len(rows)), Variable("b", 3)]
        once = Model(variables, [Table([0, 1], values)], sense="probability", children=[1])
        again = Model(variables, once.factors, sense="probability", children=[1])
        assert again.factors[0] is once.factors[0]

    def test_singles(self):
        thirds = np.full((1, 3), 1 / 3, np.float32)
        table = Table([0, 1], thirds)
        model = Model([Variable("a", 1), Variable("b", 3)], [table], sense="probability", children=[1])
        assert model.factors[0] is table

    def test_a_sparse_table(self):
        table = Table([0, 1], [0.9999, 0.5, 0.4999], sizes=[2, 2], rows=[[0, 0], [1, 0], [1, 1]], default=0.0)
        model = Model([RAIN, WET], [table], sense="probability", children=[1])
        np.testing.assert_allclose(model.factors[0].dense(), [[1, 0], [0.5 / 0.9999, 0.4999 / 0.9999]])

    def test_what_is_said(self, caplog):
        caplog.set_level(logging.INFO, "elimina")
        network([[0.9, 0.1], [0.333, 0.666]])
        (message,) = caplog.messages
        assert (
            message == "normalised rows that miss 1 by at most 0.001: 1 in the distributions of 1 of the variables, wet"
        )

    def test_networks_are_pruned_after_it(self):
        count = 300
        variables = [Variable(f"x{i}", 2) for i in range(count)]
        tables = [Table([i], [0.5, 0.4999997]) for i in range(count)]
        model = Model(variables, tables, sense="probability", children=range(count))
        assert elimina.solve(model, "pr").value == 1


class TestProductsOfTables:
    """UAI and ERGO files may look like networks though evidence is multiplied in: linkage analysis, planning."""

    BAYES = "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 0.8 0.2\n4 0.9 0.1 0.3 0.3\n"

    def test_a_warning(self, tmp_path, caplog):
        path = tmp_path / "n.uai"
        path.write_text(self.BAYES)
        model = elimina.read(path)
        assert model.factors[1].values[1].tolist() == [0.3, 0.3]
        assert caplog.messages == [
            "the distribution of 'x1' given x0=1 sums to 0.6, not 1; one row misses 1 by more than 0.001: "
            "the file is read as a product of tables"
        ]
        assert elimina.solve(model, "pr").value == pytest.approx(0.8 + 0.2 * 0.6)
        caplog.clear()
        elimina.read(path, check=False)
        assert not caplog.messages

    def test_rounding_is_normalised_in_networks(self, tmp_path, caplog):
        path = tmp_path / "n.uai"
        path.write_text(self.BAYES.replace("0.3 0.3", "0.3333 0.6666"))
        assert elimina.read(path).factors[1].values[1].sum() == pytest.approx(1, abs=1e-15)
        assert not caplog.messages

    def test_markov_networks_are_not_checked(self, tmp_path, caplog):
        path = tmp_path / "n.uai"
        path.write_text(self.BAYES.replace("BAYES", "MARKOV"))
        assert elimina.read(path).children is None
        assert not caplog.messages


def test_the_check_takes_little_time():
    """A few per cent of reading; here ten times that of one pass over the numbers, and a microsecond or two a table."""
    rng = np.random.default_rng(1)
    tables = [Table([i, i + 1], rng.dirichlet(np.ones(5), 40)) for i in range(0, 4000, 2)]
    variables = [Variable(f"x{i}", 40 if i % 2 == 0 else 5) for i in range(4000)]
    model = Model(variables, tables, sense="probability", children=range(1, 4000, 2), check=False)
    begun = time.process_time()
    model.check_distributions()
    assert time.process_time() - begun < 0.5
    assert math.isclose(model.factors[0].values.sum(), 40)


@given(st.dictionaries(st.integers(0, 6), st.lists(st.integers(0, 9), unique=True, max_size=3), max_size=7))
def test_cycles_are_found_where_some_variables_have_no_distribution(scopes):
    graph = networkx.DiGraph((parent, child) for child, scope in scopes.items() for parent in scope if parent != child)
    cycle = distributions.find_cycle(scopes)
    assert bool(cycle) == (not networkx.is_directed_acyclic_graph(graph))
    assert cycle[:1] == cycle[-1:]
    assert all(parent in scopes[child] for child, parent in itertools.pairwise(cycle))
