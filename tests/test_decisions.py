"""Influence diagrams beside sums and maxima over all assignments, all policies, textbooks and pyAgrum."""

from __future__ import annotations

import itertools
import math
import pickle
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import elimina
from elimina import (
    ImpossibleEvidenceError,
    InfluenceDiagram,
    InputError,
    MemoryLimitError,
    Options,
    TimeLimitError,
    decisions,
)
from elimina.methods import policy_search, single_policy_updating
from elimina.model.table import Table
from elimina.model.variable import Variable
from elimina.planning.checked_options import CheckedOptions
from tests.packages import installed

STRUCTURES = np.array([[0.1, 0.3, 0.6], [0.3, 0.4, 0.3], [0.5, 0.4, 0.1]])
"""Probabilities of a closed, open and diffuse structure where the hole is dry, wet and soaking, if there is a test."""

WILDCATTER = {
    "chance": {
        "oil": [0.5, 0.3, 0.2],
        ("seismic", "oil", "test"): np.stack([STRUCTURES.T, np.full((3, 3), 1 / 3)], axis=-1),
    },
    "decisions": {"test": [], "drill": ["test", "seismic"]},
    "utilities": {("cost", "test"): [-10, 0], ("reward", "oil", "drill"): [[-70, 0], [50, 0], [200, 0]]},
    "states": {
        "oil": ["dry", "wet", "soaking"],
        "seismic": ["closed", "open", "diffuse"],
        "test": ["yes", "no"],
        "drill": ["yes", "no"],
    },
}


def wildcatter(**changes):
    return InfluenceDiagram.from_tables(**{**WILDCATTER, **changes})


def random_diagram(seed: int, *, no_forgetting: bool, decisions: int = 2, least: int = 0) -> InfluenceDiagram:
    """Return a diagram of up to seven variables; decisions without forgetting lie on a path.

    Args:
        seed: Random seed.
        no_forgetting: True if decisions forget nothing.
        decisions: Most decisions.
        least: Least number of variables of a utility.
    """
    rng = random.Random(seed)
    count = rng.randint(decisions + 1, 7)
    order = list(range(count))
    rng.shuffle(order)
    places = sorted(rng.sample(range(count), rng.randint(1, decisions)))
    chosen = [order[place] for place in places]
    sizes = [rng.choice([2, 2, 3]) for _ in range(count)]
    numbers = np.random.default_rng(seed)
    factors, children, observed = [], [], {}
    for place, v in enumerate(order):
        parents = rng.sample(order[:place], min(place, rng.randint(0, 2)))
        if v in chosen:
            earlier = chosen[chosen.index(v) - 1 : chosen.index(v)] if no_forgetting else []
            observed[v] = list(dict.fromkeys([*earlier, *parents]))
            continue
        weights = numbers.exponential(size=[sizes[u] for u in (*parents, v)])
        if rng.random() < 0.3:
            weights *= numbers.random(weights.shape) < 0.6
            weights[..., 0] += 0.01
        factors.append(Table([*parents, v], weights / weights.sum(axis=-1, keepdims=True)))
        children.append(v)
    utilities = {}
    for number in range(rng.randint(1, 3)):
        scope = rng.sample(range(count), rng.randint(least, min(3, count)))
        values = numbers.normal(size=[sizes[u] for u in scope]) * rng.choice([1, 100]) + rng.choice([0, -1e3, 1e4])
        utilities[f"u{number}"] = Table(scope, values.round(rng.choice([0, 3])))
    variables = [Variable(f"x{v}", size) for v, size in enumerate(sizes)]
    return InfluenceDiagram(variables, factors, children, observed, utilities, no_forgetting=no_forgetting)


