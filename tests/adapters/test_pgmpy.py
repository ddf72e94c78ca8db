"""The interface of pgmpy gives pgmpy's answers: run where pgmpy is installed (``pip install pgmpy``)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

pytest.importorskip("pgmpy")
pytestmark = pytest.mark.filterwarnings("ignore")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import pandas as pd
    from pgmpy.factors import factor_product
    from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
    from pgmpy.inference import VariableElimination as Theirs
    from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork, JunctionTree

from elimina.adapters.pgmpy import VariableElimination  # noqa: E402
from elimina.errors import ImpossibleEvidenceError, InputError  # noqa: E402


@pytest.fixture
def student():
    """The student network of pgmpy's documentation."""
    network = DiscreteBayesianNetwork([("D", "G"), ("I", "G"), ("G", "L"), ("I", "S")])
    network.add_cpds(
        TabularCPD("D", 2, [[0.6], [0.4]], state_names={"D": ["easy", "hard"]}),
        TabularCPD("I", 2, [[0.7], [0.3]], state_names={"I": [0, 1]}),
        TabularCPD(
            "G", 3, [[0.3, 0.05, 0.9, 0.5], [0.4, 0.25, 0.08, 0.3], [0.3, 0.7, 0.02, 0.2]], ["I", "D"], [2, 2],
            state_names={"G": ["A", "B", "C"], "I": [0, 1], "D": ["easy", "hard"]},
        ),
        TabularCPD(
            "L", 2, [[0.1, 0.4, 0.99], [0.9, 0.6, 0.01]], ["G"], [3], state_names={"L": [0, 1], "G": ["A", "B", "C"]}
        ),
        TabularCPD("S", 2, [[0.95, 0.2], [0.05, 0.8]], ["I"], [2], state_names={"S": [0, 1], "I": [0, 1]}),
    )  # fmt: skip
    return network


EVIDENCE = [{}, {"G": "A"}, {"L": 0, "S": 1}, {"D": "hard", "L": 1}]


def same(ours, theirs):
    assert set(ours.variables) == set(theirs.variables)
    ours = ours.copy()
    for states in np.ndindex(*theirs.values.shape):
        named = {v: theirs.state_names[v][x] for v, x in zip(theirs.variables, states, strict=True)}
        assert ours.get_value(**named) == pytest.approx(theirs.get_value(**named))


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_queries(student, evidence):
    ours, theirs = VariableElimination(student), Theirs(student)
    for variables in (["I"], ["D", "I"]):
        free = [v for v in variables if v not in evidence]
        same(ours.query(free, evidence), theirs.query(free, evidence, show_progress=False))
        apart = ours.query(free, evidence, joint=False)
        for v, expected in theirs.query(free, evidence, joint=False, show_progress=False).items():
            same(apart[v], expected)
        assert ours.map_query(free, evidence) == theirs.map_query(free, evidence, show_progress=False)


def test_virtual_evidence(student):
    virtual = [TabularCPD("G", 3, [[0.2], [0.3], [0.5]], state_names={"G": ["A", "B", "C"]})]
    ours = VariableElimination(student).query(["I"], {"D": "easy"}, virtual)
    same(ours, Theirs(student).query(["I"], {"D": "easy"}, virtual, show_progress=False))


def test_predictions(student):
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"G": rng.choice(list("ABC"), 30), "S": rng.integers(0, 2, 30)}, index=range(5, 35))
    ours = VariableElimination(student)
    theirs = student.predict_probability(data)
    found = ours.predict_probability(data)
    assert set(found.columns) == set(theirs.columns)
    np.testing.assert_allclose(found[theirs.columns], theirs, atol=1e-9)
    assert (found.index == data.index).all()
    expected = student.predict(data, n_jobs=1)
    assert (ours.predict(data)[expected.columns] == expected).all(axis=None)


def test_errors(student):
    ours = VariableElimination(student)
    with pytest.raises(InputError, match="no variable 'X'"):
        ours.query(["X"])
    with pytest.raises(InputError, match="nothing to predict"):
        ours.predict(pd.DataFrame({v: [0] for v in student.nodes()}))
    student.get_cpds("I").values[:] = [1, 0]
    student.get_cpds("S").values[:, 0] = [1, 0]
    with pytest.raises(ImpossibleEvidenceError):
        VariableElimination(student).query(["D"], {"S": 1})


