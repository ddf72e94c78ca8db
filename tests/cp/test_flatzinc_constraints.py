"""Each constraint, by its FlatZinc name, against what its words say."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cp.flatzinc_solver import solved
from tests.reference import flatzinc as reference

# Arguments: i, b: a variable or constant; I, B: three of them (a number: how many); c, C: constants; s: a set.
_REIFIABLE = {
    **{f"int_{r}": "i i" for r in ("eq", "ne", "le", "lt")},
    **{f"bool_{r}": "b b" for r in ("eq", "ne", "le", "lt")},
    **{f"int_lin_{r}": "C I c" for r in ("eq", "ne", "le")},
    "set_in": "i s",
    "bool_clause": "B B",
}
_OTHERS = {
    "bool_lin_eq": "C B i",
    "bool_lin_le": "C B c",
    "bool2int": "b z",
    "bool_not": "b b",
    "bool_and": "b b b",
    "bool_or": "b b b",
    "bool_xor": "b b b",
    "array_bool_and": "B b",
    "array_bool_or": "B b",
    "array_bool_xor": "B",
    "bool_and_imp": "b b b",
    "bool_or_imp": "b b b",
    "bool_xor_imp": "b b b",
    "array_bool_and_imp": "B b",
    "array_bool_or_imp": "B b",
    **{f"int_{f}": "i i i" for f in ("plus", "minus", "times", "div", "mod", "pow", "max", "min")},
    "int_abs": "i i",
    "array_int_maximum": "i I",
    "array_int_minimum": "i I",
    "array_int_element": "i C i",
    "array_var_int_element": "i I i",
    "array_bool_element": "i K b",
    "array_var_bool_element": "i B b",
    "fzn_all_different_int": "I",
    "jacop_alldiff": "I4",
    "fzn_alldifferent_except_0": "I",
    "fzn_circuit": "I",
    "elimina_circuit": "I4",
    "fzn_subcircuit": "I",
    "elimina_inverse": "I I",
    "fzn_table_int": "I table",
    "fzn_table_bool": "B booltable",
    "fzn_regular": "I automaton",
    "fzn_cumulative": "I N N n",
    "fzn_count_eq": "I i i",
    "fzn_global_cardinality": "I cover I2",
    "fzn_global_cardinality_closed": "I cover I2",
    "fzn_nvalue": "i I",
    "fzn_lex_less_int": "I I2",
    "fzn_lex_lesseq_int": "I I",
    "fzn_lex_less_bool": "B B2",
    "fzn_lex_lesseq_bool": "B B",
    "elimina_bin_packing_load": "I2 I N",
}
SIGNATURES = {
    **_OTHERS,
    **_REIFIABLE,
    **{f"{name}_reif": f"{kinds} b" for name, kinds in _REIFIABLE.items()},
    **{f"{name}_imp": f"{kinds} b" for name, kinds in _REIFIABLE.items()},
}


class Maker:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng

    def one_of(self, names: str, constants: range | tuple[str, ...]) -> str:
        return self.rng.choice(names) if self.rng.random() < 0.8 else str(self.rng.choice(constants))

    def argument(self, kind: str) -> str:
        rng = self.rng
        letter, count = kind[0], int(kind[1:]) if kind[1:].isdigit() else 3
        if kind == "table":
            return str([rng.randint(-1, 3) for _ in range(3 * rng.randint(0, 6))])
        if kind == "booltable":
            return str([rng.random() < 0.5 for _ in range(3 * rng.randint(0, 5))]).lower()
        if kind == "automaton":
            return f"2, 3, {[rng.randint(0, 2) for _ in range(6)]}, 1, {rng.choice(['1..2', '{2}', '{}', '1..1'])}"
        if kind == "cover":
            return str(rng.sample(range(-1, 4), 2))
        if letter in "IBCKN":
            return "[" + ", ".join(self.argument(letter.lower()) for _ in range(count)) + "]"
        return {
            "i": lambda: self.one_of("xyzw", range(-2, 5)),
            "b": lambda: self.one_of("abc", ("true", "false")),
            "z": lambda: self.rng.choice("xyz"),
            "c": lambda: str(rng.randint(-3, 4)),
            "k": lambda: rng.choice(("true", "false")),
            "n": lambda: str(rng.randint(0, 3)),
            "s": lambda: rng.choice(("0..2", "{0,2,3}", "{}", "2..1", "-1..9999999", "{1}")),
        }[letter]()

    def domain(self) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            lo = rng.randint(-2, 2)
            return f"{lo}..{lo + rng.randint(0, 3)}"
        return "{" + ",".join(map(str, sorted(rng.sample(range(-2, 5), rng.randint(1, 4))))) + "}"

    def tie(self) -> str:
        rng = self.rng
        if rng.random() < 0.3:
            return f"constraint {rng.choice(['bool_not', 'bool_eq'])}({', '.join(rng.sample('abc', 2))});"
        factors, names = f"[{rng.choice((1, -1))}, {rng.choice((1, -1))}]", ", ".join(rng.sample("xyzw", 2))
        return f"constraint int_lin_eq({factors}, [{names}], {rng.randint(-3, 5)});"

    def model(self, constraints: list[str], ties: int = 0) -> str:
        lines = [f"var {self.domain()}: {x} :: output_var;" for x in "xyzw"]
        lines += [f"var bool: {b} :: output_var;" for b in "abc"]
        lines += [self.tie() for _ in range(ties)]
        for name in constraints:
            arguments = ", ".join(self.argument(kind) for kind in SIGNATURES[name].split())
            lines.append(f"constraint {name}({arguments});")
        return "\n".join([*lines, "solve satisfy;"])


def check(text: str) -> None:
    found = [{name: int(value) for name, value in solution.items()} for solution in solved(text)]
    expected = list(reference.solutions(reference.read(text)))
    key = lambda solution: tuple(sorted(solution.items()))  # noqa: E731
    assert sorted(found, key=key) == sorted(expected, key=key), text


@pytest.mark.parametrize("name", SIGNATURES)
def test_one_constraint_allows_what_its_words_say(name: str) -> None:
    maker = Maker(random.Random(name))
    for _ in range(12):
        check(maker.model([name]))
    for ties in (1, 1, 1, 2, 2, 3):
        check(maker.model([name], ties))


class Narrow(Maker):
    """Almost always the same variable."""

    def one_of(self, names: str, constants: range | tuple[str, ...]) -> str:
        return super().one_of("xxxy" if "x" in names else "aab", constants)


@pytest.mark.parametrize("name", SIGNATURES)
def test_one_variable_in_many_places(name: str) -> None:
    maker = Narrow(random.Random(name))
    for ties in [0] * 25 + [1] * 10:
        check(maker.model([name], ties))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("var 1..3: x; constraint array_int_element(x, [2, 3, 9], x)", []),
        ("var {-1,0,2}: x; constraint fzn_count_eq([x, -1, x, -5], -1, x)", []),
        ("var {1,3,5}: x; constraint fzn_count_eq([x, x], 5, x)", []),
        ("var 3..9999999: x; constraint fzn_count_eq([3, 5, 7], x, x)", []),
        ("var 1..9999999: x; constraint fzn_count_eq([1, 5, 7], x, x)", [1]),
        ("var 2..9: x; constraint array_int_element(x, [9, 2, 4, 3], x)", [2]),
    ],
)
def test_what_a_constraint_changes_of_its_own_variables_wakes_it(text: str, expected: list[int]) -> None:
    text = text.replace(": x", ": x :: output_var")
    assert [s["x"] for s in solved(f"{text}; solve satisfy;")] == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(sorted(SIGNATURES)), min_size=2, max_size=5), st.randoms(use_true_random=False))
def test_several_constraints_together(names: list[str], rng: random.Random) -> None:
    check(Maker(rng).model(names, rng.randint(0, 3)))


@pytest.mark.parametrize("annotation", ["", ":: domain", ":: bounds", ":: value"])
def test_all_different_at_each_consistency(annotation: str) -> None:
    text = f"""array [1..3] of var 1..3: x :: output_array([1..3]);
    constraint fzn_all_different_int(x) {annotation}; constraint int_lt(x[1], x[2]); solve satisfy;"""
    assert sorted(tuple(s["x"]) for s in solved(text)) == [(1, 2, 3), (1, 3, 2), (2, 3, 1)]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            *[st.sampled_from("vwxyz")] * 2, st.sampled_from([-1, 1]), st.sampled_from([-1, 1]), st.integers(-3, 3)
        ),
        max_size=6,
    )
)
def test_equations_of_two_variables_are_views(ties: list[tuple[str, str, int, int, int]]) -> None:
    lines = [f"var -1..2: {name} :: output_var;" for name in "vwxyz"]
    lines += [f"constraint int_lin_eq([{a},{b}],[{x},{y}],{c});" for x, y, a, b, c in ties]
    check("\n".join([*lines, "solve satisfy;"]))