class Process:
    """A partially observed Markov decision process whose decisions see the latest observation alone.

    Args:
        seed: Random seed.
        steps: Number of decisions.
    """

    def __init__(self, seed: int, steps: int) -> None:
        random = np.random.default_rng(seed)
        self.steps, self.start = steps, random.dirichlet(np.ones(3))
        self.moves = random.dirichlet(np.full(3, 0.5), (3, 2))
        self.rewards = random.random((3, 2))
        seen = random.dirichlet(np.full(2, 0.5), 3)
        chance = {"s0": self.start}
        for t in range(steps):
            chance[f"o{t}", f"s{t}"] = seen.T
            if t:
                chance[f"s{t}", f"s{t - 1}", f"d{t - 1}"] = np.moveaxis(self.moves, -1, 0)
        self.diagram = InfluenceDiagram.from_tables(
            chance,
            {f"d{t}": [f"o{t}"] for t in range(steps)},
            {(f"r{t}", f"s{t}", f"d{t}"): self.rewards for t in range(steps)},
            states={f"{name}{t}": size for t in range(steps) for name, size in (("s", 3), ("o", 2), ("d", 2))},
        )

    def value_where_states_are_seen(self) -> float:
        """Return the largest expected utility of decisions that see the state, by backward induction."""
        values = np.zeros(3)
        for _ in range(self.steps):
            values = (self.rewards + self.moves @ values).max(axis=1)
        return float(self.start @ values)


def spread(table: Table, diagram: InfluenceDiagram) -> np.ndarray:
    """Return a table with an axis for each variable of the diagram."""
    order = np.argsort(table.scope)
    shape = [v.size if n in table.scope else 1 for n, v in enumerate(diagram.variables)]
    return np.transpose(table.dense(), order).reshape(shape)


def joint_of_chance(diagram: InfluenceDiagram) -> np.ndarray:
    joint = np.ones([v.size for v in diagram.variables])
    for child, factor in zip(diagram.network.children, diagram.network.factors, strict=True):
        if child not in diagram.observed:
            joint = joint * spread(factor, diagram)
    return joint


def total_utility(diagram: InfluenceDiagram) -> np.ndarray:
    total = np.zeros([v.size for v in diagram.variables])
    for table in diagram.utilities.values():
        total = total + spread(table, diagram)
    return total


def expected(diagram: InfluenceDiagram, policies: dict[int, Table]) -> float:
    joint = joint_of_chance(diagram)
    for policy in policies.values():
        joint = joint * spread(policy, diagram)
    return float((joint * total_utility(diagram)).sum())


def by_sums_and_maxima(diagram: InfluenceDiagram) -> float:
    """Return the maximum expected utility without forgetting: backwards over the order in which things are seen."""
    weighted = joint_of_chance(diagram) * total_utility(diagram)
    known: list[int] = []
    rounds = []
    for d, seen in sorted(diagram.observed.items(), key=lambda pair: len(pair[1])):
        rounds.append((d, [v for v in seen if v not in known]))
        known += [*rounds[-1][1], d]
    unseen = [v for v in range(len(diagram.variables)) if v not in known]
    weighted = weighted.sum(axis=tuple(unseen), keepdims=True)
    for d, fresh in reversed(rounds):
        weighted = weighted.max(axis=d, keepdims=True).sum(axis=tuple(fresh), keepdims=True)
    return float(weighted.reshape(()))


def all_policies(diagram: InfluenceDiagram):
    """Yield each combination of deterministic policies."""
    choices = []
    for d, seen in diagram.observed.items():
        shape = [diagram.variables[v].size for v in seen]
        size = diagram.variables[d].size
        states = itertools.product(range(size), repeat=math.prod(shape))
        choices.append([(d, Table([*seen, d], np.eye(size)[list(x)].reshape(*shape, size))) for x in states])
    for combination in itertools.product(*choices):
        yield dict(combination)


def count_of_policies(diagram: InfluenceDiagram) -> int:
    sizes = [v.size for v in diagram.variables]
    return math.prod(sizes[d] ** math.prod(sizes[v] for v in seen) for d, seen in diagram.observed.items())


def scale_of(diagram: InfluenceDiagram) -> float:
    return sum(float(np.abs(table.values).max()) for table in diagram.utilities.values())