def test_states_are_given_and_returned_as_pgmpy_has_them():
    """Numbers with decimals and tuples are text in a model, but not here."""
    network = DiscreteBayesianNetwork([("A", "B")])
    levels, pairs = [0.5, 1.5], [("a", 1), ("b", 2)]
    network.add_cpds(
        TabularCPD("A", 2, [[0.3], [0.7]], state_names={"A": levels}),
        TabularCPD("B", 2, [[0.9, 0.2], [0.1, 0.8]], ["A"], [2], state_names={"B": pairs, "A": levels}),
    )
    ours, theirs = VariableElimination(network), Theirs(network)
    same(ours.query(["A"], {"B": ("a", 1)}), theirs.query(["A"], {"B": ("a", 1)}, show_progress=False))
    assert ours.map_query(["B"], {"A": 1.5}) == {"B": ("b", 2)}
    assert ours.map_query() == {"A": 1.5, "B": ("b", 2)}
    likely = [TabularCPD("A", 2, [[0.9], [0.1]], state_names={"A": levels})]
    expected = theirs.query(["B"], virtual_evidence=likely, show_progress=False)
    same(ours.query(["B"], virtual_evidence=likely), expected)
    frame = pd.DataFrame({"A": [0.5, 1.5, None]})
    assert ours.predict(frame)["B"].tolist() == [("a", 1), ("b", 2), ("b", 2)]
    np.testing.assert_allclose(ours.predict_probability(frame).iloc[:, 0], [0.9, 0.2, 0.41])
    with pytest.raises(InputError, match="no state 2"):
        ours.query(["B"], {"A": 2})


def test_virtual_evidence_about_one_variable_is_multiplied(student):
    states = {"G": ["C", "A", "B"]}
    once = TabularCPD("G", 3, [[0.1], [0.6], [0.3]], state_names=states)
    sorted_states = {"G": ["A", "B", "C"]}
    squared = TabularCPD("G", 3, [[0.36 / 0.46], [0.09 / 0.46], [0.01 / 0.46]], state_names=sorted_states)
    ours, theirs = VariableElimination(student), Theirs(student)
    same(ours.query(["I"], {}, [once, once]), theirs.query(["I"], {}, [squared], show_progress=False))
    # What is observed stays observed.
    same(ours.query(["I"], {"G": "B"}, [once]), theirs.query(["I"], {"G": "B"}, show_progress=False))
    never = TabularCPD("G", 3, [[0.5], [0.5], [0.0]], state_names=states)
    with pytest.raises(ImpossibleEvidenceError):
        ours.map_query(["I"], {"G": "B"}, [never])


def test_virtual_evidence_that_fits_no_variable(student):
    ours = VariableElimination(student)
    grades = TabularCPD("G", 2, [[0.5], [0.5]], state_names={"G": ["A", "B"]})
    pair = DiscreteFactor(["I", "S"], [2, 2], np.ones(4))
    with pytest.raises(InputError, match=r"about 'G' has the states \['A', 'B'\]; it has \['A', 'B', 'C'\]"):
        ours.query(["I"], {}, [grades])
    with pytest.raises(InputError, match="about 'I', 'S'; give distributions over one variable each"):
        ours.query(["D"], {}, [pair])
    with pytest.raises(InputError, match="no variable 'X'"):
        ours.query(["D"], {}, [TabularCPD("X", 2, [[0.5], [0.5]])])
    with pytest.raises(TypeError, match=r"virtual_evidence is .* it takes a list of distributions"):
        ours.query(["D"], {}, grades)


def test_arguments_of_wrong_types(student):
    ours = VariableElimination(student)
    for call, problem in (
        (lambda: ours.query("D"), "variables is 'D' .*a list of variables"),
        (lambda: ours.map_query("DI"), "variables is 'DI' .*a list of variables"),
        (lambda: ours.query(["D"], [("I", 0)]), "evidence is .*a mapping from variables to states"),
        (lambda: ours.predict([{"D": "easy"}]), "data is .*a pandas DataFrame"),
        (lambda: ours.predict_probability([{"D": "easy"}]), "data is .*a pandas DataFrame"),
    ):
        with pytest.raises(TypeError, match=problem):
            call()
    with pytest.raises(InputError, match="two columns of the frame are named 'D'"):
        ours.predict(pd.DataFrame([["easy", "easy"]], columns=["D", "D"]))


