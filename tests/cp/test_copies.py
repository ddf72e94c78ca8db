"""Copied and pickled models of constraints, whose answers take the variables of the original."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from elimina import cp
from elimina.errors import InputError

COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda what: pickle.loads(pickle.dumps(what))}
every_copy = pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)


def three() -> tuple[cp.Model, list[cp.Expression]]:
    model = cp.Model()
    xs = model.int_vars(3, 0, 2, "x")
    model.all_different(xs)
    return model, xs


@every_copy
def test_variables_of_the_original_have_values_in_answers_of_a_copy(copied: Callable[[cp.Model], cp.Model]) -> None:
    model, xs = three()
    model.add(xs[0] < xs[1])
    model.add(xs[1] < xs[2])
    assert copied(model).solve()[[*xs, xs[2] - xs[1]]] == [0, 1, 2, 1]
    assert COPIES["pickle"](model.solve())[xs] == [0, 1, 2]


@every_copy
def test_variables_made_after_the_copy_are_not_mixed_up(copied: Callable[[cp.Model], cp.Model]) -> None:
    model, xs = three()
    other = copied(model)
    y, z = model.int_var(5, 5), other.int_var(7, 7)
    assert (model.solve()[y], other.solve()[z], copied(other).solve()[z]) == (5, 7, 7)
    for solved, x in ((model, z), (other, y), (copied(model), z), (model, cp.Model().int_var(0, 1))):
        with pytest.raises(InputError, match="is not of the model as it was solved"):
            solved.solve()[x]
    assert sorted(other.solve()[xs]) == [0, 1, 2]


@every_copy
def test_a_copy_is_independent(copied: Callable[[cp.Model], cp.Model]) -> None:
    model, _ = three()
    other = copied(model)
    other.add(other["x[0]"] > 2)
    assert (model.solve().status, other.solve().status) == ("feasible", "infeasible")


def test_answers_of_another_process_take_the_variables_of_this_one() -> None:
    model, xs = three()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert sorted(pool.submit(cp.Model.solve, model).result()[xs]) == [0, 1, 2]