class TestTextbook:
    def test_oil_wildcatter(self):
        """Raiffa (1968), section 1.2, numbers of Shenoy (1992): test, and drill unless the structure is diffuse."""
        result = wildcatter().solve()
        assert (result.status, result.value) == ("optimal", pytest.approx(22.5))
        assert result.stats["utilities"] == {"cost": pytest.approx(-10), "reward": pytest.approx(32.5)}
        assert result.policies["test"].choices() == [{"observed": {}, "state": "yes", "probability": 1.0}]
        drill = result.policies["drill"]
        chosen = {x: drill.at({"test": "yes", "seismic": x, "drill": "yes"}) for x in ("closed", "open", "diffuse")}
        assert chosen == {"closed": 1, "open": 1, "diffuse": 0}
        assert result.marginals["drill"]["yes"] == pytest.approx(0.59)
        assert wildcatter().solve(policies={"test": "no"}).value == pytest.approx(20)

    def test_umbrella(self):
        """Take it if rain is forecast: 0.7 * (0.8 * 10 + 0.2 * 6) + 0.3 * 0.8 * 7 = 8.12."""
        diagram = InfluenceDiagram.from_tables(
            {"rain": [0.7, 0.3], ("forecast", "rain"): [[0.8, 0.2], [0.2, 0.8]]},
            {"umbrella": ["forecast"]},
            {("comfort", "rain", "umbrella"): [[10, 6], [0, 7]]},
            states={"umbrella": ["leave", "take"]},
        )
        assert diagram.solve().value == pytest.approx(8.12)
        without = diagram.solve(policies={"umbrella": "leave"})
        assert (without.status, without.value) == ("exact", pytest.approx(7))

    def test_value_of_perfect_information(self):
        """Without a test, oil that is seen is worth 0.3 * 50 + 0.2 * 200 - 20 = 35."""
        blind = wildcatter(decisions={"test": [], "drill": []})
        assert blind.solve().value == pytest.approx(20)
        gains = blind.observation_gains("drill", ["oil"])
        assert (gains[0].variable, gains[0].gain) == ("oil", pytest.approx(35))
        assert gains.expected_utility == pytest.approx(20)
        seismic = {row.variable: row.gain for row in blind.observation_gains("drill")}["seismic"]
        # A test without knowing whether it was made: as with it, but for 10 if it is made.
        assert seismic == pytest.approx(2.5)

    def test_what_is_forgotten_counts(self):
        """A guess of two coins that were seen one after the other: all right with memory, half of one without."""
        diagram = InfluenceDiagram.from_tables(
            {"a": [0.5, 0.5], "b": [0.5, 0.5]},
            {"look": ["a"], "guess": ["b", "look"]},
            {("won", "a", "b", "guess"): np.eye(4).reshape(2, 2, 4)},
            states={"look": 1, "guess": 4},
        )
        limited = diagram.solve()
        assert (limited.status, limited.value) == ("optimal", pytest.approx(0.5))
        remembered = diagram.with_no_forgetting().solve()
        assert (remembered.status, remembered.value) == ("optimal", pytest.approx(1))

    def test_a_local_optimum_is_not_called_optimal(self, monkeypatch):
        """Two who cannot speak and should do the same: both at 0 is a local optimum, both at 1 is better."""
        diagram = InfluenceDiagram.from_tables(
            {},
            {"a": [], "b": []},
            {("reward", "a", "b"): [[2, 1, 1], [1, 3, -5], [1, -5, 2.5]]},
            states={"a": 3, "b": 3},
        )
        first = diagram.solve(policies={"a": 0})
        assert (first.status, first.value) == ("optimal", 2)
        result = diagram.solve()
        assert (result.status, result.value, result.lower_bound, result.upper_bound) == ("optimal", 3, 3, 3)
        monkeypatch.setattr(policy_search, "_relaxations", lambda *_: [])
        result = diagram.solve()
        assert (result.status, result.value, result.lower_bound, result.upper_bound) == ("bounded", 2, 2, 3)
        assert "bounds:     2.0 to 3.0\n" in str(result)