def test_rows_without_columns_and_impossible_rows(student):
    ours = VariableElimination(student)
    empty = pd.DataFrame(index=[7, 8])
    np.testing.assert_allclose(ours.predict_probability(empty)["I_1"], [0.3, 0.3])
    assert ours.predict(empty).index.tolist() == [7, 8]
    student.get_cpds("D").values[:] = [1, 0]
    with pytest.raises(ImpossibleEvidenceError, match="row 1: the evidence has probability 0"):
        VariableElimination(student).predict(pd.DataFrame({"D": ["easy", "hard"]}))


@pytest.mark.parametrize("evidence", [None, {}, {"L": 1}, {"L": 0, "D": "hard"}])
@pytest.mark.parametrize("variables", [["I"], ["G"], ["S"], ["I", "G"], ["S", "G", "I"]])
def test_max_marginals(student, variables, evidence):
    expected = Theirs(student).max_marginal(variables, evidence, show_progress=False)
    assert VariableElimination(student).max_marginal(variables, evidence) == pytest.approx(expected)


@pytest.mark.parametrize("evidence", [{}, {"L": 1}, {"L": 0, "D": "hard"}])
@pytest.mark.parametrize("variables", [None, []])
def test_max_marginals_without_a_query(student, variables, evidence):
    """pgmpy 1.1 forgets the evidence here, so its factors tell."""
    joint = factor_product(*[cpd.to_factor() for cpd in student.cpds])
    joint.reduce(list(evidence.items()))
    assert VariableElimination(student).max_marginal(variables, evidence) == pytest.approx(joint.values.max())


def test_max_marginals_of_a_markov_network(student):
    network = student.to_markov_model()
    expected = Theirs(network).max_marginal(["G"], {"L": 1}, show_progress=False)
    assert VariableElimination(network).max_marginal(["G"], {"L": 1}) == pytest.approx(expected)


def test_a_variable_named_twice_counts_once(student):
    ours = VariableElimination(student)
    assert ours.max_marginal(["G", "G"]) == ours.max_marginal(["G"])


def test_what_max_marginals_refuse(student):
    with pytest.raises(InputError, match="'G' is in the query and in the evidence"):
        VariableElimination(student).max_marginal(["G"], {"G": "A"})
    certain = DiscreteBayesianNetwork([])
    certain.add_node("A")
    certain.add_cpds(TabularCPD("A", 2, [[1.0], [0.0]]))
    with pytest.raises(ImpossibleEvidenceError, match="no max-marginals"):
        VariableElimination(certain).max_marginal(evidence={"A": 1})


@pytest.mark.parametrize("order", [None, "MinFill", "WeightedMinFill", "MinNeighbors", "MinWeight", [*"DSLG"]])
def test_elimination_orders_are_taken_as_pgmpy_takes_them(student, order):
    ours, theirs = VariableElimination(student), Theirs(student)
    given = {"elimination_order": order}
    same(ours.query(["I"], None, None, order), theirs.query(["I"], None, None, order, show_progress=False))
    assert ours.map_query(["I"], **given) == theirs.map_query(["I"], **given, show_progress=False)
    assert ours.max_marginal(["I"], **given) == pytest.approx(theirs.max_marginal(["I"], **given, show_progress=False))
    with pytest.raises(InputError, match="unknown elimination order 'best'"):
        ours.query(["I"], elimination_order="best")
    with pytest.raises(InputError, match="no variable 'X'"):
        ours.query(["I"], elimination_order=["X"])


def test_induced_graphs(student):
    ours, theirs = VariableElimination(student), Theirs(student)
    for order in (["D", "I", "G", "L", "S"], ["G", "I", "D", "S", "L"], ["L", "S", "D", "G", "I"]):
        assert ours.induced_width(order) == theirs.induced_width(order)
        found, expected = ours.induced_graph(order), theirs.induced_graph(order)
        assert set(map(frozenset, found.edges)) == set(map(frozenset, expected.edges))
    with pytest.raises(InputError, match="has to name each of the variables"):
        ours.induced_width(["D"])


@pytest.fixture
def field():
    network = DiscreteMarkovNetwork([("a", "b"), ("b", "c")])
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [0, 3, 2, 2]), DiscreteFactor(["b", "c"], [2, 3], range(6)))
    return network


@pytest.mark.parametrize("evidence", [{}, {"a": 1}, {"c": 2}, {"a": 0, "c": 0}])
def test_answers_of_a_markov_network_are_not_normalised(field, evidence):
    ours, theirs = VariableElimination(field), Theirs(field)
    for variables in (["b"], [v for v in "cba" if v not in evidence]):
        for order in ("greedy", "MinFill", None):
            expected = theirs.query(variables, evidence, elimination_order=order, show_progress=False)
            same(ours.query(variables, evidence, elimination_order=order), expected)
        apart = theirs.query(variables, evidence, joint=False, show_progress=False)
        for v, factor in ours.query(variables, evidence, joint=False).items():
            same(factor, apart[v])
    graph = VariableElimination(field.to_factor_graph())
    same(graph.query(["b"], evidence), theirs.query(["b"], evidence, show_progress=False))


