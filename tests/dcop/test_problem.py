"""Problems whose variables belong to agents."""

import pytest

from elimina import Model, Variable
from elimina.dcop import AgentProfile, Problem
from elimina.errors import InputError

PAIR = Model([Variable("x", 2), Variable("y", 3)], [], sense="max-cost")


def test_from_model() -> None:
    problem = Problem.from_model(PAIR)
    assert [agent.name for agent in problem.agents] == ["x", "y"]
    assert problem.owners == (0, 1)
    assert problem.model is PAIR


@pytest.mark.parametrize(
    ("model", "agents", "owners", "message"),
    [
        (Model([Variable("x", 2)], [], sense="probability"), ["a"], [0], "convert it first"),
        (PAIR, ["a", "a"], [0, 1], "two agents are named 'a'"),
        (PAIR, ["a"], [0], "1 owners are given for 2 variables"),
        (PAIR, ["a"], [0, 1], "'y' belongs to agent 1, but there are 1"),
    ],
)
def test_refused(model: Model, agents: list[str], owners: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Problem(model, [AgentProfile(name) for name in agents], owners)