class TestBruteForce:
    @given(st.integers(0, 10**9))
    def test_no_forgetting(self, seed):
        diagram = random_diagram(seed, no_forgetting=True, decisions=3)
        result = diagram.solve()
        assert result.status == "optimal"
        assert result.value == pytest.approx(by_sums_and_maxima(diagram), abs=1e-9 * scale_of(diagram))
        assert diagram.solve(policies=result.policies).value == pytest.approx(
            result.value, abs=1e-9 * scale_of(diagram)
        )

    @given(st.integers(0, 10**9))
    def test_limited_memory(self, seed):
        diagram = random_diagram(seed, no_forgetting=False)
        result = diagram.solve()
        slack = 1e-9 * scale_of(diagram)
        tables = diagram.policy_tables(result.policies)
        assert result.value == pytest.approx(expected(diagram, tables), abs=slack)
        if count_of_policies(diagram) > 600:
            return
        best = max(expected(diagram, policies) for policies in all_policies(diagram))
        assert (result.status, result.value) == ("optimal", pytest.approx(best, abs=slack))
        for d in diagram.observed:
            others = {other: table for other, table in tables.items() if other != d}
            single = [p for p in all_policies(diagram) if all(_equal(p[o], t) for o, t in others.items())]
            assert all(expected(diagram, p) <= result.value + slack for p in single)

    @pytest.mark.parametrize("relaxation", range(5))
    @given(st.integers(0, 10**9), st.integers(1, 100))
    def test_bounds_of_relaxations(self, relaxation, seed, eliminations):
        """Each relaxation alone, and none, bounds the best policies from above, and finds them in the end.

        The first one remembers everything, the others ever more of the latest decisions.
        """
        diagram = random_diagram(seed, no_forgetting=False, decisions=3)
        if count_of_policies(diagram) > 600:
            return
        best = max(expected(diagram, policies) for policies in all_policies(diagram))
        slack = 1e-9 * scale_of(diagram)
        original, used = policy_search._relaxations, []

        def single(*args):
            used.extend(itertools.islice(itertools.chain(*original(*args)), relaxation, relaxation + 1))
            return [used[-1:]]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(policy_search, "_relaxations", single)
            whole = diagram.solve()
            patch.setattr(decisions, "MAX_ELIMINATIONS", eliminations)
            result = diagram.solve()
        for answer in (whole, result):
            assert answer.lower_bound == answer.value
            assert answer.value - slack <= best <= answer.upper_bound + slack
        if used:
            assert (whole.status, whole.value) == ("optimal", pytest.approx(best, abs=slack))

    @given(st.integers(0, 10**9))
    def test_longer_memories_bound_closer(self, seed):
        """The bounds of relaxations get closer as decisions remember more of the earlier ones."""
        diagram = random_diagram(seed, no_forgetting=False, decisions=4)
        question = single_policy_updating.DecisionQuestion(diagram, {}, {}, 0, 0)
        updates = single_policy_updating.PolicyUpdates(question, CheckedOptions())
        if not updates.order.others or count_of_policies(diagram) > 600:
            return
        start = next(iter(updates.policy_sets(next(iter(updates.starts())), 0)))
        best = max(expected(diagram, policies) for policies in all_policies(diagram))
        slack, bounds = 1e-9 * scale_of(diagram), [best]
        whole, windows = policy_search._relaxations(question, updates)
        for relaxation in [*whole, *reversed(list(windows))]:
            search = policy_search._Search(question, updates, relaxation, start, math.inf)
            bounds.append(search._node(search._everything, math.inf, {}).bound)
        assert len(bounds) > 1
        assert all(one <= other + slack for one, other in itertools.pairwise(bounds))

    @given(st.integers(0, 10**9))
    @settings(max_examples=5)
    def test_processes(self, seed):
        """Windows find and prove the best policies where full memories do not fit."""
        diagram = Process(seed, 3).diagram
        best = max(expected(diagram, policies) for policies in all_policies(diagram))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(policy_search, "_full_memory", lambda *_: iter([]))
            result = diagram.solve()
        assert (result.status, result.value) == ("optimal", pytest.approx(best, abs=1e-9))

    @pytest.mark.parametrize("seed", [0, 1])
    def test_bounds_of_long_processes(self, seed):
        """Decisions that see the state bound the value; those that remember the latest decisions bound it closer."""
        process, bounds = Process(seed, 7), []
        windows = policy_search._windows
        for count in (1, 2, 4):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(policy_search, "_full_memory", lambda *_: iter([]))
                patch.setattr(policy_search, "_windows", lambda *args, n=count: itertools.islice(windows(*args), n))
                patch.setattr(policy_search._Search, "run", lambda *_: iter([]))
                patch.setattr(decisions, "MAX_ELIMINATIONS", 10**9)
                result = process.diagram.solve()
            bounds.append(result.upper_bound)
            assert result.value <= result.upper_bound + 1e-9
        assert bounds[0] == pytest.approx(process.value_where_states_are_seen())
        assert bounds[0] > bounds[1] + 1e-6
        assert bounds[1] >= bounds[2] - 1e-9

    @given(st.integers(0, 10**9))
    def test_policies_of_users(self, seed):
        diagram = random_diagram(seed, no_forgetting=False)
        numbers = np.random.default_rng(seed)
        tables, by_name = {}, {}
        for d, seen in diagram.observed.items():
            weights = numbers.exponential(size=[diagram.variables[v].size for v in (d, *seen)])
            weights /= weights.sum(axis=0)
            by_name[diagram.variables[d].name] = weights
            tables[d] = Table([*seen, d], np.moveaxis(weights, 0, -1))
        result = diagram.solve(policies=by_name)
        slack = 1e-9 * scale_of(diagram)
        assert (result.status, result.value) == ("exact", pytest.approx(expected(diagram, tables), abs=slack))
        joint = joint_of_chance(diagram)
        for table in tables.values():
            joint = joint * spread(table, diagram)
        for v, variable in enumerate(diagram.variables):
            sums = joint.sum(axis=tuple(n for n in range(joint.ndim) if n != v))
            assert list(result.marginals[variable.name].values()) == pytest.approx(sums.tolist(), abs=1e-9)
        model = diagram.with_policies(by_name)
        assert elimina.solve(model, "mar").marginals["x0"] == pytest.approx(result.marginals["x0"])

    @given(st.integers(0, 10**9))
    def test_evidence(self, seed):
        """Evidence that no decision affects is what all decisions see."""
        diagram = random_diagram(seed, no_forgetting=True)
        free = [v for v in range(len(diagram.variables)) if v not in diagram.affected]
        if not free:
            return
        v = free[0]
        name = diagram.variables[v].name
        probabilities = elimina.solve(diagram.network, "mar").marginals[name]
        seen_by_all = diagram
        for d in diagram.observed:
            seen_by_all = seen_by_all.with_observations(d, [v])
        values = [p * diagram.solve(evidence={name: state}).value if p else 0.0 for state, p in probabilities.items()]
        assert sum(values) == pytest.approx(seen_by_all.solve().value, abs=1e-9 * scale_of(diagram))

    @given(st.integers(0, 10**9))
    def test_gains_are_not_negative(self, seed):
        diagram = random_diagram(seed, no_forgetting=True)
        d = next(iter(diagram.observed))
        gains = diagram.observation_gains(d)
        for row in gains:
            assert row.gain >= -1e-9 * scale_of(diagram)
            better = diagram.with_observations(d, [row.variable])
            assert row.expected_utility == pytest.approx(by_sums_and_maxima(better), abs=1e-9 * scale_of(diagram))
        assert [row.gain for row in gains] == sorted((row.gain for row in gains), reverse=True)