def test_sums_of_a_markov_network_that_are_no_float(field):
    for scale in (1e300, 1e-300):
        network = DiscreteMarkovNetwork([("a", "b")])
        network.add_factors(*(DiscreteFactor(["a", "b"], [2, 2], np.full(4, scale)) for _ in range(2)))
        with pytest.raises(
            InputError, match=r"does not normalise answers of a Markov network, and their sum, 10.* scale"
        ):
            VariableElimination(network).query(["a"])
    network = DiscreteMarkovNetwork([("a", "b")])
    network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [0, 0, 1, 1]))
    assert VariableElimination(network).query(["b"], {"a": 0}).values.tolist() == [0, 0]
    assert VariableElimination(network).query(["b"], {"a": 0}, joint=False)["b"].values.tolist() == [0, 0]


def test_answers_of_a_junction_tree_are_normalised():
    tree = JunctionTree([(("A", "B"), ("B", "C"))])
    tree.add_factors(DiscreteFactor(["A", "B"], [2, 3], range(6)), DiscreteFactor(["B", "C"], [3, 2], range(6)))
    ours, theirs = VariableElimination(tree), Theirs(tree)
    for variables, evidence in ((["A"], {}), (["C", "A"], {}), (["B"], {"C": 1})):
        same(ours.query(variables, evidence), theirs.query(variables, evidence, show_progress=False))
    assert ours.map_query(["A"]) == {"A": 1}


@pytest.mark.parametrize("method", ["query", "map_query", "max_marginal"])
@pytest.mark.parametrize("kind", [dict, list])
def test_a_variable_both_asked_for_and_observed(student, method, kind):
    """pgmpy finds the variable in a list, too, which is not valid evidence."""
    for engine in (VariableElimination(student), Theirs(student)):
        with pytest.raises(ValueError, match="'I'"):
            getattr(engine, method)(["D", "I"], kind({"I": 0}))


def test_a_query_for_nothing(student):
    for engine in (VariableElimination(student), Theirs(student)):
        with pytest.raises(ValueError, match="must contain at least one variable"):
            engine.query([], {"I": 0})
    assert VariableElimination(student).map_query([]) == VariableElimination(student).map_query()


def test_a_state_that_does_not_exist_is_a_key_error(student):
    for engine in (VariableElimination(student), Theirs(student)):
        with pytest.raises(KeyError):
            engine.query(["D"], {"I": -1})
    with pytest.raises(InputError, match="variable 'I' has no state -1; its states are 0, 1") as caught:
        VariableElimination(student).query(["D"], {"I": -1})
    assert str(caught.value).startswith("variable 'I'")


ORDERS = [
    (["G"], {}, ["D", "I"], True),
    (["G"], {}, ["I", "D", "L", "S"], True),
    (["G"], {}, ["I"], False),
    (["G"], {}, ["I", "D", "G"], False),
    (["L"], {"G": "A"}, [], True),
    (["L"], {"G": "A"}, ["G"], False),
    (["I"], {"G": "A"}, ["D"], True),
    (["I"], {"G": "A"}, [], False),
    (["S"], {"I": 1}, [], True),
]


@pytest.mark.parametrize(("variables", "evidence", "order", "is_taken"), ORDERS, ids=map(str, ORDERS))
def test_an_order_names_what_the_answer_depends_on(student, variables, evidence, order, is_taken):
    expected = Theirs(student).query(variables, evidence, elimination_order="MinFill", show_progress=False)
    for engine in (VariableElimination(student), Theirs(student)):
        if is_taken:
            same(engine.query(variables, evidence, elimination_order=order, show_progress=False), expected)
        else:
            with pytest.raises(ValueError, match=r"[Ee]limination order"):
                engine.query(variables, evidence, elimination_order=order, show_progress=False)


def test_the_variables_to_eliminate(student):
    ours = VariableElimination(student)
    for order in (None, "MinFill", "WeightedMinFill", "MinWeight", "MinNeighbors"):
        found = ours._get_elimination_order(["G"], {"I": 0}, order)
        assert set(found) == set(Theirs(student)._get_elimination_order(["G"], {"I": 0}, order, show_progress=False))