def _equal(one: Table, other: Table) -> bool:
    return set(one.scope) >= set(other.scope) and np.array_equal(
        one.dense(), np.broadcast_to(_over(other, one.scope), one.dense().shape)
    )


def _over(table: Table, scope: tuple[int, ...]) -> np.ndarray:
    order = sorted(range(len(table.scope)), key=lambda axis: scope.index(table.scope[axis]))
    shape = [table.sizes[table.scope.index(v)] if v in table.scope else 1 for v in scope]
    return np.transpose(table.dense(), order).reshape(shape)


@pytest.fixture(scope="module")
def gum():
    return installed("pyagrum")


class TestBesidePyagrum:
    @pytest.mark.parametrize("seed", range(60))
    @pytest.mark.parametrize("decisions", [1, 2])
    def test_maximum_expected_utility(self, gum, seed, decisions):
        # pyAgrum fails where a utility depends on nothing.
        diagram = random_diagram(seed, no_forgetting=True, decisions=decisions, least=1)
        peer = to_pyagrum(gum, diagram)
        result = InfluenceDiagram.from_pyagrum(peer).solve()
        slack = 1e-6 * scale_of(diagram)
        theirs = peer_utility(gum, peer)
        # pyAgrum drops observations that matter where two decisions have utilities of their own (seeds 38 and 58).
        if len(diagram.observed) == 1 or result.value < theirs:
            assert result.value == pytest.approx(theirs, abs=slack)
        assert (result.status, result.value) == ("optimal", pytest.approx(by_sums_and_maxima(diagram), abs=slack))


def peer_utility(gum, peer) -> float:
    """Return the maximum expected utility that pyAgrum computes. Its engine must go before the diagram."""
    inference = gum.ShaferShenoyLIMIDInference(peer)
    inference.makeInference()
    return inference.MEU()["mean"]


def to_pyagrum(gum, diagram):
    """Return a diagram, with all that its decisions see, as one of pyAgrum."""
    peer = gum.InfluenceDiagram()
    names = [v.name for v in diagram.variables]
    for d, v in enumerate(diagram.variables):
        add = peer.addDecisionNode if d in diagram.observed else peer.addChanceNode
        add(gum.LabelizedVariable(v.name, "", [str(x) for x in v.all_states]))
    for name in diagram.utilities:
        peer.addUtilityNode(gum.LabelizedVariable(name, "", 1))
    for child, factor in zip(diagram.network.children, diagram.network.factors, strict=True):
        for v in diagram.observed.get(child, [v for v in factor.scope if v != child]):
            peer.addArc(names[v], names[child])
    for name, table in diagram.utilities.items():
        for v in table.scope:
            peer.addArc(names[v], name)
    for child, factor in zip(diagram.network.children, diagram.network.factors, strict=True):
        if child not in diagram.observed:
            fill(peer.cpt(names[child]), [names[v] for v in factor.scope], factor.dense())
    for name, table in diagram.utilities.items():
        fill(peer.utility(name), [*(names[v] for v in table.scope), name], table.dense()[..., None])
    return peer


def fill(tensor, scope, values):
    order = [scope.index(name) for name in list(tensor.names)[::-1]]
    tensor.fillWith(np.transpose(values, order).ravel().tolist())


class TestAnswers:
    def test_texts_and_frames(self):
        result = wildcatter().solve()
        assert "policy of drill:\ntest  seismic  drill  probability\nyes   closed   yes    1\n" in str(result)
        assert "policy of drill" in result._repr_html_()
        frame = result.policies["drill"].to_frame()
        assert list(frame.columns) == ["test", "seismic", "drill", "probability"]
        assert len(frame) == 6
        assert "decision drill:" in repr(wildcatter())

    def test_policies_and_diagrams_are_pickled(self):
        diagram = pickle.loads(pickle.dumps(wildcatter()))
        result = pickle.loads(pickle.dumps(diagram.solve()))
        assert diagram.solve(policies=result.policies).value == pytest.approx(22.5)

    def test_only_what_matters_is_seen(self):
        """The second of two copies of a forecast tells nothing new."""
        diagram = InfluenceDiagram.from_tables(
            {"rain": [0.7, 0.3], ("f", "rain"): [[0.8, 0.2], [0.2, 0.8]], ("copy", "f"): [[1, 0], [0, 1]]},
            {"umbrella": ["f", "copy"]},
            {("comfort", "rain", "umbrella"): [[10, 6], [0, 7]]},
            states={"umbrella": 2},
        )
        assert diagram.solve().policies["umbrella"].names == ("umbrella", "f")

    def test_equal_states_are_not_chosen_by_rounding(self):
        diagram = InfluenceDiagram.from_tables(
            {"a": [1 / 3, 2 / 3]},
            {"d": []},
            {("u", "a", "d"): [[0.3, 0.1, 0.7, 0.9], [0.3, 0.4, 0.1, 0.0]], ("v", "d"): [0, 0, 0, 0]},
            states={"d": 4},
        )
        assert diagram.solve().policies["d"].tolist() == [1, 0, 0, 0]

    def test_large_offsets(self):
        diagram = InfluenceDiagram.from_tables(
            {"a": [0.5, 0.5]}, {"d": ["a"]}, {("u", "a", "d"): [[1e9, 1e9 + 1], [1e9 + 2, 1e9]]}, states={"d": 2}
        )
        assert diagram.solve().value == 1e9 + 1.5


class TestLimits:
    def test_best_policies_so_far(self, monkeypatch):
        """An interrupt after the first start of a diagram that is not soluble keeps its policies."""
        diagram = InfluenceDiagram.from_tables(
            {},
            {"a": [], "b": []},
            {("reward", "a", "b"): [[2, 0], [0, 3]], ("prize", "b"): [0.1, 0]},
            states={"a": 2, "b": 2},
        )
        original = single_policy_updating.PolicyUpdates.starts

        def starts(self):
            yield from itertools.islice(original(self), 1)
            raise KeyboardInterrupt

        monkeypatch.setattr(single_policy_updating.PolicyUpdates, "starts", starts)
        result = diagram.solve(restarts=1)
        assert (result.status, result.ended_by, result.lower_bound) == ("bounded", "interrupt", result.value)
        assert (result.value, result.upper_bound) == (pytest.approx(3), pytest.approx(3.1))
        assert not result.marginals

    def test_bounds_at_the_time_limit(self, monkeypatch):
        """A search that does not end keeps its policies, bounds and posteriors."""
        diagram = InfluenceDiagram.from_tables(
            {"a": [0.5, 0.5], "b": [0.5, 0.5]},
            {"look": ["a"], "guess": ["b", "look"]},
            {("won", "a", "b", "guess"): np.eye(4).reshape(2, 2, 4)},
            states={"look": 1, "guess": 4},
        )
        monkeypatch.setattr(policy_search._Search, "_children", lambda self, node: [node])
        result = diagram.solve(time_limit=0.3)
        assert (result.status, result.ended_by) == ("bounded", "time-limit")
        assert (result.value, result.upper_bound) == (pytest.approx(0.5), pytest.approx(1))
        assert result.marginals["look"]

    def test_time_limit(self, monkeypatch):
        def wait(*_):
            while True:
                time.sleep(0.01)

        monkeypatch.setattr(single_policy_updating.PolicyUpdates, "_update", wait)
        with pytest.raises(TimeLimitError):
            wildcatter().solve(time_limit=0.1)
        with pytest.raises(TimeLimitError):
            wildcatter().observation_gains("drill", time_limit=0.1)

    def test_memory_limit(self):
        count = 40
        chance = {f"c{n}": [0.5, 0.5] for n in range(count)}
        utilities = {(f"u{n}", f"c{n}", "d"): [[1, 0], [0, 1]] for n in range(count)}
        diagram = InfluenceDiagram.from_tables(chance, {"d": list(chance)}, utilities, states={"d": 2})
        with pytest.raises(MemoryLimitError, match=r"the policy of 'd' depends on 40 observations .* let it see fewer"):
            diagram.solve()
        assert InfluenceDiagram.from_tables(chance, {"d": ["c0"]}, utilities, states={"d": 2}).solve().value > 0

    def test_a_long_memory_is_pruned(self):
        """A robot that sees its place for 12 steps needs the last one only."""
        steps = 12
        move = np.array([[[0.9, 0.2], [0.1, 0.6]], [[0.1, 0.8], [0.9, 0.4]]])
        chance = {"s0": [0.5, 0.5]}
        chance.update({(f"s{t + 1}", f"s{t}", f"d{t}"): move for t in range(steps)})
        decisions = {f"d{t}": [f"s{t}", *([f"d{t - 1}"] if t else [])] for t in range(steps)}
        utilities = {(f"u{t}", f"s{t + 1}"): [0, 1] for t in range(steps)}
        states = dict.fromkeys(decisions, 2)
        diagram = InfluenceDiagram.from_tables(chance, decisions, utilities, states=states, no_forgetting=True)
        result = diagram.solve()
        value = np.zeros(2)
        for _ in range(steps):
            value = np.einsum("nsd,n->sd", move, value + np.arange(2)).max(axis=1)
        assert (result.status, result.value) == ("optimal", pytest.approx(value.mean()))
        assert result.policies["d7"].names == ("d7", "s7")

    def test_options(self):
        with pytest.raises(InputError, match="an influence diagram does not take the option slices"):
            wildcatter().solve(options=Options(slices="never"))
        with pytest.raises(TypeError, match="options is 3"):
            wildcatter().solve(options=3)


class TestBadInput:
    @pytest.mark.parametrize(
        ("changes", "problem"),
        [
            ({"decisions": {}, "states": {}}, "the distribution of 'seismic' given 'oil', 'test': the parent 'test'"),
            ({"states": {"oil": ["dry", "wet", "soaking"]}}, "the decision 'test' has no states: give them"),
            ({"decisions": {"test": ["drill"], "drill": ["test"]}}, "the arcs form a cycle: "),
            ({"decisions": {"test": ["seismic"], "drill": []}}, "a decision cannot observe what it affects"),
            ({"decisions": {"test": [], "drill": ["weather"]}}, "no variable 'weather'"),
            ({"utilities": {("u", "oil"): [1, 2]}}, r"the utility 'u': its array has the shape \(2,\)"),
            ({"utilities": {("u", "oil"): [1, 2, math.inf]}}, "the utility 'u' has the value inf"),
            ({"utilities": {("u", "oil"): [1, 2, math.nan]}}, "the utility 'u' has the value nan"),
            ({"utilities": {("oil", "test"): [1, 2]}}, "the utility 'oil' has the name of a variable"),
            ({"utilities": {("u", "oil"): [1, 2, 3], ("u", "test"): [1, 2]}}, "two utilities are named 'u'"),
            ({"utilities": {("u", "reward"): [1, 2]}}, "no variable 'reward'"),
            ({"decisions": {"test": [], "drill": []}, "no_forgetting": True}, "need an order, and neither 'test' nor"),
        ],
    )
    def test_diagrams(self, changes, problem):
        with pytest.raises(InputError, match=problem) as caught:
            wildcatter(**changes)
        assert "\n" not in str(caught.value)

    def test_a_utility_has_no_children(self):
        with pytest.raises(InputError, match="names the utility 'cost' as a parent: no variable depends on a utility"):
            wildcatter(chance={**WILDCATTER["chance"], ("x", "cost"): [[1, 0], [0, 1]]})

    def test_a_decision_without_a_distribution(self):
        with pytest.raises(InputError, match="is a distribution of a decision: leave one of them out"):
            wildcatter(chance={**WILDCATTER["chance"], "test": [0.5, 0.5]})
        with pytest.raises(InputError, match="the diagram has no decision"):
            InfluenceDiagram.from_tables({"a": [0.5, 0.5]}, {}, {("u", "a"): [1, 2]}, states={})

    @pytest.mark.parametrize(
        ("changes", "text"),
        [
            ({"chance": {3: [0.5, 0.5]}}, "a key of chance is 3"),
            ({"decisions": {3: []}}, "a key of decisions is 3"),
            ({"states": {**WILDCATTER["states"], "test": None}}, r"states\['test'\] is None"),
            ({"states": {**WILDCATTER["states"], "test": "ab"}}, r"states\['test'\] is 'ab'"),
        ],
    )
    def test_wrong_types_inside_mappings_are_named(self, changes, text):
        with pytest.raises(TypeError, match=f"{text}.*; it takes"):
            wildcatter(**changes)

    def test_a_decision_that_observes_itself(self):
        with pytest.raises(InputError, match=r"decisions\['test'\] names the decision itself"):
            wildcatter(decisions={**WILDCATTER["decisions"], "test": ["test"]})

    @pytest.mark.parametrize("argument", ["chance", "decisions", "utilities", "states"])
    def test_types(self, argument):
        with pytest.raises(TypeError, match=f"{argument} is 3"):
            wildcatter(**{argument: 3})

    def test_evidence_that_a_decision_affects(self):
        with pytest.raises(InputError, match="evidence names 'seismic', which a decision affects"):
            wildcatter().solve(evidence={"seismic": "open"})
        with pytest.raises(ImpossibleEvidenceError):
            wildcatter(chance={**WILDCATTER["chance"], "oil": [0.5, 0.5, 0]}).solve(evidence={"oil": "soaking"})

    def test_policies(self):
        diagram = wildcatter()
        with pytest.raises(InputError, match="'oil' is not a decision; the decisions are test, drill"):
            diagram.solve(policies={"oil": "dry"})
        with pytest.raises(InputError, match="the policy of 'drill': its array has the shape"):
            diagram.solve(policies={"drill": [0.5, 0.5]})
        with pytest.raises(InputError, match="sum"):
            diagram.solve(policies={"test": [0.5, 0.6]})
        with pytest.raises(InputError, match="the decision 'drill' has no policy"):
            diagram.with_policies({"test": "yes"})
        with pytest.raises(InputError, match="the policy of 'test': its axes are drill"):
            diagram.solve(policies={"test": diagram.solve().policies["drill"]})

    def test_observations(self):
        with pytest.raises(InputError, match="the decision 'test' affects 'seismic', so it cannot observe it"):
            wildcatter().with_observations("test", ["seismic"])
        with pytest.raises(InputError, match="'oil' is not a decision"):
            wildcatter().observation_gains("oil")
